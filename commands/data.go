package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/host"
)

var dbInfoCommand = command{
	name:     "db info",
	summary:  "what there is in the store, and how large it is",
	examples: []string{"db info"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(context.Context, []string) (Code, error) {
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			i, err := db.Info()
			if err != nil {
				return Fine, err
			}
			r := table.Record()
			r.Field("path", "file", table.Text(i.Path))
			r.Field("size_bytes", "size", table.Int(i.Size).As(byteSize(float64(i.Size))))
			r.Field("free_bytes", "of it free", table.Int(i.Free).As(byteSize(float64(i.Free))))
			r.Field("disk_free_bytes", "left on its disk", table.Float(float64(i.Disk), i.Disk >= 0).As(byteSize(float64(i.Disk))))
			r.Field("reports", "reports", table.Int(i.Reports).As(count(i.Reports)))
			r.Field("own", "made here", table.Int(i.Own).As(count(i.Own)))
			r.Field("oldest", "oldest", optional(i.Oldest))
			r.Field("newest", "newest", optional(i.Newest))
			r.Field("record_versions", "records by version", optional(numbers(i.Versions)))
			r.Field("writers", "written by relaybench", optional(tallied(writers(i.Writers), " × ")))
			r.Field("layout", "layout", table.Int(i.Layout))
			r.Field("index_current", "index is current", table.Bool(i.IndexCurrent))
			return Fine, s.print(r)
		}
	},
}

// numbers are counts of reports by number of their record's version, in words.
func numbers(counts map[int]int) string {
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s of version %d", count(counts[n]), n))
	}
	return strings.Join(parts, ", ")
}

// writers are the counts of reports by version, with a name for the version that is none.
func writers(counts map[string]int) map[string]uint64 {
	named := map[string]uint64{}
	for v, n := range counts {
		if v == "" {
			v = "of unknown version"
		}
		named[v] += uint64(n)
	}
	return named
}

var dbCheckCommand = command{
	name:    "db check",
	summary: "read all of the store, and say what is wrong with it",
	detail: `What is wrong is said line by line, and the exit code is then 4. Nothing is mended: put a
backup in the store's place (db backup makes one).`,
	examples: []string{"db check"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(context.Context, []string) (Code, error) {
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			if err := db.Check(); err != nil {
				return Fine, lines(err)
			}
			i, err := db.Info()
			if err != nil {
				return Fine, err
			}
			if s.format == Text {
				return Fine, s.printf("%s: nothing is wrong with it, nor with its %s\n", i.Path, reports(i.Reports))
			}
			r := table.Record()
			r.Field("path", "", table.Text(i.Path))
			r.Field("reports", "", table.Int(i.Reports))
			return Fine, s.print(r)
		}
	},
}

// lines is an error of several lines with all but the first told below it.
func lines(err error) error {
	first, rest, several := strings.Cut(err.Error(), "\n")
	if !several {
		return err
	}
	return &told{error: fmt.Errorf("%s", first), detail: strings.Split(rest, "\n")}
}

var dbCompactCommand = command{
	name:    "db compact",
	summary: "give back the space that deleted reports had",
	detail: `The store is written anew beside itself, and put in its place: at any moment there is a whole
one. It needs as much room on the disk as the store will have.`,
	examples: []string{"db compact"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(context.Context, []string) (Code, error) {
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			before, after, err := db.Compact()
			if err != nil {
				return Fine, err
			}
			if s.format == Text {
				return Fine, s.printf("%s: %s before, %s now\n", db.Path(), byteSize(float64(before)), byteSize(float64(after)))
			}
			r := table.Record()
			r.Field("path", "", table.Text(db.Path()))
			r.Field("before_bytes", "", table.Int(before))
			r.Field("after_bytes", "", table.Int(after))
			return Fine, s.print(r)
		}
	},
}

var dbBackupCommand = command{
	name:    "db backup",
	summary: "copy the store, also while it is in use",
	detail: `The copy is whole, as of one moment, and is a store itself: -db FILE. A file that is there is
not replaced.`,
	args:     []arg{{name: "FILE", help: "the copy, a new file", path: anyPath}},
	examples: []string{"db backup reports-2026-11-30.db"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(_ context.Context, args []string) (Code, error) {
			path, err := s.path(args[0])
			if err != nil {
				return Fine, err
			}
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			size, err := db.Backup(path)
			if err != nil {
				return Fine, err
			}
			if s.format == Text {
				return Fine, s.printf("%s: %s\n", path, byteSize(float64(size)))
			}
			r := table.Record()
			r.Field("path", "", table.Text(path))
			r.Field("size_bytes", "", table.Int(size))
			return Fine, s.print(r)
		}
	},
}

var dbImportCommand = command{
	name:    "db import",
	summary: "bring in a report that could not be saved in its time",
	detail: `FILE is what a test named that could not save its report. It keeps its id. To import it again
adds nothing; where another report has its id, nothing is changed and the exit code is 4.`,
	args:     []arg{{name: "FILE", help: "the file of a report", path: anyPath}},
	examples: []string{"db import relaybench-20261130-164502-3f9a1c.report"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(ctx context.Context, args []string) (Code, error) {
			path, err := s.path(args[0])
			if err != nil {
				return Fine, err
			}
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			id, added, err := db.ImportFile(path, host.Facts(ctx, s.bench.config.Host).Name)
			switch {
			case err != nil:
				return Fine, err
			case s.format != Text:
				r := table.Record()
				r.Field("report-id", "", table.Text(id))
				r.Field("added", "", table.Bool(added))
				return Fine, s.print(r)
			case !added:
				return Fine, s.printf("report %s is in the store already: nothing was added\n", id)
			}
			return Fine, s.printf("report %s was added: show %s\n", id, id)
		}
	},
}

// reports is a number of reports in words.
func reports(n int) string {
	if n == 1 {
		return "1 report"
	}
	return count(n) + " reports"
}
