package blaster

import (
	"fmt"
	"testing"
	"time"

	"relaybench/harness/result"
)

// pace is a paced load of one rate; it is bounded by a duration, not by b.N.
func BenchmarkPace(b *testing.B) {
	addr := startNullServer(b)
	pool := newPool(b)
	for _, rate := range []float64{200, 5000, 20000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			for b.Loop() {
				load := newLoad(addr, rate, 3*time.Second, 64)
				load.Schedule.Start = int64(100 * time.Millisecond)
				before := processCPU()
				tally, err := Run(b.Context(), load, pool, nil)
				if err != nil {
					b.Fatal(err)
				}
				cpu := processCPU() - before
				report(b, tally, "late", tally.Late)
				b.ReportMetric(float64(cpu)/3e9, "cores")
				b.ReportMetric(float64(cpu)/float64(tally.Sent)/1000, "µs-cpu/send")
				b.ReportMetric(float64(tally.Due-tally.Sent), "not-sent")
			}
		})
	}
}

func report(b *testing.B, t *result.Tally, what string, s *result.Sketch) {
	for _, q := range []float64{.5, .99} {
		ns, _ := s.Quantile(q)
		b.ReportMetric(ns/1000, fmt.Sprintf("µs-%s-p%g", what, q*100))
	}
}
