package store_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"relaybench/store"
)

// The goals are of a whole process, of which this is nearly all: 100,000
// reports in at most 0.2 s, under 200 MB, and ten times as many in at most 11 times that.
func BenchmarkCollate(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		if n > 100_000 && testing.Short() {
			continue
		}
		path := generated(b, n)
		for _, c := range []struct {
			name string
			q    store.Collation
		}{
			{"branch", store.Collation{Variable: "relay-branch", Margin: store.DefaultMargin, NoSingles: true}},
			{"one-mix", store.Collation{Variable: "relay-branch", Margin: store.DefaultMargin, Filters: filters(b, "mix=errors", "rate=200")}},
			{"rate", store.Collation{Variable: "rate", Margin: store.DefaultMargin, NoSingles: true}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				rows, before := 0, used(b)
				for b.Loop() {
					db, err := store.Open(path)
					if err != nil {
						b.Fatal(err)
					}
					got, err := db.Collate(c.q)
					if err != nil || len(got.Groups) == 0 {
						b.Fatalf("%d groups, %v", len(got.Groups), err)
					}
					rows = 0
					for _, p := range got.Groups {
						rows += len(p.Rows)
					}
					if err := db.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(rows), "rows")
				b.ReportMetric(float64((used(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// used is the CPU that this process has used: what time tells on a busy machine.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
