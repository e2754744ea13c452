package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/builds"
	"relaybench/harness/relay"
)

var relayListCommand = command{
	name:    "relay list",
	summary: "the builds that are kept, and what they take of the disk",
	detail: `The newest is first. Builds are kept beside the store; use marks the one in use
here, which may be an image too. dirty is a build of a tree with changes that no revision has.`,
	examples: []string{"relay list", "relay list --json"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(ctx context.Context, _ []string) (Code, error) {
			kept, err := s.bench.keptBuilds()
			if err != nil {
				return Fine, err
			}
			ref, err := s.inUse()
			if err != nil {
				return Fine, err
			}
			if settled, err := s.bench.settled(ctx, ref); err == nil {
				ref = settled
			}
			all := kept.List()
			t := buildsTable(all, ref.What)
			var missing error
			if relay.IsImage(ref.What) {
				missing = addImage(ctx, t, ref.What)
			}
			if err := s.print(t); err != nil || s.format != Text && s.format != Markdown {
				return Fine, err
			}
			said := []string{diskWords(len(all), kept.Usage())}
			if missing != nil {
				said = append(said, table.Clean(missing.Error()))
			}
			return Fine, s.sayLines(said)
		}
	},
}

// buildsTable is a row a build; used is the path of the one in use.
func buildsTable(all []builds.Build, used string) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "use"}, {Key: "branch"}, {Key: "revision"}, {Key: "dirty"}, {Key: "revision-date", Head: "of"}, {Key: "made", Right: true},
		{Key: "profile"}, {Key: "size_bytes", Head: "size", Right: true}, {Key: "sha256"}, {Key: "command", Wrap: true}, {Key: "took_ns", Data: true}, {Key: "changes", Data: true}, {Key: "checkout", Data: true}, {Key: "path", Data: true}, {Key: "image", Data: true}}}
	for _, b := range all {
		use, command := table.Bool(false).As(" "), table.Text(b.Command)
		if b.Binary == used {
			use = table.Bool(true).As("*")
		}
		if b.Command == builds.DefaultCommand {
			command = command.As("cargo")
		}
		t.Add(use, optional(b.Branch), table.Text(b.Revision).As(b.Revision[:min(12, len(b.Revision))]), table.Bool(b.Changes != ""),
			table.Text(b.Date.Format(time.RFC3339)).As(b.Date.Format(time.DateOnly)), table.Text(b.Made.Format(time.RFC3339)).As(seconds(time.Since(b.Made))+" ago"),
			optional(b.Profile), table.Int(b.Size).As(byteSize(float64(b.Size))), table.Text(b.SHA256).As(b.SHA256[:min(12, len(b.SHA256))]), command,
			table.Int(b.Took), optional(b.Changes), table.Text(b.Checkout), table.Text(b.Binary), table.Cell{})
	}
	return t
}

// addImage adds the row of the image in use; its error says why nothing more is known of it.
func addImage(ctx context.Context, t *table.Table, what string) error {
	p, err := relay.Find(ctx, what, "")
	row := make([]table.Cell, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Key {
		case "use":
			row[i] = table.Bool(true).As("*")
		case "size_bytes":
			if p.Size > 0 {
				row[i] = table.Int(p.Size).As(byteSize(float64(p.Size)))
			}
		case "sha256":
			row[i] = optional(p.SHA256)
			if p.SHA256 != "" {
				row[i] = row[i].As(p.SHA256[:12])
			}
		case "command":
			row[i] = table.Text(what)
		case "image":
			row[i] = optional(p.Image)
		}
	}
	t.Add(row...)
	return err
}

// diskWords says what builds take of the disk.
func diskWords(number int, u builds.Usage) string {
	if number == 0 && u == (builds.Usage{}) {
		return "no build is kept: relay use FOLDER, then relay switch -b BRANCH makes one"
	}
	said := fmt.Sprintf("%s: %s", plural(number, "build", "builds"), byteSize(float64(u.Builds)))
	if u.Made > 0 {
		said += fmt.Sprintf("; work trees and what cargo keeps for the next build: %s (relay prune)", byteSize(float64(u.Made)))
	}
	return said
}

var relayPruneCommand = command{
	name:    "relay prune",
	summary: "free the disk of what builds can be made with again",
	detail: `That is their work trees, and what cargo keeps for the next one. Builds stay unless
--keep says how many. What was freed is made again when it is needed: the next build then takes
as long as the first one did. The build in use is never taken away.`,
	examples: []string{"relay prune", "relay prune --keep 5"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		n := fs.Int("keep", -1, "take away all builds but the newest `N`, and those in use")
		return func(ctx context.Context, _ []string) (Code, error) {
			if err := s.mayBuild("relay prune"); err != nil {
				return Fine, err
			}
			some := fs.Changed("keep")
			if some && *n < 0 {
				return Fine, usageError(fmt.Errorf("--keep %d is not 0 or more", *n), "")
			}
			return Fine, s.prune(ctx, *n, some)
		}
	},
}

// prune frees the disk, of builds but the newest n where some may go.
func (s *Session) prune(ctx context.Context, n int, some bool) error {
	kept, err := s.bench.keptBuilds()
	if err != nil {
		return err
	}
	if some && s.bench.queue.head() != nil {
		return hinted(errors.New("jobs run or wait, and may be of builds that would go"), "wait, and then again")
	}
	used := map[string]bool{}
	if ref, err := s.inUse(); err == nil {
		used[ref.What] = true
		if settled, err := s.bench.settled(ctx, ref); err == nil {
			used[settled.What] = true
		}
	}
	if ref, ok, err := s.bench.lastRelay(); err == nil && ok {
		used[ref.What] = true
	}
	newest := map[string]bool{}
	for i, b := range kept.List() {
		newest[b.Binary] = !some || i < n
	}
	gone, freed, err := kept.Prune(ctx, func(b builds.Build) bool { return newest[b.Binary] || used[b.Binary] })
	if errors.Is(err, builds.ErrBusy) {
		return hinted(err, "wait, and then again")
	}
	if err != nil {
		return err
	}
	if s.format != Text {
		r := table.Record()
		r.Field("builds", "", table.Int(len(gone)))
		r.Field("freed_bytes", "", table.Int(freed))
		return s.print(r)
	}
	for _, b := range gone {
		if err := s.printf("%s\n", table.Clean("gone: "+b.Name())); err != nil {
			return err
		}
	}
	return s.printf("freed %s\n", byteSize(float64(freed)))
}
