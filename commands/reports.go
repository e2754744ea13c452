package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
	"relaybench/store"
)

// reportHelp is how a report is named.
const reportHelp = "an id, the beginning of one, last, or last-1 and so on"

const (
	defaultNewest = "20"
	allNewest     = "all"
)

var reportsCommand = command{
	name:    "reports",
	summary: "list reports, the newest last",
	detail: `FILTER is NAME OP VALUE in one word, with one of = != < <= > >= ~ (contains): rate>=200,
mix=errors, relay-branch~perf, http.encoding=zstd, report-date>2h, unaccounted>0. Quote it
where the shell would take < and > for itself. All of several must hold. help filters says more.`,
	args:     []arg{{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true, values: filterValues}},
	examples: []string{"reports", "reports mix=errors 'rate>=200' -n all", "reports relay-branch=main -n 168h --json"},
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		newest := fs.StringP("number", "n", defaultNewest, "at most so many of the newest, `N`, or those of the last DURATION; all: no limit")
		return func(_ context.Context, args []string) (Code, error) {
			filters, limit, err := parseSelection(args, *newest)
			if err != nil {
				return Fine, err
			}
			if absent, err := s.bench.absent(); absent || err != nil {
				if err == nil {
					err = s.printEntries(nil, nil, 0)
				}
				return Fine, err
			}
			db, err := s.indexed()
			if err != nil {
				return Fine, err
			}
			entries, cut, err := db.Entries(filters, limit)
			if err != nil {
				return Fine, err
			}
			return Fine, s.printEntries(db, entries, cut)
		}
	},
}

// parseSelection reads which reports are asked for: filters, and what was typed for -n.
func parseSelection(words []string, newest string) ([]store.Filter, store.Newest, error) {
	filters, err := parseFilters(words)
	if err != nil {
		return nil, store.Newest{}, err
	}
	limit, err := parseNewest(newest)
	return filters, limit, err
}

// parseFilters reads filters as they were typed.
func parseFilters(words []string) ([]store.Filter, error) {
	var filters []store.Filter
	now := time.Now()
	for _, w := range words {
		f, err := store.ParseFilter(w, now)
		if err != nil {
			return nil, usageError(err, "")
		}
		filters = append(filters, f)
	}
	return filters, nil
}

// parseNewest reads what -n takes: a number of reports, an age, or all.
func parseNewest(text string) (store.Newest, error) {
	if text == allNewest {
		return store.Newest{}, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return store.Newest{N: n}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return store.Newest{Within: d}, nil
	}
	return store.Newest{}, usageError(fmt.Errorf("-n %q is not a number of reports, an age such as 168h, or %s", text, allNewest), "")
}

// indexed is the store with its index up to date; where that takes long, it is said.
func (s *Session) indexed() (*store.DB, error) {
	db, err := s.bench.open()
	if err != nil {
		return nil, err
	}
	begun, told := time.Now(), time.Now()
	err = db.Index(func(done, all int) {
		if now := time.Now(); now.Sub(begun) > time.Second && now.Sub(told) > time.Second {
			told = now
			s.note("reading all reports once, for the tables have changed: %s of %s\n", count(done), count(all))
		}
	})
	return db, err
}

// printEntries prints reports, and how many were left out.
func (s *Session) printEntries(db *store.DB, entries []store.Entry, cut int) error {
	if s.format == Text && len(entries) == 0 {
		if err := s.printf("no report\n"); err != nil {
			return err
		}
	} else if err := s.print(entriesTable(db, entries)); err != nil {
		return err
	}
	for i := range entries {
		if e := &entries[i]; e.Problem != "" {
			if err := s.say("%s\n", s.wrap("report "+e.ID+" cannot be read: "+table.Clean(e.Problem))); err != nil {
				return err
			}
		}
	}
	if cut > 0 {
		return s.say("%s of %s: %s older left out, -n all shows all\n", count(len(entries)), reports(len(entries)+cut), count(cut))
	}
	return nil
}

// reportColumn is a column of the list of reports.
type reportColumn struct {
	table.Column
	of func(e *store.Entry, vars map[string]string) table.Cell
}

// variableColumn is a variable, under its own name.
func variableColumn(c table.Column) reportColumn {
	return reportColumn{c, func(_ *store.Entry, vars map[string]string) table.Cell {
		v, ok := vars[c.Key]
		if !ok {
			return table.Cell{}
		}
		return table.Text(v)
	}}
}

// metricColumn is a headline metric; show is how a person reads it.
func metricColumn(m *store.Metric, head string, show func(float64) string) reportColumn {
	return reportColumn{table.Column{Key: metricKey(m), Head: head, Right: true, Data: show == nil}, func(e *store.Entry, _ map[string]string) table.Cell {
		v, ok := e.Metric(m.Name)
		cell := table.Float(v, ok)
		if show == nil {
			return cell
		}
		return cell.As(show(v))
	}}
}

// entriesTable is a row a report: for a person what fits a screen, for programs
// every variable and headline metric besides.
func entriesTable(db *store.DB, entries []store.Entry) *table.Table {
	vars := make([]map[string]string, len(entries))
	for i := range entries {
		vars[i] = entries[i].Vars()
	}
	columns := reportColumns(db, vars)
	t := &table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for i := range entries {
		var row []table.Cell
		for _, c := range columns {
			row = append(row, c.of(&entries[i], vars[i]))
		}
		t.Add(row...)
	}
	return t
}

// reportColumns are the columns of a list of reports with those variables.
// Those of the tables of variables and metrics are there whatever is listed.
func reportColumns(db *store.DB, vars []map[string]string) []reportColumn {
	rate := func(v float64) string { return strings.TrimSuffix(quantity(v, "sends/s"), "/s") }
	columns := []reportColumn{
		{table.Column{Key: "report-id", Head: "report (UTC)"}, func(e *store.Entry, _ map[string]string) table.Cell {
			return table.Text(e.ID).As(shortID(db, e.ID))
		}},
		{table.Column{Key: "relay", Wrap: true}, func(_ *store.Entry, vars map[string]string) table.Cell { return relayWords(vars) }},
		variableColumn(table.Column{Key: "mix", Wrap: true}),
		variableColumn(table.Column{Key: "rate", Right: true}),
		variableColumn(table.Column{Key: "duration", Head: "load", Right: true}),
		metricColumn(store.FindMetric("forwarded-rate"), "fwd/s", rate),
		metricColumn(store.FindMetric("cpu-per-envelope"), "CPU/env", span),
		metricColumn(store.FindMetric("through-p99"), "thr p99", span),
		{table.Column{Key: "marks", Wrap: true}, func(e *store.Entry, _ map[string]string) table.Cell { return markNames(e) }},
		{table.Column{Key: "problem", Data: true}, func(e *store.Entry, _ map[string]string) table.Cell { return optional(e.Problem) }},
	}
	has := func(key string) bool {
		return slices.ContainsFunc(columns, func(c reportColumn) bool { return c.Key == key })
	}
	all := map[string]string{}
	for _, n := range store.VariableNames() {
		all[n] = ""
	}
	for _, n := range store.InOrder(append(slices.Clone(vars), all)...) {
		if !has(n) {
			columns = append(columns, variableColumn(table.Column{Key: n, Data: true}))
		}
	}
	for i := range store.Metrics {
		if m := &store.Metrics[i]; m.Headline && !has(metricKey(m)) {
			columns = append(columns, metricColumn(m, "", nil))
		}
	}
	return columns
}

// metricKey is a metric's name with its unit, as JSON and CSV have it.
func metricKey(m *store.Metric) string {
	switch m.Unit {
	case "":
		return m.Name
	case "B":
		return m.Name + "_bytes"
	case "B/s":
		return m.Name + "_bytes_per_s"
	case "%":
		return m.Name + "_percent"
	}
	return m.Name + "_" + strings.ReplaceAll(m.Unit, "/", "_per_")
}

// shortID is the second in which a report was saved, where that names it, else its id.
func shortID(db *store.DB, id string) string {
	second := id[:min(len("20261130-164502"), len(id))]
	if found, err := db.Find(second); err == nil && found == id {
		return second
	}
	return id
}

// relayWords is which relay it was, in a few words.
func relayWords(vars map[string]string) table.Cell {
	first := func(s string, n int) string { return s[:min(n, len(s))] }
	switch vars["relay-form"] {
	case "":
		return table.Cell{}
	case relay.FormStandIn, relay.FormNone:
		return table.Text(vars["relay-form"])
	case relay.FormURL:
		return table.Text(strings.TrimSpace(vars["relay-version"] + " " + vars["relay-url"]))
	}
	words := []string{vars["relay-version"]}
	if vars["relay-revision"] == "" {
		words = append(words, "sha256 "+first(vars["relay-sha256"], 10))
	} else {
		words = append(words, vars["relay-branch"], first(vars["relay-revision"], 10))
	}
	return table.Text(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}

// markNames are the marks of an entry; of a report that cannot be read, that it cannot be.
func markNames(e *store.Entry) table.Cell {
	if e.Problem != "" {
		return table.Text("").As("cannot be read")
	}
	var names []string
	for _, m := range e.Marks() {
		names = append(names, m.Name)
	}
	return table.Text(strings.Join(names, ", "))
}
