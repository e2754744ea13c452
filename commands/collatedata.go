package commands

import (
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/store"
)

// collatedJSON is a comparison as programs read it. Its keys are stable.
type collatedJSON struct {
	Variable   string            `json:"variable"`
	Primary    string            `json:"primary"`
	Margin     float64           `json:"margin"`  // a part: 0.05 is 5%
	Reports    int               `json:"reports"` // that were looked at
	Cut        int               `json:"cut"`     // left out by -n
	Without    int               `json:"without_value"`
	Unreadable []string          `json:"unreadable"`
	Singles    int               `json:"groups_of_one_value_left_out"`
	Shared     map[string]string `json:"shared"`
	Groups     []peersJSON       `json:"groups"`
}

type peersJSON struct {
	Differs  map[string]string `json:"differs"`
	Baseline table.Cell        `json:"baseline_row"` // its number in rows, from 0; null: the group has none
	Rows     []valueJSON       `json:"rows"`
}

type valueJSON struct {
	Value   table.Cell          `json:"value"` // null: a config key that is not set
	N       int                 `json:"n"`
	Follows map[string]string   `json:"follows"`
	Metrics map[string]cellJSON `json:"metrics"`
	Reports []runOfRowJSON      `json:"reports"`
}

type runOfRowJSON struct {
	ID      string                `json:"id"`
	Started time.Time             `json:"started"`
	Metrics map[string]metricJSON `json:"metrics"`
}

type cellJSON struct {
	Unit       string          `json:"unit"`
	N          int             `json:"n"`
	Median     table.Cell      `json:"median"`
	Q1         table.Cell      `json:"q1"`
	Q3         table.Cell      `json:"q3"`
	Min        table.Cell      `json:"min"`
	Max        table.Cell      `json:"max"`
	LeftOut    map[string]int  `json:"left_out"` // by mark
	Unknown    int             `json:"unknown"`
	Comparison *comparisonJSON `json:"comparison"` // null of the baseline
}

type comparisonJSON struct {
	Answer      string     `json:"answer"`
	Why         string     `json:"why"`
	RunsNeeded  int        `json:"runs_needed"` // a side; 0: not known, or none
	Shift       table.Cell `json:"shift"`
	Low         table.Cell `json:"shift_low"`
	High        table.Cell `json:"shift_high"`
	Relative    bool       `json:"shift_relative"` // a part of the baseline, else in the unit
	Coverage    table.Cell `json:"coverage"`       // of low to high
	P           table.Cell `json:"p"`
	Adjusted    table.Cell `json:"p_corrected"`
	BaselineN   int        `json:"baseline_n"`
	Interleaved bool       `json:"interleaved"`
	Calibration table.Cell `json:"calibration_shift"`
}

func newCollatedJSON(c *store.Collated) collatedJSON {
	j := collatedJSON{Variable: c.Variable.Name, Primary: c.Primary.Name, Margin: c.Margin, Reports: c.Reports, Cut: c.Cut, Without: c.Without,
		Unreadable: append([]string{}, c.Unreadable...), Singles: len(c.Singles), Shared: c.Shared, Groups: []peersJSON{}}
	if j.Shared == nil {
		j.Shared = map[string]string{}
	}
	for i := range c.Groups {
		p := &c.Groups[i]
		g := peersJSON{Differs: p.Differs, Rows: []valueJSON{}}
		if p.Baseline >= 0 {
			g.Baseline = table.Int(p.Baseline)
		}
		for k := range p.Rows {
			g.Rows = append(g.Rows, newValueJSON(c, &p.Rows[k]))
		}
		j.Groups = append(j.Groups, g)
	}
	return j
}

func valueCell(r *store.Row) table.Cell {
	if r.Unset {
		return table.Cell{}
	}
	return table.Text(r.Value)
}

func newValueJSON(c *store.Collated, r *store.Row) valueJSON {
	j := valueJSON{Value: valueCell(r), N: len(r.Runs), Follows: r.Follows, Metrics: map[string]cellJSON{}, Reports: []runOfRowJSON{}}
	for _, cell := range comparedCells(r) {
		j.Metrics[cell.Metric.Name] = newCellJSON(cell)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		of := runOfRowJSON{run.ID, run.Start, map[string]metricJSON{}}
		for k, m := range c.Metrics {
			v := r.Of(i, k)
			var unfit *string
			if v.Unfit != "" {
				unfit = &v.Unfit
			}
			of.Metrics[m.Name] = metricJSON{table.Float(v.Value, v.Known), m.Unit, unfit}
		}
		j.Reports = append(j.Reports, of)
	}
	return j
}

func newCellJSON(c *store.Cell) cellJSON {
	s := &c.Summary
	of := func(v float64) table.Cell { return table.Float(v, s.N > 0) }
	j := cellJSON{Unit: c.Metric.Unit, N: s.N, Median: of(s.Median), Q1: of(s.Q1), Q3: of(s.Q3), Min: of(s.Min), Max: of(s.Max),
		LeftOut: c.Unfit, Unknown: c.Unknown}
	if j.LeftOut == nil {
		j.LeftOut = map[string]int{}
	}
	if v := c.Verdict; v != nil {
		known := func(x float64) table.Cell { return table.Float(x, v.Known()) }
		interval := func(x float64) table.Cell { return table.Float(x, v.Known() && v.Shift.Coverage > 0) }
		j.Comparison = &comparisonJSON{Answer: string(v.Answer), Why: v.Why, RunsNeeded: v.Runs, Shift: known(v.Shift.Value),
			Low: interval(v.Shift.Low), High: interval(v.Shift.High), Relative: v.Shift.Relative, Coverage: known(v.Shift.Coverage),
			P: known(v.P), Adjusted: known(v.Adjusted), BaselineN: v.A.N, Interleaved: c.Order.Interleaved, Calibration: table.Float(c.Drift, c.DriftKnown)}
	}
	return j
}

// groupColumns are the columns that say of which group a row is, and their cells by group.
func groupColumns(c *store.Collated) (columns []table.Column, of func(i int) []table.Cell) {
	names := c.Telling()
	columns = []table.Column{{Key: "group"}}
	for _, n := range names {
		columns = append(columns, table.Column{Key: n})
	}
	return columns, func(i int) []table.Cell {
		cells := []table.Cell{table.Int(i + 1)}
		for _, n := range names {
			if v, ok := c.Groups[i].Conditions[n]; ok {
				cells = append(cells, table.Text(v))
			} else {
				cells = append(cells, table.Cell{})
			}
		}
		return cells
	}
}

// cellRows is a row a value and metric, for CSV.
func cellRows(c *store.Collated) *table.Table {
	t := &table.Table{}
	var group func(int) []table.Cell
	t.Columns, group = groupColumns(c)
	t.Columns = append(t.Columns, table.Column{Key: "variable"}, table.Column{Key: "value"}, table.Column{Key: "runs"})
	for _, key := range []string{"metric", "unit", "n", "median", "q1", "q3", "min", "max", "left_out", "unknown", "baseline", "baseline_n",
		"shift", "shift_low", "shift_high", "shift_relative", "p", "p_corrected", "interleaved", "calibration_shift", "answer", "why", "report_ids"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	for i := range c.Groups {
		p := &c.Groups[i]
		for k := range p.Rows {
			r := &p.Rows[k]
			var ids []string
			for n := range r.Runs {
				ids = append(ids, r.Runs[n].ID)
			}
			for _, cell := range comparedCells(r) {
				j := newCellJSON(cell)
				row := append(group(i), table.Text(c.Variable.Name), valueCell(r), table.Int(len(r.Runs)),
					table.Text(cell.Metric.Name), table.Text(j.Unit), table.Int(j.N), j.Median, j.Q1, j.Q3, j.Min, j.Max, table.Int(cell.Left()), table.Int(j.Unknown))
				if v := j.Comparison; v != nil {
					row = append(row, valueCell(&p.Rows[p.Baseline]), table.Int(v.BaselineN), v.Shift, v.Low, v.High, table.Bool(v.Relative),
						v.P, v.Adjusted, table.Bool(v.Interleaved), v.Calibration, table.Text(v.Answer), table.Text(v.Why))
				} else {
					row = append(row, make([]table.Cell, 12)...)
				}
				t.Add(append(row, table.Text(strings.Join(ids, " ")))...)
			}
		}
	}
	return t
}

// runRows is a row a report, for CSV.
func runRows(c *store.Collated) *table.Table {
	t := &table.Table{}
	var group func(int) []table.Cell
	t.Columns, group = groupColumns(c)
	for _, key := range []string{"variable", "value", "report-id", "started", "revision-date"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	for _, m := range c.Metrics {
		t.Columns = append(t.Columns, table.Column{Key: metricKey(m)}, table.Column{Key: m.Name + "_unfit"})
	}
	for i := range c.Groups {
		p := &c.Groups[i]
		for k := range p.Rows {
			r := &p.Rows[k]
			for n := range r.Runs {
				run := &r.Runs[n]
				started, _ := run.Var("started")
				date, _ := run.Var("revision-date")
				row := append(group(i), table.Text(c.Variable.Name), valueCell(r), table.Text(run.ID), optional(started), optional(date))
				for m := range c.Metrics {
					v := r.Of(n, m)
					row = append(row, table.Float(v.Value, v.Known), optional(v.Unfit))
				}
				t.Add(row...)
			}
		}
	}
	return t
}
