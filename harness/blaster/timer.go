package blaster

import (
	"sync"
	"time"

	"relaybench/envelope"
)

// A timer is what one sender waits with. Its clock is [envelope.Now].
type timer interface {
	// wait returns at the given time or a little later, never before it, with
	// the time that it then is; ok is false when it was interrupted.
	wait(until int64) (now int64, ok bool)
	// interrupt ends a wait under way and all later ones. Any goroutine may call it, also when the run is over.
	interrupt()
}

// sleeper is a timer on the runtime's own timers: for systems without a better
// one, and for tests with a simulated clock. Late by up to a millisecond.
type sleeper struct {
	timer *time.Timer
	once  sync.Once
	stop  chan struct{}
}

func newSleeper() *sleeper {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &sleeper{timer: t, stop: make(chan struct{})}
}

func (s *sleeper) wait(until int64) (int64, bool) {
	for {
		select {
		case <-s.stop:
			return envelope.Now(), false
		default:
		}
		now := envelope.Now()
		if now >= until {
			return now, true
		}
		s.timer.Reset(time.Duration(until - now))
		select {
		case <-s.timer.C:
		case <-s.stop:
		}
	}
}

func (s *sleeper) interrupt() { s.once.Do(func() { close(s.stop) }) }

func (s *sleeper) close() { s.timer.Stop() }
