package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/store"
	"relaybench/store/stats"
)

// conclude says what the runs of a comparison say, and gives its code: the primary metric's.
func (s *Session) conclude(q *duel, c *contest, same bool) (Code, error) {
	v, err := q.judged(c)
	if err != nil {
		return Fine, err
	}
	v.same = same
	return v.code(), s.printDuel(v)
}

// duelVerdict is what came out of a comparison.
type duelVerdict struct {
	*duel
	series  string // "" where no run was kept
	closing string // the line that says the same again
	same    bool
	early   string          // why it was not made at all
	found   *store.Collated // nil: it was not made, or is of searches
	reports [2][]string     // ids by side
	pair    *pair           // nil: the runs are no two rows of one group
}

// judged compares the runs of a series, by the usual metrics where none is named.
func (q *duel) judged(c *contest, names ...string) (*duelVerdict, error) {
	filters, err := parseFilters([]string{"series=" + c.id})
	if err != nil {
		return nil, err
	}
	metrics := []string{q.primary.Name}
	if len(names) == 0 {
		names = store.DefaultMetrics
	}
	for _, name := range names {
		if name != q.primary.Name {
			metrics = append(metrics, name)
		}
	}
	v := &duelVerdict{duel: q, series: c.id, closing: c.closing}
	entries, _, err := c.metricDB().Entries(filters, store.Newest{})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		side, _ := entries[i].Var("series-side")
		if at := slices.Index(sideNames[:], side); at >= 0 {
			v.reports[at] = append(v.reports[at], entries[i].ID)
		}
	}
	if q.search {
		v.searches(c)
		return v, nil
	}
	v.found, err = c.metricDB().Collate(store.Collation{Variable: "series-side", With: q.varies(), Filters: filters,
		Metrics: metrics, Primary: q.primary.Name, Margin: q.margin, Baseline: sideNames[0], Marked: q.marked})
	if err != nil {
		return nil, err
	}
	if g := v.found.Groups; len(g) == 1 && len(g[0].Rows) == 2 {
		rows := g[0].Rows
		v.pair = &pair{&rows[0], &rows[1], q.name(0), q.name(1)}
	}
	return v, nil
}

// searches compares the capacities that were found.
func (v *duelVerdict) searches(c *contest) {
	var rows [2]store.Row
	for i, d := range c.sides {
		rows[i] = store.Row{Value: d.name, Cells: []store.Cell{{Metric: v.primary, Values: d.values, Summary: stats.Summarize(d.values),
			Unknown: v.n - len(d.values), Order: stats.Order{Interleaved: true}}}}
		rows[i].Primary = &rows[i].Cells[0]
	}
	judged := stats.Compare(c.sides[0].values, c.sides[1].values).Judge(stats.Question{Better: v.primary.Better, Margin: v.margin})
	rows[1].Primary.Verdict = &judged
	v.pair = &pair{&rows[0], &rows[1], v.name(0), v.name(1)}
}

// code is the exit code.
func (v *duelVerdict) code() Code {
	if v.pair == nil {
		return Inconclusive
	}
	return codeOf(v.pair.row.Primary.Verdict.Answer)
}

// answer is the verdict, and the figures it rests on.
func (v *duelVerdict) answer() stats.Answer {
	if v.pair == nil {
		return stats.NoVerdict
	}
	return v.pair.row.Primary.Verdict.Answer
}

// String is the verdict in a line.
func (v *duelVerdict) String() string {
	switch {
	case v.early != "":
		return "no verdict: " + v.early
	case v.pair == nil:
		var names []string
		for _, d := range v.found.Apart() {
			names = append(names, fmt.Sprintf("%s is %q and %q", d.Name, d.A, d.B))
		}
		return "no verdict: the runs are not equal in all conditions but the sides: " + strings.Join(names, ", ")
	}
	judged := v.pair.row.Primary.Verdict
	text := fmt.Sprintf("%s: %s %s", answerText(judged, v.primary.Unit), v.primary.Name, pairText(judged, v.primary.Unit))
	if v.same {
		text = "A/A: " + text
	}
	return text
}

// printDuel prints what came out.
func (s *Session) printDuel(v *duelVerdict) error {
	if s.format == JSON {
		return s.printJSON(newDuelJSON(s, v))
	}
	if err := s.say("%s%s\n", s.gap(), s.paint().bold(s.wrap(table.Clean(v.String())))); err != nil {
		return err
	}
	if v.pair != nil {
		if err := s.print(s.duelTable(v)); err != nil {
			return err
		}
	}
	if err := s.sayLines(v.notes()); err != nil {
		return err
	}
	if v.series == "" {
		return nil
	}
	if err := s.say("the runs: reports series=%s\n", v.series); err != nil {
		return err
	}
	if v.closing == "" {
		return nil
	}
	return s.say("the same again: %s\n", v.closing) // whole, so that it can be typed
}

// notes are what is to be known beside the table.
func (v *duelVerdict) notes() []string {
	if v.early != "" {
		return []string{"no run was saved; --primary METRIC names another metric, --force runs it all the same"}
	}
	var lines []string
	if v.pair != nil {
		lines = append(lines, verdictNotes([]pair{*v.pair})...)
	}
	if v.search {
		for i, r := range []*store.Row{v.pair.base, v.pair.row} {
			if n := r.Primary.Unknown; n > 0 {
				lines = append(lines, fmt.Sprintf("%d of %d searches of %s found no capacity", n, v.n, sideNames[i]))
			}
		}
		return lines
	}
	return append(lines, leftOut(v.found)...)
}

// duelTable is the verdicts, for programs with the series and its reports.
func (s *Session) duelTable(v *duelVerdict) *table.Table {
	t := s.verdictTable([]pair{*v.pair}, true)
	if s.format != CSV { // the primary metric's stand above
		for i := range t.Columns {
			c := &t.Columns[i]
			c.Data = c.Data || c.Key == "p" || c.Key == "n"
		}
		return t
	}
	t.Columns = append([]table.Column{{Key: "series"}, {Key: "primary"}, {Key: "margin"}}, t.Columns...)
	t.Columns = append(t.Columns, table.Column{Key: "baseline_reports"}, table.Column{Key: "value_reports"})
	for i, row := range t.Rows {
		primary := table.Bool(i == 0)
		row = append([]table.Cell{table.Text(v.series), primary, table.Float(v.margin, true)}, row...)
		t.Rows[i] = append(row, table.Text(strings.Join(v.reports[0], " ")), table.Text(strings.Join(v.reports[1], " ")))
	}
	return t
}

// duelJSON is a comparison as programs read it.
type duelJSON struct {
	Series  string           `json:"series"` // "" where no run was made
	Same    bool             `json:"same"`   // an A/A
	Sides   map[string]rowed `json:"sides"`
	Runs    int              `json:"runs"` // a side that were asked for
	Primary string           `json:"primary"`
	Margin  float64          `json:"margin"`
	Answer  stats.Answer     `json:"answer"`
	Says    string           `json:"says"`
	Code    Code             `json:"code"`
	Metrics *table.Table     `json:"metrics"` // null where the runs could not be compared
	Notes   []string         `json:"notes"`
}

// rowed is a side.
type rowed struct {
	Text    string            `json:"text"` // as it was typed
	Reports []string          `json:"reports"`
	Follows map[string]string `json:"variables"` // that the sides may differ in
}

func newDuelJSON(s *Session, v *duelVerdict) duelJSON {
	j := duelJSON{Series: v.series, Same: v.same, Sides: map[string]rowed{}, Runs: v.n, Primary: v.primary.Name, Margin: v.margin,
		Answer: v.answer(), Says: v.String(), Code: v.code(), Notes: v.notes()}
	for i, name := range sideNames {
		r := rowed{Text: v.rivals[i].text, Reports: append([]string{}, v.reports[i]...)}
		if v.pair != nil {
			r.Follows = []*store.Row{v.pair.base, v.pair.row}[i].Follows
		}
		j.Sides[name] = r
	}
	if v.pair != nil {
		j.Metrics = s.verdictTable([]pair{*v.pair}, true)
	}
	return j
}

// explainAB says which runs would be made, and how long they take.
func (s *Session) explainAB(ctx context.Context, q *duel) error {
	about, beside, err := s.aboutAB(q)
	if err != nil {
		return err
	}
	turns := forthAndBack(len(q.rivals), q.n)
	_, alike := apart(q.plans())
	if s.format == JSON || s.format == CSV {
		t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "side"}, {Key: "what"}, {Key: "round"}, {Key: "about_ns"}}}
		for i := range q.rivals {
			t.Add(table.Int(0), table.Text(sideNames[i]), table.Text(q.rivals[i].text), table.Int(0), table.Int(int64(lasts(q.rivals[i].plan)+beside.took)))
		}
		for i, turn := range turns {
			r := &q.rivals[turn.cell]
			t.Add(table.Int(i+1), table.Text(sideNames[turn.cell]), table.Text(r.text), table.Int(turn.round), table.Int(int64(lasts(r.plan)+beside.took)))
		}
		return s.print(t)
	}
	var order []string
	for _, turn := range turns {
		order = append(order, sideNames[turn.cell])
	}
	warm, err := warmUps(ctx, q.plans())
	if err != nil {
		return err
	}
	from := "a guess, for no run was made yet"
	if beside.of > 0 {
		from = fmt.Sprintf("the median of the last %d", beside.of)
	}
	what := "runs"
	if q.search {
		what = fmt.Sprintf("searches of about %d runs", usualSteps)
	}
	lines := []string{
		table.Clean(fmt.Sprintf("A is %s, B is %s; against %s", q.rivals[0].text, q.rivals[1].text, q.against())),
		fmt.Sprintf("a warm-up run of each that is not saved, then %d %s: %s", len(turns), what, strings.Join(firstOf(order, 24, "more"), " ")),
		fmt.Sprintf("about %s in all: a run takes about %s beside its load (%s), to start, warm up with %s sends and drain", seconds(about), beside.took.Round(100*time.Millisecond), from, count(slices.Max(warm))),
		fmt.Sprintf("%s decides, by %s; exit code 1 where B is worse, 2 where that cannot be said", q.primary.Name, marginText(q.margin)),
	}
	if err := s.sayLines(lines); err != nil {
		return err
	}
	if err := s.printf("\n"); err != nil {
		return err
	}
	return s.print(knobsTable(q.rivals[0].plan, alike))
}

// against is the relay of both sides, where they are values of a knob.
func (q *duel) against() string {
	if q.rivals[0].knob == "" {
		return "each other"
	}
	return q.rivals[0].ref.String()
}
