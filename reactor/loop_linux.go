package reactor

import (
	"fmt"
	"iter"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// never is the time of a wait that no time ends.
const never = math.MaxInt64

// A Loop runs coroutines, one at a time, and what they wait for. Start makes
// one, Close ends it. Its own methods say who may call them: a coroutine of
// this loop, or any goroutine.
type Loop struct {
	poll    *poll
	base    time.Time // zero of the loop's clock
	tick    int64     // when it last came back from its poll
	yielded int64     // when it last yielded to the scheduler
	current *task     // the coroutine that runs
	tasks   map[*task]struct{}
	ready   []*task
	timers  timers
	sockets []*Conn // by descriptor; nil: none
	yields  bool    // see Yield

	stopped atomic.Bool
	polling atomic.Bool // in its poll, or about to be
	pending atomic.Bool // posted has something
	mu      sync.Mutex
	posted  []func()       // what others want done on the loop
	over    bool           // nothing is done any more
	helpers sync.WaitGroup // goroutines of Await
	done    chan struct{}
}

// task is a coroutine.
type task struct {
	next  func() (struct{}, bool) // goes on until it waits; false: it has ended
	yield func(struct{}) bool
	until int64 // on the loop's clock: when its wait ends by itself
	place int   // in timers; -1: not there
	ready bool  // in Loop.ready
}

// Start starts a loop, on a goroutine of its own.
func Start() (*Loop, error) {
	p, err := newPoll()
	if err != nil {
		return nil, fmt.Errorf("reactor: %w", err)
	}
	spare(loops.Add(1))
	l := &Loop{poll: p, base: time.Now(), tasks: map[*task]struct{}{}, done: make(chan struct{})}
	go l.run()
	return l, nil
}

// Yield has the loop let other threads run each time before it waits, and look
// again. It is for loops that seldom wait, as their peers on the same machine
// are never idle: what those answer then comes in larger batches, and neither
// side sleeps so often. Any goroutine may call it.
func (l *Loop) Yield() { l.post(func() { l.yields = true }) }

// Stop ends all waits of the loop's coroutines, under way and to come: of
// connections with [net.ErrClosed]. Any goroutine may call it, and again.
func (l *Loop) Stop() {
	if !l.stopped.Swap(true) {
		l.post(func() {
			for t := range l.tasks {
				l.wake(t)
			}
		})
	}
}

// Close stops the loop and returns when all its coroutines have returned. Any
// goroutine may call it, but none of the loop's coroutines.
func (l *Loop) Close() {
	l.Stop()
	<-l.done
	l.helpers.Wait()
}

// Go runs f as a coroutine; f need not have begun when it returns. Any
// goroutine may call it. After [Loop.Close] has returned it does nothing and is not ok.
func (l *Loop) Go(f func()) (ok bool) { return l.post(func() { l.begin(f) }) }

func (l *Loop) begin(f func()) {
	t := &task{place: -1}
	t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if p := recover(); p != nil {
				panic(&Panic{p, debug.Stack()})
			}
		}()
		t.yield = yield
		f()
	})
	l.tasks[t] = struct{}{}
	l.wake(t)
}

// Panic is what a coroutine's panic is on the goroutine of its loop, which it ends the program with.
type Panic struct {
	Value any
	Stack []byte // of the coroutine
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// SleepUntil waits until the time at of the loop's clock, see [Loop.Now]; not ok
// when the loop was stopped. It returns a few microseconds late, by the kernel's
// timer slack (50 µs) at most on an idle machine, and never early. For coroutines.
func (l *Loop) SleepUntil(at int64) (ok bool) {
	for !l.stopped.Load() {
		if l.Now() >= at {
			return true
		}
		l.wait(at)
	}
	return false
}

// Now is the loop's clock: nanoseconds since it was started. Any goroutine may call it.
func (l *Loop) Now() int64 { return int64(time.Since(l.base)) }

// Await runs f on a goroutine and waits for its end, while the loop's other
// coroutines go on: for what blocks by other means than this package's. The
// end of the loop does not shorten it. For coroutines.
func (l *Loop) Await(f func()) {
	t, done := l.current, false
	l.helpers.Go(func() {
		f()
		l.post(func() { done = true; l.wake(t) })
	})
	for !done {
		l.wait(never)
	}
}

// wait is a coroutine's: it returns at the time until, or when it is woken by whatever.
func (l *Loop) wait(until int64) {
	t := l.current
	if t.until = until; until != never {
		l.timers.push(t)
	}
	t.yield(struct{}{})
}

// wake ends the wait of a coroutine, on the loop.
func (l *Loop) wake(t *task) {
	if t == nil || t.ready {
		return
	}
	t.ready = true
	l.ready = append(l.ready, t)
	if t.place >= 0 {
		l.timers.remove(t)
	}
}

// post has f done on the loop, soon; or here and now, and not ok, when the loop has ended.
func (l *Loop) post(f func()) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.posted = append(l.posted, f)
	l.pending.Store(true)
	if l.polling.Load() {
		l.poll.rouse()
	}
	return true
}

func (l *Loop) run() {
	defer close(l.done)
	defer loops.Add(-1)
	for l.turn() {
	}
}

// turn is one poll and all that follows from it; false when there is no more to do.
func (l *Loop) turn() bool {
	limit := int64(-1)
	if len(l.timers) > 0 {
		limit = max(0, l.timers[0].until-l.Now())
	}
	l.polling.Store(true)
	if l.pending.Load() {
		limit = 0
	}
	var events []unix.EpollEvent
	var err error
	if l.yields && limit != 0 {
		if events, err = l.poll.wait(0); len(events) == 0 {
			unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	if len(events) == 0 && err == nil {
		events, err = l.poll.wait(limit)
	}
	l.polling.Store(false)
	if err != nil {
		panic(err) // no descriptor of its own could be used: a bug
	}
	if l.tick = l.Now(); l.tick-l.yielded > yieldEvery {
		goyield()
		l.yielded = l.tick
	}
	for i := range events {
		if fd := int(events[i].Fd); fd < len(l.sockets) && l.sockets[fd] != nil {
			l.sockets[fd].happened(events[i].Events)
		}
	}
	for len(l.timers) > 0 && l.timers[0].until <= l.tick {
		l.wake(l.timers[0])
	}
	l.work()
	for i := 0; i < len(l.ready); i++ { // what is woken by these goes on in the same turn
		t := l.ready[i]
		t.ready = false
		l.current = t
		if _, ok := t.next(); !ok {
			delete(l.tasks, t)
		}
	}
	l.current = nil
	l.ready = l.ready[:0]
	return !l.ended()
}

// work does what was posted.
func (l *Loop) work() {
	for l.pending.Swap(false) {
		l.mu.Lock()
		posted := l.posted
		l.posted = nil
		l.mu.Unlock()
		for _, f := range posted {
			f()
		}
	}
}

// ended says that the loop was stopped and has nothing left, and closes it then.
func (l *Loop) ended() bool {
	if !l.stopped.Load() || len(l.tasks) > 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.posted) > 0 {
		return false
	}
	l.over = true
	l.poll.close()
	for _, c := range l.sockets {
		if c != nil {
			c.shut()
		}
	}
	return true
}

// timers is a heap of waiting coroutines, the one whose wait ends first on top.
type timers []*task

func (h *timers) push(t *task) {
	*h = append(*h, t)
	h.up(len(*h)-1, t)
}

func (h *timers) remove(t *task) {
	s := *h
	i, last := t.place, len(s)-1
	t.place = -1
	moved := s[last]
	s[last] = nil
	*h = s[:last]
	if i == last {
		return
	}
	h.down(i, moved)
	h.up(moved.place, moved)
}

// up and down put t where it belongs, from place i, which is free.
func (h timers) up(i int, t *task) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].until <= t.until {
			break
		}
		h[i] = h[parent]
		h[i].place = i
		i = parent
	}
	h[i], t.place = t, i
}

func (h timers) down(i int, t *task) {
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].until < h[child].until {
			child++
		}
		if child >= len(h) || t.until <= h[child].until {
			break
		}
		h[i] = h[child]
		h[i].place = i
		i = child
	}
	h[i], t.place = t, i
}
