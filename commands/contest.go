package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/stats"
)

// contest is sides that take turns on one machine: A B B A A B …, after a run
// of each that is discarded. Each other run is a saved report of the series id.
type contest struct {
	id      string
	sides   []*side
	turns   []turn // whose cells are the numbers of sides
	metric  *store.Metric
	done    int        // turns that were made
	saved   int        // reports of them
	cold    bool       // without the runs that are discarded
	marked  bool       // medians are of values too that marks make unfit
	force   bool       // also where the metric has no value in those
	closing string     // the line that judges what there is, for an error that ends it; empty: there is none
	search  *searching // not nil: each turn is a search for the rate that a side keeps up with
}

// side is one of those that take turns: a relay, and what is run against it.
type side struct {
	name   string // A, B
	plan   plan.Plan
	values []float64 // of the contest's metric, in the order of its runs: those that are known and fit
	*runner
}

// newContest is one of n runs a side; metric is what is told while it goes.
func newContest(sides []*side, n int, metric *store.Metric) *contest {
	return &contest{id: newSeriesID(time.Now()), sides: sides, turns: forthAndBack(len(sides), n), metric: metric}
}

// run makes all runs. Its error says what there is by then.
func (c *contest) run(ctx context.Context, s *Session) error {
	beside, err := overhead(c.metricDB(), c.sides[0].program.Form)
	if err != nil {
		return err
	}
	took := beside.took
	for i, d := range c.sides {
		if c.cold {
			break
		}
		if err := s.live("warm-up run of %s, not saved\n", d.name); err != nil {
			return err
		}
		begun := time.Now()
		if err := c.warmUp(ctx, s, i, took); err != nil {
			return hinted(fmt.Errorf("warm-up run of %s: %w", d.name, err), "no run was saved")
		}
		took = max(0, time.Since(begun)-lasts(d.plan))
	}
	in := result.Series{ID: c.id}
	for i, t := range c.turns {
		d := c.sides[t.cell]
		if ctx.Err() != nil {
			return c.ended(context.Cause(ctx))
		}
		if err := d.same(ctx); err != nil {
			return c.ended(err)
		}
		in.Round, in.Side = t.round, d.name
		if c.search != nil {
			if err := c.seek(ctx, s, d, in); err != nil {
				return c.ended(err)
			}
			continue
		}
		in.Of, in.Position = len(c.turns), i+1
		where := c.at(s, t, len(c.turns)-i, took)
		where.run = i + 1
		begun := time.Now()
		report, err := d.once(ctx, d.plan, in, where)
		if report != nil && report.ID != "" {
			c.done, c.saved = c.done+1, c.saved+1
		}
		if err != nil {
			return c.ended(err)
		}
		took = max(0, time.Since(begun)-lasts(d.plan))
		if err := s.live("run %d of %d, %s: %s\n", i+1, len(c.turns), d.name, c.told(d, report)); err != nil {
			return err
		}
	}
	return nil
}

// seek makes a search for a side, whose steps are reports of the series.
func (c *contest) seek(ctx context.Context, s *Session, d *side, in result.Series) error {
	q := *c.search
	q.base, in.Position = d.plan, c.saved
	found, err := d.runner.search(ctx, &q, in, func(f *capacity, t step) error {
		s.note("search %d of %d, %s: step %d at %s: %s\n", c.done+1, len(c.turns), d.name, len(f.steps), quantity(t.rate, "sends/s"), t.words())
		return nil
	})
	if found != nil {
		c.saved += len(found.steps)
	}
	if err != nil {
		return err
	}
	c.done++
	if found.End == endFound {
		d.values = append(d.values, found.Low())
	}
	said := found.String()
	if m := c.medians(); m != "" && c.done > 1 {
		said += "; medians " + m
	}
	return s.live("search %d of %d, %s: %s\n", c.done, len(c.turns), d.name, said)
}

// live says how something goes that takes long: to a person, and for programs and pages beside what is printed.
func (s *Session) live(format string, args ...any) error {
	if s.format == Text {
		return s.printf(format, args...)
	}
	s.note(format, args...)
	return nil
}

// gap is what stands before a new part of what is said.
func (s *Session) gap() string {
	if s.format == Text {
		return "\n"
	}
	return ""
}

// metricDB is the store of the runs.
func (c *contest) metricDB() *store.DB { return c.sides[0].db }

// warmUp makes a run of a side that is not kept.
func (c *contest) warmUp(ctx context.Context, s *Session, number int, beside time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d := c.sides[number]
	where := c.at(s, turn{cell: number}, len(c.turns)+len(c.sides)-number, beside)
	report, err := d.observe(ctx, d.plan, where, nil)
	switch {
	case err != nil && report.Result != nil:
		return s.runError(err, report)
	case err != nil:
		return err
	}
	if c.search != nil {
		return nil
	}
	if _, ok := c.metric.Of(report); !ok && !c.force {
		return noValueError{c.metric.Name}
	}
	return nil
}

// noValueError says that a metric is unknown in a run that is not kept, as it would be in all others.
type noValueError struct{ metric string }

func (e noValueError) Error() string { return e.metric + " has no value" }

// at is the place of a turn, from which on so many runs are to be made that each take beside their load so long.
func (c *contest) at(s *Session, t turn, runs int, beside time.Duration) place {
	d := c.sides[t.cell]
	left := time.Duration(runs) * (lasts(d.plan) + beside)
	s.expect(left)
	ends := time.Now().Add(left)
	where := place{of: len(c.turns), side: d.name, left: func() time.Duration { return time.Until(ends) }}
	if len(c.sides) == 2 {
		where.soFar = c.medians()
	}
	return where
}

// told is what a run's report says of the metric, and the medians with it.
func (c *contest) told(d *side, r *store.Report) string {
	v, ok := c.metric.Of(r)
	by, unfit := store.Unfit(store.MarksOf(r), c.metric.Name)
	said := c.metric.Name + " has no value"
	if ok {
		said = c.metric.Name + " " + quantity(v, c.metric.Unit)
		if unfit {
			said += ", which mark " + by + " makes unfit"
		}
		if c.marked || !unfit {
			d.values = append(d.values, v)
		}
	}
	if len(c.sides) > 2 { // one line has no room for all of them
		if n := len(d.values); n > 1 {
			said += fmt.Sprintf("; median of %d: %s", n, quantity(stats.Summarize(d.values).Median, c.metric.Unit))
		}
	} else if m := c.medians(); m != "" && c.done > 1 {
		said += "; medians " + m
	}
	return said
}

// medians are those of each side that has a value.
func (c *contest) medians() string {
	var parts []string
	for _, d := range c.sides {
		if sum := stats.Summarize(d.values); sum.N > 0 {
			parts = append(parts, d.name+" "+quantity(sum.Median, c.metric.Unit))
		}
	}
	return strings.Join(parts, ", ")
}

// what is what the turns are.
func (c *contest) what() string {
	if c.search != nil {
		return "searches"
	}
	return "runs"
}

// ended is the error that ended it, with what can be made of the runs until then.
func (c *contest) ended(err error) error {
	if c.saved == 0 {
		return hinted(err, "no run was saved")
	}
	hint := fmt.Sprintf("%d of %d %s were made, and are saved: reports series=%s", c.done, len(c.turns), c.what(), c.id)
	if c.closing != "" {
		hint += "; what they say: " + c.closing
	}
	return hinted(err, hint)
}
