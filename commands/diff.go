package commands

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/store"
)

var diffCommand = command{
	name:    "diff",
	summary: "two reports side by side: what differs, without a verdict",
	detail: `The variables that differ, then the metrics that do, with the change in % from the first to
the second. Two runs tell nothing about two builds: the same build run twice differs too, and a
machine drifts by more than most changes make.`,
	args:     []arg{{name: "REPORT", help: reportHelp, values: reportValues}, {name: "OTHER", help: "likewise", values: reportValues}},
	examples: []string{"diff last-1 last"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(_ context.Context, refs []string) (Code, error) {
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			var both [2]*store.Report
			for i, ref := range refs {
				if both[i], err = db.Get(ref); err != nil {
					return Fine, err
				}
			}
			if both[0].ID == both[1].ID {
				return Fine, usageError(fmt.Errorf("%q and %q are both report %s", refs[0], refs[1], both[0].ID), "")
			}
			return Fine, s.printDiff(newDifference(both[0], both[1]))
		}
	},
}

// difference is in what two reports differ.
type difference struct {
	ids             [2]string
	variables       []variablePair // that differ
	metrics         []metricPair   // that differ
	sameVariables   int
	sameMetrics     int
	marks           [2][]store.Marked
	conditionsAlike bool
}

type variablePair struct {
	name   string
	role   store.Role
	values [2]table.Cell
}

type metricPair struct {
	*store.Metric
	values [2]table.Cell
	change table.Cell    // in %
	unfit  [2]table.Cell // the mark that makes it so
}

func newDifference(a, b *store.Report) *difference {
	d := &difference{ids: [2]string{a.ID, b.ID}, conditionsAlike: true, marks: [2][]store.Marked{store.MarksOf(a), store.MarksOf(b)}}
	vars := [2]map[string]string{store.VariablesOf(a), store.VariablesOf(b)}
	for _, name := range store.InOrder(vars[0], vars[1]) {
		v := variablePair{name: name, role: store.Condition}
		if known, ok := store.FindVariable(name); ok {
			v.role = known.Role
		}
		var text [2]string
		for i := range vars {
			var ok bool
			if text[i], ok = vars[i][name]; ok {
				v.values[i] = table.Text(text[i])
			}
		}
		if text[0] == text[1] && v.values[0].Known() == v.values[1].Known() {
			d.sameVariables++
			continue
		}
		d.conditionsAlike = d.conditionsAlike && v.role == store.Occasion
		d.variables = append(d.variables, v)
	}
	for i := range store.Metrics {
		m := metricPair{Metric: &store.Metrics[i]}
		x, okx := m.Of(a)
		y, oky := m.Of(b)
		if okx == oky && (!okx || x == y) {
			d.sameMetrics++
			continue
		}
		m.values = [2]table.Cell{metricCell(x, okx, m.Unit), metricCell(y, oky, m.Unit)}
		if okx && oky && x != 0 {
			change := 100 * (y - x) / x
			m.change = table.Float(change, true).As(signed(change))
		}
		for j, marks := range d.marks {
			if by, ok := store.Unfit(marks, m.Name); ok {
				m.unfit[j] = table.Text(by)
			}
		}
		d.metrics = append(d.metrics, m)
	}
	return d
}

// signed is a change in % with its sign.
func signed(change float64) string {
	switch {
	case change > 999.5 || change < -999.5:
		return fmt.Sprintf("%+.0f%%", change)
	case change > 0.05 || change < -0.05:
		return fmt.Sprintf("%+.1f%%", change)
	}
	return fmt.Sprintf("%+.2g%%", change)
}

// printDiff prints a difference: for a person variables and metrics apart, for programs a row each.
func (s *Session) printDiff(d *difference) error {
	if s.format != Text {
		t := &table.Table{Columns: []table.Column{{Key: "what"}, {Key: "name"}, {Key: "unit"}, {Key: "first"}, {Key: "second"},
			{Key: "change_percent"}, {Key: "first_unfit"}, {Key: "second_unfit"}}}
		t.Add(table.Text("variable"), table.Text("report-id"), table.Cell{}, table.Text(d.ids[0]), table.Text(d.ids[1]), table.Cell{}, table.Cell{}, table.Cell{})
		for _, v := range d.variables {
			if v.name != "report-id" {
				t.Add(table.Text("variable"), table.Text(v.name), table.Cell{}, v.values[0], v.values[1], table.Cell{}, table.Cell{}, table.Cell{})
			}
		}
		for _, m := range d.metrics {
			t.Add(table.Text("metric"), table.Text(m.Name), optional(m.Unit), m.values[0], m.values[1], m.change, m.unfit[0], m.unfit[1])
		}
		return s.print(t)
	}
	heads := []table.Column{{Key: "variable"}, {Key: d.ids[0], Wrap: true}, {Key: d.ids[1], Wrap: true}, {Key: "role", Head: ""}}
	variables := &table.Table{Columns: heads}
	for _, v := range d.variables {
		role := table.Text("")
		if v.role == store.Occasion {
			role = table.Text("occasion")
		}
		variables.Add(table.Text(v.name), v.values[0], v.values[1], role)
	}
	metrics := &table.Table{Columns: []table.Column{{Key: "metric"}, {Key: d.ids[0], Right: true}, {Key: d.ids[1], Right: true},
		{Key: "change", Right: true}, {Key: "unfit by", Wrap: true}}}
	for _, m := range d.metrics {
		metrics.Add(table.Text(m.Name), m.values[0], m.values[1], m.change, unfitWords(m.unfit))
	}
	if err := s.print(variables); err != nil {
		return err
	}
	if err := s.printf("%d other variables are alike\n\n", d.sameVariables); err != nil {
		return err
	}
	if err := s.print(metrics); err != nil {
		return err
	}
	alike := "the two differ in conditions"
	if d.conditionsAlike {
		alike = "the two are equal in every condition"
	}
	return s.printf("%d other metrics are alike or unknown in both\n\n%s\n", d.sameMetrics, s.wrap(alike+
		"; this is no verdict: one run a side cannot tell a change from the machine's drift"))
}

// unfitWords says which marks make a metric unfit.
func unfitWords(unfit [2]table.Cell) table.Cell {
	switch {
	case !unfit[0].Known() && !unfit[1].Known():
		return table.Text("")
	case unfit[0].String() == unfit[1].String():
		return unfit[0]
	case !unfit[1].Known():
		return table.Text(unfit[0].String() + " (first)")
	case !unfit[0].Known():
		return table.Text(unfit[1].String() + " (second)")
	}
	return table.Text(unfit[0].String() + ", " + unfit[1].String())
}
