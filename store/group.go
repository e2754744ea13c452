package store

import (
	"slices"
)

// grouper parts the entries of a walk into groups, and those into rows.
type grouper struct {
	variable *Variable
	named    []string // it, and what may vary with it
	setting  bool     // it is a config key
	equal    []int    // the numbers of those of conditions in which a group is equal

	key        []byte // of the group that was looked up last
	groups     map[string]*grouping
	order      []*grouping
	unreadable []string
	without    int
	reports    int
}

// grouping is a group that is being made.
type grouping struct {
	cell *cell // one of those in it
	rows map[string]*Row
}

func newGrouper(v *Variable, with []string) *grouper {
	_, inTable := place[v.Name]
	g := &grouper{variable: v, named: append([]string{v.Name}, with...), setting: !inTable, groups: map[string]*grouping{}}
	for n, i := range conditions.at {
		if !Variables[i].varies(g.named) {
			g.equal = append(g.equal, n)
		}
	}
	return g
}

// visit takes the entries of a walk.
func (g *grouper) visit(e *Entry, c *seenCell) {
	g.reports++
	if e.Problem != "" {
		g.unreadable = append(g.unreadable, e.ID)
		return
	}
	ofEntry := g.variable.Role == Occasion
	if c.group == nil {
		c.group = g.group(c.cell)
		if !ofEntry {
			c.row = g.row(c.group, c.cell)
		}
	}
	row := c.row
	if ofEntry {
		if value, ok := e.Var(g.variable.Name); ok {
			row = c.group.row(value)
			row.made(c.cell)
		}
	}
	if row == nil {
		g.without++
		return
	}
	row.Runs = append(row.Runs, Run{Entry: *e})
}

// group is the group of a cell.
func (g *grouper) group(of *cell) *grouping {
	g.key = g.key[:0]
	for _, n := range g.equal {
		g.key = appendText(g.key, of.values[n])
	}
	for _, p := range of.extra {
		if !slices.Contains(g.named, p.name) {
			g.key = appendText(appendText(g.key, p.name), p.value)
		}
	}
	p := g.groups[string(g.key)]
	if p == nil {
		p = &grouping{of, map[string]*Row{}}
		g.groups[string(g.key)] = p
		g.order = append(g.order, p)
	}
	return p
}

// row is the row of a cell; nil where the variable has no value in it.
func (g *grouper) row(p *grouping, of *cell) *Row {
	value, ok := of.get(g.variable.Name)
	var row *Row
	switch {
	case ok:
		row = p.row(value)
	case g.setting:
		row = p.row(NotSet)
		row.Unset = true
	default:
		return nil
	}
	row.made(of)
	return row
}

func (p *grouping) row(value string) *Row {
	r := p.rows[value]
	if r == nil {
		r = &Row{Value: value}
		p.rows[value] = r
	}
	return r
}

// made notes of which cells a row's runs are.
func (r *Row) made(of *cell) {
	if n := len(r.of); n > 0 && r.of[n-1] == of || slices.Contains(r.of, of) {
		return
	}
	r.of = append(r.of, of)
}

// peers are the groups, each with its rows in order.
func (g *grouper) peers() []Peers {
	slices.Reverse(g.unreadable)
	var all []Peers
	for _, p := range g.order {
		if len(p.rows) == 0 {
			continue
		}
		peers := Peers{Conditions: g.conditions(p.cell), Baseline: -1}
		for _, r := range p.rows {
			slices.Reverse(r.Runs)
			byStart := func(a, b Run) int { return a.Start.Compare(b.Start) }
			if !slices.IsSortedFunc(r.Runs, byStart) {
				slices.SortStableFunc(r.Runs, byStart)
			}
			r.Follows, r.Mixed = g.follows(r)
			peers.Rows = append(peers.Rows, *r)
		}
		slices.SortFunc(peers.Rows, func(a, b Row) int {
			switch {
			case a.Unset != b.Unset && a.Unset:
				return -1
			case a.Unset != b.Unset:
				return 1
			}
			return compareValues(g.variable, a.Value, b.Value)
		})
		all = append(all, peers)
	}
	return all
}

// conditions are those of a cell that all reports of its group share.
func (g *grouper) conditions(of *cell) map[string]string {
	values := map[string]string{}
	for _, n := range g.equal {
		if of.values[n] != "" {
			values[Variables[conditions.at[n]].Name] = of.values[n]
		}
	}
	for _, p := range of.extra {
		if !slices.Contains(g.named, p.name) {
			values[p.name] = p.value
		}
	}
	return values
}

// follows are the values of what varies with the variable, where a row's cells
// agree, and where they do not, how many values they have.
func (g *grouper) follows(r *Row) (values map[string]string, mixed map[string]int) {
	values = map[string]string{}
	agreed := func(name string) {
		first, ok := r.of[0].get(name)
		if !slices.ContainsFunc(r.of, func(c *cell) bool { v, _ := c.get(name); return v != first }) {
			if ok {
				values[name] = first
			}
			return
		}
		found := map[string]bool{}
		for _, c := range r.of {
			if v, ok := c.get(name); ok {
				found[v] = true
			}
		}
		if mixed == nil {
			mixed = map[string]int{}
		}
		mixed[name] = len(found)
	}
	for _, i := range conditions.at {
		if v := &Variables[i]; v.varies(g.named) && v.Name != g.variable.Name {
			agreed(v.Name)
		}
	}
	for _, name := range g.named[1:] {
		if _, inTable := place[name]; !inTable {
			agreed(name)
		}
	}
	return values, mixed
}
