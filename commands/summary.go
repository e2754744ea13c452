package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
)

// printReport prints a report in the session's format: a summary that fits a
// screen, all that is derived from it as JSON, or its metrics as CSV. more says
// that it is not the first one of a line.
func (s *Session) printReport(r *store.Report, marks []store.Marked, more bool) error {
	switch s.format {
	case JSON:
		return s.printJSON(newReportJSON(r, marks))
	case CSV:
		rows := metricRows(r, marks)
		rows.Bare = more
		return s.print(rows)
	case Markdown: // a page keeps the columns of what is in a fence
		if err := s.printf("```\n"); err != nil {
			return err
		}
		if err := s.summary(r, marks); err != nil {
			return err
		}
		return s.printf("```\n")
	}
	return s.summary(r, marks)
}

// reportJSON is a report as programs read it. Its keys are stable.
type reportJSON struct {
	ID         string                `json:"id"`
	Started    time.Time             `json:"started"`
	Ended      time.Time             `json:"ended"`
	Plan       map[string]string     `json:"plan"`
	Provenance provenanceJSON        `json:"provenance"`
	Outcome    runJSON               `json:"run"`
	Metrics    map[string]metricJSON `json:"metrics"`
	Latency    *table.Table          `json:"latency"`
	Ledger     ledgerJSON            `json:"ledger"`
	Marks      []markJSON            `json:"marks"`
	FinePrint  []string              `json:"fine_print"`
}

type provenanceJSON struct {
	Relay *table.Table `json:"relay"`
	Host  *table.Table `json:"host"`
	Bench *table.Table `json:"bench"`
}

// runJSON is how a run ended.
type runJSON struct {
	Cancelled  string `json:"cancelled"`
	Failed     string `json:"failed"`
	FailedStep string `json:"failed_step"`
	Drain      string `json:"drain"`
}

type metricJSON struct {
	Value table.Cell `json:"value"`
	Unit  string     `json:"unit"`
	Unfit *string    `json:"unfit"` // the mark that makes it so
}

type markJSON struct {
	Name  string   `json:"name"`
	Why   string   `json:"why"`
	Unfit []string `json:"unfit"`
}

func newReportJSON(r *store.Report, marks []store.Marked) reportJSON {
	res := r.Result
	bench := table.Record()
	benchFields(bench, r.Provenance.Bench)
	j := reportJSON{ID: r.ID, Started: res.Started, Ended: res.Ended, Plan: r.Plan,
		Provenance: provenanceJSON{relayRecord(relay.Program(r.Provenance.Relay)), hostRecord(r.Provenance.Host), bench},
		Outcome:    runJSON{res.Cancelled, res.Failed, res.FailedStep, string(res.Drain)},
		Metrics:    map[string]metricJSON{}, Latency: latencyTable(spans(r, true), true), Ledger: newLedgerJSON(result.LedgerOf(res)),
		Marks: []markJSON{}, FinePrint: finePrint(r)}
	for i := range store.Metrics {
		m := &store.Metrics[i]
		v, ok := m.Of(r)
		j.Metrics[m.Name] = metricJSON{table.Float(v, ok), m.Unit, unfitBy(marks, m.Name)}
	}
	for _, m := range marks {
		j.Marks = append(j.Marks, markJSON{m.Name, m.Why, append([]string{}, m.Unfit...)})
	}
	return j
}

// unfitBy is the mark that makes a metric unfit; nil where none does.
func unfitBy(marks []store.Marked, metric string) *string {
	if by, ok := store.Unfit(marks, metric); ok {
		return &by
	}
	return nil
}

// metricRows are the metrics of a report, a row each.
func metricRows(r *store.Report, marks []store.Marked) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "report"}, {Key: "metric"}, {Key: "value", Right: true}, {Key: "unit"}, {Key: "unfit"}}}
	for i := range store.Metrics {
		m := &store.Metrics[i]
		v, ok := m.Of(r)
		unfit := table.Cell{}
		if by := unfitBy(marks, m.Name); by != nil {
			unfit = table.Text(*by)
		}
		t.Add(table.Text(r.ID), table.Text(m.Name), metricCell(v, ok, m.Unit), table.Text(m.Unit), unfit)
	}
	return t
}

// summary prints a report on one screen.
func (s *Session) summary(r *store.Report, marks []store.Marked) error {
	var b strings.Builder
	paint := s.paint()
	ledger := result.LedgerOf(r.Result)
	line := func(text string) { fmt.Fprintln(&b, s.wrap(text)) }

	line(paint.bold(title(r)))
	for _, l := range subtitle(r) {
		line(l)
	}
	if r.Result.Tally == nil {
		line("there was no load")
	} else {
		b.WriteByte('\n')
		if note := notSentNote(&ledger.Total.Sends); note != "" {
			line(paint.warn(note))
		}
		rows := spans(r, false)
		if err := latencyTable(rows, false).Text(&b, s.client.Width); err != nil {
			return err
		}
		for _, n := range fewNotes(rows) {
			line(n)
		}
		b.WriteByte('\n')
		if err := summaryLedger(ledger).Text(&b, s.client.Width); err != nil {
			return err
		}
		for _, n := range firstOf(ledgerNotes(ledger), 5, "more: show "+r.ID+" ledger") {
			line(n)
		}
		b.WriteByte('\n')
		if err := figuresTable(r).Text(&b, s.client.Width); err != nil {
			return err
		}
	}
	if len(marks) > 0 {
		b.WriteByte('\n')
	}
	for _, m := range marks {
		text := "mark " + m.Name + ": " + table.Clean(m.Why)
		if len(m.Unfit) > 0 {
			text = paint.warn(text + "; " + unfit(m.Unfit))
		}
		line(text)
	}
	b.WriteByte('\n')
	for _, l := range finePrint(r) {
		line(l)
	}
	return s.printf("%s", b.String())
}

// title says what ran.
func title(r *store.Report) string {
	program := relay.Program(r.Provenance.Relay)
	load := "at " + r.Plan["rate"] + "/s"
	if r.Plan["rate"] == "max" {
		load = "flat out"
	}
	name := strings.TrimSuffix(program.String(), " ("+program.Path+")")
	return table.Clean(fmt.Sprintf("%s: %s %s for %s", name, r.Plan["mix"], load, r.Plan["duration"]))
}

// subtitle says where the report is, how the run ended where it did not end
// well, and which knobs are not at their default.
func subtitle(r *store.Report) []string {
	res := r.Result
	where := fmt.Sprintf("report %s, %s on %s", r.ID, res.Started.Local().Format("2006-01-02 15:04:05"), r.Provenance.Host.Name)
	if r.Provenance.Relay.Form == relay.FormPath {
		where += ", " + r.Provenance.Relay.Path
	}
	lines := []string{table.Clean(where)}
	var knobs []string
	for _, name := range append(plan.KnobNames(), settings(r.Plan)...) {
		if slices.Contains([]string{"duration", "rate", "mix"}, name) {
			continue
		}
		k := plan.Find(name)
		if v, ok := r.Plan[name]; ok && (k == nil || v != k.Default || name == "connections") {
			knobs = append(knobs, name+" "+table.Clean(v))
		}
	}
	if len(knobs) > 0 {
		lines = append(lines, strings.Join(knobs, ", "))
	}
	switch {
	case res.Cancelled != "":
		lines = append(lines, fmt.Sprintf("cancelled in step %q: %s", res.FailedStep, table.Clean(res.Cancelled)))
	case res.Failed != "":
		lines = append(lines, "failed: "+table.Clean(res.Failed))
	}
	return lines
}

// settings are the config keys in a plan's record.
func settings(record map[string]string) []string {
	var keys []string
	for _, name := range sorted(record) {
		if plan.Find(name) == nil {
			keys = append(keys, name)
		}
	}
	return keys
}

// painter colours text, or not: meaning is never in the colour alone.
type painter struct{ on bool }

func (s *Session) paint() painter { return painter{s.client.Color && s.format != Markdown} }

func (p painter) with(text string, attributes ...color.Attribute) string {
	c := color.New(attributes...)
	if p.on {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return c.Sprint(text)
}

func (p painter) bold(text string) string { return p.with(text, color.Bold) }
func (p painter) warn(text string) string { return p.with(text, color.FgYellow) }
