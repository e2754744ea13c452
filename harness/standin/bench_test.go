package standin_test

import (
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"relaybench/envelope"
	"relaybench/upstream"
)

// BenchmarkThrough is a send through the stand-in, from the client's write
// until the upstream has counted the last one; client and upstream are in this
// process, and their cost is part of it.
func BenchmarkThrough(b *testing.B) {
	for _, kind := range []string{"errors", "sessions"} {
		b.Run(kind, func(b *testing.B) {
			s := benchStart(b, kind)
			client := &fasthttp.HostClient{Addr: s.run.Addr(), MaxConns: 64}
			var seq atomic.Uint64
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
				req.Header.SetMethod("POST")
				req.SetRequestURI("http://" + s.run.Addr() + "/api/1/envelope/")
				req.Header.Set("X-Sentry-Auth", "Sentry sentry_version=7, sentry_key="+envelope.Key(0))
				var body []byte
				for pb.Next() {
					body = s.pool.Append(body[:0], seq.Add(1)-1, 0)
					req.SetBodyRaw(body)
					if err := client.Do(req, resp); err != nil || resp.StatusCode() != 200 {
						b.Errorf("%d, %v", resp.StatusCode(), err)
						return
					}
				}
			})
			s.wait("the last", func() bool { return s.up.Stats().Envelopes == seq.Load() })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sends/s")
		})
	}
}

func benchStart(b *testing.B, kind string) *bench {
	b.Helper()
	s := begin(b, upstream.Config{})
	mix, err := envelope.ParseMix(envelope.Kinds, kind)
	if err != nil {
		b.Fatal(err)
	}
	s.pool, err = envelope.NewPool(envelope.PoolConfig{Mix: mix, Seed: 1, Size: 100, Projects: 1,
		Shape: envelope.Shape{Frames: 20, SpansMin: 2, SpansMax: 3, UserAgents: 5}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}
