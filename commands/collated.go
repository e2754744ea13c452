package commands

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/variable"
	"relaybench/store"
	"relaybench/store/stats"
)

// printCollated prints a comparison for a person.
func (s *Session) printCollated(db *store.DB, c *store.Collated, q store.Collation, a *collateFlags) error {
	if len(c.Groups) == 0 {
		if err := s.say("%s\n", s.wrap(nothingToCompare(db, c, q))); err != nil {
			return err
		}
		return s.collateNotes(c)
	}
	if shared := sharedText(c.Shared); shared != "" {
		if err := s.say("%s\n", s.wrap("all: "+shared)); err != nil {
			return err
		}
	}
	telling := c.Telling()
	for groups := range slices.Chunk(c.Groups, 4*runtime.GOMAXPROCS(0)) {
		if err := s.printGroups(db, c, groups, telling, a); err != nil {
			return err
		}
	}
	if s.format == Text {
		if err := s.printf("\n"); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.Groups, func(p store.Peers) bool { return len(p.Rows) > 1 }) {
		if err := s.say("%s\n", s.wrap(apartText(c))); err != nil {
			return err
		}
	}
	return s.collateNotes(c)
}

// printGroups prints some groups in their order, which are made ready at the same time.
func (s *Session) printGroups(db *store.DB, c *store.Collated, groups []store.Peers, telling []string, a *collateFlags) error {
	texts := make([]bytes.Buffer, len(groups))
	store.Parallel(len(groups), func(i int) {
		to := &Session{client: Client{Out: &texts[i], Color: s.client.Color, Width: s.client.Width}, format: s.format}
		_ = to.printGroup(db, c, &groups[i], telling, a) // to a buffer, which never fails
	})
	for i := range groups {
		if _, err := texts[i].WriteTo(s.client.Out); err != nil {
			return err
		}
	}
	return nil
}

// printGroup prints a group below what tells it from the others.
func (s *Session) printGroup(db *store.DB, c *store.Collated, p *store.Peers, telling []string, a *collateFlags) error {
	if s.format == Text {
		if err := s.printf("\n"); err != nil {
			return err
		}
	}
	if len(telling) > 0 {
		if err := s.say("%s\n", s.paint().bold(s.wrap(conditionsText(p.Conditions, telling)))); err != nil {
			return err
		}
	}
	return s.printPeers(db, c, p, a)
}

// printPeers prints a group: its rows, what may be claimed of them, and why not.
func (s *Session) printPeers(db *store.DB, c *store.Collated, p *store.Peers, a *collateFlags) error {
	rows := s.rowTable(c, p)
	if a.runs {
		rows = s.runTable(db, c, p)
	}
	if err := s.print(rows); err != nil {
		return err
	}
	var notes []string
	for i := range p.Rows {
		r := &p.Rows[i]
		if name, n := mixedBy(r); n > 1 {
			notes = append(notes, fmt.Sprintf("%s: its runs are of %d different values of %s", rowName(c.Variable, r.Value), n, name))
		}
	}
	if note := sharesNote(c, p); note != "" {
		notes = append(notes, note)
	}
	pairs := pairsOf(c, p)
	if len(pairs) > 0 {
		if s.format == Text {
			if err := s.printf("\n"); err != nil {
				return err
			}
		}
		who := "against " + pairs[0].baseName
		if len(pairs) == 1 {
			who = pairs[0].rowName + " " + who
		}
		if err := s.say("%s\n", s.wrap(who+":")); err != nil {
			return err
		}
		if err := s.print(s.verdictTable(pairs, false)); err != nil {
			return err
		}
		notes = append(notes, verdictNotes(pairs)...)
	} else if len(p.Rows) > 1 {
		notes = append(notes, fmt.Sprintf("no verdict: no report here has %s %s", c.Variable.Name, a.baseline))
	}
	for _, n := range notes {
		if err := s.say("%s\n", s.wrap(n)); err != nil {
			return err
		}
	}
	return nil
}

// sameShare is how many percent of what was sent two rows may differ by that count as having forwarded the same.
const sameShare = 0.1

// sharesNote says that the rows of a group did not forward the same share of
// what they were sent: a build that drops what another one forwards does other work.
func sharesNote(c *store.Collated, p *store.Peers) string {
	const share = "arrived-share"
	var parts []string
	least, most := math.Inf(1), math.Inf(-1)
	for i := range p.Rows {
		r := &p.Rows[i]
		var values []float64
		for j := range r.Runs {
			_, unfit := r.Runs[j].Unfit(share)
			if v, ok := r.Runs[j].Metric(share); ok && !unfit {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		median := stats.Summarize(values).Median
		least, most = min(least, median), max(most, median)
		parts = append(parts, rowName(c.Variable, r.Value)+" "+quantity(median, "%"))
	}
	if most-least <= sameShare || len(parts) < 2 {
		return ""
	}
	return "they did not forward the same share of what they were sent, so their CPU per envelope is of different work: " + strings.Join(parts, ", ")
}

// mixedBy is what tells most of how the runs of a row differ in what varies with the variable.
func mixedBy(r *store.Row) (name string, n int) {
	for _, of := range []string{"relay-revision", "relay-sha256", "relay-branch", "relay-version", "host"} {
		if n := r.Mixed[of]; n > 1 {
			return of, n
		}
	}
	for _, of := range sorted(r.Mixed) {
		if r.Mixed[of] > n {
			name, n = of, r.Mixed[of]
		}
	}
	return name, n
}

// pairsOf are the rows of a group with its baseline.
func pairsOf(c *store.Collated, p *store.Peers) (pairs []pair) {
	if p.Baseline < 0 {
		return nil
	}
	base := &p.Rows[p.Baseline]
	for i := range p.Rows {
		if r := &p.Rows[i]; r != base {
			pairs = append(pairs, pair{base, r, rowName(c.Variable, base.Value), rowName(c.Variable, r.Value)})
		}
	}
	return pairs
}

// rowTable is a row a value; on a screen the spreads stand below the medians,
// and in brackets how many values there are where that is not the row's n.
func (s *Session) rowTable(c *store.Collated, p *store.Peers) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: c.Variable.Name, Wrap: true}, {Key: "n", Right: true}}}
	for _, m := range c.Metrics {
		t.Columns = append(t.Columns, table.Column{Key: metricKey(m), Head: metricHead(m), Right: true})
	}
	paint := s.paint()
	for i := range p.Rows {
		r := &p.Rows[i]
		medians := []table.Cell{table.Text(rowName(c.Variable, r.Value)), table.Int(len(r.Runs))}
		spreads := []table.Cell{table.Text(""), table.Text("")}
		for j := range r.Cells {
			text, spread := cellTexts(&r.Cells[j], len(r.Runs))
			if s.format == Markdown {
				text, spread = strings.TrimSpace(text+" "+spread), ""
			}
			median, below := table.Text(text), table.Text(spread)
			if p.Leads(i, j) {
				median, below = table.Text(text+" "+betterSign).Painted(paint.good), below.Painted(paint.good)
			}
			medians, spreads = append(medians, median), append(spreads, below)
		}
		t.Add(medians...)
		if s.format != Markdown && slices.ContainsFunc(spreads, func(c table.Cell) bool { return c.String() != "" }) {
			t.Add(spreads...)
		}
	}
	return t
}

// cellTexts are the median of a cell of so many runs, and its spread, with how many values there are where that is not as many.
func cellTexts(cell *store.Cell, runs int) (median, spread string) {
	n := cell.Summary.N
	median, spread = table.Dash, spreadText(cell)
	if n > 0 {
		median = quantity(cell.Summary.Median, cell.Metric.Unit)
	}
	if n > 0 && n != runs {
		spread = strings.TrimSpace(fmt.Sprintf("%s (%d)", spread, n))
	}
	return median, spread
}

// runTable is a row a report.
func (s *Session) runTable(db *store.DB, c *store.Collated, p *store.Peers) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "report-id", Head: "report (UTC)"}, {Key: c.Variable.Name, Wrap: true},
		{Key: "started"}, {Key: "revision-date", Head: "revision of"}}}
	for _, m := range c.Metrics {
		t.Columns = append(t.Columns, table.Column{Key: metricKey(m), Head: metricHead(m), Right: true})
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		for j := range r.Runs {
			run := &r.Runs[j]
			date, known := run.Var("revision-date")
			of := table.Cell{}
			if known {
				of = table.Text(date).As(date[:min(len(date), len("2026-11-30"))])
			}
			row := []table.Cell{table.Text(run.ID).As(shortID(db, run.ID)), table.Text(rowName(c.Variable, r.Value)),
				table.Text(run.Start.Local().Format("2006-01-02 15:04")), of}
			for k, m := range c.Metrics {
				v := r.Of(j, k)
				text := quantity(v.Value, m.Unit)
				if v.Unfit != "" {
					text = "(" + text + ")"
				}
				row = append(row, table.Float(v.Value, v.Known).As(text))
			}
			t.Add(row...)
		}
	}
	return t
}

// collateNotes say what was not shown, and why.
func (s *Session) collateNotes(c *store.Collated) error {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if leads(c) {
		add("%s better (green): the difference may be claimed", betterSign)
	}
	if others := othersOf(c); others > 0 {
		add("margin %s; %s is judged by itself, the others of a table are corrected for being many", marginText(c.Margin), c.Primary.Name)
	}
	notes = append(notes, leftOut(c)...)
	if n := len(c.Singles); n > 0 {
		add("%s with one %s only %s not shown: --singles shows them", plural(n, "group", "groups"), c.Variable.Name, isAre(n))
	}
	if c.Without > 0 {
		add("%s without a value of %s", reports(c.Without), c.Variable.Name)
	}
	if n := len(c.Unreadable); n > 0 {
		add("%s cannot be read: %s", reports(n), strings.Join(firstOf(c.Unreadable, 3, "more"), ", "))
	}
	if c.Cut > 0 {
		add("%s compared; %s older left out by -n", reports(c.Reports), count(c.Cut))
	}
	for _, n := range notes {
		if err := s.say("%s\n", s.wrap(n)); err != nil {
			return err
		}
	}
	return nil
}

// othersOf is how many comparisons there are beside the primary metric's.
func othersOf(c *store.Collated) (n int) {
	for i := range c.Groups {
		n += (len(pairsOf(c, &c.Groups[i]))) * len(c.Metrics)
	}
	return n
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// leads says whether anything is shown as better.
func leads(c *store.Collated) bool {
	for i := range c.Groups {
		p := &c.Groups[i]
		for r := range p.Rows {
			for m := range p.Rows[r].Cells {
				if p.Leads(r, m) {
					return true
				}
			}
		}
	}
	return false
}

// leftOut says how many values marks left out, and how many are unknown, and where to read on.
func leftOut(c *store.Collated) []string {
	lines, marked := leftOutValues(c)
	if marked {
		lines = append(lines, "help marks says why; --marked has what marks leave out")
	}
	return lines
}

// leftOutValues says how many values marks left out, and how many are unknown; marked: there are some of the former.
func leftOutValues(c *store.Collated) (lines []string, marked bool) {
	by := map[string]map[string]int{} // mark, metric
	put := func(mark, metric string, n int) {
		if by[mark] == nil {
			by[mark] = map[string]int{}
		}
		by[mark][metric] += n
	}
	for i := range c.Groups {
		for j := range c.Groups[i].Rows {
			for _, cell := range comparedCells(&c.Groups[i].Rows[j]) {
				for mark, n := range cell.Unfit {
					marked = true
					put(mark, cell.Metric.Name, n)
				}
				if cell.Unknown > 0 {
					put("", cell.Metric.Name, cell.Unknown)
				}
			}
		}
	}
	for _, mark := range sorted(by) {
		of := map[int][]string{} // metrics by how many values of them
		names := store.MetricNames()
		for _, m := range sorted(by[mark]) { // the relay's own are in no table
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
		for _, m := range names {
			if n := by[mark][m]; n > 0 {
				of[n] = append(of[n], m)
			}
		}
		var parts []string
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(of))) {
			each := ""
			if len(of[n]) > 1 {
				each = " each"
			}
			parts = append(parts, fmt.Sprintf("%s%s of %s", plural(n, "value", "values"), each, strings.Join(grouped(of[n]), ", ")))
		}
		text := "left out by mark " + mark + ": "
		if mark == "" {
			text = "not known: "
		}
		lines = append(lines, text+strings.Join(parts, "; "))
	}
	return lines, marked
}

// sharedText is what all groups have in common, as far as a person wants it at
// once: knobs at their defaults are left out, and what tells no more of a host than its name.
func sharedText(shared map[string]string) string {
	names := store.InOrder(shared)
	return conditionsText(shared, slices.DeleteFunc(names, func(name string) bool {
		if slices.Contains([]string{"duration", "rate", "mix", "host"}, name) {
			return false
		}
		k := plan.Find(name)
		if k == nil {
			return place0(name)
		}
		return shared[name] == k.Default
	}))
}

// place0 says whether a variable of the table goes without saying beside others.
func place0(name string) bool {
	v, ok := store.FindVariable(name)
	return ok && strings.HasPrefix(name, "host-") || ok && v.Role == store.Follows && !strings.HasPrefix(name, "relay-") ||
		slices.Contains([]string{"payload", "relay-size", "relay-dirty", "relay-form", "relay-profile", "relay-sha256"}, name)
}

// conditionsText is the values of some conditions.
func conditionsText(values map[string]string, names []string) string {
	var parts []string
	for _, name := range names {
		value, ok := values[name]
		parts = append(parts, name+" "+conditionValue(name, value, ok))
	}
	return strings.Join(parts, ", ")
}

// conditionValue is the value of a condition as a person reads it.
func conditionValue(name, value string, known bool) string {
	switch v, found := store.FindVariable(name); {
	case !known && strings.Contains(name, "."):
		return "not set"
	case !known:
		return "unknown"
	case found:
		value = shortValue(v.Type.Name(), value)
	}
	return cmp.Or(table.Clean(value), "(empty)")
}

// nothingToCompare says why there is nothing to be compared.
func nothingToCompare(db *store.DB, c *store.Collated, q store.Collation) string {
	name := c.Variable.Name
	if c.Reports == 0 {
		if near := nearestReport(db, q.Filters); near != "" {
			return "no report: " + near
		}
		return "no report"
	}
	return fmt.Sprintf("none of %s has a value of %s", reports(c.Reports), name)
}

// apartText says why no group has two values.
func apartText(c *store.Collated) string {
	name := c.Variable.Name
	apart := c.Apart()
	if apart == nil {
		return fmt.Sprintf("nothing to compare: all have %s %s", name, rowName(c.Variable, c.Groups[0].Rows[0].Value))
	}
	var parts []string
	for _, d := range apart {
		both := [2]string{d.A, d.B}
		for i := range both {
			both[i] = conditionValue(d.Name, both[i], both[i] != "")
		}
		parts = append(parts, fmt.Sprintf("%s differs: %s and %s", d.Name, both[0], both[1]))
	}
	return fmt.Sprintf("nothing to compare: no group has two values of %s, because %s", name, strings.Join(parts, ", "))
}

// nearestReport names, of filters that no report matches, a value that none has, and the nearest that there is.
func nearestReport(db *store.DB, filters []store.Filter) string {
	if db == nil {
		return ""
	}
	for _, f := range filters {
		if f.Op != "=" || f.Value == "" {
			continue
		}
		values, err := db.Values(f.Name, most)
		if err != nil || slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, f.Value) }) || len(values) == 0 {
			continue
		}
		text := fmt.Sprintf("none has %s %s", f.Name, table.Clean(f.Value))
		if near := variable.Nearest(f.Value, values); near != "" {
			return text + "; the nearest is " + table.Clean(near)
		}
		return text
	}
	return ""
}
