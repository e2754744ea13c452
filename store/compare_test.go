package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/stats"
	"relaybench/store/storetest"
)

// began is when the first run of a series starts.
var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// saved saves n runs a side in turns, A B B A …, each made by change.
func saved(t testing.TB, db *store.DB, n int, change func(side, i int, r *store.Report)) {
	t.Helper()
	for i := range 2 * n {
		r := storetest.Report(10)
		at := began.Add(time.Duration(i) * time.Minute)
		r.Result.Started, r.Result.Ended = at, at.Add(15*time.Second)
		change((i+1)/2%2, i, r)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
}

// costs sets Relay's CPU so that it costs so much a send.
func costs(r *store.Report, ms float64) {
	idle := float64(r.Result.Relay.IdleCPU) / float64(r.Result.Relay.IdleTook) * float64(r.Result.DrainEnd-r.Result.LoadStart)
	r.Result.Relay.CPUDrain = r.Result.Relay.CPUStart + int64(idle) + int64(ms*1e6*float64(r.Result.Tally.Sent))
}

func collated(t testing.TB, db *store.DB, q store.Collation) *store.Collated {
	t.Helper()
	if q.Margin == 0 {
		q.Margin = store.DefaultMargin
	}
	c, err := db.Collate(q)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shape is the rows of each group, with how many runs each has.
func shape(groups []store.Peers) (all [][]string) {
	for _, p := range groups {
		var rows []string
		for _, r := range p.Rows {
			rows = append(rows, fmt.Sprintf("%s:%d", r.Value, len(r.Runs)))
		}
		all = append(all, rows)
	}
	return all
}

func TestCollate(t *testing.T) {
	db := storetest.Open(t)
	saved(t, db, 5, func(side, i int, r *store.Report) {
		r.Provenance.Relay.Branch, r.Provenance.Relay.Revision = []string{"main", "perf"}[side], fmt.Sprintf("%040d", side)
		costs(r, []float64{3, 2}[side]*(1+0.002*float64(i%3)))
	})
	c := collated(t, db, store.Collation{Variable: "relay-branch"})
	if got, want := fmt.Sprint(shape(c.Groups)), "[[main:5 perf:5]]"; got != want || c.Reports != 10 || c.Without != 0 {
		t.Fatalf("%s of %d reports, want %s", got, c.Reports, want)
	}
	main, perf := c.Groups[0].Rows[0], c.Groups[0].Rows[1]
	if got := perf.Follows["relay-revision"]; got != fmt.Sprintf("%040d", 1) {
		t.Errorf("perf's revision is %q", got)
	}
	v := perf.Primary.Verdict
	if main.Primary.Verdict != nil || v == nil || v.Answer != stats.Better || !(v.Shift.Value < -0.3 && v.Shift.Value > -0.36) || v.P > 0.01 {
		t.Fatalf("perf against main: %+v", v)
	}
	if &perf.Cells[0] != perf.Primary || !perf.Primary.Order.Interleaved || !perf.Primary.DriftKnown || perf.Primary.Drifted() {
		t.Errorf("cell %+v", perf.Primary)
	}
	for _, cell := range perf.Cells[1:] {
		if cell.Verdict.Answer != stats.NoDifference {
			t.Errorf("%s: %s", cell.Metric.Name, cell.Verdict.Answer)
		}
	}
	if c.Shared["mix"] != "errors=3,logs=1" || c.Shared["host"] != "bench1" || len(c.Groups[0].Differs) != 0 {
		t.Errorf("shared %v, differs %v", c.Shared, c.Groups[0].Differs)
	}
	if c := collated(t, db, store.Collation{Variable: "relay-branch", Baseline: "perf"}); c.Groups[0].Rows[0].Primary.Verdict.Answer != stats.Worse {
		t.Errorf("main against perf: %+v", c.Groups[0].Rows[0].Primary.Verdict)
	}
	var unknown *store.BaselineError
	if _, err := db.Collate(store.Collation{Variable: "relay-branch", Baseline: "mian"}); !errors.As(err, &unknown) || unknown.Near != "main" {
		t.Errorf("baseline mian: %v", err)
	}
	if c := collated(t, db, store.Collation{Variable: "relay-revision", Sort: []store.Criterion{{Name: "cpu-per-envelope"}}}); c.Groups[0].Rows[0].Follows["relay-branch"] != "perf" {
		t.Errorf("by CPU: %v", shape(c.Groups))
	}
	if !slices.IsSortedFunc(main.Runs, func(a, b store.Run) int { return a.Start.Compare(b.Start) }) {
		t.Error("runs are not the oldest first")
	}
}

// Whatever reports are compared by, those that differ in something else are
// another group, and what follows from the named one is not something else.
func TestCollateBy(t *testing.T) {
	db := storetest.Open(t)
	saved(t, db, 2, func(side, i int, r *store.Report) {})
	for i, change := range []func(r *store.Report){
		func(r *store.Report) { r.Plan["rate"] = "500" },
		func(r *store.Report) { r.Plan["duration"] = "20s" },
		func(r *store.Report) { delete(r.Plan, "http.encoding"); r.Result.Relay.ConfigHash = "1" },
		func(r *store.Report) {
			r.Plan["http.encoding"] = "gzip"
			r.Result.Relay.ConfigHash = "2"
		},
		func(r *store.Report) { r.Provenance.Host.Name, r.Provenance.Host.CPUs = "bench2", 8 },
		func(r *store.Report) {
			r.Provenance.Relay.Branch, r.Provenance.Relay.Revision, r.Provenance.Relay.SHA256 = "perf", "aa", "bb"
		},
		func(r *store.Report) { r.Plan["label"] = "again"; r.Provenance.Series.Position = 7 },
		func(r *store.Report) { r.Plan["mix"] = "errors=1" },
	} {
		r := storetest.Report(10)
		r.Result.Started = began.Add(time.Duration(100+i) * time.Minute)
		change(r)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		by, filter, want string
		without, singles int
	}{
		{"rate", "", "[[200:5 500:1]]", 0, 6},
		{"duration", "", "[[10s:5 20s:1]]", 0, 6},
		{"http.encoding", "", "[[(not set):1 gzip:1 zstd:5]]", 0, 5},
		{"host", "", "[[bench1:5 bench2:1]]", 0, 6},
		{"host-cpus", "", "[]", 0, 8}, // bench2 is another host in more than that
		{"relay-branch", "", "[[main:5 perf:1]]", 0, 6},
		{"relay-sha256", "", "[[2c26b46b68ffc68f:5 bb:1]]", 0, 6},
		{"label", "", "[]", 11, 1},
		{"mix", "mix=errors", "[]", 0, 1},
		{"mix", "", "[[errors:1 errors=3,logs=1:5]]", 0, 6},
		{"rate", "rate>=500", "[]", 0, 1},
		{"rate", "started<2026-11-30T13:00", "[]", 0, 1},
	} {
		t.Run(tt.by+" "+tt.filter, func(t *testing.T) {
			q := store.Collation{Variable: tt.by, NoSingles: true}
			if tt.filter != "" {
				q.Filters = filters(t, tt.filter)
			}
			c := collated(t, db, q)
			if got := fmt.Sprint(shape(c.Groups)); got != tt.want || c.Without != tt.without || len(c.Singles) != tt.singles {
				t.Errorf("%s, %d without, %d singles; want %s, %d, %d", got, c.Without, len(c.Singles), tt.want, tt.without, tt.singles)
			}
			q.NoSingles = false
			if all := collated(t, db, q); len(all.Groups) != len(c.Groups)+len(c.Singles) || len(all.Singles) != 0 {
				t.Errorf("with singles %d groups, want %d", len(all.Groups), len(c.Groups)+len(c.Singles))
			}
		})
	}

	// More may vary with it, when it is said.
	c := collated(t, db, store.Collation{Variable: "relay-branch", With: []string{"host", "rate", "duration", "mix", "http.encoding"}})
	if got := fmt.Sprint(shape(c.Groups)); got != "[[main:11 perf:1]]" || c.Groups[0].Rows[0].Mixed["host"] != 2 {
		t.Errorf("with others: %s, mixed %v", got, c.Groups[0].Rows[0].Mixed)
	}
	// A metric that no index has is read from the reports.
	c = collated(t, db, store.Collation{Variable: "rate", Metrics: []string{"rss-start", "refused-response-p50"}, NoSingles: true})
	if cells := c.Groups[0].Rows[0].Cells; cells[0].Summary.Median != 60<<20 || cells[1].Summary.N != 0 || cells[1].Unknown != 5 {
		t.Errorf("cells %+v", cells)
	}
	for _, tt := range []struct{ by, want string }{
		{"-rate", "[[500:1 200:5]]"}, {"rate", "[[200:5 500:1]]"}, {"-started", "[[200:5 500:1]]"}, {"label,-rate", "[[200:5 500:1]]"},
		{"-rss-start,-rate", "[[500:1 200:5]]"}, {"cpu-per-envelope,rate", "[[200:5 500:1]]"},
	} {
		by, err := store.ParseSort(tt.by)
		if err != nil {
			t.Fatal(err)
		}
		c := collated(t, db, store.Collation{Variable: "rate", NoSingles: true, Sort: by})
		if got := fmt.Sprint(shape(c.Groups)); got != tt.want {
			t.Errorf("sorted by %s: %s, want %s", tt.by, got, tt.want)
		}
	}
}

// Where no group has two values it is said in what the nearest differ, not in what follows from that.
func TestApart(t *testing.T) {
	db := storetest.Open(t)
	saved(t, db, 2, func(side, i int, r *store.Report) {
		if side == 1 {
			r.Provenance.Relay.Branch, r.Provenance.Relay.Revision = "perf", "aa"
			r.Provenance.Host.Name, r.Provenance.Host.CPUs, r.Provenance.Host.Kernel = "bench2", 8, "7"
			r.Result.Relay.ConfigHash = "77"
		}
	})
	c := collated(t, db, store.Collation{Variable: "relay-branch"})
	if got, want := fmt.Sprint(c.Apart(), c.Telling()), "[{host bench1 bench2}] [host]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := collated(t, db, store.Collation{Variable: "rate"}); c.Apart() != nil {
		t.Errorf("of one rate: %v", c.Apart())
	}
}

// What marks make unfit is left out and counted, and what cannot be read too.
func TestCollateLeavesOut(t *testing.T) {
	db := storetest.Open(t)
	saved(t, db, 4, func(side, i int, r *store.Report) {
		r.Plan["rate"] = []string{"200", "300"}[side]
		switch i {
		case 0:
			r.Result.Harness.Others = 9e9 // host-busy
		case 1:
			r.Result.Cancelled = "by hand"
		case 2:
			r.Result.Relay.MemoryKnown = false
		}
	})
	if err := db.PutRaw("index", "20991130-164502-3f9a1c", []byte("u\x01is of a newer relaybench")); err != nil {
		t.Fatal(err)
	}
	for _, marked := range []bool{false, true} {
		c := collated(t, db, store.Collation{Variable: "rate", Marked: marked})
		if len(c.Unreadable) != 1 || c.Reports != 9 {
			t.Errorf("unreadable %q of %d", c.Unreadable, c.Reports)
		}
		left := map[string]string{}
		for i, m := range c.Metrics {
			a, b := c.Groups[0].Rows[0].Cells[i], c.Groups[0].Rows[1].Cells[i]
			left[m.Name] = fmt.Sprintf("%d+%d %v %v %d+%d", a.Summary.N, b.Summary.N, a.Unfit, b.Unfit, a.Unknown, b.Unknown)
		}
		want := map[string]string{"cpu-per-envelope": "3+3 map[host-busy:1] map[cancelled:1] 0+0", "rss-peak": "4+2 map[] map[cancelled:1] 0+1"}
		if marked {
			want = map[string]string{"cpu-per-envelope": "4+4 map[] map[] 0+0", "rss-peak": "4+3 map[] map[] 0+1"}
		}
		for name, want := range want {
			if left[name] != want {
				t.Errorf("marked %v, %s: %s, want %s", marked, name, left[name], want)
			}
		}
		if !marked {
			if v := c.Groups[0].Rows[1].Primary.Verdict; v.Answer != stats.NoVerdict || v.Why != "needs 4 runs a side, has 3" {
				t.Errorf("verdict %s: %s", v.Answer, v.Why)
			}
		}
	}
	if err := db.PutRaw("index", "20991130-164502-3f9a1c", nil); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"-revision-date,cpu-per-envelope", "rate", "all", "+rate, -http.encoding", ",", "--rate", "-", "rss-peak,rss-peak", "\x00", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if by, err := store.ParseSort(text); err == nil {
			for _, k := range by {
				if _, ok := store.FindVariable(k.Name); !ok && store.FindMetric(k.Name) == nil {
					t.Errorf("%q: unknown %q", text, k.Name)
				}
			}
			if len(by) != strings.Count(text, ",")+1 {
				t.Errorf("%q: %d criteria", text, len(by))
			}
		}
		if names, err := store.ParseMetrics(text); err == nil {
			for i, n := range names {
				if store.FindMetric(n) == nil || slices.Contains(names[:i], n) {
					t.Errorf("%q: %q", text, names)
				}
			}
		}
	})
}
