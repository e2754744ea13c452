package commands

import (
	"context"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
)

var statusCommand = command{
	name:     "status",
	summary:  "the relay in use, and the store",
	examples: []string{"status"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(context.Context, []string) (Code, error) {
			ref, err := s.inUse()
			if err != nil {
				return Fine, err
			}
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			r := table.Record()
			r.Field("relay", "relay", table.Text(ref.What))
			r.Field("store", "store", table.Text(db.Path()))
			return Fine, s.print(r)
		}
	},
}
