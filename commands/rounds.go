package commands

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/store"
)

// series is the runs that one line asks for.
type series struct {
	cells  []plan.Plan
	rounds int
	turns  []turn // in the order in which they are made
	had    int    // turns that were left out, for fit reports have them
}

// turn is one run of a series.
type turn struct {
	cell  int // the number of its plan, from 0
	round int // from 1
}

// many says that it asks for several runs, whatever is left of them to do.
func (s *series) many() bool { return len(s.cells)*s.rounds > 1 }

// maxTurns bounds what one line can ask for.
const maxTurns = 10_000

// newSeries is a series of plans, round by round forth and back: 1 2 3, 3 2 1,
// 1 2 3. A machine that drifts does so for all of them alike.
func newSeries(cells []plan.Plan, rounds int) (*series, error) {
	switch {
	case rounds < 1:
		return nil, usageError(fmt.Errorf("--repeat %d is not 1 or more", rounds), "")
	case rounds > maxTurns/len(cells):
		return nil, usageError(fmt.Errorf("%d runs, %d times, are more than the %d that one line may ask for", len(cells), rounds, maxTurns), "")
	}
	seen := map[string]int{}
	for i, p := range cells {
		key := cellKey(p, result.Provenance{})
		if first, ok := seen[key]; ok {
			return nil, usageError(fmt.Errorf("runs %d and %d are equal in every condition", first+1, i+1), "a label does not tell runs apart; --repeat makes more runs of a plan")
		}
		seen[key] = i
	}
	return &series{cells: cells, rounds: rounds, turns: forthAndBack(len(cells), rounds)}, nil
}

// forthAndBack is the order in which cells take turns: 1 2 3, 3 2 1, 1 2 3.
func forthAndBack(cells, rounds int) []turn {
	turns := make([]turn, 0, cells*rounds)
	for round := 1; round <= rounds; round++ {
		for i := range cells {
			if round%2 == 0 {
				i = cells - 1 - i
			}
			turns = append(turns, turn{i, round})
		}
	}
	return turns
}

// cellKey is a run's identity: all of its conditions that are known before it.
func cellKey(p plan.Plan, from result.Provenance) string {
	from.ConfigText, from.MixSHA256 = p.ConfigText, p.MixSHA256()
	return store.EntryOf(&store.Report{Plan: p.Record(), Provenance: from}).Group("config-hash")
}

// resume leaves out the turns that fit reports have already: of each plan, as
// many rounds as there are.
func (s *series) resume(db *store.DB, from result.Provenance) error {
	cells := map[string]int{}
	for i, p := range s.cells {
		cells[cellKey(p, from)] = i
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		return err
	}
	fit := make([]int, len(s.cells))
	for i := range entries {
		if e := &entries[i]; e.Fit() {
			if cell, ok := cells[e.Group("config-hash")]; ok {
				fit[cell]++
			}
		}
	}
	all := len(s.turns)
	s.turns = slices.DeleteFunc(s.turns, func(t turn) bool { return t.round <= fit[t.cell] })
	s.had = all - len(s.turns)
	return nil
}

// load is how long the loads of turns are in all.
func (s *series) load(turns []turn) time.Duration {
	var sum time.Duration
	for _, t := range turns {
		sum += s.cells[t.cell].Duration
	}
	return sum
}

// lasts is about how long a plan's run takes, without what [guess] is of.
func lasts(p plan.Plan) time.Duration { return p.Duration + harness.Held(p) }

// lasts is that of turns.
func (s *series) lasts(turns []turn) time.Duration {
	var sum time.Duration
	for _, t := range turns {
		sum += lasts(s.cells[t.cell])
	}
	return sum
}

// guess is what a run is expected to take beside its load.
type guess struct {
	took time.Duration
	of   int // how many runs it is the median of; 0: it is a guess
}

// overhead is what the newest runs against such a relay took beside their loads.
func overhead(db *store.DB, form string) (guess, error) {
	const unknown, newest = 5 * time.Second, 20
	f, err := store.ParseFilter("relay-form="+form, time.Now())
	if err != nil {
		return guess{}, err
	}
	entries, _, err := db.Entries([]store.Filter{f}, store.Newest{N: newest})
	if err != nil {
		return guess{}, err
	}
	var took []time.Duration
	for i := range entries {
		e := &entries[i]
		text, _ := e.Var("duration")
		load, err := time.ParseDuration(text)
		to, _ := e.Var("statsd")
		if beside := e.End.Sub(e.Start) - lasts(plan.Plan{Duration: load, Statsd: to}); err == nil && beside > 0 && !marked(e, "cancelled", "failed", "relay-died") {
			took = append(took, beside)
		}
	}
	if len(took) == 0 {
		return guess{took: unknown}, nil
	}
	slices.Sort(took)
	return guess{took[len(took)/2], len(took)}, nil
}

// marked says whether an entry has one of some marks.
func marked(e *store.Entry, names ...string) bool {
	return slices.ContainsFunc(e.Marks(), func(m *store.Mark) bool { return slices.Contains(names, m.Name) })
}

// newSeriesID is the name of a series: when it began, and what tells it from others.
func newSeriesID(now time.Time) string {
	return now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}
