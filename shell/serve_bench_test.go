package shell

import (
	"syscall"
	"testing"
	"time"
)

// The goal for 50 idle clients is under 1% of a core.
func BenchmarkIdleClients(b *testing.B) {
	s := share(b, 0, nil, prompts)
	for range 50 {
		s.guest().until(prompt)
	}
	from, cpu := time.Now(), used(b)
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric(100*float64(used(b)-cpu)/float64(time.Since(from)), "%core")
}

// used is the CPU time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A line of another client, from sending it to its answer.
func BenchmarkStatus(b *testing.B) {
	s := share(b, 1, nil, nil)
	g := s.guest()
	for b.Loop() {
		g.send("status\n")
		g.until("no job is queued\n")
	}
}

func BenchmarkTelnet(b *testing.B) {
	line := []byte("status\r\n")
	var t telnet
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		for _, c := range line {
			t.hear(c)
		}
	}
}
