package commands

import (
	"context"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/store"
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
			db, err := s.indexed()
			if err != nil {
				return Fine, err
			}
			newest, older, err := db.Entries(nil, store.Newest{N: 1})
			if err != nil {
				return Fine, err
			}
			id := ""
			if len(newest) > 0 {
				id = newest[0].ID
			}
			r := table.Record()
			r.Field("relay", "relay", table.Text(ref.What))
			r.Field("store", "store", table.Text(db.Path()))
			r.Field("reports", "reports", table.Int(len(newest)+older).As(count(len(newest)+older)))
			r.Field("newest", "newest", optional(id))
			return Fine, s.print(r)
		}
	},
}
