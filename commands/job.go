package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"relaybench/commands/table"
	"relaybench/store"
)

// task is what a queued command is to do in its turn, once what was typed was checked.
type task struct {
	about time.Duration        // how long it takes, about; 0: that cannot be said
	now   func() (Code, error) // instead of do: it takes no turn, for it needs the machine for nothing
	do    func(context.Context, *Session) (Code, error)
	// queued, if there, is called once it has its place in the queue, before its turn is waited for.
	queued func(*job)
}

// Job is what is to know of a queued command line at a moment.
type Job struct {
	ID    string // such as j12; a number is never used twice in a store
	Owner string // the name of the client that typed it
	Line  string // as it could be typed again
	State State
	Since time.Time // when it came into that state
	// Left is how long it will take until it has ended, about; Known is false where that cannot be said.
	Left  time.Duration
	Known bool
	Code  Code   // of one that has ended
	Now   string // how it goes, in a line; empty where there is nothing to say
}

// job is a queued command line. It keeps what its client had when it was queued.
type job struct {
	number   int
	db       *store.DB
	command  *command
	line     string
	owner    *Session
	name     string // the owner's, then
	attended bool   // its owner waits for it, as in a script
	behind   int    // jobs that were before it when it was queued
	task
	session *Session // that it is done in
	voice   voice

	kill     chan struct{} // closed: the relay of a run that was cancelled ends at once
	killOnce sync.Once
	done     chan struct{} // closed when it has ended

	// Under the queue's lock.
	state     State
	since     time.Time
	ends      time.Time // about
	now       string
	cancelled bool // somebody cancelled it
	ctx       context.Context
	stop      context.CancelCauseFunc

	// Of one that has ended.
	code    Code
	err     error
	failure *Failure
	took    time.Duration
}

// newJob is a job of a session, of the command that it is doing.
func (s *Session) newJob(c *command, t task) (*job, error) {
	ref, err := s.inUse()
	if err != nil {
		return nil, err
	}
	j := &job{command: c, line: s.typed, owner: s, name: s.name, attended: !s.client.Background, task: t,
		kill: make(chan struct{}), done: make(chan struct{}), state: Queued}
	client := s.client
	client.Out, client.Ask, client.Progress, client.Kill = &j.voice, nil, nil, j.kill
	j.voice.owner = s.ear
	if j.attended {
		j.voice.owner = &ear{left: s.ear.left, to: s.client.Out}
		if client.Notes != nil {
			client.Notes = &ear{left: s.ear.left, to: client.Notes}
		}
	} else {
		client.Notes, client.Live = nil, 0
	}
	j.session = &Session{bench: s.bench, client: client, name: s.name, format: s.format, commands: s.commands, relay: &ref, config: s.config, job: j}
	return j, nil
}

func (j *job) id() string { return "j" + strconv.Itoa(j.number) }

// heard says that its owner waits for it, and so is told at once how it ends.
func (j *job) heard() bool { return j.attended && !j.owner.ear.left.Load() }

// view is the job as it is now. The queue's lock is held.
func (j *job) view() Job {
	v := Job{ID: j.id(), Owner: j.name, Line: j.line, State: j.state, Since: j.since, Code: j.code, Now: j.now}
	if j.state == Running && j.about > 0 {
		v.Left, v.Known = max(0, time.Until(j.ends)), true
	}
	return v
}

// expect says how long the session's job will take yet.
func (s *Session) expect(left time.Duration) {
	if j := s.job; j != nil {
		q := s.bench.queue
		q.mu.Lock()
		j.ends = time.Now().Add(left)
		q.mu.Unlock()
	}
}

// goes says how the session's job goes, in a line.
func (s *Session) goes(line string) {
	if j := s.job; j != nil {
		q := s.bench.queue
		q.mu.Lock()
		j.now = line
		q.mu.Unlock()
		j.voice.goes(line)
	}
}

// tellBegun tells the owner, where the job had to wait.
func (j *job) tellBegun() {
	if !j.attended && j.behind > 0 {
		_ = j.session.say("%s begins: %s\n", j.id(), table.Clean(j.line)) // to a voice, which never fails
	}
}

// tellEnded tells the owner how the job ended, unless it waits for that. Who follows says so by itself.
func (j *job) tellEnded() {
	j.voice.flush()
	if j.attended {
		return
	}
	var b strings.Builder
	s := &Session{client: Client{Out: &b}, format: j.session.format}
	if s.format == Text {
		b.WriteString(j.ending())
	} else {
		_ = s.print(j.record()) // to a builder
	}
	j.voice.tell([]byte(b.String()))
}

// ending says in words how the job ended.
func (j *job) ending() string {
	took := ""
	if j.took > 0 {
		took = " after " + seconds(j.took)
	}
	said := fmt.Sprintf("%s %s%s", j.id(), j.state, took)
	if j.failure == nil {
		if j.code != Fine {
			said += fmt.Sprintf(", exit code %d: %s", j.code, codeHelp(j.code))
		}
		return said + "\n"
	}
	said += ": " + table.Clean(j.failure.Text()) + "\n"
	for _, l := range j.failure.Detail {
		said += "  " + table.Clean(l) + "\n"
	}
	if j.failure.Hint != "" {
		said += "hint: " + table.Clean(j.failure.Hint) + "\n"
	}
	return said
}

// record is how the job ended, for a program.
func (j *job) record() *table.Table {
	r := table.Record()
	r.Field("job", "", table.Text(j.id()))
	r.Field("line", "", table.Text(j.line))
	r.Field("state", "", table.Text(string(j.state)))
	r.Field("code", "", table.Int(int(j.code)))
	r.Field("took_ns", "", table.Int(int64(j.took)))
	text, hint := "", ""
	if j.failure != nil {
		text, hint = j.failure.Text(), j.failure.Hint
	}
	r.Field("error", "", optional(text))
	r.Field("hint", "", optional(hint))
	return r
}

// The store keeps each job of the queue under its number, so that after a
// crash there is somebody to say what it was, and the newest number.
const (
	jobShelf  = "job/"
	jobNumber = "jobs"
)

// kept is a job as it is stored.
type kept struct {
	Number int       `json:"-"`
	Owner  string    `json:"owner"`
	Line   string    `json:"line"`
	State  State     `json:"state"`
	Since  time.Time `json:"since"`
}

// keep stores the job as it is.
func (j *job) keep() error {
	text, err := json.Marshal(kept{Owner: j.name, Line: j.line, State: j.state, Since: j.since.Round(0)})
	if err != nil {
		return err
	}
	if err := j.db.SetSettings(map[string]string{jobShelf + strconv.Itoa(j.number): string(text), jobNumber: strconv.Itoa(j.number)}); err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	return nil
}

// forget takes the job out of the store.
func (j *job) forget() error {
	if err := j.db.SetSetting(jobShelf+strconv.Itoa(j.number), ""); err != nil {
		return fmt.Errorf("take the job out of the store: %w", err)
	}
	return nil
}

// load reads what the store has of earlier jobs, once. The lock for adding is held.
func (q *queue) load(db *store.DB) error {
	if q.loaded {
		return nil
	}
	number, _, err := db.Setting(jobNumber)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q.last, _ = strconv.Atoi(number) // where it is none, from the jobs below
	shelf, err := db.Settings(jobShelf)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q.before = nil
	for _, name := range slices.Sorted(maps.Keys(shelf)) {
		var k kept
		n, err := strconv.Atoi(strings.TrimPrefix(name, jobShelf))
		if err == nil {
			err = json.Unmarshal([]byte(shelf[name]), &k)
		}
		if err != nil {
			return fmt.Errorf("queue: job %q in the store: %w", name, err)
		}
		k.Number = n
		q.before = append(q.before, k)
		q.last = max(q.last, n)
	}
	slices.SortFunc(q.before, func(a, b kept) int { return a.Number - b.Number })
	q.loaded = true
	return nil
}

// news gives what was left of earlier jobs, and forgets it.
func (q *queue) news(db *store.DB) ([]kept, error) {
	q.adding.Lock()
	defer q.adding.Unlock()
	if err := q.load(db); err != nil {
		return nil, err
	}
	gone := map[string]string{}
	for _, k := range q.before {
		gone[jobShelf+strconv.Itoa(k.Number)] = ""
	}
	left := q.before
	if len(left) == 0 {
		return nil, nil
	}
	if err := db.SetSettings(gone); err != nil {
		return left, err
	}
	q.before = nil
	return left, nil
}

// enqueue queues what the command that is being done is to do, and waits for it
// where the client wants that.
func (s *Session) enqueue(ctx context.Context, c *command, t task) (Code, error) {
	db, err := s.bench.open()
	if err != nil {
		return Fine, err
	}
	j, err := s.newJob(c, t)
	if err != nil {
		return Fine, err
	}
	if !j.attended {
		j.voice.hold()
	}
	if err := s.bench.queue.add(db, j); err != nil {
		return Fine, err
	}
	s.last = j
	if t.queued != nil {
		t.queued(j)
	}
	if !j.attended {
		defer j.voice.release()
		return Fine, s.tellQueued(j)
	}
	if j.behind > 0 {
		s.note("%s waits behind %s\n", j.id(), jobs(j.behind))
	}
	if err := s.watch(ctx, j, watching{}); err != nil {
		return Fine, err
	}
	return j.code, j.err
}

// tellQueued says that there is a job now.
func (s *Session) tellQueued(j *job) error {
	var v Job
	for _, w := range s.bench.queue.views() {
		if w.ID == j.id() {
			v = w
		}
	}
	left := table.Cell{}
	if v.Known && v.State != Done {
		left = table.Int(int64(v.Left)).As(seconds(v.Left))
	}
	if s.format != Text {
		r := table.Record()
		r.Field("job", "", table.Text(j.id()))
		r.Field("line", "", table.Text(j.line))
		r.Field("state", "", table.Text(string(Queued)))
		r.Field("behind", "", table.Int(j.behind))
		r.Field("left_ns", "", left)
		return s.print(r)
	}
	said := j.id() + " queued"
	if j.behind > 0 {
		said += " behind " + jobs(j.behind)
	}
	if left.Known() {
		said += ", over in about " + left.String()
	}
	return s.printf("%s\n", said)
}

// jobs is a number of jobs in words.
func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return count(n) + " jobs"
}
