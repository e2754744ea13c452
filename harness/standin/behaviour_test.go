package standin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
	"relaybench/upstream"
)

// strikes says which sends "every n" strikes.
func strikes(seq, n uint64) bool { return (seq+1)%n == 0 }

// elements counts the elements of those of the sends 0..n-1 that are struck, by category.
func (b *bench) elements(n uint64, struck func(seq uint64) bool) map[int]uint64 {
	by := map[int]uint64{}
	for seq := range n {
		if struck(seq) {
			by[envelope.Kinds[b.kindOf(seq)].Category] += uint64(b.pool.Elements(seq))
		}
	}
	return by
}

// outcomes are the upstream's outcomes of a reason, by category.
func (b *bench) outcomes(id int, reason string) map[int]uint64 {
	by := map[int]uint64{}
	for _, o := range b.up.Stats().Outcomes {
		if o.Outcome == id && o.Reason == reason {
			by[o.Category] += o.Quantity
		}
	}
	return by
}

func TestEverySendArrivesOnce(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{})
	for project := range 3 {
		b.warm(project)
	}
	if got := b.send(0, 100); got[200] != 100 {
		t.Fatalf("answers: %v", got)
	}
	b.wait("all sends", func() bool { return len(b.arrived(100)) == 100 })
	s := b.up.Stats()
	if s.Envelopes != 100 || s.Repeats != 0 || s.Malformed != 0 || len(s.UnknownRoutes) != 0 || len(s.Outcomes) != 0 || s.WarmUps != 15 {
		t.Errorf("stats: %+v", s)
	}
}

func TestDropRepeatAndOutcome(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{}, "standin.drop=7", "standin.repeat=5", "standin.outcome_every=3")
	b.warm(0)
	const n = 105
	dropped := func(seq uint64) bool { return strikes(seq, 7) }
	filtered := func(seq uint64) bool { return strikes(seq, 3) && !dropped(seq) }
	repeats := uint64(0)
	want := map[uint64]bool{}
	for seq := range uint64(n) {
		if dropped(seq) || filtered(seq) {
			continue
		}
		want[seq] = true
		if strikes(seq, 5) {
			repeats++
		}
	}
	if got := b.send(0, n); got[200] != n {
		t.Fatalf("answers: %v", got)
	}
	outcomes := b.elements(n, filtered)
	b.wait("the last", func() bool {
		return len(b.arrived(n)) == len(want) && b.up.Stats().Repeats == repeats && cmp.Equal(b.outcomes(1, "stand-in"), outcomes)
	})
	if d := cmp.Diff(want, b.arrived(n)); d != "" {
		t.Errorf("arrived (-want +got):\n%s", d)
	}
	if got := b.up.Stats().WarmUps; got != uint64(len(envelope.Kinds)) {
		t.Errorf("got %d warm-ups, want %d: they are spared", got, len(envelope.Kinds))
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		id     int
		reason func(kind envelope.Kind) string
	}{
		{403, 3, func(envelope.Kind) string { return "project_id" }},
		{413, 3, func(k envelope.Kind) string { return "too_large:" + k.Items[0] }},
		{429, 2, func(envelope.Kind) string { return "stand-in" }},
		{503, 3, func(envelope.Kind) string { return "internal" }},
		{400, 0, nil},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			b := begin(t, upstream.Config{}, fmt.Sprintf("standin.refuse=%d", c.status), "standin.refuse_every=2")
			b.warm(0)
			const n = 40
			refused := func(seq uint64) bool { return strikes(seq, 2) }
			if got := b.send(0, n); got[200] != n/2 || got[c.status] != n/2 {
				t.Fatalf("answers: %v", got)
			}
			want := map[string]uint64{}
			for seq := range uint64(n) {
				kind := envelope.Kinds[b.kindOf(seq)]
				if refused(seq) && c.reason != nil && kind.Outcome(c.status) {
					want[fmt.Sprint(c.id, kind.Category, c.reason(kind))] += uint64(b.pool.Elements(seq))
				}
			}
			got := func() map[string]uint64 {
				by := map[string]uint64{}
				for _, o := range b.up.Stats().Outcomes {
					by[fmt.Sprint(o.Outcome, o.Category, o.Reason)] += o.Quantity
				}
				return by
			}
			b.wait("the rest", func() bool { return len(b.arrived(n)) == n/2 })
			b.run.Stop(20 * time.Second) // reports what it has left
			if d := cmp.Diff(want, got()); d != "" {
				t.Errorf("outcomes (-want +got):\n%s", d)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	const delay, answer = 300 * time.Millisecond, 200 * time.Millisecond
	zero := envelope.Now()
	arrived := make(chan int64, 1)
	b := begin(t, upstream.Config{Zero: zero, Arrived: func(_ int, _, at int64) { arrived <- at }},
		"standin.delay=300ms", "standin.answer_delay=200ms")
	began := time.Now()
	b.warm(b.pool.Project(0))
	if took := time.Since(began); took < time.Duration(len(envelope.Kinds))*answer {
		t.Errorf("%d warm-ups answered after %v, want %v each", len(envelope.Kinds), took, answer)
	}
	sent := envelope.Now() - zero
	began = time.Now()
	if status, answer := b.post(b.pool.Project(0), b.pool.Append(nil, 0, sent)); status != 200 {
		t.Fatalf("got %d %s", status, answer)
	}
	if took := time.Since(began); took < answer {
		t.Errorf("answered after %v, want %v", took, answer)
	}
	if through := time.Duration(<-arrived - sent); through < delay || through > delay+10*time.Second {
		t.Errorf("came through after %v, want %v", through, delay)
	}
}

// Processing is held back, by capacity or by the CPU time that it costs.
func TestCapacityAndCPU(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"standin.capacity=100", "standin.cpu=20ms"} {
		t.Run(set, func(t *testing.T) {
			b := begin(t, upstream.Config{}, set, "limits.max_thread_count=2")
			b.warm(b.pool.Project(0))
			began := time.Now()
			const n = 31
			for seq := range uint64(n) {
				if status, _ := b.post(b.pool.Project(0), rekey(b, seq)); status != 200 {
					t.Fatalf("got %d", status)
				}
			}
			b.wait("all sends", func() bool { return b.up.Stats().Envelopes == n })
			if took := time.Since(began); took < 290*time.Millisecond {
				t.Errorf("%d envelopes in %v, want 300ms at least", n, took)
			}
		})
	}
}

// rekey is send seq, to the project of send 0.
func rekey(b *bench, seq uint64) []byte {
	from, to := envelope.Key(b.pool.Project(seq)), envelope.Key(b.pool.Project(0))
	return []byte(strings.ReplaceAll(string(b.pool.Append(nil, seq, 0)), from, to))
}

func TestLeak(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{}, "standin.leak=4194304")
	b.warm(b.pool.Project(0))
	pid := b.run.PID()
	if pid == 0 {
		t.Skip("the process is unknown on this system")
	}
	before := resident(t, pid)
	for seq := range uint64(20) {
		b.post(b.pool.Project(0), rekey(b, seq))
	}
	b.wait("all sends", func() bool { return b.up.Stats().Envelopes == 20 })
	if grown := resident(t, pid) - before; grown < 70<<20 {
		t.Errorf("grew by %d bytes, want 80 MiB", grown)
	}
}

// resident is a process's resident memory in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestCrash(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{}, "standin.crash_after=5")
	b.warm(b.pool.Project(0))
	if got := b.send(0, 10); got[200] != 4 || got[0] != 6 {
		t.Errorf("answers: %v, want 4 of 200 and 6 without one", got)
	}
	<-b.run.Done()
	if got := b.run.Exit(); got.Status != "exit status 101" || got.Killed {
		t.Errorf("got %+v, want exit status 101", got)
	}
}

func TestSlowStart(t *testing.T) {
	t.Parallel()
	began := time.Now()
	b := begin(t, upstream.Config{}, "standin.slow_start=400ms")
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("ready after %v, want 400ms at least", took)
	}
	if got := b.run.Messages(); len(got) == 0 || !strings.Contains(got[0].Text, "Health check probe 'auth' failed") {
		t.Errorf("messages: got %v, want what Relay says while it is not ready", got)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{}, "standin.hold=true")
	body, _ := b.pool.AppendWarm(nil, 1, 0, "errors", 0)
	if status, _ := b.post(0, body); status != 200 {
		t.Errorf("warm-up: got %d, want 200", status)
	}
	if got := b.send(0, 10); got[200] != 10 {
		t.Errorf("answers: %v, want 10 of 200", got)
	}
	// It has what it holds until the shutdown timeout, 1 s, and no longer.
	began := time.Now()
	got := b.run.Stop(20 * time.Second)
	if took := time.Since(began); got.Killed || took < time.Second || took > 10*time.Second {
		t.Errorf("got %+v after %v, want a graceful end after 1s", got, took)
	}
	if s := b.up.Stats(); s.Requests != 0 {
		t.Errorf("%d envelopes came through", s.Requests)
	}
}

// SIGTERM leaves nothing inside that the upstream takes in time.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{Latency: 20 * time.Millisecond}, "limits.max_concurrent_requests=2")
	for project := range 3 {
		b.warm(project)
	}
	if got := b.send(0, 50); got[200] != 50 {
		t.Fatalf("answers: %v", got)
	}
	if got := b.run.Stop(20 * time.Second); got.Killed || got.Status != "" {
		t.Errorf("got %+v, want a graceful end", got)
	}
	if got := len(b.arrived(50)); got != 50 {
		t.Errorf("%d sends arrived, want 50", got)
	}
	if got := b.up.Stats().OpenMax; got > 2 {
		t.Errorf("%d requests open at once, want 2 at most", got)
	}
}

// What the upstream answers decides what becomes of an envelope, as with Relay.
func TestUpstreamAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		treat   upstream.Treatment
		repeats bool
	}{
		{"503", upstream.Treatment{Status: 503}, true},
		{"502", upstream.Treatment{Status: 502}, true},
		{"dropped connection", upstream.Treatment{Drop: true}, true},
		{"500", upstream.Treatment{Status: 500}, false},
		{"400", upstream.Treatment{Status: 400}, false},
		{"429", upstream.Treatment{Status: 429}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const n = 12
			first := func(r upstream.Request) upstream.Treatment {
				if r.Seq%3 == 0 && r.Attempt == 0 {
					return c.treat
				}
				return upstream.Treatment{}
			}
			b := begin(t, upstream.Config{Fault: first})
			if got := b.send(0, n); got[200] != n {
				t.Fatalf("answers: %v", got)
			}
			for seq := range uint64(n) {
				want := upstream.Arrived
				if seq%3 == 0 && !c.repeats {
					want = upstream.Lost
				}
				b.wait(fmt.Sprintf("fate %d of send %d", want, seq), func() bool { return b.up.Fate(b.kindOf(seq), seq) == want })
			}
			want := uint64(0)
			if c.repeats {
				want = n / 3
			}
			if got := b.up.Stats().Repeats; got != want {
				t.Errorf("got %d repeats, want %d", got, want)
			}
		})
	}
}

func TestUpstreamTimeout(t *testing.T) {
	t.Parallel()
	slow := func(r upstream.Request) upstream.Treatment {
		if r.Attempt == 0 {
			return upstream.Treatment{Delay: 3 * time.Second}
		}
		return upstream.Treatment{}
	}
	b := begin(t, upstream.Config{Fault: slow}, "http.timeout=1", "http.retry_delay=0")
	b.send(0, 1)
	b.wait("a repeat", func() bool { return b.up.Stats().Repeats == 1 })
}

// A kind whose feature the project lacks vanishes in silence, as with Relay.
func TestMissingFeature(t *testing.T) {
	t.Parallel()
	kinds := make([]envelope.Kind, len(envelope.Kinds))
	copy(kinds, envelope.Kinds)
	without := 0
	for i := range kinds {
		if len(kinds[i].Features) > 0 {
			without++
			kinds[i].Features = nil
		}
	}
	if without == 0 {
		t.Skip("no kind needs a feature")
	}
	b := begin(t, upstream.Config{Kinds: kinds})
	const n = 40
	if got := b.send(0, n); got[200] != n {
		t.Fatalf("answers: %v", got)
	}
	want := 0
	for seq := range uint64(n) {
		if len(envelope.Kinds[b.kindOf(seq)].Features) == 0 {
			want++
		}
	}
	if want == 0 || want == n {
		t.Fatalf("%d of %d sends need no feature: the test tests nothing", want, n)
	}
	b.wait("the others", func() bool { return len(b.arrived(n)) == want })
	b.run.Stop(20 * time.Second)
	if got := len(b.arrived(n)); got != want || len(b.up.Stats().Outcomes) != 0 {
		t.Errorf("%d arrived, want %d, and outcomes %v, want none", got, want, b.up.Stats().Outcomes)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{})
	for path, want := range map[string]int{"/api/relay/healthcheck/live/": 200, "/api/relay/healthcheck/ready/": 200, "/": 404, "/api/0/envelope/": 404, "/api/x/envelope/": 404} {
		resp, err := b.http.Get("http://" + b.run.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
		if got := resp.Header.Get("Server"); got != "sentry-relay/stand-in-1" {
			t.Errorf("%s: Server is %q", path, got)
		}
	}
}
