package store

import (
	"math"
	"slices"
	"time"

	"relaybench/store/stats"
)

// Cell is one metric of a row: what is fit of it, how it lies, and how it
// compares with the baseline.
type Cell struct {
	Metric  *Metric
	Values  []float64 // of those runs that count, oldest first
	Summary stats.Summary
	Unfit   map[string]int // values left out, by mark
	Unknown int            // runs in which it is unknown
	// Verdict is against the baseline's cell; nil of the baseline itself.
	Verdict *stats.Verdict
	// Order is how the runs that count followed the baseline's.
	Order stats.Order
	// Drift is by how much the calibration differs from the baseline's: 0.03 is 3%. DriftKnown is false where it is not known.
	Drift      float64
	DriftKnown bool

	sorted []float64 // Values
}

// DriftLimit is the difference in calibration over which two cells are of a machine that changed.
const DriftLimit = 0.03

// Drifted says that the machine was not as fast for both, going by the calibration.
func (c *Cell) Drifted() bool { return c.DriftKnown && math.Abs(c.Drift) > DriftLimit }

// Left is how many values marks left out.
func (c *Cell) Left() (n int) {
	for _, of := range c.Unfit {
		n += of
	}
	return n
}

// readRest reads those metrics that are not in the index, of the reports of the
// groups, by id. heard takes what their relays said.
func (db *DB) readRest(c *Collated, heard *heard) (map[string][]Value, error) {
	if !slices.ContainsFunc(c.all, func(m *Metric) bool { return !m.Headline }) {
		return nil, nil
	}
	var ids []string
	for i := range c.Groups {
		for j := range c.Groups[i].Rows {
			for k := range c.Groups[i].Rows[j].Runs {
				ids = append(ids, c.Groups[i].Rows[j].Runs[k].ID)
			}
		}
	}
	slices.Sort(ids)
	own := slices.ContainsFunc(c.all, func(m *Metric) bool { return m.statsd != nil })
	rest := make(map[string][]Value, len(ids))
	err := db.ReadReports(ids, func(r *Report) error {
		if own {
			heard.add(r)
		}
		var values []Value
		for _, m := range c.all {
			if !m.Headline {
				v, ok := m.Of(r)
				values = append(values, Value{Value: v, Known: ok})
			}
		}
		rest[r.ID] = values
		return nil
	})
	return rest, err
}

// source is where the value of a metric is found.
type source struct {
	headline int    // its number in the index, or -1
	rest     int    // its number among those that are not there
	unfit    []bool // by place of a mark: whether it makes the metric unfit
}

func sources(metrics []*Metric) []source {
	var all []source
	rest := 0
	for _, m := range metrics {
		s := source{headline: slices.IndexFunc(headlines, func(h int) bool { return &Metrics[h] == m }), rest: rest}
		if s.headline < 0 {
			rest++
		}
		for i := range Marks {
			s.unfit = append(s.unfit, Marks[i].unfits(m.Name))
		}
		all = append(all, s)
	}
	return all
}

// fill makes the values of a row's runs, and its cells. rest are the values that are not in the index.
func (c *Collated) fill(row *Row, from []source, rest map[string][]Value) {
	n, runs := len(c.all), len(row.Runs)
	row.values, row.unfit = make([]float64, n*runs), make([]uint8, n*runs)
	var marks []int
	for i := range row.Runs {
		u := unpack(row.Runs[i].rest)
		marks = marks[:0]
		u.marks(func(place int) { marks = append(marks, place) })
		for j := range from {
			s, v := &from[j], math.NaN()
			if s.headline >= 0 {
				at := u
				at.skip(8 * s.headline)
				v = at.float()
			} else if of := rest[row.Runs[i].ID]; of != nil && of[s.rest].Known {
				v = of[s.rest].Value
			}
			row.values[j*runs+i] = v
			if m := slices.IndexFunc(marks, func(place int) bool { return s.unfit[place] }); m >= 0 {
				row.unfit[j*runs+i] = uint8(marks[m] + 1)
			}
		}
	}
	row.cells = make([]Cell, n)
	row.Cells = row.cells[:len(c.Metrics):len(c.Metrics)]
	sorted := make([]float64, n*runs)
	for j := range row.cells {
		cell := &row.cells[j]
		cell.Metric = c.all[j]
		cell.Values = row.values[j*runs : (j+1)*runs : (j+1)*runs]
		for i := range row.Runs {
			switch by := row.unfit[j*runs+i]; {
			case c.counts(row, i, j):
			case by > 0 && !c.marked:
				if cell.Unfit == nil {
					cell.Unfit = map[string]int{}
				}
				cell.Unfit[Marks[by-1].Name]++
			default:
				cell.Unknown++
			}
		}
		if left := cell.Left() + cell.Unknown; left > 0 { // else they are not copied
			cell.Values = make([]float64, 0, runs-left)
			for i := range row.Runs {
				if c.counts(row, i, j) {
					cell.Values = append(cell.Values, row.values[j*runs+i])
				}
			}
		}
		cell.sorted, sorted = append(sorted[:0:runs], cell.Values...), sorted[runs:]
		slices.Sort(cell.sorted)
		cell.Summary = stats.SummarizeSorted(cell.sorted)
	}
	row.Primary = &row.cells[slices.Index(c.all, c.Primary)]
}

// counts says whether a value is one of its cell's.
func (c *Collated) counts(row *Row, run, metric int) bool {
	i := metric*len(row.Runs) + run
	return !math.IsNaN(row.values[i]) && (row.unfit[i] == 0 || c.marked)
}

// Compare judges a row against another, the baseline, by Collated.Metrics: the
// primary metric alone, the others corrected together. It fills their cells' comparisons in row.
func (c *Collated) Compare(base, row *Row, margin float64) { c.CompareAll(base, []*Row{row}, margin) }

// CompareAll judges several rows against one baseline, as they are read
// together: the primary metric is corrected over the rows, the others over rows and metrics.
func (c *Collated) CompareAll(base *Row, rows []*Row, margin float64) {
	var primaries, others []stats.Verdict
	each := func(do func(cell *Cell, primary bool)) {
		for _, row := range rows {
			for i := range row.Cells {
				if cell := &row.Cells[i]; cell != row.Primary {
					do(cell, false)
				}
			}
			do(row.Primary, true)
		}
	}
	var starts [2][]time.Time
	for _, row := range rows {
		c.judge(base, row, margin, &starts)
	}
	each(func(cell *Cell, primary bool) {
		if primary {
			primaries = append(primaries, *cell.Verdict)
		} else {
			others = append(others, *cell.Verdict)
		}
	})
	stats.Correct(primaries, 1-stats.Level)
	stats.Correct(others, stats.FamilyLevel)
	each(func(cell *Cell, primary bool) {
		from := &others
		if primary {
			from = &primaries
		}
		*cell.Verdict, *from = (*from)[0], (*from)[1:]
	})
}

// judge answers for each metric by itself. What starts holds is written over.
func (c *Collated) judge(base, row *Row, margin float64, starts *[2][]time.Time) {
	calibrated := slices.IndexFunc(c.all, func(m *Metric) bool { return m.Name == calibrationName })
	of := [2]*Row{base, row}
	var order stats.Order
	var drift float64
	var driftKnown, known bool // of all runs of both
	for j := range row.cells {
		a, b := &base.cells[j], &row.cells[j]
		if j >= len(row.Cells) && b != row.Primary {
			continue
		}
		whole := len(a.Values) == len(base.Runs) && len(b.Values) == len(row.Runs)
		if !known || !whole {
			var took [2]stats.Summary
			for side, r := range of {
				starts[side] = starts[side][:0]
				for i := range r.Runs {
					if c.counts(r, i, j) {
						starts[side] = append(starts[side], r.Runs[i].Start)
					}
				}
				took[side] = c.calibrations(r, j, calibrated)
			}
			order = stats.Interleave(starts[0], starts[1])
			x, y := took[0], took[1]
			if driftKnown = x.N > 0 && y.N > 0 && x.Median > 0; driftKnown {
				drift = y.Median/x.Median - 1
			}
			known = whole
		}
		b.Order, b.Drift, b.DriftKnown = order, drift, driftKnown
		v := stats.CompareSorted(a.sorted, b.sorted).Judge(stats.Question{Better: b.Metric.Better, Margin: margin, Floor: b.Metric.Floor,
			Blocks: !order.Interleaved && b.Metric.drifts(base, row)})
		b.Verdict = &v
	}
}

// calibrations sums up the calibration of those runs of a row that count for a
// metric, by the numbers of the metrics.
func (c *Collated) calibrations(r *Row, metric, calibrated int) stats.Summary {
	of := &r.cells[calibrated]
	if len(of.Values) == len(r.Runs) && len(r.cells[metric].Values) == len(r.Runs) {
		return of.Summary
	}
	var took []float64
	for i := range r.Runs {
		if v := r.Of(i, calibrated); v.Known && c.counts(r, i, metric) {
			took = append(took, v.Value)
		}
	}
	return stats.Summarize(took)
}

// drifts says whether a drift of the machine moves a metric: CPU and times, and
// where the load is a closed loop, all that it got through too.
func (m *Metric) drifts(rows ...*Row) bool {
	switch {
	case m.Group == CPU, m.Unit == "ns":
		return true
	case m.Group != Rates && m.Name != "memory-efficiency":
		return false
	}
	return slices.ContainsFunc(rows, func(r *Row) bool {
		return slices.ContainsFunc(r.of, func(c *cell) bool { rate, _ := c.get("rate"); return rate == "max" })
	})
}
