package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/store"
)

var dbInfoCommand = command{
	name:     "db info",
	summary:  "what there is in the store, and how large it is",
	examples: []string{"db info"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return s.withStore(func(_ context.Context, db *store.DB, _ []string) (string, *table.Table, error) {
			i, err := db.Info()
			if err != nil {
				return "", nil, err
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
			return "", r, nil
		})
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
		return s.withStore(func(_ context.Context, db *store.DB, _ []string) (string, *table.Table, error) {
			if err := db.Check(); err != nil {
				return "", nil, lines(err)
			}
			i, err := db.Info()
			if err != nil {
				return "", nil, err
			}
			r := table.Record()
			r.Field("path", "", table.Text(i.Path))
			r.Field("reports", "", table.Int(i.Reports))
			return fmt.Sprintf("%s: nothing is wrong with it, nor with its %s", i.Path, reports(i.Reports)), r, nil
		})
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
		return s.withStore(func(_ context.Context, db *store.DB, _ []string) (string, *table.Table, error) {
			before, after, err := db.Compact()
			if err != nil {
				return "", nil, err
			}
			r := table.Record()
			r.Field("path", "", table.Text(db.Path()))
			r.Field("before_bytes", "", table.Int(before))
			r.Field("after_bytes", "", table.Int(after))
			return fmt.Sprintf("%s: %s before, %s now", db.Path(), byteSize(float64(before)), byteSize(float64(after))), r, nil
		})
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
		return s.withStore(func(_ context.Context, db *store.DB, args []string) (string, *table.Table, error) {
			path, err := s.path(args[0])
			if err != nil {
				return "", nil, err
			}
			size, err := db.Backup(path)
			if err != nil {
				return "", nil, err
			}
			r := table.Record()
			r.Field("path", "", table.Text(path))
			r.Field("size_bytes", "", table.Int(size))
			return fmt.Sprintf("%s: %s", path, byteSize(float64(size))), r, nil
		})
	},
}

// withStore makes a command's work of what is done with the store: what is
// said to a person, empty where that is the table, and the table for programs.
func (s *Session) withStore(do func(ctx context.Context, db *store.DB, args []string) (said string, t *table.Table, err error)) work {
	return func(ctx context.Context, args []string) (Code, error) {
		db, err := s.bench.open()
		if err != nil {
			return Fine, err
		}
		said, t, err := do(ctx, db, args)
		switch {
		case err != nil:
			return Fine, err
		case s.format == Text && said != "":
			return Fine, s.printf("%s\n", said)
		}
		return Fine, s.print(t)
	}
}

// reports is a number of reports in words.
func reports(n int) string {
	if n == 1 {
		return "1 report"
	}
	return count(n) + " reports"
}
