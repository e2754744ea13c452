package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"relaybench/store"
)

// State is how far a job is.
type State string

// The states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"      // it did what it was to do, whatever the verdict
	Failed    State = "failed"    // typed wrongly, or could not run
	Cancelled State = "cancelled" // by a client, or because relaybench ended
)

const (
	maxQueued = 200 // jobs that may wait
	keptJobs  = 100 // jobs that have ended and are still known
)

// queue is where jobs wait for their turn: one runs at a time, whoever typed it.
type queue struct {
	adding sync.Mutex // held while a job is added, so that jobs stand in the order of their numbers
	loaded bool       // what the store had of an earlier relaybench is known
	last   int        // the newest job's number
	before []kept     // jobs of an earlier relaybench that it did not end, and that nobody was told of

	mu      sync.Mutex
	started bool
	over    error // why no job is begun any more
	waiting []*job
	running *job
	ended   []*job // the newest last
	wake    chan struct{}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.started = true
}

// head is the job that runs, or is about to; nil where there is none.
func (q *queue) head() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == nil && len(q.waiting) > 0 {
		return q.waiting[0]
	}
	return q.running
}

// errNotStarted is a fault of whoever made the bench.
var errNotStarted = errors.New("the queue was not started")

// add gives a job its number and lets it wait for its turn. Once add has
// returned, the job is in the store.
func (q *queue) add(db *store.DB, j *job) error {
	q.adding.Lock()
	defer q.adding.Unlock()
	if err := q.load(db); err != nil {
		return err
	}
	if err := q.open(); err != nil {
		return err
	}
	j.number, j.db = q.last+1, db
	j.since = time.Now()
	if err := j.keep(); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q.last = j.number
	q.mu.Lock()
	if err := q.over; err != nil {
		q.mu.Unlock()
		if e := j.forget(); e != nil {
			return fmt.Errorf("%w; %w", err, e)
		}
		return err
	}
	j.behind = len(q.waiting)
	if q.running != nil {
		j.behind++
	}
	q.waiting = append(q.waiting, j)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// open says why no job can be added.
func (q *queue) open() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.over != nil:
		return q.over
	case !q.started:
		return errNotStarted
	case len(q.waiting) >= maxQueued:
		return hinted(fmt.Errorf("%d jobs wait already", maxQueued), "cancel some: status lists them")
	}
	return nil
}

// work runs jobs until ctx ends, and the one in hand is over.
func (q *queue) work(ctx context.Context) {
	for {
		j := q.next(ctx)
		if j == nil {
			break
		}
		q.run(j)
	}
	q.mu.Lock()
	q.over = context.Cause(ctx)
	left := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, j := range left {
		q.finish(j, Fine, fmt.Errorf("not begun: %w", context.Cause(ctx)), !j.heard())
	}
}

// next waits for the job whose turn it is, and begins it; nil once ctx has ended.
func (q *queue) next(ctx context.Context) *job {
	for {
		if ctx.Err() != nil {
			return nil
		}
		q.mu.Lock()
		if len(q.waiting) > 0 {
			j := q.waiting[0]
			q.waiting = slices.Delete(q.waiting, 0, 1)
			q.running = j
			j.state, j.since = Running, time.Now()
			j.ends = j.since.Add(j.about)
			j.ctx, j.stop = context.WithCancelCause(ctx)
			q.mu.Unlock()
			return j
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

// run does a job that was begun.
func (q *queue) run(j *job) {
	defer j.stop(nil)
	code, err := Fine, j.keep()
	if err == nil {
		j.tellBegun()
		code, err = j.session.guarded(func() (Code, error) { return j.do(j.ctx, j.session) })
	}
	q.mu.Lock()
	asked := j.cancelled
	q.mu.Unlock()
	// Of one that was stopped because relaybench ends, its owner is told at the next start.
	q.finish(j, code, err, j.ctx.Err() != nil && !asked && !j.heard())
}

// finish ends a job, which stays in the store where keep says so.
func (q *queue) finish(j *job, code Code, err error, keep bool) {
	if !keep {
		before := err
		if e := j.forget(); e != nil {
			if err = e; before != nil {
				err = fmt.Errorf("%w; %w", before, e)
			}
		}
	}
	var f *Failure
	if err != nil {
		f = failure(j.command, err)
		f.JSON = j.session.format == JSON
		code = f.Code
	}
	q.mu.Lock()
	took := time.Duration(0)
	if j.state == Running {
		took = time.Since(j.since)
	}
	j.code, j.err, j.failure, j.since, j.took = code, err, f, time.Now(), took
	switch {
	case code == Interrupted:
		j.state = Cancelled
	case err != nil:
		j.state = Failed
	default:
		j.state = Done
	}
	if q.running == j {
		q.running = nil
	}
	q.ended = append(q.ended, j)
	q.ended = slices.Delete(q.ended, 0, max(0, len(q.ended)-keptJobs))
	q.mu.Unlock()
	j.tellEnded()
	close(j.done)
}

// cancel stops a job, or takes it out of the queue. It says in which state the
// job was, and whether it was being cancelled already.
func (q *queue) cancel(j *job, cause error) (was State, again bool) {
	q.mu.Lock()
	was, again = j.state, j.cancelled
	j.cancelled = j.cancelled || was == Queued || was == Running
	stop := j.stop
	i := slices.Index(q.waiting, j)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	switch {
	case again:
	case i >= 0:
		q.finish(j, Fine, cause, false)
	case was == Running:
		stop(cause)
	}
	return was, again
}

// end kills the relay of a job that is being stopped, at once.
func (q *queue) end(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.ctx != nil && j.ctx.Err() != nil {
		j.killOnce.Do(func() { close(j.kill) })
	}
}

// find is the job of that id, or nil.
func (q *queue) find(id string) *job {
	for _, j := range q.all() {
		if j.id() == id {
			return j
		}
	}
	return nil
}

// all are the jobs that are known: those that have ended, the newest last, then the queue in its order.
func (q *queue) all() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.ended)
	if q.running != nil {
		all = append(all, q.running)
	}
	return append(all, q.waiting...)
}

// views are the same as they are now.
func (q *queue) views() []Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	var views []Job
	for _, j := range q.ended {
		views = append(views, j.view())
	}
	// A job that waits ends after those before it have.
	left, known := time.Duration(0), true
	if j := q.running; j != nil {
		v := j.view()
		left, known = v.Left, v.Known
		views = append(views, v)
	}
	for _, j := range q.waiting {
		left, known = left+j.about, known && j.about > 0
		v := j.view()
		v.Left, v.Known = left, known
		if !known {
			v.Left = 0
		}
		views = append(views, v)
	}
	return views
}
