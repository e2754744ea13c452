package store

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"relaybench/harness/variable"
	"relaybench/store/stats"
)

// Collated is what the reports say.
type Collated struct {
	Variable   *Variable
	Reports    int               // that the filters match, within the limit
	Cut        int               // that match and that the limit left out
	Unreadable []string          // ids of reports of which nothing is known
	Without    int               // reports in which Variable has no value
	Metrics    []*Metric         // of each row's cells
	Primary    *Metric           //
	Margin     float64           // of the verdicts
	Shared     map[string]string // conditions in which all groups are equal
	Groups     []Peers           // by their conditions, or as was asked for
	Singles    []Peers           // groups of one row that were put aside; their rows have no cells

	marked bool
	all    []*Metric // Metrics, then those that are needed beside them
}

// Peers are the reports that are equal in every condition but the named variable.
type Peers struct {
	Conditions map[string]string // all of them that are known
	Differs    map[string]string // those that are not in Collated.Shared; nil of Collated.Singles
	Rows       []Row             // by value of the variable, in its type's order, or as was asked for
	// Baseline is the number of the row that the others are compared with; -1: the group has none.
	Baseline int
}

// Leads says whether a cell, by the numbers of its row and of its metric in
// Collated.Metrics, is better than another one by a difference that may be claimed,
// while none is better than it.
func (p *Peers) Leads(row, metric int) bool {
	answers := map[stats.Answer]bool{}
	for i := range p.Rows {
		if v := p.Rows[i].Cells[metric].Verdict; v != nil && (i == row || row == p.Baseline) {
			answers[v.Answer] = true
		}
	}
	if row == p.Baseline {
		return answers[stats.Worse] && !answers[stats.Better]
	}
	return answers[stats.Better]
}

// NotSet is the value of a row whose reports have no value of a config key: the
// relay's own default held.
const NotSet = "(not set)"

// Row is the reports of a group with one value of the named variable.
type Row struct {
	Value   string            // or NotSet
	Unset   bool              // it is NotSet
	Follows map[string]string // what varies with the variable, where all runs of the row agree
	Mixed   map[string]int    // where they do not: how many values it has
	Runs    []Run             // oldest first
	Cells   []Cell            // by Collated.Metrics
	Primary *Cell             // of Collated.Primary; it is one of Cells where that is one of Collated.Metrics

	of    []*cell
	cells []Cell // by Collated.all; Cells are the first
	// By Collated.all, and of each by run. A hundred thousand runs are kept, so they are kept small.
	values []float64 // NaN where it is unknown
	unfit  []uint8   // the place of the first mark that makes it unfit, from 1; 0: none
}

// Run is one report of a row.
type Run struct{ Entry }

// Of is a metric of a run, by their numbers in Runs and in Cells.
func (r *Row) Of(run, metric int) Value {
	i := metric*len(r.Runs) + run
	v := Value{Value: r.values[i], Known: !math.IsNaN(r.values[i])}
	if !v.Known {
		v.Value = 0
	}
	if by := r.unfit[i]; by > 0 {
		v.Unfit = Marks[by-1].Name
	}
	return v
}

// Value is a metric of a run.
type Value struct {
	Value float64
	Known bool
	Unfit string // the first mark that makes it unfit; empty: none
}

// ballastBytes of memory at most are held and never touched while reports are collated.
// The collector goes by what is held: with the few MB that a fresh process has
// it would come again and again while there is next to nothing to collect. Memory
// that is not touched takes none of the machine's.
//
// Note: a [strings.Builder] does not clear what it grows by; make may.
const ballastBytes = 64 << 20

// calibrationName is the metric that says how fast the machine was.
const calibrationName = "calibration"

// Collate groups reports and compares them. It reads the index alone where all
// metrics are in it, else also the reports of the groups that it gives. The
// error is a [BaselineError] where there are reports, and none has the baseline's
// value, and a [StatsdError] where none has a metric of the relay's own.
func (db *DB) Collate(q Collation) (*Collated, error) {
	c := &Collated{Margin: q.Margin, marked: q.Marked}
	var err error
	if c.Variable, err = FindNamed(q.Variable); err != nil {
		return nil, err
	}
	for _, name := range q.With {
		if _, err := FindNamed(name); err != nil {
			return nil, err
		}
	}
	if err := c.choose(q); err != nil {
		return nil, err
	}
	var ballast strings.Builder
	defer runtime.KeepAlive(&ballast)
	err = db.view(func(tx *bbolt.Tx) error {
		ballast.Grow(int(min(ballastBytes, tx.Size()/8))) // about what is kept of all reports
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = db.indexed(func() (err error) {
		g := newGrouper(c.Variable, q.With)
		if c.Cut, err = db.walk(q.Filters, q.Limit, g.visit); err != nil {
			return err
		}
		c.Groups, c.Unreadable, c.Without, c.Reports = g.peers(), g.unreadable, g.without, g.reports
		return nil
	})
	if err != nil {
		return nil, err
	}
	if q.NoSingles {
		all := c.Groups
		c.Groups = nil
		for _, p := range all {
			if len(p.Rows) < 2 {
				c.Singles = append(c.Singles, p)
			} else {
				c.Groups = append(c.Groups, p)
			}
		}
	}
	c.share()
	var heard heard
	rest, err := db.readRest(c, &heard)
	if err != nil {
		return nil, err
	}
	from := sources(c.all)
	c.each(func(p *Peers) {
		for i := range p.Rows {
			c.fill(&p.Rows[i], from, rest)
		}
	})
	if err := heard.missing(c); err != nil {
		return nil, err
	}
	c.sort(q.Sort)
	if err := c.compare(q.Baseline); err != nil {
		return nil, err
	}
	return c, nil
}

// choose finds the metrics that are asked for, and those that are needed beside them.
func (c *Collated) choose(q Collation) error {
	names := q.Metrics
	if len(names) == 0 {
		names = DefaultMetrics
	}
	need := func(name string) (*Metric, error) {
		if i := slices.IndexFunc(c.all, func(m *Metric) bool { return m.Name == name }); i >= 0 {
			return c.all[i], nil
		}
		m := FindMetric(name)
		if m == nil {
			return nil, unknownOf("metric", name, MetricNames())
		}
		c.all = append(c.all, m)
		return m, nil
	}
	for _, name := range names {
		if _, err := need(name); err != nil {
			return err
		}
	}
	c.Metrics = slices.Clone(c.all)
	var err error
	if c.Primary, err = need(cmp.Or(q.Primary, DefaultPrimary)); err != nil {
		return err
	}
	for _, s := range q.Sort {
		if _, ok := FindVariable(s.Name); ok {
			continue
		}
		if _, err := need(s.Name); err != nil {
			return err
		}
	}
	_, err = need(calibrationName)
	return err
}

// Sets orders sets of conditions as groups are ordered, one a group, and says
// which of them all have in common. The groups have no rows.
func Sets(sets []map[string]string) *Collated {
	c := &Collated{}
	for _, conditions := range sets {
		c.Groups = append(c.Groups, Peers{Conditions: conditions})
	}
	c.share()
	return c
}

// each does something to all groups, several at once.
func (c *Collated) each(do func(*Peers)) {
	Parallel(len(c.Groups), func(i int) { do(&c.Groups[i]) })
}

// share parts the conditions in which all groups are equal from the others, and orders the groups by those.
func (c *Collated) share() {
	c.Shared = map[string]string{}
	if len(c.Groups) == 0 {
		return
	}
	for name, value := range c.Groups[0].Conditions {
		if !slices.ContainsFunc(c.Groups, func(p Peers) bool { v, ok := p.Conditions[name]; return !ok || v != value }) {
			c.Shared[name] = value
		}
	}
	var all []map[string]string
	for i := range c.Groups {
		p := &c.Groups[i]
		p.Differs = map[string]string{}
		for name, value := range p.Conditions {
			if _, ok := c.Shared[name]; !ok {
				p.Differs[name] = value
			}
		}
		all = append(all, p.Differs)
	}
	var by []*Variable
	for _, name := range InOrder(all...) {
		by = append(by, anyVariable(name))
	}
	slices.SortStableFunc(c.Groups, func(a, b Peers) int {
		for _, v := range by {
			x, y := a.Differs[v.Name], b.Differs[v.Name]
			if o := compareValues(v, x, y); o != 0 {
				return o
			}
		}
		return 0
	})
}

// anyVariable is a variable of reports, also one of a newer relaybench.
func anyVariable(name string) *Variable {
	if v, ok := FindVariable(name); ok {
		return v
	}
	return &Variable{Name: name, Type: variable.String, Role: Condition}
}

// compareValues orders two values of a variable, of which "" is unknown and the first.
func compareValues(v *Variable, a, b string) int {
	if a == b || a == "" || b == "" {
		return strings.Compare(a, b)
	}
	return cmp.Or(v.Compare(a, b), strings.Compare(a, b))
}

// sort orders rows and groups by criteria. Of a row whose runs differ in a
// variable it is the newest run's, of a metric the median; what is unknown is
// last. Groups are in the order of their first rows.
func (c *Collated) sort(by []Criterion) {
	if len(by) == 0 {
		return
	}
	order := func(a, b *Row) int {
		for _, k := range by {
			if o := c.order(a, b, k); o != 0 {
				return o
			}
		}
		return 0
	}
	for i := range c.Groups {
		slices.SortStableFunc(c.Groups[i].Rows, func(a, b Row) int { return order(&a, &b) })
	}
	slices.SortStableFunc(c.Groups, func(a, b Peers) int { return order(&a.Rows[0], &b.Rows[0]) })
}

// order compares two rows by one criterion.
func (c *Collated) order(a, b *Row, by Criterion) int {
	down := 1
	if by.Down {
		down = -1
	}
	if v, ok := FindVariable(by.Name); ok {
		x, _ := a.Runs[len(a.Runs)-1].Var(by.Name)
		y, _ := b.Runs[len(b.Runs)-1].Var(by.Name)
		if x == "" || y == "" {
			return strings.Compare(y, x)
		}
		return down * compareValues(v, x, y)
	}
	i := slices.IndexFunc(c.all, func(m *Metric) bool { return m.Name == by.Name })
	x, y := a.cells[i].Summary, b.cells[i].Summary
	if x.N == 0 || y.N == 0 {
		return cmp.Compare(min(y.N, 1), min(x.N, 1))
	}
	return down * cmp.Compare(x.Median, y.Median)
}

// compare judges each row of a group against its baseline.
func (c *Collated) compare(baseline string) error {
	value := ""
	if baseline != "" && len(c.Groups)+len(c.Singles) > 0 {
		var err error
		if value, err = c.baseline(baseline); err != nil {
			return err
		}
	}
	c.each(func(p *Peers) {
		p.Baseline = 0
		if value != "" {
			p.Baseline = slices.IndexFunc(p.Rows, func(r Row) bool { return r.Value == value })
		}
		if p.Baseline < 0 {
			return
		}
		var others []*Row
		for i := range p.Rows {
			if i != p.Baseline {
				others = append(others, &p.Rows[i])
			}
		}
		c.CompareAll(&p.Rows[p.Baseline], others, c.Margin)
	})
	return nil
}

// baseline is the value of a row that was typed so.
func (c *Collated) baseline(typed string) (string, error) {
	found := map[string]bool{}
	var values []string
	for _, p := range slices.Concat(c.Groups, c.Singles) {
		for _, r := range p.Rows {
			if !found[r.Value] {
				found[r.Value] = true
				values = append(values, r.Value)
			}
		}
	}
	slices.Sort(values)
	canon, err := c.Variable.Canon(typed)
	if found[typed] {
		return typed, nil
	}
	if err == nil && found[canon] {
		return canon, nil
	}
	if n := c.Variable.Type.Name(); err == nil && (n == hexType.Name() || n == idType.Name()) {
		var begin []string
		for _, v := range values {
			if strings.HasPrefix(v, canon) {
				begin = append(begin, v)
			}
		}
		switch {
		case len(begin) == 1:
			return begin[0], nil
		case len(begin) > 1:
			return "", &BaselineError{Variable: c.Variable.Name, Value: typed, Values: begin}
		}
	}
	return "", &BaselineError{c.Variable.Name, typed, variable.Nearest(typed, values), values}
}

// Difference is a condition in which two groups differ.
type Difference struct {
	Name string
	A, B string // "" where it is unknown or not set
}

// Apart says what keeps the values of the variable apart where no group has two
// of them: the conditions in which those two groups of different values differ that
// differ least. It is empty where there are no two values.
func (c *Collated) Apart() (least []Difference) {
	const most = 200 // of groups that are looked at
	groups := slices.Concat(c.Groups, c.Singles)
	groups = groups[:min(most, len(groups))]
	for i := range groups {
		for j := range i {
			a, b := &groups[j], &groups[i]
			if len(a.Rows) != 1 || len(b.Rows) != 1 || a.Rows[0].Value == b.Rows[0].Value {
				continue
			}
			var ds []Difference
			for _, name := range InOrder(a.Conditions, b.Conditions) {
				if x, y := a.Conditions[name], b.Conditions[name]; x != y {
					ds = append(ds, Difference{name, x, y})
				}
			}
			if ds = leading(ds); least == nil || len(ds) < len(least) {
				least = ds
			}
		}
	}
	return least
}

// leading are those differences that do not follow from others.
func leading(all []Difference) (kept []Difference) {
	add := func(role func(Role) bool) {
		for _, d := range all {
			v := anyVariable(d.Name)
			follows := slices.ContainsFunc(kept, func(k Difference) bool { return k.Name != d.Name && v.varies([]string{k.Name}) })
			if role(v.Role) && !(v.Role == Follows && follows) {
				kept = append(kept, d)
			}
		}
	}
	add(func(r Role) bool { return r != Follows })
	add(func(r Role) bool { return r == Follows })
	return kept
}

// Telling are the conditions that tell the groups apart, in the table's order:
// all that differ, without those that only follow others of them.
func (c *Collated) Telling() []string {
	var all []map[string]string
	for i := range c.Groups {
		all = append(all, c.Groups[i].Differs)
	}
	names := InOrder(all...)
	kept := map[string]bool{}
	parts := make([]string, len(c.Groups)) // groups that are told apart so far have different ones
	for _, role := range []Role{Condition, Follows} {
		for _, name := range names {
			v := anyVariable(name)
			if v.Role != role {
				continue
			}
			finer := make([]string, len(parts))
			for i := range parts {
				finer[i] = string(appendText([]byte(parts[i]), all[i][name]))
			}
			follows := false
			for k := range kept {
				follows = follows || v.varies([]string{k})
			}
			if role == Condition || !follows || distinct(finer) > distinct(parts) {
				kept[name], parts = true, finer
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !kept[n] })
}

func distinct(texts []string) int {
	seen := map[string]bool{}
	for _, t := range texts {
		seen[t] = true
	}
	return len(seen)
}
