package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/variable"
	"relaybench/store"
)

var statusCommand = command{
	name:    "status",
	summary: "the relay in use, the store, and the queue",
	detail: `There is one queue, and one job that runs, for all clients of a store. left is about how long
it takes until a job is over, those before it included. The last jobs that are over are shown
too, all that are known to --json and --csv.`,
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
			r.Field("relay", "relay", table.Text(ref.String()))
			r.Field("store", "store", table.Text(db.Path()))
			r.Field("reports", "reports", table.Int(len(newest)+older).As(count(len(newest)+older)))
			r.Field("newest", "newest", optional(id))
			config, err := s.usualConfig()
			if err != nil {
				return Fine, err
			}
			r.Field("config", "config", table.Text(config))
			return Fine, s.printStatus(r, s.bench.queue.views())
		}
	},
}

// shownEnded is how many of the jobs that are over status shows to a person.
const shownEnded = 3

// printStatus prints how things are, and jobs: those that are over, the one that runs, those that wait.
func (s *Session) printStatus(r *table.Table, views []Job) error {
	switch s.format {
	case JSON:
		is := r.Rows[0]
		return s.printJSON(struct {
			Relay   table.Cell   `json:"relay"`
			Store   table.Cell   `json:"store"`
			Reports table.Cell   `json:"reports"`
			Newest  table.Cell   `json:"newest"`
			Config  table.Cell   `json:"config"`
			Jobs    *table.Table `json:"jobs"`
		}{is[0], is[1], is[2], is[3], is[4], jobsTable(views)})
	case CSV:
		return s.print(beside(r, jobsTable(views)))
	}
	if err := s.print(r); err != nil {
		return err
	}
	over := slices.IndexFunc(views, func(v Job) bool { return v.State == Queued || v.State == Running })
	if over < 0 {
		over = len(views)
	}
	views = views[max(0, over-shownEnded):]
	if len(views) == 0 {
		return s.printf("no job is queued\n")
	}
	if err := s.printf("\n"); err != nil {
		return err
	}
	if err := s.print(jobsTable(views)); err != nil {
		return err
	}
	for _, v := range views {
		if v.State == Running && v.Now != "" {
			if err := s.printf("%s: %s\n", v.ID, v.Now); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobsTable is a row a job.
func jobsTable(views []Job) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "job"}, {Key: "owner"}, {Key: "state"}, {Key: "since", Right: true}, {Key: "left_ns", Head: "left", Right: true},
		{Key: "code", Data: true}, {Key: "line", Wrap: true}, {Key: "now", Data: true}}}
	for _, v := range views {
		left, code := table.Cell{}, table.Cell{}
		if v.Known {
			left = table.Int(int64(v.Left)).As(seconds(v.Left))
		}
		if v.State != Queued && v.State != Running {
			code = table.Int(int(v.Code))
		}
		t.Add(table.Text(v.ID), table.Text(v.Owner), table.Text(string(v.State)), table.Text(v.Since.Format(time.RFC3339)).As(seconds(time.Since(v.Since))+" ago"),
			left, code, table.Text(v.Line), optional(v.Now))
	}
	return t
}

// beside is a row of the second table in each, after the one row of the first; that alone where the second has none.
func beside(one, many *table.Table) *table.Table {
	t := &table.Table{Columns: slices.Concat(one.Columns, many.Columns)}
	for _, row := range many.Rows {
		t.Add(slices.Concat(one.Rows[0], row)...)
	}
	if len(many.Rows) == 0 {
		t.Add(append(slices.Clone(one.Rows[0]), make([]table.Cell, len(many.Columns))...)...)
	}
	return t
}

// jobArg is the argument of a command that a job can be named to.
func jobArg(otherwise string) []arg {
	return []arg{{name: "ID", help: "a job's, such as j12; " + otherwise, optional: true, values: jobValues}}
}

// jobOf is the job that args name; where they name none, the first one of
// otherwise that is one, or the one that runs.
func (s *Session) jobOf(args []string, otherwise ...*job) (*job, error) {
	if len(args) == 0 {
		for _, j := range append(otherwise, s.bench.queue.head()) {
			if j != nil {
				return j, nil
			}
		}
		return nil, hinted(errors.New("no job runs"), "status lists the queue")
	}
	j := s.bench.queue.find(args[0])
	if j == nil {
		near := variable.Nearest(args[0], jobValues(s, nil, ""))
		return nil, usageError(fmt.Errorf("no job %q", args[0]), didYouMean(near, "status lists them"))
	}
	return j, nil
}

var cancelCommand = command{
	name:    "cancel",
	summary: "stop the job that runs, or take one out of the queue",
	detail: `A run that is stopped is saved, and marked cancelled; its relay is given time to end. Cancelled
once more, the relay is killed at once. Anybody's job can be cancelled: whose it was is said.`,
	args:     jobArg("otherwise the one that runs"),
	examples: []string{"cancel", "cancel j12"},
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(_ context.Context, args []string) (Code, error) {
			j, err := s.jobOf(args)
			if err != nil {
				return Fine, err
			}
			was, again := s.bench.queue.cancel(j, fmt.Errorf("%w: cancelled by %s", ErrInterrupted, table.Clean(s.name)))
			if was == Running && again {
				defer s.bench.queue.end(j) // what it says of its end comes after what is said here
			}
			if was != Queued && was != Running {
				return Fine, fmt.Errorf("%s is over: %s", j.id(), was)
			}
			if s.format != Text {
				r := table.Record()
				r.Field("job", "", table.Text(j.id()))
				r.Field("owner", "", table.Text(j.name))
				r.Field("line", "", table.Text(j.line))
				r.Field("was", "", table.Text(string(was)))
				r.Field("killed", "", table.Bool(was == Running && again))
				return Fine, s.print(r)
			}
			said := "is taken out of the queue"
			switch {
			case was == Running && again:
				said = "was being stopped: its relay is killed"
			case was == Running:
				said = "is being stopped, and what it measured is saved"
			}
			whose := "your own"
			if j.owner != s {
				whose = "of " + table.Clean(j.name)
			}
			return Fine, s.printf("%s, %s, %s: %s\n", j.id(), whose, said, table.Clean(j.line))
		}
	},
}

var waitCommand = command{
	name:    "wait",
	summary: "wait for a job, and end with its exit code",
	detail: `Ctrl-C cancels the job that is waited for, a second one kills its relay. A client that leaves
cancels nothing.`,
	args:     jobArg("otherwise your newest, or the one that runs"),
	examples: []string{"wait", "wait j12"},
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(ctx context.Context, args []string) (Code, error) {
			j, err := s.jobOf(args, s.last)
			if err != nil {
				return Fine, err
			}
			if err := s.watch(ctx, j, watching{progress: s.client.Progress != nil}); err != nil {
				return Fine, err
			}
			if j.err != nil {
				return Fine, &told{error: fmt.Errorf("%s: %w", j.id(), errors.New(j.failure.Text())), code: j.code}
			}
			return j.code, nil
		}
	},
}

var followCommand = command{
	name:    "follow",
	summary: "see how a job goes, and what it says, until it is over",
	detail: `Ctrl-C cancels the job that is followed, a second one kills its relay. A client that leaves
cancels nothing. What a follower is too slow to take is dropped, and said to be.`,
	args:     jobArg("otherwise the one that runs"),
	examples: []string{"follow", "follow j12"},
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(ctx context.Context, args []string) (Code, error) {
			j, err := s.jobOf(args)
			if err != nil {
				return Fine, err
			}
			if err := s.watch(ctx, j, watching{progress: true, said: j.owner != s}); err != nil {
				return Fine, err
			}
			if j.owner == s { // it was told
				return Fine, nil
			}
			if s.format != Text {
				return Fine, s.print(j.record())
			}
			return Fine, s.printf("%s", j.ending())
		}
	},
}

// watching is what of a job is shown while it is waited for.
type watching struct {
	progress bool // how it goes
	said     bool // what it says
}

// watch waits until a job is over. Once ctx has ended because the client
// interrupted it, the job is cancelled, and still waited for; for any other
// reason, watch ends with ctx's cause and the job goes on.
func (s *Session) watch(ctx context.Context, j *job, w watching) error {
	f := j.voice.follow()
	defer j.voice.unfollow(f)
	now := &watched{ctx, j}
	s.watched.Store(now)
	defer s.watched.Store(nil)
	draw := s.client.Progress
	if draw == nil || !w.progress {
		draw = func(string) {}
	}
	defer draw("")
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	told := ""
	tell := func() error {
		now := f.seen()
		if !w.progress || s.client.Progress != nil || now == "" || now == told {
			return nil
		}
		told = now
		return s.say("%s: %s\n", j.id(), now)
	}
	if err := tell(); err != nil {
		return err
	}
	show := func() error {
		said, now := f.take()
		if w.said && len(said) > 0 {
			draw("")
			if err := s.printf("%s", said); err != nil {
				return err
			}
		}
		draw(now)
		return nil
	}
	over, kill := ctx.Done(), s.client.Kill
	for {
		select {
		case <-f.wake:
			if err := show(); err != nil {
				return err
			}
		case <-tick.C:
			if err := tell(); err != nil {
				return err
			}
		case <-over:
			over = nil
			if !now.interrupted(s.bench.queue) {
				return context.Cause(ctx)
			}
		case <-kill:
			kill = nil
			now.kill(s.bench.queue)
		case <-j.done:
			return show()
		}
	}
}

// watched is a job that is waited for, until ctx ends.
type watched struct {
	ctx context.Context
	job *job
}

// interrupted cancels the job if the client has interrupted what it waits for, and says whether it has.
func (w *watched) interrupted(q *queue) bool {
	cause := context.Cause(w.ctx)
	if !errors.Is(cause, ErrInterrupted) {
		return false
	}
	q.cancel(w.job, cause)
	return true
}

// kill ends the relay of the job, if it was cancelled; a first Ctrl-C may not have been seen yet.
func (w *watched) kill(q *queue) {
	w.interrupted(q)
	q.end(w.job)
}
