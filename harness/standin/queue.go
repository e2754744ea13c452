package standin

import (
	"context"
	"sync"
	"time"
)

// queue is an unbounded queue of jobs, as those inside Relay are.
type queue struct {
	mu     sync.Mutex
	ready  sync.Cond
	jobs   []*job // from first on
	first  int
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.ready.L = &q.mu
	return q
}

func (q *queue) push(j *job) {
	q.mu.Lock()
	if q.first > 0 && len(q.jobs) == cap(q.jobs) && q.first >= len(q.jobs)/2 {
		n := copy(q.jobs, q.jobs[q.first:])
		clear(q.jobs[n:])
		q.jobs, q.first = q.jobs[:n], 0
	}
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.ready.Signal()
}

// pop waits for a job; nil once the queue is closed, whatever is left in it.
func (q *queue) pop() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.first == len(q.jobs) && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return nil
	}
	j := q.jobs[q.first]
	q.jobs[q.first] = nil
	q.first++
	if q.first == len(q.jobs) {
		q.jobs, q.first = q.jobs[:0], 0
	}
	return j
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ready.Broadcast()
}

// line is a queue in which every job waits equally long.
type line struct {
	*queue
	wait time.Duration
}

func (l line) push(j *job) {
	j.due = time.Now().Add(l.wait)
	l.queue.push(j)
}

// run hands jobs on when they are due, until the line is closed or ctx ends.
func (l line) run(ctx context.Context, to func(*job)) {
	for j := l.pop(); j != nil; j = l.pop() {
		if !sleep(ctx, time.Until(j.due)) {
			return
		}
		to(j)
	}
}

// sleep waits for d, and says whether it did: not when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
