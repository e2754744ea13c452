package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/harness/variable"
	"relaybench/store"
	"relaybench/store/stats"
)

var abCommand = command{
	name:    "ab",
	summary: "compare two relays, or two values of a knob, in turns",
	detail: `A and B are two relays as relay use takes them, two branches, tags or revisions of the
checkout in use whose builds are kept, or one knob or config key with two values: rate=200 rate=300, config=default config=FILE, http.encoding=zstd http.encoding=gzip. The relay
is then the one in use. First a run of each that is not saved, then A B B A A B B A: a machine
that drifts does so for both alike. Every run is a saved report (reports series=…).

The primary metric decides: worse is exit code 1, better and no difference beyond the margin 0,
inconclusive and no verdict 2. Other metrics are corrected for their number, and decide nothing.
The same binary twice is an A/A: what comes out of it is what this machine takes for a difference.`,
	args: []arg{
		{name: "A", help: "the baseline: a relay, a branch, or KNOB=VALUE", path: sidePath, values: sideValues},
		{name: "B", help: "what is compared with it", path: sidePath, values: sideValues},
		innerArg(false),
	},
	examples: []string{"ab ./relay-base ./relay-head test 10s --rate 200", "ab main perf/ua-prefilter test 10s", "ab http.encoding=zstd http.encoding=gzip -n 8 test 10s --mix errors",
		"ab config=default config=relay.yml --margin 3% --primary rss-peak test 20s"},
	store: true,
	table: true,
	line:  true,
	inner: "test",
	queue: inTurn(bindAB, func(s *Session, q *duel) (time.Duration, error) {
		about, _, err := s.aboutAB(q)
		return about, err
	}, (*Session).ab),
	explain: foretold(bindAB, (*Session).explainAB),
}

const (
	defaultRuns = 6    // of a side
	mostRuns    = 1000 // of a side
)

// duel is what a line asks of ab.
type duel struct {
	rivals  [2]rival
	n       int // runs a side
	margin  float64
	primary *store.Metric
	force   bool
	marked  bool
	search  bool // each turn is a search
}

// capacityMetric is what searches are compared by: it is of a search, not of a report.
var capacityMetric = &store.Metric{Name: "capacity", Unit: "sends/s", Better: +1, Help: "the highest rate that a relay keeps up with"}

// bindAB binds the flags of ab, and gives what reads what was typed for them.
func bindAB(fs *pflag.FlagSet) func(ctx context.Context, s *Session, args []string) (*duel, error) {
	n := fs.IntP("number", "n", defaultRuns, "runs a side, `N`")
	margin := fs.String("margin", marginText(store.DefaultMargin), "the difference in `PERCENT` that matters")
	primary := fs.String("primary", store.DefaultPrimary, "the `METRIC` that decides")
	offer(fs, "primary", metricValues)
	force := fs.Bool("force", false, "also where no verdict is to be expected: a margin under the noise, loads that make the primary metric unfit")
	marked := fs.Bool("marked", false, "judge also values that marks make unfit")
	search := fs.Bool("search", false, "let each turn be a search for the highest rate that the side keeps up with (help search), and compare those")
	return func(ctx context.Context, s *Session, args []string) (*duel, error) {
		q := &duel{n: *n, force: *force, marked: *marked, search: *search}
		if q.n < stats.MinRuns || q.n > mostRuns {
			return nil, usageError(fmt.Errorf("-n %d is not between %d and %d runs a side", q.n, stats.MinRuns, mostRuns), "with fewer there is no verdict, whatever they say")
		}
		var err error
		if q.margin, err = parseMargin(*margin); err != nil {
			return nil, usageError(fmt.Errorf("--margin: %w", err), "")
		}
		names, err := store.ParseMetrics(*primary)
		if err != nil || len(names) != 1 {
			if err == nil {
				err = fmt.Errorf("%q is not one metric", *primary)
			}
			return nil, usageError(fmt.Errorf("--primary: %w", err), "help metrics lists them")
		}
		q.primary = store.FindMetric(names[0])
		if q.search {
			if fs.Changed("primary") || q.marked {
				return nil, usageError(errors.New("--search compares capacities, whatever --primary and --marked are of"), "leave them out")
			}
			q.primary = capacityMetric
		}
		typed, duration, err := s.innerTest(args[2:])
		if err != nil {
			return nil, err
		}
		if err := s.rivals(ctx, q, args, typed, duration); err != nil {
			return nil, err
		}
		if q.search && (has(typed, "rate") || q.rivals[0].knob == "rate") {
			return nil, usageError(errors.New("the rate is what a search looks for: it is given neither for the sides nor in the test"), "")
		}
		return q, q.check()
	}
}

// searching is what each turn of --search looks for.
func (q *duel) searching() *searching {
	from, _ := parseBound("from", defaultFrom) // the default is one
	return &searching{base: q.rivals[0].plan, from: from, repeat: q.n}
}

// check says what of it gives no verdict for sure.
func (q *duel) check() error {
	if q.search {
		return q.searching().check()
	}
	for i := range q.rivals {
		p := &q.rivals[i].plan
		if store.TooShort(p.Duration, q.primary.Name) && !q.force {
			return usageError(fmt.Errorf("%s of load are too short for %s: mark short makes it unfit under %s", variable.ShortDuration(p.Duration), q.primary.Name, variable.ShortDuration(store.ShortLoad)),
				"a longer load, or --primary through-p50; --force runs it all the same")
		}
	}
	return nil
}

// plans are those of the sides.
func (q *duel) plans() []plan.Plan { return []plan.Plan{q.rivals[0].plan, q.rivals[1].plan} }

// varies are the variables in which the sides may differ.
func (q *duel) varies() []string {
	if name := q.rivals[0].knob; name != "" {
		return []string{name}
	}
	return store.BuildVariables()
}

// name is what a side is called where both stand beside each other: with what
// was typed for it, where that leaves room for the figures.
func (q *duel) name(i int) string {
	const room = 20
	if text := q.rivals[i].text; utf8.RuneCountInString(text) <= room {
		return sideNames[i] + " " + text
	}
	return sideNames[i]
}

// collateLine is the line that compares what there is of a series.
func (q *duel) collateLine(series string, same bool) string {
	by := "series-side"
	switch {
	case same:
	case q.rivals[0].knob != "":
		by = q.rivals[0].knob
	default:
		by = "relay-sha256"
	}
	line := fmt.Sprintf("collate %s series=%s", by, series)
	if q.primary.Name != store.DefaultPrimary {
		line += " --primary " + q.primary.Name
	}
	if q.margin != store.DefaultMargin {
		line += " --margin " + marginText(q.margin)
	}
	if q.marked {
		line += " --marked"
	}
	return line
}

// aboutAB is how long it takes, and what a run takes beside its load.
func (s *Session) aboutAB(q *duel) (time.Duration, guess, error) {
	db, err := s.indexed()
	if err != nil {
		return 0, guess{}, err
	}
	beside, err := overhead(db, q.rivals[0].ref.form())
	runs := q.n + 1
	if q.search {
		runs = q.n*usualSteps + 1
	}
	return time.Duration(len(q.rivals)*runs) * (lasts(q.rivals[0].plan) + beside.took), beside, err
}

// ab makes the runs, and says what they say.
func (s *Session) ab(ctx context.Context, q *duel) (Code, error) {
	c, err := s.contest(ctx, q)
	if err != nil {
		return Fine, err
	}
	same := c.same()
	if q.search {
		c.search = q.searching()
	} else {
		c.closing = q.collateLine(c.id, same)
		if err := s.checkNoise(ctx, q, c.sides); err != nil {
			return Fine, err
		}
	}
	if err := s.introduce(q, c, same); err != nil {
		return Fine, err
	}
	err = c.run(ctx, s)
	var none noValueError
	switch {
	case errors.As(err, &none):
		return Inconclusive, s.printDuel(&duelVerdict{duel: q, same: same, early: err.Error()})
	case err != nil:
		return Fine, err
	}
	return s.conclude(q, c, same)
}

// contest finds the relays of both sides.
func (s *Session) contest(ctx context.Context, q *duel) (*contest, error) {
	var sides []*side
	for i := range q.rivals {
		r := &q.rivals[i]
		made, err := s.runnerOf(ctx, r.ref, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sideNames[i], err)
		}
		if err := checkConfigs(ctx, made.program, []plan.Plan{r.plan}); err != nil {
			return nil, fmt.Errorf("%s: %w", sideNames[i], err)
		}
		sides = append(sides, &side{name: sideNames[i], plan: r.plan, runner: made})
	}
	c := newContest(sides, q.n, q.primary)
	c.force, c.marked = q.force, q.marked
	return c, nil
}

// same says whether the sides are equal in all conditions: an A/A.
func (c *contest) same() bool {
	first := c.sides[0]
	for _, d := range c.sides[1:] {
		if d.program.Form != first.program.Form || d.program.SHA256 != first.program.SHA256 || d.program.URL != first.program.URL ||
			cellKey(d.plan, result.Provenance{}) != cellKey(first.plan, result.Provenance{}) {
			return false
		}
	}
	return true
}

// introduce says what is about to be done.
func (s *Session) introduce(q *duel, c *contest, same bool) error {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, table.Clean(fmt.Sprintf(format, args...))) }
	p := c.sides[0].plan
	for i, d := range c.sides {
		if q.rivals[0].knob == "" {
			line("%s: %s", d.name, d.program)
		} else {
			line("%s: %s", d.name, q.rivals[i].text)
		}
	}
	if q.rivals[0].knob != "" {
		line("of %s", c.sides[0].program)
	}
	if same {
		line("A and B are the same in all conditions: an A/A, where any difference is the machine's")
	}
	without := q.rivals[0].knob
	if q.search {
		without = "rate"
	}
	line("%s, %d %s a side, A B B A …, after a warm-up run of each; %s decides, by a margin of %s", planWords(p, without), q.n, c.what(), q.primary.Name, marginText(q.margin))
	return s.sayLines(lines)
}

// planWords is the load of a plan in a few words, but for one knob.
func planWords(p plan.Plan, without string) string {
	var words []string
	if without != "mix" {
		words = append(words, p.Mix)
	}
	switch {
	case without == "rate":
	case p.Flat():
		words = append(words, "flat out")
	default:
		words = append(words, "at "+quantity(p.Rate, "sends/s"))
	}
	return strings.Join(append(words, "for", variable.ShortDuration(p.Duration)), " ")
}
