package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/storetest"
)

// generated is the path of a store of n reports, of 8 branches by 12 rates by 5 mixes.
func generated(b testing.TB, n int) string {
	b.Helper()
	return generateAt(b, filepath.Join(b.TempDir(), "relaybench.db"), n)
}

// TestGenerated makes the store that .ci/peers has a whole process collate.
func TestGenerated(t *testing.T) {
	path := os.Getenv("RELAYBENCH_GENERATE")
	if path == "" {
		t.Skip("writes a store of 100,000 reports to the file that RELAYBENCH_GENERATE names")
	}
	generateAt(t, path, 100_000)
}

func generateAt(b testing.TB, path string, n int) string {
	b.Helper()
	db, err := store.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	r := storetest.Report(10)
	mixes := []string{"errors", "logs", "transactions", "errors=3,logs=1", "mixed"}
	at := time.Date(2026, 11, 30, 16, 45, 2, 0, time.UTC)
	err = db.Generate(n, func(i int) *store.Report {
		relay := &r.Provenance.Relay
		branch := i / 7 % 8
		relay.Branch, relay.Revision, relay.SHA256 = "branch-"+strconv.Itoa(branch), fmt.Sprintf("%040x", i/5000*8+branch), fmt.Sprintf("%064x", i/5000*8+branch)
		r.Plan["rate"], r.Plan["mix"] = strconv.Itoa(100*(1+i%12)), mixes[i%len(mixes)]
		r.ID, r.Own = fmt.Sprintf("%s-%06x", at.Add(time.Duration(i)*time.Minute).Format("20060102-150405"), i), true
		r.Result.Started = at.Add(time.Duration(i) * time.Minute)
		r.Result.Ended = r.Result.Started.Add(15 * time.Second)
		r.Result.Relay.CPUDrain += int64(i % 1000 * 1e6)
		r.Result.Relay.RSSPeak = 90<<20 + int64(i*7919%4096)<<10
		r.Result.Samples[len(r.Result.Samples)-1].Arrived = uint64(1900 + i*31%100)
		return r
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	return db.Path()
}

func openAt(b *testing.B, path string) *store.DB {
	b.Helper()
	db, err := store.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

func filters(b testing.TB, texts ...string) (fs []store.Filter) {
	b.Helper()
	for _, text := range texts {
		f, err := store.ParseFilter(text, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		fs = append(fs, f)
	}
	return fs
}

// The goal for `reports -n 20` of 100,000 is 50 ms with opening the store, and
// for reading and grouping all of them well under 200 ms.
func BenchmarkEntries(b *testing.B) {
	for _, n := range []int{100_000} {
		path := generated(b, n)
		b.Run(fmt.Sprintf("%d/open", n), func(b *testing.B) {
			for b.Loop() {
				db, err := store.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if entries, cut, err := db.Entries(nil, store.Newest{N: 20}); err != nil || len(entries) != 20 || cut != n-20 {
					b.Fatalf("%d entries, %d cut, %v", len(entries), cut, err)
				}
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		db := openAt(b, path)
		for _, c := range []struct {
			name  string
			by    []store.Filter
			limit store.Newest
		}{
			{"newest", nil, store.Newest{N: 20}},
			{"cell-newest", filters(b, "mix=errors", "rate>=500"), store.Newest{N: 20}},
			{"entry-newest", filters(b, "through-p99>1ms", "host-load<5", "started>2026-12-01"), store.Newest{N: 20}},
			{"cell", filters(b, "mix=errors", "rate>=500"), store.Newest{}},
			{"all", nil, store.Newest{}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if entries, _, err := db.Entries(c.by, c.limit); err != nil || len(entries) == 0 {
						b.Fatalf("%d entries, %v", len(entries), err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%d/group", n), func(b *testing.B) {
			b.ReportAllocs()
			groups := 0
			for b.Loop() {
				entries, _, err := db.Entries(nil, store.Newest{})
				if err != nil {
					b.Fatal(err)
				}
				by := map[string][]float64{}
				for i := range entries {
					key := entries[i].Group("relay-branch")
					if v, ok := entries[i].Metric("cpu-per-envelope"); ok {
						by[key] = append(by[key], v)
					}
				}
				groups = len(by)
			}
			b.ReportMetric(float64(groups), "groups")
		})
	}
}
