package blaster

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

// BenchmarkSend lays a closed loop over 64 connections beside net/http's client
// doing the same job, bodies from the same pool, against the same server in
// another process. Run it with -count, so that the two take turns.
func BenchmarkSend(b *testing.B) {
	const connections = 64
	addr := startNullServer(b)
	for _, size := range []int{1000, 12000} {
		pool := sizedPool(b, 30, size)
		measure := func(name string, send func(n int) error) {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				before := processCPU()
				if err := send(b.N); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(processCPU()-before)/float64(b.N), "cpu-ns/op")
			})
		}
		measure("blaster", func(n int) error {
			r := newRun(newLoad(addr, 0, time.Hour, connections), pool)
			r.share = uint64(n)
			got, err := r.do(b.Context(), nil)
			if err == nil && got.Counts[result.Accepted] != uint64(n) {
				err = fmt.Errorf("%d of %d accepted: %v", got.Counts[result.Accepted], n, got.Errors)
			}
			return err
		})
		client := &http.Client{Transport: &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}}
		measure("net-http", func(n int) error {
			var next, failed atomic.Uint64
			var all sync.WaitGroup
			for range connections {
				all.Go(func() {
					for seq := next.Add(1) - 1; seq < uint64(n); seq = next.Add(1) - 1 {
						if post(client, addr, pool, seq) != nil {
							failed.Add(1)
						}
					}
				})
			}
			all.Wait()
			if failed.Load() > 0 {
				return fmt.Errorf("%d of %d failed", failed.Load(), n)
			}
			return nil
		})
		client.CloseIdleConnections()
	}
}

func post(client *http.Client, addr string, pool *envelope.Pool, seq uint64) error {
	project := pool.Project(seq)
	body := pool.Append(make([]byte, 0, pool.Size(seq)), seq, 0)
	r, err := http.NewRequest("POST", "http://"+addr+"/api/"+strconv.Itoa(envelope.ProjectID(project))+"/envelope/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", string(pool.UserAgent(seq)))
	r.Header.Set("Content-Type", "application/x-sentry-envelope")
	r.Header.Set("X-Sentry-Auth", "Sentry sentry_key="+envelope.Key(project)+", sentry_version=7, sentry_client=relaybench/1")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return err
}

// BenchmarkPace is how late sends are at a rate, and what that costs. Each
// round takes three seconds: run it with -benchtime 1x.
func BenchmarkPace(b *testing.B) {
	duration := 3 * time.Second
	if testing.Short() {
		duration = time.Second / 2
	}
	addr := startNullServer(b)
	pool := newPool(b)
	for _, rate := range []float64{200, 1000, 5000, 20000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			for b.Loop() {
				load := newLoad(addr, rate, duration, 64)
				load.Schedule.Start = int64(100 * time.Millisecond)
				before := processCPU()
				got, err := Run(b.Context(), load, pool, nil)
				if err != nil {
					b.Fatal(err)
				}
				cpu := float64(processCPU() - before)
				for _, q := range []float64{.5, .99} {
					ns, _ := got.Late.Quantile(q)
					b.ReportMetric(ns/1000, fmt.Sprintf("µs-late-p%g", q*100))
				}
				b.ReportMetric(cpu/float64(duration), "cores")
				b.ReportMetric(cpu/float64(got.Sent)/1000, "cpu-µs/send")
				b.ReportMetric(float64(got.Due-got.Sent), "not-sent")
			}
		})
	}
}

// stalls runs a load against a server that holds every answer back until a
// stall ends, and returns the response times that follow from the schedule alone.
func stalls(t testing.TB, rate float64, duration, from, to time.Duration, run func(Load) *result.Tally) (got *result.Tally, want []float64) {
	var zero atomic.Int64
	left := func(at int64) time.Duration {
		if at < int64(from) || at >= int64(to) {
			return 0
		}
		return to - time.Duration(at)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answerAll(c, func() { time.Sleep(left(envelope.Now() - zero.Load())) }) })
		}
	})
	defer serving.Wait()
	defer l.Close()
	load := newLoad(l.Addr().String(), rate, duration, 64)
	zero.Store(load.Zero)
	got = run(load)
	for seq := range got.Due {
		want = append(want, float64(left(load.Schedule.Due(seq))))
	}
	slices.Sort(want)
	return got, want
}

// BenchmarkStall is by how much the response times of a server that stalls one
// second in ten differ from those that follow from the schedule. It takes ten seconds.
func BenchmarkStall(b *testing.B) {
	pool := newPool(b)
	second := time.Second
	if testing.Short() {
		second /= 10
	}
	for b.Loop() {
		got, want := stalls(b, 1000, 10*second, 4*second, 5*second, func(load Load) *result.Tally {
			got, err := Run(b.Context(), load, pool, nil)
			if err != nil {
				b.Fatal(err)
			}
			return got
		})
		for _, q := range []float64{.95, .99, .999} {
			ns, _ := got.AcceptedSpans.Response.Quantile(q)
			b.ReportMetric(100*(ns/want[int(q*float64(len(want)-1))]-1), fmt.Sprintf("%%-off-p%g", q*100))
		}
	}
}
