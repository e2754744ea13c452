package blaster

import (
	"fmt"
	"net"
	"runtime"
	"sync/atomic"

	"relaybench/envelope"
	"relaybench/reactor"
)

// coroutines makes n places that are coroutines of a thread or a few, see
// [reactor]: a sender that waits holds no thread, and to wake it costs a system
// call at most. It is late by 50 µs at most on an idle machine, where the
// runtime's own timers, which sleep in whole milliseconds, take half a
// millisecond and more.
//
// One thread is enough for the rate of an open loop, and costs the least. What
// is sent flat out takes all processors; that its threads yield before they
// wait made it 1.3 times as fast.
func coroutines(n int, open bool) (all []place, free func(), err error) {
	threads := 1
	if !open {
		threads = min(n, runtime.NumCPU())
	}
	var loops []*reactor.Loop
	free = func() {
		for _, l := range loops {
			l.Close()
		}
	}
	for range threads {
		l, err := reactor.Start()
		if err != nil {
			free()
			return nil, nil, fmt.Errorf("senders: %w", err)
		}
		if !open {
			l.Yield()
		}
		loops = append(loops, l)
	}
	for i := range n {
		all = append(all, &coroutine{loop: loops[i%threads], index: i % threads})
	}
	return all, free, nil
}

var newPlaces = coroutines

type coroutine struct {
	loop        *reactor.Loop
	index       int // of loop
	interrupted atomic.Bool
}

func (c *coroutine) thread() int { return c.index }

func (c *coroutine) wait(until int64) (int64, bool) {
	for {
		now := envelope.Now()
		if c.interrupted.Load() {
			return now, false
		}
		if now >= until {
			return now, true
		}
		// The loop's clock has another zero.
		c.loop.SleepUntil(c.loop.Now() + until - now)
	}
}

// interrupt stops the whole loop: a run's senders are stopped all at once.
func (c *coroutine) interrupt() {
	c.interrupted.Store(true)
	c.loop.Stop()
}

func (c *coroutine) begin(loop func()) (ok bool) { return c.loop.Go(loop) }

// connect dials by a name on a goroutine: that asks for its addresses, and tries them in turn.
func (c *coroutine) connect(r *run) (k net.Conn, err error) {
	if r.literal.IsValid() && r.literal.Addr().Zone() == "" {
		k, err := c.loop.Dial(r.literal, r.patience)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	c.loop.Await(func() { k, err = r.dial(r.ctx) })
	if err != nil {
		return nil, err
	}
	return c.loop.Take(k)
}
