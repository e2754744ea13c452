package commands

import (
	"fmt"
	"math"
	"strings"

	"relaybench/commands/table"
	"relaybench/harness/result"
	"relaybench/store"
)

// quantiles are those that are shown, between minimum and maximum.
var quantiles = []struct {
	key, head string
	q         float64
}{
	{"p50_ns", "p50", 0.5}, {"p90_ns", "p90", 0.9}, {"p99_ns", "p99", 0.99}, {"p999_ns", "p99.9", 0.999},
}

// spanRow is a distribution of times, and what it is of.
type spanRow struct {
	span, of, kind string
	sketch         *result.Sketch
}

// spans are the distributions of a report, those of a kind apart only with byKind.
func spans(r *store.Report, byKind bool) []spanRow {
	res := r.Result
	whole := result.NewSketch()
	for i := range res.Kinds {
		if err := whole.Merge(res.Kinds[i].Through); err != nil {
			whole = nil // of another accuracy: not known as a whole
			break
		}
	}
	rows := []spanRow{{"through", "arrived", "", whole}}
	if byKind && len(res.Kinds) > 1 {
		for i := range res.Kinds {
			rows = append(rows, spanRow{"through", "arrived", res.Kinds[i].Name, res.Kinds[i].Through})
		}
	}
	t := res.Tally
	if t == nil {
		t = &result.Tally{}
	}
	rows = append(rows, spanRow{"response", "accepted", "", t.AcceptedSpans.Response}, spanRow{"service", "accepted", "", t.AcceptedSpans.Service})
	if byKind || t.RefusedSpans.Response.Count() > 0 {
		rows = append(rows, spanRow{"response", "refused", "", t.RefusedSpans.Response}, spanRow{"service", "refused", "", t.RefusedSpans.Service})
	}
	if byKind {
		rows = append(rows, spanRow{"lateness", "sent", "", t.Late})
	}
	return rows
}

// spanSays is what the spans of a summary go from and to.
var spanSays = map[string]string{
	"through":  "through: due to upstream",
	"response": "response: due to answer",
	"service":  "service: write to answer",
}

// few marks a quantile that its sends are too few for.
const few = "*"

// latencyTable is the table of spans; min is left out where it is for a summary.
func latencyTable(rows []spanRow, whole bool) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "span", Head: "latency"}, {Key: "of"}}}
	if whole {
		t.Columns = append(t.Columns, table.Column{Key: "kind"}, table.Column{Key: "min_ns", Head: "min", Right: true})
	}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, table.Column{Key: q.key, Head: q.head, Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Key: "max_ns", Head: "max", Right: true}, table.Column{Key: "n", Right: true})
	for _, r := range rows {
		name := table.Text(r.span)
		if !whole {
			name = name.As(spanSays[r.span])
		}
		cells := []table.Cell{name, table.Text(r.of)}
		if whole {
			kind := table.Cell{}
			if r.kind != "" {
				kind = table.Text(r.kind)
			}
			cells = append(cells, kind, quantileCell(r.sketch, 0))
		}
		for _, q := range quantiles {
			cells = append(cells, quantileCell(r.sketch, q.q))
		}
		t.Add(append(cells, quantileCell(r.sketch, 1), counted(r.sketch.Count()))...)
	}
	return t
}

// quantileCell is a quantile; the exact minimum and maximum for 0 and 1.
func quantileCell(s *result.Sketch, q float64) table.Cell {
	v, ok := s.Quantile(q)
	text := span(v)
	if ok && tooFew(s.Count(), q) {
		text += few
	}
	return table.Float(v, ok).As(text)
}

// tooFew says that n values tell nothing of a quantile apart from the maximum.
func tooFew(n uint64, q float64) bool {
	return q < 1 && math.Round(float64(n)*(1-q)*1e6)/1e6 < 1
}

// fewNotes say on how many sends the marked quantiles rest.
func fewNotes(rows []spanRow) []string {
	var notes []string
	seen := map[string]bool{}
	for _, r := range rows {
		var heads []string
		n := r.sketch.Count()
		for _, q := range quantiles {
			if n > 0 && tooFew(n, q.q) {
				heads = append(heads, q.head)
			}
		}
		if len(heads) == 0 {
			continue
		}
		verb, sends := "rest", "sends"
		if len(heads) == 1 {
			verb = "rests"
		}
		if n == 1 {
			sends = "send"
		}
		note := fmt.Sprintf("%s %s %s on %s %s: too few to tell it from the maximum", few, strings.Join(heads, ", "), verb, count(n), sends)
		if !seen[note] {
			seen[note] = true
			notes = append(notes, note)
		}
	}
	return notes
}

// notSentNote says how much of the load was never sent; "" where all was. No
// latency is shown without it.
func notSentNote(l *result.Lines) string {
	if l.NotSent == 0 || l.Due == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the sends that were due were never sent (%s of %s): latency is of the others only",
		percent(float64(l.NotSent)/float64(l.Due)), count(l.NotSent), count(l.Due))
}
