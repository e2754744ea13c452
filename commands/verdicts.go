package commands

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"relaybench/commands/table"
	"relaybench/store"
	"relaybench/store/stats"
)

// betterSign stands at what is better by a difference that may be claimed: the
// meaning is never in the colour alone.
const betterSign = "*"

func (p painter) good(text string) string { return p.with(text, color.FgGreen) }
func (p painter) bad(text string) string  { return p.with(text, color.FgRed) }

// answer paints the words of an answer.
func (p painter) answer(a stats.Answer) func(string) string {
	switch a {
	case stats.Better:
		return p.good
	case stats.Worse:
		return p.bad
	case stats.Inconclusive, stats.NoVerdict:
		return p.warn
	}
	return func(text string) string { return text }
}

// codeOf is how a command ends whose verdict is that answer.
func codeOf(a stats.Answer) Code {
	switch a {
	case stats.Worse:
		return Worse
	case stats.Inconclusive, stats.NoVerdict:
		return Inconclusive
	}
	return Fine
}

// minus makes a hyphen before a number a minus sign.
func minus(text string) string { return strings.Replace(text, "-", "−", 1) }

// shiftText is the shift, as in −31%, or +3 sends where it is a plain difference.
func shiftText(v *stats.Verdict, unit string) string {
	if !v.Known() {
		return table.Dash
	}
	if v.Shift.Relative {
		return points(v.Shift.Value, v.Shift, "+") + "%"
	}
	return plainDifference(v.Shift.Value, unit)
}

// intervalText is the interval of the shift, as in [−33, −29].
func intervalText(v *stats.Verdict, unit string) string {
	switch {
	case !v.Known() || v.Shift.Coverage == 0:
		return table.Dash
	case v.Shift.Relative:
		return "[" + points(v.Shift.Low, v.Shift, "") + ", " + points(v.Shift.High, v.Shift, "") + "]"
	}
	return "[" + plainDifference(v.Shift.Low, unit) + ", " + plainDifference(v.Shift.High, unit) + "]"
}

// points is a part in percent, in as many digits as the width of its interval bears.
func points(part float64, of stats.Shift, plus string) string {
	digits := 0
	switch width := 200 * of.HalfWidth(); {
	case width < 0.1:
		digits = 2
	case width < 2:
		digits = 1
	}
	text := strconv.FormatFloat(math.Abs(100*part), 'f', digits, 64)
	switch {
	case strings.Trim(text, "0.") == "":
		return text
	case part < 0:
		return "−" + text
	}
	return plus + text
}

// plainDifference is a plain difference in a metric's unit, with its sign.
func plainDifference(v float64, unit string) string {
	text := quantity(math.Abs(v), unit)
	switch {
	case v > 0:
		return "+" + text
	case v < 0:
		return "−" + text
	}
	return text
}

// chance is a p value.
func chance(p float64) string {
	if p < 0.001 {
		return "p<0.001"
	}
	return "p=" + strconv.FormatFloat(math.Round(p*1000)/1000, 'f', -1, 64)
}

// pairText is all figures of a comparison in a line: −31% [−33, −29] p=0.008 n=5+5.
func pairText(v *stats.Verdict, unit string) string {
	n := fmt.Sprintf("n=%d+%d", v.A.N, v.B.N)
	if !v.Known() {
		return n
	}
	return fmt.Sprintf("%s %s %s %s", shiftText(v, unit), intervalText(v, unit), chance(v.P), n)
}

// limitText is the difference up to which there is none: the margin, or the floor where that is more.
func limitText(v *stats.Verdict, unit string) string {
	switch {
	case v.Shift.Relative && v.Limit <= v.Margin:
		return marginText(v.Margin)
	case v.Floor > 0 && (v.Shift.Relative || v.Limit <= v.Floor):
		return quantity(v.Floor, unit)
	}
	return quantity(v.Limit, unit)
}

// marginText is a margin: 5%.
func marginText(margin float64) string {
	return strconv.FormatFloat(100*margin, 'g', 4, 64) + "%"
}

// answerText is the answer in words, with what it rests on: "no difference
// beyond 5%", "no verdict: needs 4 runs a side, has 3".
func answerText(v *stats.Verdict, unit string) string {
	text := string(v.Answer)
	if v.Answer == stats.NoDifference && v.Limit > 0 {
		text += " beyond " + limitText(v, unit)
	}
	if why := whyText(v); why != "" {
		text += ": " + why
	}
	return text
}

// whyText is why there is no verdict or no conclusion, and what it would take; empty where there is one.
func whyText(v *stats.Verdict) string {
	if v.Runs > 0 {
		return fmt.Sprintf("%s; about %d runs a side would tell", v.Why, v.Runs)
	}
	return v.Why
}

// medianText is the median of a cell with its spread: 2.05 ms ±0.4%.
func medianText(c *store.Cell) string {
	s := &c.Summary
	if s.N == 0 {
		return table.Dash
	}
	return strings.TrimSpace(quantity(s.Median, c.Metric.Unit) + " " + spreadText(c))
}

// spreadText is how far a cell's values spread, in % where it can be; empty where that is not known.
func spreadText(c *store.Cell) string {
	if spread, ok := c.Summary.RelativeSpread(); ok {
		text := strconv.FormatFloat(100*spread, 'f', 1, 64)
		if spread >= 0.0995 {
			text = strconv.FormatFloat(100*spread, 'f', 0, 64)
		}
		return "±" + strings.TrimSuffix(text, ".0") + "%"
	}
	if spread, ok := c.Summary.Spread(); ok {
		return "±" + quantity(spread, c.Metric.Unit)
	}
	return ""
}

// pair is a row that was compared with its baseline, and how both are called.
type pair struct {
	base, row         *store.Row
	baseName, rowName string
}

// verdictTable is a row a pair and metric, for a person with the medians where
// they do not stand elsewhere. Row names are left out of one pair's.
func (s *Session) verdictTable(pairs []pair, medians bool) *table.Table {
	named := len(pairs) > 1
	t := &table.Table{Columns: []table.Column{
		{Key: "baseline", Data: true},
		{Key: "value", Head: "value", Wrap: true, Data: !named},
		{Key: "metric"}, {Key: "unit", Data: true},
		{Key: "baseline_median", Head: firstName(pairs, func(p pair) string { return p.baseName }), Right: true, Data: !medians},
		{Key: "median", Head: firstName(pairs, func(p pair) string { return p.rowName }), Right: true, Data: !medians},
		{Key: "shift", Right: true},
		{Key: "shift_relative", Data: true},
		{Key: "interval", Data: false},
		{Key: "shift_low", Data: true}, {Key: "shift_high", Data: true},
		{Key: "p", Right: true}, {Key: "p_corrected", Data: true},
		{Key: "n", Right: true},
		{Key: "baseline_n", Data: true}, {Key: "value_n", Data: true},
		{Key: "answer", Head: "verdict"}, {Key: "why", Data: true},
		{Key: "runs_needed", Data: true}, {Key: "interleaved", Data: true}, {Key: "calibration_shift", Data: true},
	}}
	if s.format == JSON || s.format == CSV { // interval and n are there in parts
		for i := len(t.Columns) - 1; i >= 0; i-- {
			if k := t.Columns[i].Key; k == "interval" || k == "n" {
				t.Columns = slices.Delete(t.Columns, i, i+1)
			}
		}
	}
	paint := s.paint()
	for _, p := range pairs {
		for _, cell := range comparedCells(p.row) {
			v := cell.Verdict
			if empty(p.row, cell) && s.format != JSON && s.format != CSV {
				continue
			}
			base := baseCell(p.base, cell.Metric)
			known := v.Known()
			unit := cell.Metric.Unit
			values := map[string]table.Cell{
				"baseline":        table.Text(p.baseName),
				"value":           table.Text(p.rowName),
				"metric":          table.Text(cell.Metric.Name),
				"unit":            optional(unit),
				"baseline_median": table.Float(v.A.Median, v.A.N > 0).As(medianText(base)),
				"median":          table.Float(v.B.Median, v.B.N > 0).As(medianText(cell)),
				"shift":           table.Float(v.Shift.Value, known).As(shiftText(v, unit)),
				"interval":        table.Text(intervalText(v, unit)),
				"p":               table.Float(v.P, known).As(chance(v.P)),
				"p_corrected":     table.Float(v.Adjusted, known),
				"n":               table.Text(fmt.Sprintf("n=%d+%d", v.A.N, v.B.N)),
				"baseline_n":      table.Int(v.A.N),
				"value_n":         table.Int(v.B.N),
				"shift_low":       table.Float(v.Shift.Low, known && v.Shift.Coverage > 0),
				"shift_high":      table.Float(v.Shift.High, known && v.Shift.Coverage > 0),
				"answer":          table.Text(string(v.Answer)).As(shortAnswer(v, unit)).Painted(paint.answer(v.Answer)),
				"why":             optional(v.Why),
				"interleaved":     table.Bool(cell.Order.Interleaved),

				"calibration_shift": table.Float(cell.Drift, cell.DriftKnown),
			}
			if known {
				values["shift_relative"] = table.Bool(v.Shift.Relative)
			}
			if v.Runs > 0 {
				values["runs_needed"] = table.Int(v.Runs)
			}
			var row []table.Cell
			for _, c := range t.Columns {
				row = append(row, values[c.Key])
			}
			t.Add(row...)
		}
	}
	return t
}

// shortAnswer is an answer without its reason, which stands below.
func shortAnswer(v *stats.Verdict, unit string) string {
	switch v.Answer {
	case stats.Better:
		return string(v.Answer) + " " + betterSign
	case stats.NoDifference:
		return answerText(v, unit)
	}
	return string(v.Answer)
}

// comparedCells are the cells of a row, and the primary one before them where it is none of them.
func comparedCells(row *store.Row) []*store.Cell {
	var cells []*store.Cell
	primary := row.Primary
	for i := range row.Cells {
		if &row.Cells[i] == primary {
			primary = nil
		}
		cells = append(cells, &row.Cells[i])
	}
	if primary != nil {
		cells = append([]*store.Cell{primary}, cells...)
	}
	return cells
}

// empty says that neither side has a value, of a metric that is not the primary one.
func empty(row *store.Row, c *store.Cell) bool {
	return c != row.Primary && c.Verdict.A.N == 0 && c.Verdict.B.N == 0
}

// baseCell is the baseline's cell of a metric.
func baseCell(base *store.Row, m *store.Metric) *store.Cell {
	for _, c := range comparedCells(base) {
		if c.Metric == m {
			return c
		}
	}
	return &store.Cell{Metric: m}
}

func firstName(pairs []pair, name func(pair) string) string {
	if len(pairs) != 1 {
		return ""
	}
	return name(pairs[0])
}

// verdictNotes say, of some pairs, why there is no verdict or conclusion where
// there is none, and where the machine was not as fast for both: what several have in common once.
func verdictNotes(pairs []pair) []string {
	type note struct {
		text string
		of   []string // metrics
		rows []string
	}
	var notes []*note
	add := func(text string, p pair, metric string) {
		i := slices.IndexFunc(notes, func(n *note) bool { return n.text == text })
		if i < 0 {
			i = len(notes)
			notes = append(notes, &note{text: text})
		}
		n := notes[i]
		if !slices.Contains(n.of, metric) {
			n.of = append(n.of, metric)
		}
		if !slices.Contains(n.rows, p.rowName) {
			n.rows = append(n.rows, p.rowName)
		}
	}
	for _, p := range pairs {
		for _, c := range comparedCells(p.row) {
			if v := c.Verdict; !empty(p.row, c) && (v.Answer == stats.NoVerdict || v.Answer == stats.Inconclusive) {
				why := whyText(v)
				if v.Answer == stats.NoVerdict && v.Blocks && min(v.A.N, v.B.N) >= stats.MinRuns {
					why += fmt.Sprintf(" (%s)", cmp.Or(strings.TrimSuffix(strings.TrimPrefix(c.Order.String(), "not interleaved ("), ")"), "in blocks"))
				}
				add(fmt.Sprintf("%s: %s", v.Answer, why), p, c.Metric.Name)
			}
		}
		if c := p.row.Primary; c.Drifted() {
			add(fmt.Sprintf("calibration differs by %s: the machine was not as fast for both", strings.TrimPrefix(minus(signed(100*c.Drift)), "+")), p, "")
		}
	}
	var lines []string
	for _, n := range notes {
		who := strings.Join(firstOf(n.of, 4, "more metrics"), ", ")
		if len(pairs) > 1 {
			who = strings.TrimSuffix(strings.Join(firstOf(n.rows, 4, "more values"), ", ")+": "+who, ": ")
		}
		if who != "" {
			who += ": "
		}
		lines = append(lines, table.Clean(who+n.text))
	}
	return lines
}
