package commands

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/store"
	"relaybench/store/stats"
)

var noiseCommand = command{
	name:    "noise",
	summary: "the least difference that this machine can tell from none",
	detail: `The relay in use is compared with itself as ab compares two. Half the width of the interval is
the noise of this machine, for this load, metric and number of runs: a difference below it cannot
be told from none. It is kept, for any build of the relay; ab and verify say when a margin is near
it (under 1.5 times), and refuse one under it unless --force. Without a test: what is known, with its age.`,
	args:     []arg{innerArg(true)},
	examples: []string{"noise test 10s --rate 200", "noise -n 20 test 10s --mix errors", "noise"},
	store:    true,
	table:    true,
	line:     true,
	inner:    "test",
	queue: func(s *Session, fs *pflag.FlagSet) prepare {
		asked := bindNoise(fs)
		return func(_ context.Context, args []string) (task, error) {
			if len(args) == 0 {
				return task{now: func() (Code, error) { return Fine, s.listNoise() }}, nil
			}
			q, err := asked(s, args)
			if err != nil {
				return task{}, err
			}
			about, _, err := s.aboutAB(q)
			return task{about: about, do: func(ctx context.Context, s *Session) (Code, error) { return Fine, s.noise(ctx, q) }}, err
		}
	},
	explain: func(s *Session, fs *pflag.FlagSet) work {
		asked := bindNoise(fs)
		return func(ctx context.Context, args []string) (Code, error) {
			if len(args) == 0 {
				return Fine, nil
			}
			q, err := asked(s, args)
			if err != nil {
				return Fine, err
			}
			return Fine, s.explainAB(ctx, q)
		}
	},
}

const (
	noiseRuns  = 10  // a side
	mostNoise  = 100 // runs a side
	mostWidths = 20  // runs a side up to which the noise is kept for each number of them
	nearNoise  = 1.5 // times the noise, under which a margin is near it
)

// bindNoise binds the flags of noise, and gives what reads what was typed for
// them: a relay against itself.
func bindNoise(fs *pflag.FlagSet) func(s *Session, args []string) (*duel, error) {
	n := fs.IntP("number", "n", noiseRuns, "runs a side, `N`")
	marked := fs.Bool("marked", false, "of values that marks make unfit too")
	return func(s *Session, args []string) (*duel, error) {
		q := &duel{n: *n, marked: *marked, margin: store.DefaultMargin, primary: store.FindMetric(store.DefaultPrimary)}
		if q.n < stats.MinRuns || q.n > mostNoise {
			return nil, usageError(fmt.Errorf("-n %d is not between %d and %d runs a side", q.n, stats.MinRuns, mostNoise), "")
		}
		typed, duration, err := s.innerTest(args)
		if err != nil {
			return nil, err
		}
		ref, err := s.inUse()
		if err != nil {
			return nil, err
		}
		p, err := s.onePlan(typed, duration)
		if err != nil {
			return nil, fmt.Errorf("test: %w", err)
		}
		for i := range q.rivals {
			q.rivals[i] = rival{text: ref.String(), ref: ref, plan: p}
		}
		return q, nil
	}
}

// noise measures it.
func (s *Session) noise(ctx context.Context, q *duel) error {
	c, err := s.contest(ctx, q)
	if err != nil {
		return err
	}
	if err := s.sayLines([]string{table.Clean("A and B: " + c.sides[0].program.String()),
		fmt.Sprintf("%s, %d runs a side, A B B A …, after a warm-up run of each", planWords(c.sides[0].plan, ""), q.n)}); err != nil {
		return err
	}
	if err := c.run(ctx, s); err != nil {
		return err
	}
	v, err := q.judged(c, store.MetricNames()...)
	if err != nil {
		return err
	}
	if v.pair == nil {
		return fmt.Errorf("%s", v)
	}
	known := newNoise(v.pair, c)
	db := c.metricDB()
	if err := known.keep(db); err != nil {
		return err
	}
	if err := s.say("%s%s\n", s.gap(), s.wrap(table.Clean(fmt.Sprintf("noise under %s, of %s", planWords(c.sides[0].plan, ""), c.sides[0].program)))); err != nil {
		return err
	}
	if err := s.print(noiseTable([]*noise{known}, s.format == JSON || s.format == CSV, time.Now())); err != nil {
		return err
	}
	lines := slices.DeleteFunc(leftOut(v.found), func(l string) bool { return strings.HasPrefix(l, "not known") })
	return s.sayLines(append(lines, alarms(v), "kept for this host and load, whatever the build: ab and verify refuse a margin under it; noise lists what is known"))
}

// alarms say which metrics of an A/A were called different: the table's own false alarms.
func alarms(v *duelVerdict) string {
	var names []string
	for _, c := range comparedCells(v.pair.row) {
		switch c.Verdict.Answer {
		case stats.Worse, stats.Better, stats.Different:
			names = append(names, c.Metric.Name)
		}
	}
	if len(names) == 0 {
		return "nothing was called a difference"
	}
	return "called a difference, though there is none: " + strings.Join(names, ", ")
}

// noise is what a comparison of a relay with itself says of a host and a load.
type noise struct {
	When       time.Time         `json:"when"`
	Series     string            `json:"series"`
	Relay      string            `json:"relay"`      // that was compared with itself
	Conditions map[string]string `json:"conditions"` // but those of the build
	Runs       int               `json:"runs"`       // a side
	Marked     bool              `json:"marked"`     // of values too that marks make unfit
	// Widths are, by metric, the half-widths of the interval with MinRuns,
	// MinRuns+1, … runs a side: 0.02 is 2%. A metric that was not known, fit and
	// above 0 in that many runs is not among them.
	Widths map[string][]float64 `json:"widths"`

	key string
}

// noiseShelf is where the store keeps them, under the conditions that they are of.
const noiseShelf = "noise/"

// noiseFree are the variables that noise is not split by.
func noiseFree() []string { return append(store.BuildVariables(), "config-hash") }

// noiseKey is the name under which the noise of a report's conditions is kept.
func noiseKey(e *store.Entry) string {
	return fmt.Sprintf("%s%x", noiseShelf, sha256.Sum256([]byte(e.Group(noiseFree()...))))[:len(noiseShelf)+32]
}

// newNoise derives it from the rows of an A/A.
func newNoise(p *pair, c *contest) *noise {
	first := &p.base.Runs[0].Entry
	k := &noise{When: time.Now().UTC().Round(time.Second), Series: c.id, Relay: c.sides[0].program.String(),
		Conditions: map[string]string{}, Runs: len(p.base.Runs), Marked: c.marked, Widths: map[string][]float64{}, key: noiseKey(first)}
	free := noiseFree()
	for name, value := range first.Vars() {
		if v, ok := store.FindVariable(name); ok && v.Role != store.Occasion && !slices.Contains(free, name) {
			k.Conditions[name] = value
		}
	}
	for _, b := range comparedCells(p.row) {
		a := baseCell(p.base, b.Metric)
		if w := halfWidths(a.Values, b.Values); len(w) > 0 {
			k.Widths[b.Metric.Name] = w
		}
	}
	return k
}

// halfWidths are those of the intervals of MinRuns and more runs a side: of
// each number the median over all that many runs in a row of both sides.
func halfWidths(a, b []float64) (widths []float64) {
	for n := stats.MinRuns; n <= min(len(a), len(b), mostWidths); n++ {
		var all []float64
		for i := range min(len(a), len(b)) - n + 1 {
			c := stats.Compare(a[i:i+n], b[i:i+n])
			if !c.Shift.Relative {
				return widths
			}
			all = append(all, c.Shift.HalfWidth())
		}
		widths = append(widths, stats.Summarize(all).Median)
	}
	return widths
}

// at is the half-width with n runs a side; where there were fewer, as it shrinks with the root of their number.
func (k *noise) at(metric string, n int) (half float64, ok bool) {
	w := k.Widths[metric]
	switch i := n - stats.MinRuns; {
	case len(w) == 0 || i < 0:
		return 0, false
	case i < len(w):
		return w[i], true
	}
	last := stats.MinRuns + len(w) - 1
	return w[len(w)-1] * math.Sqrt(float64(last)/float64(n)), true
}

func (k *noise) keep(db *store.DB) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := db.SetSetting(k.key, string(text)); err != nil {
		return fmt.Errorf("keep the noise: %w", err)
	}
	return nil
}

// noiseFloor is the noise of a metric with n runs a side, under the
// conditions of a report that is or is to be; ok is false where it was never measured.
func (s *Session) noiseFloor(e *store.Entry, metric string, n int) (floor noiseFloor, ok bool, err error) {
	db, err := s.bench.open()
	if err != nil {
		return floor, false, err
	}
	text, ok, err := db.Setting(noiseKey(e))
	if err != nil || !ok {
		return floor, false, err
	}
	var k noise
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return floor, false, fmt.Errorf("noise in the store: %w", err)
	}
	floor.half, ok = k.at(metric, n)
	floor.metric, floor.n, floor.when = metric, n, k.When
	return floor, ok, nil
}

// noiseFloor is the least margin that can be judged.
type noiseFloor struct {
	metric string
	n      int
	half   float64 // 0.02 is 2%
	when   time.Time
}

// String is the floor in words.
func (f noiseFloor) String() string {
	return fmt.Sprintf("the noise of %s with %d runs a side here is %s, as measured %s", f.metric, f.n, noiseText(f.half), f.when.Local().Format(time.DateTime))
}

// noiseText is a half-width: ±1.05%.
func noiseText(half float64) string { return "±" + figures(100*half) + "%" }

// checkMargin refuses a margin under the noise, unless it is forced, and says where it is near it.
func (s *Session) checkMargin(f noiseFloor, margin float64, force bool) error {
	switch {
	case margin < f.half && !force:
		return hinted(fmt.Errorf("a margin of %s cannot be judged: %s", marginText(margin), f), "a wider --margin, more runs, or --force")
	case margin < nearNoise*f.half:
		return s.say("%s\n", s.wrap(fmt.Sprintf("warning: %s, near the margin of %s", f, marginText(margin))))
	}
	return nil
}

// checkNoise checks the margin of a comparison that is to be made: by the side with the greater noise.
func (s *Session) checkNoise(ctx context.Context, q *duel, sides []*side) error {
	var worst noiseFloor
	for _, d := range sides {
		r := &store.Report{Plan: d.plan.Record(), Provenance: s.provenance(ctx, d.program)}
		r.Provenance.ConfigText, r.Provenance.MixSHA256 = d.plan.ConfigText, d.plan.MixSHA256()
		f, ok, err := s.noiseFloor(store.EntryOf(r), q.primary.Name, q.n)
		if err != nil {
			return err
		}
		if ok && f.half > worst.half {
			worst = f
		}
	}
	return s.checkMargin(worst, q.margin, q.force)
}

// listNoise prints what is known.
func (s *Session) listNoise() error {
	db, err := s.bench.open()
	if err != nil {
		return err
	}
	shelf, err := db.Settings(noiseShelf)
	if err != nil {
		return err
	}
	var all []*noise
	for name, text := range shelf {
		k := &noise{key: name}
		if err := json.Unmarshal([]byte(text), k); err != nil {
			return fmt.Errorf("noise in the store: %w", err)
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *noise) int { return a.When.Compare(b.When) })
	if len(all) == 0 && s.format == Text {
		return s.printf("no noise was measured yet: noise test 10s measures that of the relay in use\n")
	}
	return s.print(noiseTable(all, s.format == JSON || s.format == CSV, time.Now()))
}

// noiseTable is a row for each of what is known, and metric; every metric where all.
func noiseTable(known []*noise, all bool, now time.Time) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "host"}, {Key: "load", Wrap: true}, {Key: "conditions", Data: true}, {Key: "metric"},
		{Key: "n", Right: true}, {Key: "half_width", Head: "noise", Right: true},
		{Key: "half_width_6", Head: fmt.Sprintf("n=%d", defaultRuns), Right: true}, {Key: "when", Head: "age", Right: true}, {Key: "series", Data: true}}}
	for _, k := range known {
		host, load := k.Conditions["host"], k.load()
		names := store.DefaultMetrics
		if all {
			names = store.MetricNames()
		}
		first := true
		for _, name := range names {
			half, ok := k.at(name, k.Runs)
			if !ok {
				continue
			}
			usual, _ := k.at(name, defaultRuns)
			row := []table.Cell{table.Text(host), table.Text(load), table.Text(k.conditions()), table.Text(name), table.Int(k.Runs),
				table.Float(half, true).As(noiseText(half)), table.Float(usual, true).As(noiseText(usual)),
				table.Text(k.When.Format(time.RFC3339)).As(coarse(now.Sub(k.When).Round(time.Second))), table.Text(k.Series)}
			if !all && !first {
				row[0], row[1], row[7] = table.Text(""), table.Text(""), table.Text("")
			}
			first = false
			t.Add(row...)
		}
	}
	return t
}

// load is the load that it is of, in a few words: the relay's form, and knobs that are not at their defaults.
func (k *noise) load() string {
	words := []string{k.Conditions["relay-form"], k.Conditions["mix"], k.Conditions["rate"] + "/s", k.Conditions["duration"]}
	for _, name := range store.InOrder(k.Conditions) {
		knob := plan.Find(name)
		switch {
		case slices.Contains([]string{"mix", "rate", "duration"}, name):
		case knob != nil && k.Conditions[name] != knob.Default, strings.Contains(name, "."):
			words = append(words, name+"="+k.Conditions[name])
		}
	}
	if k.Marked {
		words = append(words, "(marked)")
	}
	return strings.Join(words, " ")
}

// conditions are all of them.
func (k *noise) conditions() string {
	var words []string
	for _, name := range store.InOrder(k.Conditions) {
		words = append(words, name+"="+k.Conditions[name])
	}
	return strings.Join(words, " ")
}
