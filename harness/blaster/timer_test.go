package blaster

import (
	"testing"
	"time"

	"relaybench/envelope"
)

// inPlaces runs f as a sender of each sort of place that this system has.
func inPlaces(t testing.TB, f func(name string, p place)) {
	for name, make := range map[string]func(n int, open bool) ([]place, func(), error){"own": newPlaces, "goroutine": goroutines} {
		all, free, err := make(1, true)
		if err != nil {
			t.Fatal(err)
		}
		done := goroutine{newSleeper(), 0}
		all[0].begin(func() { defer done.interrupt(); f(name, all[0]) })
		done.wait(envelope.Now() + int64(time.Hour))
		free()
		all[0].interrupt()
	}
}

func TestTimer(t *testing.T) {
	inPlaces(t, func(name string, p place) {
		for _, d := range []time.Duration{-time.Hour, 0, 1, time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
			until := envelope.Now() + int64(d)
			now, ok := p.wait(until)
			if after := envelope.Now(); !ok || now < until || now > after {
				t.Errorf("%s: waited for %v: ok %t, %d ns late, read %d ns ago", name, d, ok, now-until, after-now)
			}
		}
	})
}

func TestTimerInterrupt(t *testing.T) {
	inPlaces(t, func(name string, p place) {
		stop := time.AfterFunc(time.Millisecond, p.interrupt)
		defer stop.Stop()
		if _, ok := p.wait(envelope.Now() + int64(time.Hour)); ok {
			t.Errorf("%s: got to the end of a wait that was interrupted", name)
		}
		if _, ok := p.wait(0); ok {
			t.Errorf("%s: waited again after an interrupt", name)
		}
	})
}

func BenchmarkWait(b *testing.B) {
	inPlaces(b, func(name string, p place) {
		var late, n int64
		for range 1000 {
			until := envelope.Now() + int64(time.Millisecond)
			now, ok := p.wait(until)
			if !ok {
				b.Error("interrupted")
			}
			late += now - until
			n++
		}
		b.ReportMetric(float64(late)/float64(n)/1000, name+"-µs-late")
	})
}
