package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

func expand(t *testing.T, rates string) []plan.Plan {
	t.Helper()
	cells, err := plan.Expand(plan.Values{Knobs: map[string][]string{"duration": {"10s"}, "rate": {rates}}})
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

func TestForthAndBack(t *testing.T) {
	s, err := newSeries(expand(t, "1,2,3"), 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []turn{{0, 1}, {1, 1}, {2, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 3}, {1, 3}, {2, 3}}
	if d := cmp.Diff(want, s.turns, cmp.AllowUnexported(turn{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got, want := s.load(s.turns[2:]), 70*time.Second; got != want {
		t.Errorf("load of the last seven: %v, want %v", got, want)
	}
}

func TestSeriesRefused(t *testing.T) {
	labels, err := plan.Expand(plan.Values{Knobs: map[string][]string{"duration": {"10s"}, "label": {"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cells  []plan.Plan
		rounds int
		says   string
	}{
		{expand(t, "1"), 0, "--repeat 0 is not 1 or more"},
		{expand(t, "1"), -3, "--repeat -3 is not 1 or more"},
		{expand(t, "1,2"), 5001, "2 runs, 5001 times, are more than the 10000"},
		{expand(t, "1,2"), 1 << 62, "are more than the 10000"},
		{labels, 1, "runs 1 and 2 are equal in every condition"},
	} {
		if _, err := newSeries(tt.cells, tt.rounds); err == nil || !strings.Contains(err.Error(), tt.says) || failure(nil, err).Code != Usage {
			t.Errorf("error %v, want %q", err, tt.says)
		}
	}
	if s, err := newSeries(expand(t, "1,2"), 5000); err != nil || len(s.turns) != 10_000 {
		t.Errorf("10,000 runs are refused: %v", err)
	}
}

// made is the report of a run of a plan, as a test would save it.
func made(p plan.Plan, from result.Provenance) *store.Report {
	r := storetest.Report(10)
	from.ConfigText = p.ConfigText
	r.Plan, r.Provenance = p.Record(), from
	return r
}

// Only fit reports of the very same cell count, and as many rounds as there are are left out.
func TestResume(t *testing.T) {
	cells := expand(t, "1,2,3")
	from := storetest.Report(10).Provenance
	other := from
	other.Relay.SHA256 = "ffff46b68ffc68f0"
	another := from
	another.Host.Name = "bench2"
	configured := cells[2]
	configured.ConfigText = "limits: {}"
	unfit := made(cells[1], from)
	unfit.Result.Cancelled = "interrupted"
	labelled := made(cells[0], from)
	labelled.Plan["label"] = "of another day"
	labelled.Provenance.Series = result.Series{ID: "x", Position: 1, Of: 3, Round: 1}
	labelled.Provenance.Host.Load1 = 7
	labelled.Result.Relay.ConfigHash = "0123"

	db := storetest.Open(t)
	for _, r := range []*store.Report{made(cells[0], from), labelled, unfit, made(cells[1], other), made(cells[2], another), made(configured, from)} {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		rounds int
		want   []turn
	}{
		{1, []turn{{1, 1}, {2, 1}}},
		{3, []turn{{1, 1}, {2, 1}, {2, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}},
	} {
		s, err := newSeries(cells, tt.rounds)
		if err != nil {
			t.Fatal(err)
		}
		all := len(s.turns)
		if err := s.resume(db, from); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, s.turns, cmp.AllowUnexported(turn{})); d != "" || s.had != all-len(tt.want) {
			t.Errorf("%d rounds, %d left out (-want +got)\n%s", tt.rounds, s.had, d)
		}
	}
}

func TestOverhead(t *testing.T) {
	db := storetest.Open(t)
	g, err := overhead(db, "path")
	if want := (guess{took: 5 * time.Second}); err != nil || g != want {
		t.Errorf("of no run: %v, %v, want %v", g, err, want)
	}
	for _, beside := range []time.Duration{9 * time.Second, 3 * time.Second, 4 * time.Second, -time.Hour} { // the last: the clock was set back
		r := storetest.Report(10)
		r.Result.Ended = r.Result.Started.Add(10*time.Second + beside)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	stopped := storetest.Report(10)
	stopped.Result.Cancelled, stopped.Result.Ended = "interrupted", stopped.Result.Started.Add(time.Hour)
	if err := db.Save(stopped); err != nil {
		t.Fatal(err)
	}
	g, err = overhead(db, "path")
	if want := (guess{4 * time.Second, 3}); err != nil || g != want {
		t.Errorf("%v, %v, want %v", g, err, want)
	}
	if g, err = overhead(db, "stand-in"); err != nil || g.of != 0 {
		t.Errorf("of another relay: %v, %v", g, err)
	}
}
