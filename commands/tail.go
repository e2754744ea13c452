package commands

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
)

const (
	tailLines = 20 // that are shown where -n does not say how many
	// tailEvery is how often a log that is followed is looked at.
	tailEvery = 200 * time.Millisecond
)

var relayTailCommand = command{
	name:    "relay tail",
	summary: "the relay's log, of the run that goes on or the last",
	detail: `Of a run that goes on, its last 1,000 lines can be seen; a report keeps its relay's last 100. With
-f lines are shown as they come, of one run after the other, until no job runs or Ctrl-C.`,
	args:     []arg{{name: "PATTERN", help: "a regular expression: only lines that it matches", optional: true}},
	examples: []string{"relay tail", "relay tail -n 100 'ERROR|WARN'", "relay tail -f"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		n := fs.IntP("number", "n", tailLines, "the last `N`")
		follow := fs.BoolP("follow", "f", false, "show more as it comes")
		return func(ctx context.Context, args []string) (Code, error) {
			t := &tailing{s: s, n: *n, pattern: regexp.MustCompile("")}
			if t.n < 0 {
				return Fine, usageError(fmt.Errorf("-n %d is not 0 or more", t.n), "")
			}
			if *follow && s.format != Text {
				return Fine, usageError(errors.New("what is followed has no end, and is text only"), "")
			}
			if len(args) > 0 {
				var err error
				if t.pattern, err = regexp.Compile(args[0]); err != nil {
					return Fine, usageError(fmt.Errorf("%q is no regular expression: %w", args[0], err), "")
				}
			}
			process := s.bench.process.Load()
			if err := t.begin(process); err != nil || !*follow {
				return Fine, err
			}
			return Fine, t.follow(ctx, process)
		}
	},
}

// tailing is a log that is shown.
type tailing struct {
	s       *Session
	n       int
	pattern *regexp.Regexp
	seen    uint64 // lines of the process
}

// begin shows the end of the log that there is: of a process, or of the last report.
func (t *tailing) begin(process *relay.Process) error {
	var lines []string
	if process != nil {
		lines, t.seen = process.Since(0)
	} else {
		if t.s.bench.queue.head() != nil {
			return t.s.say("no relay runs at the moment\n")
		}
		if absent, err := t.s.bench.absent(); absent || err != nil {
			return err
		}
		db, err := t.s.bench.open()
		if err != nil {
			return err
		}
		r, err := db.Get("last")
		if err != nil {
			return err
		}
		if r.Result != nil {
			lines = r.Result.Relay.Log
		}
		t.s.note("of report %s:\n", r.ID)
	}
	var shown []relay.Line
	for _, line := range lines {
		if l := relay.ParseLine(line); t.pattern.MatchString(l.String()) {
			shown = append(shown, l)
		}
	}
	shown = shown[max(0, len(shown)-t.n):]
	if t.s.format == Text {
		return t.print(shown)
	}
	out := &table.Table{Columns: []table.Column{{Key: "time"}, {Key: "level"}, {Key: "target"}, {Key: "text", Wrap: true}}}
	for _, l := range shown {
		out.Add(optional(l.Time), optional(l.Level), optional(l.Target), table.Text(l.Text))
	}
	return t.s.print(out)
}

func (t *tailing) print(lines []relay.Line) error {
	paint := t.s.paint()
	for _, l := range lines {
		text := table.Clean(l.String())
		switch l.Level {
		case "ERROR":
			text = paint.bad(text)
		case "WARN":
			text = paint.warn(text)
		}
		if err := t.s.printf("%s\n", text); err != nil {
			return err
		}
	}
	return nil
}

// follow shows what comes, of process and those after it, until no job runs.
func (t *tailing) follow(ctx context.Context, process *relay.Process) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		over := t.s.bench.queue.head() == nil // before the last look, so that nothing is missed
		now := t.s.bench.process.Load()
		if process != nil {
			if err := t.more(process); err != nil {
				return err
			}
		}
		if now != nil && now != process {
			process, t.seen = now, 0
			continue
		}
		if over {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrInterrupted) {
				return nil // it has no other end
			}
			return context.Cause(ctx)
		}
	}
}

// more shows what a process has logged since the last time.
func (t *tailing) more(process *relay.Process) error {
	lines, seen := process.Since(t.seen)
	if missed := seen - t.seen - uint64(len(lines)); missed > 0 {
		if err := t.s.printf("… %s lines were not kept for so long\n", count(missed)); err != nil {
			return err
		}
	}
	t.seen = seen
	var shown []relay.Line
	for _, line := range lines {
		if l := relay.ParseLine(line); t.pattern.MatchString(l.String()) {
			shown = append(shown, l)
		}
	}
	return t.print(shown)
}
