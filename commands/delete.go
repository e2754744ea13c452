package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
)

var deleteCommand = command{
	name:    "delete",
	summary: "remove reports from the store, for good",
	detail: `It asks at a terminal; elsewhere --yes is needed. Where one of several is not there, none is
removed. db compact gives back the space.`,
	args:     []arg{{name: "REPORT", help: reportHelp, many: true, values: reportValues}},
	examples: []string{"delete last", "delete 20261130-164502-3f9a1c last-1 --yes"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		yes := fs.Bool("yes", false, "do not ask")
		return func(ctx context.Context, refs []string) (Code, error) {
			if !*yes && s.client.Ask == nil {
				return Fine, usageError(errors.New("nothing was deleted: there is nobody to ask"), "--yes deletes without asking")
			}
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			var ids, wrong []string
			for _, ref := range refs {
				id, err := db.Find(ref)
				switch {
				case err != nil:
					wrong = append(wrong, err.Error())
				case !slices.Contains(ids, id):
					ids = append(ids, id)
				}
			}
			if len(wrong) > 0 {
				return Fine, hinted(errors.New(strings.Join(wrong, "; ")), "nothing was deleted")
			}
			if !*yes {
				ok, err := s.consent(ctx, fmt.Sprintf("delete %s (%s)?", reports(len(ids)), strings.Join(firstOf(ids, 5, "more"), ", ")))
				if err != nil {
					return Fine, err
				}
				if !ok {
					return Fine, s.say("nothing was deleted\n")
				}
			}
			if err := db.Delete(ids...); err != nil {
				return Fine, err
			}
			if s.format == Text {
				return Fine, s.printf("deleted %s: %s\n", reports(len(ids)), strings.Join(ids, ", "))
			}
			t := &table.Table{Columns: []table.Column{{Key: "deleted"}}}
			for _, id := range ids {
				t.Add(table.Text(id))
			}
			return Fine, s.print(t)
		}
	},
}

// consent asks whether to do something. Only a typed yes is one: neither an
// empty line nor the end of input is.
func (s *Session) consent(ctx context.Context, question string) (bool, error) {
	answer, err := s.client.Ask(ctx, question+" y/N ")
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes"), nil
}
