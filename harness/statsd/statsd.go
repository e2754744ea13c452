package statsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"relaybench/harness/result"
)

// Receiver is a DogStatsD server on a free UDP port of 127.0.0.1. It counts
// what comes between Begin and End.
//
// A relay that aggregates sends what it has gathered in flushes: Relay 26.4
// every 10 s, in datagrams that it spreads over the next 10 s, counters and
// gauges first, with the time of the flush on each line, then timers, which
// have none (metrics-exporter-dogstatsd 0.9.6, forwarder/sync.rs and state.rs).
// So a line is of the flush whose time came last, and a flush is known to be
// whole when the next one begins. A relay that puts no time on any line sends
// each value as it is made.
type Receiver struct {
	conn *net.UDPConn
	done chan struct{}
	news chan struct{} // something came; for Begin and End, of which one waits at a time

	mu     sync.Mutex
	tally  tally
	came   int   // datagrams, from the start on
	flush  int   // that have begun, from the start on
	stamp  int64 // of the newest flush
	timers bool  // of it, lines without a time have come

	phase  phase
	direct bool
	base   int // the flush before the first one that counts
	last   int // the last one that counts; 0: not known yet
	ending time.Time
}

// phase is what is done with what comes.
type phase int

const (
	waiting  phase = iota
	counting       // it counts
	closing        // it counts, and the last flush is looked for
	closed
)

// readBuffer is what the kernel is asked to keep of what was not read yet, in bytes.
const readBuffer = 8 << 20

// settling is how long after End was called a flush must begin to be the last
// one: what was made just before may not be in one that came at that moment.
const settling = 250 * time.Millisecond

// quiet is how long End waits where there are no flushes.
const quiet = 2 * time.Second

// Start starts a receiver, which ends with Close.
func Start() (*Receiver, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if errors.Is(err, syscall.EADDRNOTAVAIL) { // a loopback of IPv6 alone
		conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	}
	if err != nil {
		return nil, fmt.Errorf("statsd: %w", err)
	}
	enlarge(conn, readBuffer)
	r := &Receiver{conn: conn, done: make(chan struct{}), news: make(chan struct{}, 1)}
	go r.run()
	return r, nil
}

// Addr is where it receives, as host:port.
func (r *Receiver) Addr() string { return r.conn.LocalAddr().String() }

// Close ends it. What was counted stays.
func (r *Receiver) Close() {
	r.conn.Close()
	<-r.done
}

func (r *Receiver) run() {
	defer close(r.done)
	datagram := make([]byte, 64<<10) // none is larger
	for {
		n, _, err := r.conn.ReadFromUDPAddrPort(datagram)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of a datagram; the socket is as it was
		}
		r.take(datagram[:n])
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
}

// take counts a datagram.
func (r *Receiver) take(datagram []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.came++
	fresh := true // no line of it counted yet
	for text := range bytes.SplitSeq(datagram, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\r"))
		if len(text) == 0 {
			continue
		}
		l, err := parse(text)
		if err != nil {
			r.tally.bad(text, err)
			continue
		}
		r.note(&l)
		if r.phase != counting && r.phase != closing || !r.direct && r.flush <= r.base {
			continue
		}
		if fresh {
			fresh = false
			r.tally.datagrams++
		}
		r.tally.add(&l)
	}
}

// note tells from a line's time that a flush begins.
//
// Note: the times of one flush are of two seconds where one ended during it.
// Once timers have come, no line of it has a time any more.
func (r *Receiver) note(l *line) {
	if l.stamp == 0 {
		r.timers = true
		return
	}
	if apart := l.stamp - r.stamp; apart == 0 || r.flush > 0 && (apart == 1 || apart == -1) && !r.timers {
		return
	}
	r.flush++
	r.stamp, r.timers = l.stamp, false
	if r.phase != closing {
		return
	}
	switch {
	case r.last > 0:
		r.phase = closed
	case time.Now().After(r.ending):
		r.last = r.flush
	}
}

// Begin waits for a flush to begin, and counts from the next one on: what the
// relay makes after Begin has returned. Where there are no flushes, it waits for
// anything to have come, and counts what comes then. Its error is ctx's cause.
func (r *Receiver) Begin(ctx context.Context) error {
	r.mu.Lock()
	before := r.flush
	r.mu.Unlock()
	return r.await(ctx, func() bool {
		r.direct = r.came > 0 && r.flush == 0
		if !r.direct && r.flush == before {
			return false
		}
		r.phase, r.base = counting, r.flush
		return true
	})
}

// End waits until the first flush that begins now is whole, and counts no more
// after it. Its error is ctx's cause: then what has come until now counts.
func (r *Receiver) End(ctx context.Context) error {
	r.mu.Lock()
	r.phase, r.ending = closing, time.Now().Add(settling)
	direct := r.direct
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.phase = closed
		r.mu.Unlock()
	}()
	if !direct {
		return r.await(ctx, func() bool { return r.phase == closed })
	}
	t := time.NewTimer(quiet)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits until something that came makes ready true, which is called with r.mu held.
func (r *Receiver) await(ctx context.Context, ready func() bool) error {
	for {
		r.mu.Lock()
		is := ready()
		r.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Result is what was counted. It is to be read before Close, as what the kernel dropped is not known after it.
func (r *Receiver) Result() *result.Statsd {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := r.tally.result()
	res.Dropped = dropped(r.conn)
	if !r.direct && r.phase != waiting {
		res.Flushes = r.flush - r.base
		if r.last > 0 {
			res.Flushes = r.last - r.base
		}
	}
	return res
}
