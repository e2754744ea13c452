package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/store"
)

var costCommand = command{
	name:    "cost",
	summary: "what each kind of envelope costs the relay in CPU",
	detail: `Each kind is sent alone, at one rate, and all take turns forth and back. CPU per envelope falls as
the rate rises, so it is of that rate; of containers there is the CPU per element besides. Every
run is a saved report. The exit code is 5 where a kind is without a fit value.`,
	args:     []arg{{name: "DURATION", help: "how long the load of a run lasts; " + costDuration, optional: true}},
	examples: []string{"cost", "cost 20s --rate 100 --repeat 5", "cost -E http.encoding=gzip --csv"},
	store:    true,
	table:    true,
	queue:    inTurn(bindCost, func(s *Session, q *costing) (time.Duration, error) { return s.about(&q.request) }, (*Session).cost),
	explain:  foretold(bindCost, func(s *Session, ctx context.Context, q *costing) error { return s.explain(ctx, &q.request) }),
}

// What cost does where nothing else is typed.
const (
	costDuration = "10s"
	costRate     = "300"
	costRounds   = 3
)

// costing is what a line asks of cost.
type costing struct {
	request
	marked bool // with values that marks make unfit
}

// bindCost binds the flags of cost, and gives what reads what was typed for
// them: a test of each kind.
func bindCost(fs *pflag.FlagSet) func(ctx context.Context, s *Session, args []string) (*costing, error) {
	repeat := fs.Int("repeat", costRounds, "runs of each kind, `N`: once through all of them, forth and back")
	marked := fs.Bool("marked", false, "with values that marks make unfit")
	typed := planFlags(fs, "mix")
	fs.Lookup("rate").DefValue = costRate
	return func(_ context.Context, s *Session, args []string) (*costing, error) {
		duration := costDuration
		if len(args) > 0 {
			duration = args[0]
		}
		if !has(typed, "rate") {
			typed = with(typed, "rate", costRate)
		}
		if _, err := s.onePlan(typed, duration); err != nil {
			return nil, err
		}
		plans, err := s.plans(with(typed, "mix", plan.Each), duration)
		if err != nil {
			return nil, err
		}
		q := &costing{marked: *marked}
		q.series, err = newSeries(plans, *repeat)
		return q, err
	}
}

// cost makes the runs, and says what they say.
func (s *Session) cost(ctx context.Context, q *costing) (Code, error) {
	r, err := s.newRunner(ctx, nil)
	if err != nil {
		return Fine, err
	}
	if err := checkConfigs(ctx, r.program, q.cells); err != nil {
		return Fine, err
	}
	var sides []*side
	for _, p := range q.cells {
		sides = append(sides, &side{name: p.Mix, plan: p, runner: r})
	}
	c := newContest(sides, q.rounds, store.FindMetric("cpu-per-envelope"))
	c.cold, c.marked, c.closing = true, q.marked, "collate mix series="+c.id+" --metrics cpu-per-envelope,cpu-per-item"
	if err := s.say("%s\n", s.wrap(table.Clean(fmt.Sprintf("%s: each kind alone, %s, %s of each, forth and back", r.program, planWords(q.cells[0], "mix"), plural(q.rounds, "run", "runs"))))); err != nil {
		return Fine, err
	}
	if err := c.run(ctx, s); err != nil {
		return Fine, err
	}
	return s.printCost(c, q.marked)
}

// printCost prints what each kind costs.
func (s *Session) printCost(c *contest, marked bool) (Code, error) {
	filters, err := parseFilters([]string{"series=" + c.id})
	if err != nil {
		return Fine, err
	}
	found, err := c.metricDB().Collate(store.Collation{Variable: "mix", Filters: filters, Metrics: []string{"cpu-per-envelope", "cpu-per-item"}, Margin: store.DefaultMargin, Marked: marked})
	if err != nil {
		return Fine, err
	}
	t, code := costTable(found, c.sides[0].plan, c.id)
	if s.format == Text {
		if err := s.printf("\n"); err != nil {
			return code, err
		}
	}
	if err := s.print(t); err != nil {
		return code, err
	}
	lines := append(leftOut(found), "the runs: reports series="+c.id)
	return code, s.sayLines(lines)
}

// costTable is a row a kind. Its code is Unfit where one of them is without a value.
func costTable(found *store.Collated, p plan.Plan, series string) (*table.Table, Code) {
	t := &table.Table{Columns: []table.Column{{Key: "kind"}, {Key: "rate", Right: true, Data: true},
		{Key: "cpu_per_envelope_ns", Head: "CPU per envelope", Right: true}, {Key: "spread", Data: true},
		{Key: "relative", Head: "x cheapest", Right: true},
		{Key: "element"}, {Key: "cpu_per_element_ns", Head: "CPU per element", Right: true},
		{Key: "n", Right: true}, {Key: "left_out", Head: "left out", Right: true}, {Key: "series", Data: true}}}
	var rows []*store.Row
	for i := range found.Groups {
		for j := range found.Groups[i].Rows {
			rows = append(rows, &found.Groups[i].Rows[j])
		}
	}
	least := 0.0
	for _, r := range rows {
		if sum := r.Cells[0].Summary; sum.N > 0 && (least == 0 || sum.Median < least) {
			least = sum.Median
		}
	}
	code := Fine
	for i := range envelope.Kinds {
		k := &envelope.Kinds[i]
		at := slices.IndexFunc(rows, func(r *store.Row) bool { return r.Value == k.Name })
		if at < 0 {
			continue
		}
		each, item := &rows[at].Cells[0], &rows[at].Cells[1]
		sum := each.Summary
		if sum.N == 0 {
			code = Unfit
		}
		spread, spreadKnown := sum.RelativeSpread()
		relative := table.Float(sum.Median/least, sum.N > 0 && least > 0).As(strconv.FormatFloat(sum.Median/max(least, 1), 'f', 2, 64))
		element, perElement := table.Text("").As(""), table.Cell{}
		if k.Unit != "item" {
			element = table.Text(k.Unit)
			perElement = table.Float(item.Summary.Median, item.Summary.N > 0).As(medianText(item))
		}
		t.Add(table.Text(k.Name), table.Float(p.Rate, !p.Flat()),
			table.Float(sum.Median, sum.N > 0).As(medianText(each)), table.Float(spread, spreadKnown),
			relative, element, perElement, table.Int(sum.N), table.Int(len(rows[at].Runs)-sum.N), table.Text(series))
	}
	return t, code
}
