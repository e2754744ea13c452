package store_test

import (
	"errors"
	"fmt"
	"slices"
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
