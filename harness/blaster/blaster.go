package blaster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

// Load is what a blaster is to send. It can be sent to another process as JSON
// (see [Load.MarshalJSON]).
type Load struct {
	Addr        string              // host:port of the relay's ingest
	Pool        envelope.PoolConfig // what the pool was built from: a sender process builds it again
	Zero        int64               // the run's zero on [envelope.Now]: all due times are relative to it
	Schedule    Schedule            // the share: which numbers, due when
	Duration    time.Duration       // no number is due at Schedule.Start + Duration or later
	Connections int                 // senders
	Reconnect   int                 // answered sends after which a sender closes its connection; 0: it keeps it
	Timeout     time.Duration       // for an answer, from the write; also for a connection
}

func (l *Load) check() error {
	switch {
	case l.Connections < 1:
		return fmt.Errorf("load of %d connections", l.Connections)
	case l.Timeout <= 0:
		return fmt.Errorf("load with a time-out of %v", l.Timeout)
	case l.Schedule.Stride < 1:
		return errors.New("load with a stride of 0")
	case l.Schedule.Open() && l.Schedule.share(l.Duration) > maxNumbers:
		return fmt.Errorf("load of %d sends", l.Schedule.share(l.Duration))
	}
	return nil
}

// run is one load under way.
type run struct {
	load       Load
	pool       *envelope.Pool
	start, end int64  // on envelope.Now
	share      uint64 // numbers of the share that may be taken
	log        answerLog
	threads    []*thread
	senders    []*sender

	literal  netip.AddrPort // load.Addr, where it needs no resolving
	patience time.Duration  // for a connection

	// What a test with a simulated clock and no network has its own of.
	dial   func(ctx context.Context) (net.Conn, error)
	places func(n int, open bool) (all []place, free func(), err error)

	ctx     context.Context
	stopped atomic.Bool  // ctx has ended
	cutAt   atomic.Int64 // when, on envelope.Now

	_    [64]byte
	next atomic.Uint64 // how many numbers have been taken
	_    [64]byte
}

func newRun(load Load, pool *envelope.Pool) *run {
	r := &run{load: load, pool: pool, places: newPlaces, share: maxNumbers}
	r.start = load.Zero + load.Schedule.Start
	r.end = r.start + int64(load.Duration)
	r.literal, _ = netip.ParseAddrPort(load.Addr)
	r.patience = load.Timeout
	r.dial = func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: r.patience}
		return d.DialContext(ctx, "tcp", load.Addr)
	}
	return r
}

// Run sends the load and returns when the last send is answered or given up.
// When ctx ends no further send begins, those under way are cut at once, and
// the tally says what was done until then; the error is then ctx's cause.
// The tally is never nil. live may be nil.
//
// Each sender that is free takes the next number of the share, whichever it
// is, and waits until it is due. So a sender that stalls delays the one number
// that it has sent, and what is overdue goes out as soon as any sender is free.
// At the end of the duration what is overdue is given up as not sent. A number
// for which no connection could be had is not sent either, and tried only once.
func Run(ctx context.Context, load Load, pool *envelope.Pool, live *Live) (*result.Tally, error) {
	return newRun(load, pool).do(ctx, live)
}

func (r *run) do(ctx context.Context, live *Live) (tally *result.Tally, err error) {
	s := r.load.Schedule
	tally = result.NewTally(s.First, s.Stride)
	if err := r.load.check(); err != nil {
		return tally, err
	}
	if s.Open() {
		r.share = s.share(r.load.Duration)
		r.log.whole = make([]byte, r.share)
	}
	r.ctx = ctx
	places, free, err := r.places(r.load.Connections, s.Open())
	if err != nil {
		return tally, err
	}
	defer free()
	last := 0
	for _, p := range places {
		last = max(last, p.thread())
	}
	cells := make([]cell, last+1)
	for i := range cells {
		r.threads = append(r.threads, newThread(s, &cells[i]))
	}
	for _, p := range places {
		r.senders = append(r.senders, &sender{run: r, place: p, thread: r.threads[p.thread()]})
	}
	if live != nil {
		live.begin(cells, r.dueNow)
	}

	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { r.cut(); close(cut) })
	if ctx.Err() != nil {
		<-cut
	}
	var all sync.WaitGroup
	for _, s := range r.senders {
		all.Add(1)
		if !s.place.begin(func() { defer all.Done(); s.loop() }) {
			all.Done()
		}
	}
	all.Wait()
	if err = r.sum(tally); !stop() {
		<-cut
		err = context.Cause(ctx)
	}
	return tally, err
}

// cut stops all senders at once.
func (r *run) cut() {
	r.cutAt.Store(envelope.Now())
	r.stopped.Store(true)
	for _, s := range r.senders {
		s.place.interrupt()
		if c := s.open.Load(); c != nil {
			c.cut()
		}
	}
}

// dueNow is how many numbers of the share have been due until now.
func (r *run) dueNow() uint64 {
	if !r.load.Schedule.Open() {
		return min(r.next.Load(), r.share)
	}
	return r.dueAt(envelope.Now())
}

func (r *run) dueAt(now int64) uint64 {
	return r.load.Schedule.share(min(time.Duration(now-r.start)+1, r.load.Duration))
}

// sum makes one tally of those of all threads, which have stopped.
func (r *run) sum(tally *result.Tally) error {
	for _, t := range r.threads {
		if err := tally.Merge(t.tally); err != nil {
			return err
		}
	}
	due := r.dueNow()
	if r.load.Schedule.Open() && r.stopped.Load() {
		// A sender may have begun a number that became due just after the cut.
		due = max(r.dueAt(r.cutAt.Load()), r.log.used())
	} else if r.load.Schedule.Open() {
		due = r.share
	}
	tally.Due = due
	tally.Log.Bytes = r.log.bytes(due)
	tally.Counts[result.NotSent] = due - tally.Sent - tally.Counts[result.FailConnect]
	return nil
}
