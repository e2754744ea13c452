package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/host"
	"relaybench/store"
)

var importCommand = command{
	name:    "import",
	summary: "bring in what was exported, or could not be saved",
	detail: `Reports keep their ids, and do not count as made here: last is never one of them. Importing
again adds nothing. Where a line is damaged, or another report has its id, nothing is imported
and the exit code is 4; --skip-bad brings in the rest.

A report that could not be saved is in a file that its test named. It counts as made here.`,
	args:     []arg{{name: "FILE", help: "JSON lines of export, or the file of a report", path: anyPath}},
	examples: []string{"import reports.jsonl", "import damaged.jsonl --skip-bad", "import relaybench-20261130-164502-3f9a1c.report"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		skip := fs.Bool("skip-bad", false, "leave out what is damaged or has another report's id, and bring in the rest")
		var left store.LeftOut
		do := s.withStore(func(ctx context.Context, db *store.DB, args []string) (string, *table.Table, error) {
			path, err := s.path(args[0])
			if err != nil {
				return "", nil, err
			}
			done, err := db.Import(ctx, path, host.Facts(ctx, s.bench.config.Host).Name, *skip)
			if err != nil {
				return "", nil, notImported(err)
			}
			left = done.Left
			r := table.Record()
			r.Field("new", "", table.Int(done.New))
			r.Field("known", "", table.Int(done.Known))
			r.Field("damaged", "", table.Int(left.Bad))
			r.Field("conflicts", "", table.Int(left.Conflicts))
			said := fmt.Sprintf("%s new, %s known", count(done.New), count(done.Known))
			if n := left.Bad + left.Conflicts; n > 0 {
				said += fmt.Sprintf(", %s left out", count(n))
			}
			return said, r, nil
		})
		return func(ctx context.Context, args []string) (Code, error) {
			code, err := do(ctx, args)
			switch {
			case err != nil || len(left.Why) == 0:
				return code, err
			case left.Conflicts > 0:
				return code, &told{error: fmt.Errorf("another report has the id of %s of the file", reports(left.Conflicts)), detail: cleaned(left.Why)}
			}
			for _, why := range cleaned(left.Why) {
				if err := s.say("left out: %s\n", why); err != nil {
					return code, err
				}
			}
			return code, nil
		}
	},
}

// notImported is the error of an import, with what to do about it.
func notImported(err error) error {
	var left *store.LeftOut
	if !errors.As(err, &left) {
		return err
	}
	return &told{error: err, hint: "--skip-bad brings in the rest", detail: cleaned(left.Why[1:])}
}

// cleaned are lines that may hold what is not to be printed.
func cleaned(lines []string) []string {
	var clean []string
	for _, l := range lines {
		clean = append(clean, table.Clean(l))
	}
	return clean
}
