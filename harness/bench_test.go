package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

// BenchmarkAgainstNetHTTP measures the harness alone, from blaster to
// upstream, against the same job with net/http at both ends: the same bodies,
// as many connections kept alive, each envelope parsed and counted. The two
// take turns, a second each; x is ours over theirs.
func BenchmarkAgainstNetHTTP(b *testing.B) {
	const connections = 32
	p := plan.Default()
	p.Duration, p.Rate, p.Connections = time.Second, 0, connections
	var ours, theirs float64
	for range b.N {
		r, err := Run(b.Context(), p, relay.Program{Form: relay.FormNone}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		ours += float64(r.Tally.Counts[1]) / (float64(r.LoadEnd-r.LoadStart) / 1e9)
		theirs += netHTTP(b, p, connections)
	}
	b.ReportMetric(ours/float64(b.N), "ours/s")
	b.ReportMetric(theirs/float64(b.N), "net/http/s")
	b.ReportMetric(ours/theirs, "x")
}

func netHTTP(b *testing.B, p plan.Plan, connections int) float64 {
	mix, err := envelope.ParseMix(envelope.Kinds, p.Mix)
	if err != nil {
		b.Fatal(err)
	}
	pool, err := envelope.NewPool(envelope.PoolConfig{Mix: mix, Seed: 1, Size: p.Pool, Projects: 1, Shape: p.Shape(), Epoch: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	counted := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e envelope.Envelope
		if err == nil {
			err = e.Parse(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		for _, i := range e.Items {
			counted[string(i.Type)] += i.Count
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q}`, e.EventID)
	}))
	defer srv.Close()
	transport := &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(b.Context(), p.Duration)
	defer cancel()
	var seq, done atomic.Uint64
	var senders sync.WaitGroup
	from := time.Now()
	for range connections {
		senders.Go(func() {
			var buf []byte
			for ctx.Err() == nil {
				k := seq.Add(1) - 1
				buf = pool.Append(buf[:0], k, int64(k))
				req, err := http.NewRequest(http.MethodPost, srv.URL+"/api/1/envelope/", bytes.NewReader(buf))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header.Set("X-Sentry-Auth", "Sentry sentry_version=7, sentry_key="+envelope.Key(0))
				req.Header.Set("User-Agent", string(pool.UserAgent(k)))
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					done.Add(1)
				}
			}
		})
	}
	senders.Wait()
	return float64(done.Load()) / time.Since(from).Seconds()
}
