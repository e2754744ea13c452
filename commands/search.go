package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/harness/variable"
)

var searchCommand = command{
	name:    "search",
	summary: "find the highest rate that the relay keeps up with",
	detail: fmt.Sprintf(`The rate is doubled until the relay does not keep up, then the bracket is halved to %s.
To keep up is: the backlog (sent, less arrived, outcomes and refused) does not grow by more than
1%% of the rate, and nothing is refused, fails or is lost. What was accepted says nothing: Relay
answers before it processes. Each step is a saved report, of a fresh relay and upstream; each end of the
bracket is run twice, and where the two contradict each other, three times.

Where all was not sent, or the upstream or other programs were the limit, a step says nothing of
the relay: the search ends with what is known, and with exit code 5. With 2 it ends where no
bracket was found in %d steps.`, marginText(bracketWidth), mostSteps),
	args:     []arg{{name: "DURATION", help: "how long the load of each step lasts, 10s or more; 10s", optional: true}},
	examples: []string{"search", "search 10s --from 200 --mix errors", "search 20s --repeat 3 -E http.encoding=gzip"},
	store:    true,
	table:    true,
	queue:    inTurn(searched, (*Session).aboutSearch, (*Session).search),
	explain:  foretold(searched, (*Session).explainSearch),
}

// searching is what a line asks of search.
type searching struct {
	base     plan.Plan // whose rate is of no account
	from, to float64   // to 0: no limit
	repeat   int
}

const (
	leastSearch   = 10 * time.Second // the load of a step: the slope is not judged over less
	defaultFrom   = "100"
	mostSearches  = 100
	usualSteps    = 13 // of a search whose first rate is within a few times of what it finds
	searchedFlags = "rate"
)

// searched binds the flags of search, and gives what reads what was typed for them.
func searched(fs *pflag.FlagSet) func(ctx context.Context, s *Session, args []string) (*searching, error) {
	from := fs.String("from", defaultFrom, "the rate of the first step, `R` sends/s")
	to := fs.String("to", "", "the highest rate that is tried, `R` sends/s")
	repeat := fs.Int("repeat", 1, "search `N` times, and say how far apart the results lie")
	typed := planFlags(fs, searchedFlags)
	fs.Var(refused("it is what a search looks for: --from and --to bound it"), searchedFlags, "not to be given, as it is what is searched: --from and --to bound it")
	return func(_ context.Context, s *Session, args []string) (*searching, error) {
		duration := leastSearch.String()
		if len(args) > 0 {
			duration = args[0]
		}
		plans, err := s.plans(typed, duration)
		if err != nil {
			return nil, err
		}
		if len(plans) > 1 {
			differ, _ := apart(plans)
			return nil, usageError(fmt.Errorf("a search is of one plan, and here are %d: %s has a list", len(plans), oneOf(differ)), "type a search for each value")
		}
		q := &searching{base: plans[0], repeat: *repeat}
		if q.from, err = parseBound("from", *from); err != nil {
			return nil, err
		}
		if *to != "" {
			if q.to, err = parseBound("to", *to); err != nil {
				return nil, err
			}
		}
		return q, q.check()
	}
}

// refused is a flag that is known so that it can be said why it is not taken.
type refused string

func (r refused) Set(string) error { return errors.New(string(r)) }
func (r refused) String() string   { return "" }
func (r refused) Type() string     { return "RATE" }

// parseBound reads the rate of a flag.
func parseBound(flag, text string) (float64, error) {
	canon, err := variable.Rate.Canon(text)
	if err == nil && canon == "max" {
		err = errors.New("max is no rate that a search can try: it is a closed loop")
	}
	if err != nil {
		return 0, usageError(fmt.Errorf("--%s: %w", flag, err), "")
	}
	return strconv.ParseFloat(canon, 64)
}

// check says what of it cannot be done.
func (q *searching) check() error {
	switch {
	case q.base.Duration < leastSearch:
		return usageError(fmt.Errorf("%s of load is too short for a search: the backlog's slope is judged over %s or more", variable.ShortDuration(q.base.Duration), variable.ShortDuration(leastSearch)), "")
	case q.from < leastRate:
		return usageError(fmt.Errorf("--from %g is under %g a second", q.from, leastRate), "")
	case q.to > 0 && q.to < q.from:
		return usageError(fmt.Errorf("--to %g is under --from %g", q.to, q.from), "")
	case q.repeat < 1 || q.repeat > mostSearches:
		return usageError(fmt.Errorf("--repeat %d is not between 1 and %d", q.repeat, mostSearches), "")
	}
	return nil
}

// at is the plan of a step.
func (q *searching) at(rate float64) plan.Plan {
	p := q.base
	p.Rate = rate
	return p
}

// aboutSearch is how long it usually takes.
func (s *Session) aboutSearch(q *searching) (time.Duration, error) {
	ref, err := s.inUse()
	if err != nil {
		return 0, err
	}
	db, err := s.indexed()
	if err != nil {
		return 0, err
	}
	beside, err := overhead(db, ref.form())
	return time.Duration(q.repeat*usualSteps) * (lasts(q.base) + beside.took), err
}

// search makes one search for the runner's relay. Its reports have the places
// in the series in after those that it has; tell hears of each step. What was found until an error is given too.
func (r *runner) search(ctx context.Context, q *searching, in result.Series, tell func(c *capacity, s step) error) (*capacity, error) {
	c := &capacity{Series: in.ID, Round: in.Round, hunt: hunt{from: q.from, to: q.to}}
	beside, err := overhead(r.db, r.program.Form)
	if err != nil {
		return c, err
	}
	for {
		rate, end := c.next()
		if end != "" {
			c.End = end
			return c, nil
		}
		s, took, err := r.step(ctx, q, c, rate, in, beside.took)
		if err != nil {
			c.End = endStopped
			return c, err
		}
		in.Position++
		beside.took = max(0, took-lasts(q.base))
		c.steps = append(c.steps, s)
		if err := tell(c, s); err != nil {
			return c, err
		}
	}
}

// step makes one run of a search, and says how long it took.
func (r *runner) step(ctx context.Context, q *searching, c *capacity, rate float64, in result.Series, beside time.Duration) (step, time.Duration, error) {
	if ctx.Err() != nil {
		return step{}, 0, context.Cause(ctx)
	}
	if in.Position > 0 {
		if err := r.same(ctx); err != nil {
			return step{}, 0, err
		}
	}
	in.Position++
	left := c.left()
	one := lasts(q.base) + beside
	begun := time.Now()
	ends := begun.Add(time.Duration(left+max(0, q.repeat-in.Round)*usualSteps) * one)
	r.s.expect(time.Until(ends))
	where := place{run: len(c.steps) + 1, of: len(c.steps) + left, round: in.Round, rounds: q.repeat, left: func() time.Duration { return time.Until(ends) }}
	report, err := r.once(ctx, q.at(rate), in, where)
	if err != nil {
		return step{}, 0, err
	}
	return judgeStep(rate, report), time.Since(begun), nil
}

// search makes the searches of a line against the relay that is in use now.
func (s *Session) search(ctx context.Context, q *searching) (Code, error) {
	r, err := s.newRunner(ctx, nil)
	if err != nil {
		return Fine, err
	}
	if err := checkConfigs(ctx, r.program, []plan.Plan{q.base}); err != nil {
		return Fine, err
	}
	in := result.Series{ID: newSeriesID(time.Now())}
	if err := s.tellSearch(q, r); err != nil {
		return Fine, err
	}
	var all []*capacity
	code := Fine
	for in.Round = 1; in.Round <= q.repeat; in.Round++ {
		if q.repeat > 1 && s.format == Text {
			if err := s.printf("search %d of %d\n", in.Round, q.repeat); err != nil {
				return code, err
			}
		}
		c, err := r.search(ctx, q, in, s.tellStep)
		in.Position += len(c.steps)
		all = append(all, c)
		if err == nil && s.format == Text {
			err = s.printf("%s\n\n", s.wrap(c.String()))
		}
		if err != nil {
			return code, s.searchEnded(all, err)
		}
		code = Gravest(code, c.code())
	}
	return code, s.printSearch(all)
}

// searchEnded is the error that ended a search, once what was found until then is printed.
func (s *Session) searchEnded(all []*capacity, err error) error {
	last := all[len(all)-1]
	last.End = endStopped
	if len(all) == 1 && len(last.steps) == 0 {
		return err
	}
	if s.format == Text {
		if e := s.printf("%s\n\n", s.wrap(last.String())); e != nil {
			return errors.Join(err, e)
		}
	}
	if e := s.printSearch(all); e != nil {
		return errors.Join(err, e)
	}
	return hinted(err, "the steps that were done were saved: reports series="+last.Series)
}

// tellSearch says what is searched.
func (s *Session) tellSearch(q *searching, r *runner) error {
	if s.format != Text {
		return nil
	}
	return s.printf("%s\n", s.wrap(table.Clean(fmt.Sprintf("%s: %s, %s a step, from %s", r.program, q.base.Mix, variable.ShortDuration(q.base.Duration), quantity(q.from, "sends/s")))))
}

// tellStep says what a step said.
func (s *Session) tellStep(c *capacity, t step) error {
	said := fmt.Sprintf("step %2d  %10s  %s", len(c.steps), quantity(t.rate, "sends/s"), t.words())
	if s.format == Text {
		return s.printf("%s\n", s.wrap(said))
	}
	s.note("%s\n", said)
	return nil
}

// printSearch prints what searches found: for a person the last lines, for programs all of it.
func (s *Session) printSearch(all []*capacity) error {
	switch s.format {
	case Text:
		series := all[0].Series
		if len(all) > 1 {
			if err := s.printf("%s\n", s.wrap(spreadWords(all))); err != nil {
				return err
			}
		}
		return s.printf("series %s: reports series=%s\n", series, series)
	case JSON:
		return s.printJSON(newSearchJSON(all))
	}
	return s.print(searchTable(all))
}

// explainSearch says what a search would do at most.
func (s *Session) explainSearch(ctx context.Context, q *searching) error {
	ref, err := s.inUse()
	if err != nil {
		return err
	}
	db, err := s.indexed()
	if err != nil {
		return err
	}
	if configured([]plan.Plan{q.base}) {
		program, err := s.bench.findRelay(ctx, ref)
		if err != nil {
			return err
		}
		if err := checkConfigs(ctx, program, []plan.Plan{q.base}); err != nil {
			return err
		}
	}
	beside, err := overhead(db, ref.form())
	if err != nil {
		return err
	}
	one := lasts(q.base) + beside.took
	usual, most := time.Duration(q.repeat*usualSteps)*one, time.Duration(q.repeat*mostSteps)*one
	if s.format == JSON || s.format == CSV {
		r := table.Record()
		r.Field("searches", "", table.Int(q.repeat))
		r.Field("from", "", rateCell(q.from))
		r.Field("to", "", rateCell(q.to))
		r.Field("usual_steps", "", table.Int(q.repeat*usualSteps))
		r.Field("most_steps", "", table.Int(q.repeat*mostSteps))
		r.Field("about_ns", "", table.Int(int64(usual)))
		r.Field("most_ns", "", table.Int(int64(most)))
		return s.print(r)
	}
	what := "a search"
	if q.repeat > 1 {
		what = fmt.Sprintf("%d searches", q.repeat)
	}
	bound := ""
	if q.to > 0 {
		bound = fmt.Sprintf(", at most %s", quantity(q.to, "sends/s"))
	}
	return s.sayLines([]string{
		fmt.Sprintf("%s from %s on%s, against %s: usually about %d runs of %s of load, in about %s; at most %d, in %s", what, quantity(q.from, "sends/s"), bound, ref,
			q.repeat*usualSteps, variable.ShortDuration(q.base.Duration), seconds(usual), q.repeat*mostSteps, seconds(most)),
		"doubled until the relay does not keep up, then halved to " + marginText(bracketWidth) + ", and each end run once more"})
}
