package standin_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relaybench/envelope"
	"relaybench/harness/relay"
	"relaybench/harness/standin"
	"relaybench/upstream"
)

// The test binary plays the keeper and the stand-in.
func TestMain(m *testing.M) {
	switch os.Getenv(relay.RoleVar) {
	case relay.RoleKeeper:
		os.Exit(relay.KeeperMain())
	case relay.RoleStandIn:
		os.Exit(standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	// A race detector makes each process that ends wait for a second.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The benchmark's client leaves these behind for some seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

// bench is a stand-in before an upstream.
type bench struct {
	t    testing.TB
	up   *upstream.Server
	run  *relay.Process
	pool *envelope.Pool
	http *http.Client
}

// found is the stand-in, hashed once for all tests.
var found = sync.OnceValues(func() (relay.Program, error) {
	return relay.Find(context.Background(), relay.FormStandIn, "")
})

// settings are those of "key=value".
func settings(pairs []string) []relay.Setting {
	var set []relay.Setting
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		set = append(set, relay.Setting{Key: key, Value: value})
	}
	return set
}

// begin starts a stand-in with settings before an upstream of its own, and waits until it is ready.
func begin(t testing.TB, c upstream.Config, set ...string) *bench {
	t.Helper()
	b := prepare(t, c, set...)
	b.wait("ready", func() bool { return b.run.Ready(t.Context()) == nil })
	return b
}

func prepare(t testing.TB, c upstream.Config, set ...string) *bench {
	t.Helper()
	up, err := upstream.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := up.Close(); err != nil {
			t.Error(err)
		}
	})
	b := launch(t, up.Addr(), set...)
	b.up = up
	return b
}

func launch(t testing.TB, addr string, set ...string) *bench {
	t.Helper()
	p, err := found()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	mix, err := envelope.ParseMix(envelope.Kinds, envelope.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	b.pool, err = envelope.NewPool(envelope.PoolConfig{Mix: mix, Seed: 1, Size: 20, Projects: 3, Epoch: time.Now(),
		Shape: envelope.Shape{Frames: 3, SpansMin: 2, SpansMax: 3, UserAgents: 5}})
	if err != nil {
		t.Fatal(err)
	}
	b.run, err = relay.Start(t.Context(), p, relay.Setup{Upstream: addr, Dir: t.TempDir(), Set: settings(set)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.http.CloseIdleConnections()
		b.run.Stop(0)
		if t.Failed() {
			t.Logf("its log: %s", strings.Join(b.run.Tail(30), "\n"))
		}
	})
	return b
}

// wait waits until ok says so, asked again and again.
func (b *bench) wait(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not within 20 s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// post sends a body and returns status and answer; an error of the connection is status 0.
func (b *bench) post(project int, body []byte, header ...string) (int, string) {
	b.t.Helper()
	url := fmt.Sprintf("http://%s/api/%d/envelope/", b.run.Addr(), envelope.ProjectID(project))
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Sentry-Auth", "Sentry sentry_version=7, sentry_key="+envelope.Key(project)+", sentry_client=test/1")
	req.Header.Set("User-Agent", "agent/1")
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
		} else if header[i] == "query" {
			req.URL.RawQuery = header[i+1]
		} else if header[i] == "path" {
			req.URL.Path = header[i+1]
		} else if header[i] == "method" {
			req.Method = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

// send sends numbers from..to-1 of the pool and returns how many were answered with which status.
func (b *bench) send(from, to uint64) map[int]int {
	b.t.Helper()
	got := map[int]int{}
	for seq := from; seq < to; seq++ {
		status, _ := b.post(b.pool.Project(seq), b.pool.Append(nil, seq, int64(seq)))
		got[status]++
	}
	return got
}

// warm sends a warm-up of each kind to a project, and waits until it has arrived.
func (b *bench) warm(project int) {
	b.t.Helper()
	for i, kind := range envelope.Kinds {
		n := uint64(project*100 + i)
		body, _ := b.pool.AppendWarm(nil, n, 0, kind.Name, project)
		if status, answer := b.post(project, body); status != 200 {
			b.t.Fatalf("warm-up of %s: %d %s", kind.Name, status, answer)
		}
		b.wait("warm-up of "+kind.Name, func() bool { return b.up.WarmArrived(n) })
	}
}

// kindOf is the index in envelope.Kinds of the kind of a send.
func (b *bench) kindOf(seq uint64) int {
	name := b.pool.Kinds()[b.pool.Kind(seq)].Name
	for i := range envelope.Kinds {
		if envelope.Kinds[i].Name == name {
			return i
		}
	}
	b.t.Fatalf("no kind %s", name)
	return 0
}

// arrived is which of the sends 0..n-1 have arrived.
func (b *bench) arrived(n uint64) map[uint64]bool {
	got := map[uint64]bool{}
	for seq := range n {
		if b.up.Fate(b.kindOf(seq), seq) == upstream.Arrived {
			got[seq] = true
		}
	}
	return got
}
