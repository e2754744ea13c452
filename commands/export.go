package commands

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/result"
	"relaybench/store"
)

// The formats of export.
const (
	jsonLines  = "jsonl"
	csvRows    = "csv"
	benchLines = "benchfmt"
)

var exportFormats = []string{jsonLines, csvRows, benchLines}

var exportCommand = command{
	name:    "export",
	summary: "reports for import, a spreadsheet or benchstat",
	detail: `jsonl is whole reports, a line each, for import. csv is a row a run with all variables and
metrics, units in their names. benchfmt is Go's benchmark format, as golang.org/x/perf/cmd/benchstat
reads it: what all runs of a table have in common is its configuration, and values that a mark makes
unfit are left out, and counted.

Without --to it is printed. A file that is there is not replaced.`,
	args:     []arg{{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true, values: filterValues}},
	examples: []string{"export --to reports.jsonl", "export mix=errors -n 168h --format csv --to errors.csv", "export 'relay-branch~perf' --format benchfmt --to perf.txt"},
	setup: func(s *Session, fs *pflag.FlagSet) work {
		newest := fs.StringP("number", "n", allNewest, "at most so many of the newest, `N`, or those of the last DURATION; all: no limit")
		to := fs.String("to", "", "a new `FILE`")
		format := fs.String("format", jsonLines, "`FORMAT`: "+oneOf(exportFormats))
		pathFlag(fs, "to", anyPath)
		offer(fs, "format", fixedValues(exportFormats...))
		return func(ctx context.Context, args []string) (Code, error) {
			filters, limit, err := parseSelection(args, *newest)
			if err != nil {
				return Fine, err
			}
			if !slices.Contains(exportFormats, *format) {
				return Fine, usageError(fmt.Errorf("--format %q: expected %s", *format, oneOf(exportFormats)), "")
			}
			x := &export{s: s, ctx: ctx, format: *format}
			if absent, err := s.bench.absent(); err != nil {
				return Fine, err
			} else if !absent {
				if x.db, err = s.indexed(); err != nil {
					return Fine, err
				}
				if x.entries, x.cut, err = x.db.Entries(filters, limit); err != nil {
					return Fine, err
				}
			}
			return Fine, x.do(*to, fs.Changed("to"))
		}
	},
}

// export is one that is being done.
type export struct {
	s       *Session
	ctx     context.Context
	db      *store.DB // nil: there is no store yet
	format  string
	entries []store.Entry
	cut     int
	ids     []string    // of those that can be read
	said    []string    // what is to be known beside it
	beside  []csvColumn // of CSV, after the marks
}

// do exports to a file, or to the client.
func (x *export) do(file string, toFile bool) error {
	var unreadable []string
	for i := range x.entries {
		if e := &x.entries[i]; e.Problem != "" {
			unreadable = append(unreadable, "report "+e.ID+" cannot be read: "+table.Clean(e.Problem))
		} else {
			x.ids = append(x.ids, e.ID)
		}
	}
	if toFile {
		path, err := x.s.path(file)
		if err != nil {
			return err
		}
		if err := store.NewFile(path, x.write); err != nil {
			return fmt.Errorf("export to %q: %w", path, err)
		}
		t := table.Record()
		t.Field("path", "", table.Text(path))
		t.Field("reports", "", table.Int(len(x.ids)))
		if x.s.format != Text {
			err = x.s.print(t)
		} else {
			err = x.s.printf("%s: %s\n", table.Clean(path), reports(len(x.ids)))
		}
		if err != nil {
			return err
		}
	} else if err := x.write(x.s.client.Out); err != nil {
		return err
	}
	if x.cut > 0 {
		x.said = append(x.said, fmt.Sprintf("%s older left out, -n %s exports all", count(x.cut), allNewest))
	}
	for _, line := range x.said {
		x.aside(toFile, line)
	}
	if len(unreadable) > 0 {
		return &told{error: fmt.Errorf("%s cannot be read, and left out", reports(len(unreadable))), detail: firstOf(unreadable, 10, "more")}
	}
	return nil
}

// aside tells what is to be known, but never among what is exported.
func (x *export) aside(toFile bool, line string) {
	if toFile {
		_ = x.s.say("%s\n", line)
	} else if !x.s.client.Remote || x.format == benchLines { // whose notes are not apart from the output
		x.s.note("%s\n", line)
	}
}

// write writes the reports. No transaction is open while it does.
func (x *export) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 32<<10)
	var err error
	switch {
	case x.format == csvRows:
		err = x.csv(w)
	case x.format == benchLines:
		err = x.bench(w)
	case x.db != nil:
		err = x.db.ReadLines(x.ids, func(line []byte) error {
			if err := x.stopped(); err != nil {
				return err
			}
			_, err := w.Write(line)
			return err
		})
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

func (x *export) stopped() error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return nil
}

// each hands each report to do.
func (x *export) each(do func(*store.Report) error) error {
	if x.db == nil {
		return nil
	}
	return x.db.ReadReports(x.ids, func(r *store.Report) error {
		if err := x.stopped(); err != nil {
			return err
		}
		return do(r)
	})
}

// csvColumn is a column of CSV.
type csvColumn struct {
	key string
	of  func(r *store.Report, e *store.Entry, vars map[string]string) table.Cell
}

// csv writes a row a run.
func (x *export) csv(w io.Writer) error {
	columns := x.csvColumns()
	row := func() *table.Table {
		t := &table.Table{}
		for _, c := range columns {
			t.Columns = append(t.Columns, table.Column{Key: c.key})
		}
		return t
	}
	if err := row().CSV(w); err != nil {
		return err
	}
	return x.each(func(r *store.Report) error {
		e := store.EntryOf(r)
		vars := e.Vars()
		t := row()
		t.Bare = true
		var cells []table.Cell
		for _, c := range columns {
			cells = append(cells, c.of(r, e, vars))
		}
		t.Add(cells...)
		return t.CSV(w)
	})
}

// csvColumns are the columns for the reports: id, variables, marks, then all
// metrics, with the minimum and the count of each distribution beside its quantiles.
func (x *export) csvColumns() []csvColumn {
	names := map[string]string{}
	for _, n := range store.VariableNames() {
		names[n] = ""
	}
	for i := range x.entries {
		for n := range x.entries[i].Vars() {
			names[n] = ""
		}
	}
	const id = "report-id"
	columns := []csvColumn{{id, func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell { return table.Text(r.ID) }}}
	for _, n := range store.InOrder(names) {
		if n != id {
			columns = append(columns, csvColumn{n, func(_ *store.Report, _ *store.Entry, vars map[string]string) table.Cell { return optional(vars[n]) }})
		}
	}
	columns = append(columns, csvColumn{"marks", func(_ *store.Report, e *store.Entry, _ map[string]string) table.Cell { return markNames(e) }})
	columns = append(columns, x.beside...)
	for i := range store.Metrics {
		m := &store.Metrics[i]
		if of, ok := strings.CutSuffix(m.Name, "-p50"); ok {
			columns = append(columns,
				csvColumn{of + "-count", func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell {
					return counted(distribution(r, of).Count())
				}},
				csvColumn{of + "-min_ns", func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell {
					return quantileCell(distribution(r, of), 0)
				}})
		}
		columns = append(columns, csvColumn{metricKey(m), func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell { return table.Float(m.Of(r)) }})
	}
	return columns
}

// distribution is the one that metrics of that name are of, such as
// "through" or "refused-service"; nil where there is none.
func distribution(r *store.Report, name string) *result.Sketch {
	if r.Result == nil {
		return nil
	}
	for _, row := range spans(r, true) {
		of := row.span
		if row.of == "refused" {
			of = "refused-" + of
		}
		if of == name && row.kind == "" {
			return row.sketch
		}
	}
	return nil
}
