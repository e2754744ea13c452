package blaster

import (
	"sync"
	"testing"
	"time"

	"relaybench/envelope"
)

// timers are all sorts that this system has.
func timers(t testing.TB) map[string]timer {
	own, err := newTimer()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]timer{"own": own, "sleeper": newSleeper()}
}

func TestTimer(t *testing.T) {
	for name, timer := range timers(t) {
		for _, d := range []time.Duration{-time.Hour, 0, 1, time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
			until := envelope.Now() + int64(d)
			now, ok := timer.wait(until)
			if after := envelope.Now(); !ok || now < until || now > after {
				t.Errorf("%s: waited for %v: ok %t, %d ns late, read %d ns ago", name, d, ok, now-until, after-now)
			}
		}
		timer.close()
	}
}

func TestTimerInterrupt(t *testing.T) {
	for name, timer := range timers(t) {
		var all sync.WaitGroup
		all.Go(func() {
			if _, ok := timer.wait(envelope.Now() + int64(time.Hour)); ok {
				t.Errorf("%s: got to the end of a wait that was interrupted", name)
			}
		})
		timer.interrupt()
		all.Wait()
		if _, ok := timer.wait(0); ok {
			t.Errorf("%s: waited again after an interrupt", name)
		}
		timer.close()
		timer.interrupt()
	}
}

func BenchmarkWait(b *testing.B) {
	for name, timer := range timers(b) {
		b.Run(name, func(b *testing.B) {
			var late int64
			b.ReportAllocs()
			for b.Loop() {
				until := envelope.Now() + int64(time.Millisecond)
				now, ok := timer.wait(until)
				if !ok {
					b.Fatal("interrupted")
				}
				late += now - until
			}
			b.ReportMetric(float64(late)/float64(b.N)/1000, "µs-late/op")
		})
		timer.close()
	}
}
