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
	args:     []arg{{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true}},
	examples: []string{"reports", "reports mix=errors 'rate>=200' -n all", "reports relay-branch=main -n 168h --json"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		newest := fs.StringP("number", "n", defaultNewest, "at most so many of the newest, `N`, or those of the last DURATION; all: no limit")
		return func(_ context.Context, args []string) (Code, error) {
			filters, err := parseFilters(args)
			if err != nil {
				return Fine, err
			}
			limit, err := parseNewest(*newest)
			if err != nil {
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

// listed are the headline metrics that a person sees in the list of reports, by the names that fit there.
var listed = []struct {
	metric, head string
	text         func(float64) string
}{
	{"forwarded-rate", "fwd/s", func(v float64) string { return strings.TrimSuffix(quantity(v, "sends/s"), "/s") }},
	{"cpu-per-envelope", "CPU/env", span},
	{"through-p99", "thr p99", span},
}

// entriesTable is a row a report: for a person what fits a screen, for programs
// every variable and headline metric besides.
func entriesTable(db *store.DB, entries []store.Entry) *table.Table {
	knobs := []string{"mix", "rate", "duration"}
	t := &table.Table{Columns: []table.Column{{Key: "report-id", Head: "report (UTC)"}, {Key: "relay", Wrap: true},
		{Key: "mix", Wrap: true}, {Key: "rate", Right: true}, {Key: "duration", Head: "load", Right: true}}}
	shown := map[string]bool{"report-id": true}
	for _, k := range knobs {
		shown[k] = true
	}
	for _, l := range listed {
		m := store.FindMetric(l.metric)
		t.Columns = append(t.Columns, table.Column{Key: metricKey(m), Head: l.head, Right: true})
		shown[l.metric] = true
	}
	t.Columns = append(t.Columns, table.Column{Key: "marks", Wrap: true}, table.Column{Key: "problem", Data: true})

	// Where the table gives all its variables, the columns are the same whatever is listed.
	table0 := map[string]string{}
	for _, n := range store.VariableNames() {
		table0[n] = ""
	}
	vars := make([]map[string]string, len(entries))
	for i := range entries {
		vars[i] = entries[i].Vars()
	}
	var variables []string
	for _, n := range store.InOrder(append(slices.Clone(vars), table0)...) {
		if !shown[n] {
			variables = append(variables, n)
			t.Columns = append(t.Columns, table.Column{Key: n, Data: true})
		}
	}
	var metrics []*store.Metric
	for i := range store.Metrics {
		if m := &store.Metrics[i]; m.Headline && !shown[m.Name] {
			metrics = append(metrics, m)
			t.Columns = append(t.Columns, table.Column{Key: metricKey(m), Data: true})
		}
	}
	for i := range entries {
		e := &entries[i]
		variable := func(name string) table.Cell {
			v, ok := vars[i][name]
			if !ok {
				return table.Cell{}
			}
			return table.Text(v)
		}
		row := []table.Cell{table.Text(e.ID).As(shortID(db, e.ID)), relayWords(vars[i])}
		for _, k := range knobs {
			row = append(row, variable(k))
		}
		for _, l := range listed {
			v, ok := e.Metric(l.metric)
			row = append(row, table.Float(v, ok).As(l.text(v)))
		}
		marks := markNames(e)
		problem := table.Cell{}
		if e.Problem != "" {
			marks, problem = table.Text("").As("cannot be read"), table.Text(e.Problem)
		}
		row = append(row, marks, problem)
		for _, n := range variables {
			row = append(row, variable(n))
		}
		for _, m := range metrics {
			row = append(row, table.Float(e.Metric(m.Name)))
		}
		t.Add(row...)
	}
	return t
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

// markNames are the marks of an entry.
func markNames(e *store.Entry) table.Cell {
	var names []string
	for _, m := range e.Marks() {
		names = append(names, m.Name)
	}
	return table.Text(strings.Join(names, ", "))
}
