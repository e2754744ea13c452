package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/harness/variable"
	"relaybench/store"
)

// showTimers shows what the relay said by statsd, as far as pattern is in its
// name or tags, whatever the case.
func (s *Session) showTimers(r *store.Report, pattern string) error {
	said := r.Result.Statsd
	if said == nil && (s.format == Text || s.format == Markdown) {
		return s.say("%s\n", s.wrap(noTimers(r.Plan["statsd"])))
	}
	if said == nil {
		said = &result.Statsd{Dropped: -1}
	}
	var series []result.StatsdSeries
	for _, x := range said.Series {
		if contains(x.Name, pattern) || contains(strings.Join(x.Tags, ","), pattern) {
			series = append(series, x)
		}
	}
	if len(series) == 0 && len(said.Series) > 0 {
		return hinted(fmt.Errorf("report %s has no timer, counter or gauge %q", r.ID, pattern), didYouMean(variable.Nearest(pattern, timerNames(r)), "show "+r.ID+" timers lists all"))
	}
	tables := timerTables(series)
	switch s.format {
	case JSON:
		return s.printJSON(timersJSON{tables[0], tables[1], tables[2], said.Flushes, optional(said.Cut), said.Malformed, said.Over,
			table.Float(float64(said.Dropped), said.Dropped >= 0)})
	case CSV:
		return s.print(timerRows(series))
	}
	first := true
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if !first {
			if err := s.printf("\n"); err != nil {
				return err
			}
		}
		first = false
		if err := s.print(t); err != nil {
			return err
		}
	}
	for i, n := range timerNotes(r, series) {
		if i == 0 {
			n = "\n" + s.wrap(n)
		} else {
			n = s.wrap(n)
		}
		if err := s.printf("%s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// noTimers says why a report has none; to is its plan's statsd.
func noTimers(to string) string {
	switch to {
	case "", plan.StatsdOff:
		return "no timers: statsd was off; test … --statsd on keeps what the relay says of itself"
	case plan.StatsdOn:
		return "no timers: the run did not get as far as its load"
	}
	return "no timers: the relay sent them to " + table.Clean(to) + "; test … --statsd on keeps them"
}

// timersJSON is what a relay said by statsd, as programs read it. Its keys are stable.
type timersJSON struct {
	Timers    *table.Table `json:"timers"`
	Counters  *table.Table `json:"counters"`
	Gauges    *table.Table `json:"gauges"`
	Flushes   int          `json:"flushes"`
	Cut       table.Cell   `json:"cut"`
	Malformed uint64       `json:"malformed"`
	Over      uint64       `json:"over"`
	Dropped   table.Cell   `json:"dropped"`
}

func contains(text, pattern string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(pattern))
}

// shortName is a name without what all of Relay's begin with.
func shortName(name string) string { return strings.TrimPrefix(name, store.StatsdPrefix) }

// timerNames are the names of what a relay said, each once.
func timerNames(r *store.Report) (names []string) {
	if r.Result == nil || r.Result.Statsd == nil {
		return nil
	}
	for _, x := range r.Result.Statsd.Series {
		if n := shortName(x.Name); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func plainNumber(v float64, ok bool) table.Cell { return table.Float(v, ok).As(figures(v)) }

// timerQuantiles are the columns of a timer's quantiles.
var timerQuantiles = []struct {
	key string
	q   float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}}

// timerCells are the figures of a timer.
func timerCells(d *result.Distribution) []table.Cell {
	cells := []table.Cell{plainNumber(d.Count(), true).As(count(d.Count()))}
	for _, c := range timerQuantiles {
		cells = append(cells, plainNumber(d.Quantile(c.q)))
	}
	return append(cells, plainNumber(d.Mean()), plainNumber(d.Sum(), true))
}

// timerTables are the timers, the counters and the gauges.
func timerTables(series []result.StatsdSeries) (all [3]*table.Table) {
	for i, head := range []string{"timer", "counter", "gauge"} {
		all[i] = &table.Table{Columns: []table.Column{{Key: "name", Head: head}, {Key: "tags", Wrap: true}}}
	}
	add := func(t *table.Table, keys ...string) {
		for _, k := range keys {
			t.Columns = append(t.Columns, table.Column{Key: k, Right: true})
		}
	}
	add(all[0], "n", "p50", "p90", "p99", "max", "mean", "sum")
	add(all[1], "sum")
	add(all[2], "last", "min", "max")
	for _, x := range series {
		row := []table.Cell{table.Text(shortName(x.Name)), table.Text(strings.Join(x.Tags, ",")).As(strings.Join(x.Tags, ", "))}
		switch {
		case x.Timer != nil:
			all[0].Add(append(row, timerCells(x.Timer)...)...)
		case x.Gauge != nil:
			all[2].Add(append(row, plainNumber(x.Gauge.Last, true), plainNumber(x.Gauge.Min, true), plainNumber(x.Gauge.Max, true))...)
		case x.Type == result.Counter:
			all[1].Add(append(row, plainNumber(x.Counter, true))...)
		}
	}
	return all
}

// timerRows is all of it in one table, for CSV.
func timerRows(series []result.StatsdSeries) *table.Table {
	t := &table.Table{}
	for _, k := range []string{"type", "name", "tags", "n", "p50", "p90", "p99", "max", "mean", "sum", "last", "min"} {
		t.Columns = append(t.Columns, table.Column{Key: k})
	}
	none := table.Cell{}
	for _, x := range series {
		row := []table.Cell{table.Text(x.Type), table.Text(shortName(x.Name)), table.Text(strings.Join(x.Tags, ","))}
		switch {
		case x.Timer != nil:
			row = append(append(row, timerCells(x.Timer)...), none, plainNumber(x.Timer.Quantile(0)))
		case x.Gauge != nil:
			row = append(row, none, none, none, none, plainNumber(x.Gauge.Max, true), none, none, plainNumber(x.Gauge.Last, true), plainNumber(x.Gauge.Min, true))
		default:
			row = append(row, none, none, none, none, none, none, plainNumber(x.Counter, true), none, none)
		}
		t.Add(row...)
	}
	return t
}

// timerNotes are what is to be known of what is shown.
func timerNotes(r *store.Report, series []result.StatsdSeries) (notes []string) {
	said := r.Result.Statsd
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if slices.ContainsFunc(series, func(x result.StatsdSeries) bool { return x.Timer != nil }) {
		add("figures are in the relay's own units: its times in ms, sizes in bytes, else what is counted")
	}
	sampled := func(x result.StatsdSeries) bool {
		return x.Timer != nil && x.Timer.Count() > float64(x.Timer.Values())+0.5
	}
	if slices.ContainsFunc(series, sampled) {
		add("n is how many there were; of what came often the relay sent a sample, and max is the greatest of that")
	}
	if said.Flushes > 0 {
		add("%s of the relay's: from %s before the load to the first one after the drain, so a few seconds of an idle relay are in it", plural(said.Flushes, "flush", "flushes"), span(float64(max(0, r.Result.LoadStart-said.From))))
	} else {
		add("each value was sent as it was made: from %s before the load to %v after the drain", span(float64(max(0, r.Result.LoadStart-said.From))), 2*time.Second)
	}
	if said.Cut != "" {
		add("not all of it: %s", table.Clean(said.Cut))
	}
	if said.Dropped > 0 {
		add("the kernel dropped %s: counts and sums are too low", plural(int(said.Dropped), "datagram", "datagrams"))
	}
	if said.Over > 0 {
		add("%s of too many series left out, the first of %s", plural(int(said.Over), "line", "lines"), table.Clean(said.OverFirst))
	}
	if said.Malformed > 0 {
		add("%s malformed, the first: %s", plural(int(said.Malformed), "line", "lines"), table.Clean(said.MalformedFirst))
	}
	if said.Ignored > 0 {
		add("%s of sets, events or service checks not kept", plural(int(said.Ignored), "line", "lines"))
	}
	return notes
}

// patternValues are what the relay of the report that is typed said.
func patternValues(s *Session, before []string, _ string) []string {
	if len(before) < 2 || before[1] != "timers" {
		return nil
	}
	db, err := s.bench.open()
	if err != nil {
		return nil
	}
	r, err := db.Get(before[0])
	if err != nil {
		return nil
	}
	return timerNames(r)
}
