package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/upstream"
)

// standIn is the stand-in, played by the test binary.
func standIn(t *testing.T) relay.Program {
	t.Helper()
	p, err := relay.Find(t.Context(), "stand-in", "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// realRelay is the Relay that RELAY_BIN names; the test is skipped without one.
func realRelay(t *testing.T) relay.Program {
	t.Helper()
	bin := os.Getenv("RELAY_BIN")
	if bin == "" {
		t.Skip("RELAY_BIN is not set: not tested against a real Relay (RELAY_BIN=/path/to/relay go test ./harness -run Real)")
	}
	p, err := relay.Find(t.Context(), bin, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planned is the plan of some knobs, by name and text; names with a dot are config keys.
func planned(t *testing.T, knobs ...string) plan.Plan {
	t.Helper()
	v := plan.Values{Knobs: map[string][]string{"duration": {"1s"}, "rate": {"200"}, "mix": {"errors"}, "connections": {"8"}, "drain": {"2s"}, "pool": {"100"}}}
	for _, k := range knobs {
		name, value, _ := strings.Cut(k, "=")
		if strings.Contains(name, ".") {
			v.Settings = append(v.Settings, k)
		} else {
			v.Knobs[name] = []string{value}
		}
	}
	plans, err := plan.Expand(v)
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

// ran runs a plan and checks what must hold for every run.
func ran(t *testing.T, program relay.Program, o Options, knobs ...string) (*result.Result, result.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if o.limits == nil {
		o.limits = quick()
	}
	r, err := Run(ctx, planned(t, knobs...), program, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, lastLog(r))
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	return r, l
}

// quick are the limits of a run that need not be measured well.
func quick() *limits {
	l := defaultLimits
	l.idle, l.rounds = 50*time.Millisecond, 10
	return &l
}

func lastLog(r *result.Result) string {
	if r == nil {
		return ""
	}
	return strings.Join(r.Relay.Log, "\n")
}

func checkLedger(t *testing.T, r *result.Result, l result.Ledger) {
	t.Helper()
	for _, row := range append(l.Kinds, l.Total) {
		for what, n := range map[string]result.Lines{"sends": row.Sends, "items": row.Items} {
			if n.Due != n.Sent+n.NotSent || n.Sent != n.Accepted+n.Refused+n.Failed {
				t.Errorf("%s in %s: due %d, sent %d, not sent %d, accepted %d, refused %d, failed %d do not add up", row.Kind, what, n.Due, n.Sent, n.NotSent, n.Accepted, n.Refused, n.Failed)
			}
		}
		if n := row.Items; n.Sent+n.Surplus != n.Arrived+n.Outcomes+n.RefusedSilent+n.Lost+n.InFlight+n.Unaccounted {
			t.Errorf("%s: %+v does not add up", row.Kind, n)
		}
	}
	if r.Tally.Due != l.Total.Sends.Due {
		t.Errorf("%d sends due by the tally, %d by the ledger", r.Tally.Due, l.Total.Sends.Due)
	}
	if t.Failed() {
		t.Logf("%+v", l.Total)
	}
}

// closed checks that n sends were due, and that all that were sent were
// accepted, arrived once, and that nothing else is in the ledger.
//
// Note: on a machine that is busy with other things the last numbers may come
// due too late to be sent; that pacing keeps its schedule is the blaster's to test.
func closed(t *testing.T, r *result.Result, l result.Ledger, n uint64) {
	t.Helper()
	s := l.Total.Sends
	if s.Due != n || s.Sent == 0 || s.Accepted != s.Sent || s.Arrived != s.Sent || l.Total.Items.Unaccounted != 0 || !l.Total.Items.UnaccountedKnown || l.Total.Repeats != 0 || l.Total.Items.Surplus != 0 {
		t.Errorf("%+v repeats %d, want %d due, what was sent accepted and arrived, and nothing else\n%s", l.Total, l.Total.Repeats, n, lastLog(r))
	}
	if r.Drain != result.Drained {
		t.Errorf("drain %q, want %q", r.Drain, result.Drained)
	}
}

// every is how many of the numbers below n a rule strikes that takes one of every so many, from first on.
func every(n, first, so uint64) uint64 {
	if n <= first {
		return 0
	}
	return (n-first-1)/so + 1
}

func TestStandInKinds(t *testing.T) { testKinds(t, standIn(t)) }
func TestRealKinds(t *testing.T)    { testKinds(t, realRelay(t)) }

func testKinds(t *testing.T, p relay.Program) {
	for _, k := range envelope.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			r, l := ran(t, p, Options{}, "mix="+k.Name)
			closed(t, r, l, 200)
			if got := r.Kinds[0].Through.Count(); got != l.Total.Sends.Sent {
				t.Errorf("through rests on %d sends, want %d", got, l.Total.Sends.Sent)
			}
			if got := r.Tally.AcceptedSpans.Response.Count(); got != l.Total.Sends.Sent {
				t.Errorf("response rests on %d sends, want %d", got, l.Total.Sends.Sent)
			}
			if len(r.Relay.Messages) > 0 {
				t.Errorf("the relay complained: %+v", r.Relay.Messages)
			}
		})
	}
}

func TestStandInMixed(t *testing.T) { testMixed(t, standIn(t)) }
func TestRealMixed(t *testing.T)    { testMixed(t, realRelay(t)) }

func testMixed(t *testing.T, p relay.Program) {
	r, l := ran(t, p, Options{}, "mix=mixed", "projects=20", "rate=100", "duration=2s")
	closed(t, r, l, 200)
	if !r.Relay.CPUKnown || r.Relay.CPUDrain <= r.Relay.CPUStart || r.Relay.RSSPeak < r.Relay.RSSStart/2 || r.Relay.RSSPeak == 0 {
		t.Errorf("relay %+v: its CPU and memory are not measured", r.Relay)
	}
	if len(r.Samples) < 2 || r.Samples[0].Sent == 0 {
		t.Errorf("samples %+v, want one a second", r.Samples)
	}
	if !r.Relay.Exit.Ended || r.Relay.Exit.Killed {
		t.Errorf("exit %+v, want ended by itself after SIGTERM", r.Relay.Exit)
	}
}

func TestStandInNone(t *testing.T) {
	r, l := ran(t, relay.Program{Form: relay.FormNone}, Options{}, "mix=mixed", "rate=2000", "duration=1s")
	closed(t, r, l, 2000)
	if r.Relay.CPUKnown || r.Target != "upstream" {
		t.Errorf("target %q, relay %+v: there is none", r.Target, r.Relay)
	}
}

func TestRealFiltered(t *testing.T) {
	p := realRelay(t)
	for _, mix := range []string{"errors", "transactions"} {
		r, l := ran(t, p, Options{}, "mix="+mix, "filtered=0.2", "pool=200")
		if got := l.Total.Items; got.Outcomes != 40 || got.Arrived != 160 || got.Unaccounted != 0 || !got.UnaccountedKnown {
			if got.NotSent > 0 && got.Outcomes+got.Arrived == got.Sent && got.Outcomes > 0 {
				t.Skipf("the machine is too busy to send all: %+v", got)
			}
			t.Errorf("%s: %+v, want 160 arrived and 40 outcomes\n%s", mix, got, lastLog(r))
		}
	}
}

func TestRealQuota(t *testing.T) {
	p := realRelay(t)
	for mix, silent := range map[string]bool{"errors": false, "sessions": true} {
		category := map[string]string{"errors": "error", "sessions": "session"}[mix]
		quotas := []upstream.Quota{{ID: "q", Categories: []string{category}, Scope: "organization", Limit: 0, ReasonCode: "none_left"}}
		r, l := ran(t, p, Options{quotas: quotas}, "mix="+mix)
		s := l.Total.Sends
		if s.Refused == 0 || s.Arrived != 0 || l.Total.Items.Unaccounted != 0 {
			t.Errorf("%s: %+v, want refused with 429 and no arrivals\n%s", mix, l.Total, lastLog(r))
		}
		if silent && l.Total.Items.RefusedSilent != s.Refused || !silent && l.Total.Items.Outcomes != s.Sent {
			t.Errorf("%s: %+v, want silent refusals %v", mix, l.Total.Items, silent)
		}
	}
}

func TestStandInUpstreamFaults(t *testing.T) { testUpstreamFaults(t, standIn(t)) }
func TestRealUpstreamFaults(t *testing.T)    { testUpstreamFaults(t, realRelay(t)) }

func testUpstreamFaults(t *testing.T, p relay.Program) {
	t.Run("503", func(t *testing.T) {
		t.Parallel()
		_, l := ran(t, p, Options{fault: upstream.Share(0.3, upstream.Treatment{Status: 503})}, "drain=15s") // it may be turned away several times in a row
		if s := l.Total.Sends; s.Arrived != s.Sent || l.Total.Repeats == 0 || l.Total.Items.Unaccounted != 0 {
			t.Errorf("%+v, want all arrived, some again", l.Total)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		t.Parallel()
		_, l := ran(t, p, Options{fault: upstream.Share(0.3, upstream.Treatment{Drop: true})}, "drain=15s")
		if s := l.Total.Sends; s.Arrived != s.Sent || l.Total.Repeats == 0 || l.Total.Items.Unaccounted != 0 {
			t.Errorf("%+v, want all arrived, some again", l.Total)
		}
	})
	t.Run("500 to every tenth", func(t *testing.T) {
		t.Parallel()
		r, l := ran(t, p, Options{fault: func(q upstream.Request) upstream.Treatment {
			if q.Seq%10 == 3 {
				return upstream.Treatment{Status: 500}
			}
			return upstream.Treatment{}
		}})
		s := l.Total.Sends
		if lost := every(s.Sent, 3, 10); s.Arrived != s.Sent-lost || s.Lost != lost || lost == 0 || l.Total.Items.Unaccounted != 0 || r.Drain != result.Drained {
			t.Errorf("%+v, want %d lost upstream and the others arrived", l.Total, lost)
		}
	})
}

// behind is a proxy between relay and upstream that may treat an envelope of the run itself; treat says whether it did.
func behind(t *testing.T, treat func(s envelope.Stamp, w http.ResponseWriter) bool) func(string) string {
	return func(addr string) string {
		target := &url.URL{Scheme: "http", Host: addr}
		proxy := httputil.NewSingleHostReverseProxy(target)
		transport := &http.Transport{MaxIdleConnsPerHost: 200}
		proxy.Transport = transport
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			if strings.HasSuffix(req.URL.Path, "/envelope/") {
				plain, err := envelope.FindEncoding(req.Header.Get("Content-Encoding")).Decode(nil, body, 1<<24)
				var e envelope.Envelope
				if err = errors.Join(err, e.Parse(plain)); err != nil {
					t.Error(err)
				}
				if e.Stamped && !e.Stamp.Warm && treat(e.Stamp, w) {
					return
				}
			}
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			proxy.ServeHTTP(w, req)
		}))
		t.Cleanup(func() { srv.Close(); transport.CloseIdleConnections() })
		return strings.TrimPrefix(srv.URL, "http://")
	}
}

func TestStandInSwallowed(t *testing.T) { testSwallowed(t, standIn(t)) }
func TestRealSwallowed(t *testing.T)    { testSwallowed(t, realRelay(t)) }

func testSwallowed(t *testing.T, p relay.Program) {
	r, l := ran(t, p, Options{via: behind(t, func(s envelope.Stamp, w http.ResponseWriter) bool {
		if s.Seq >= 7 {
			return false
		}
		fmt.Fprint(w, "{}")
		return true
	})})
	if s := l.Total.Sends; s.Arrived != s.Sent-7 || l.Total.Items.Unaccounted != 7 || !l.Total.Items.UnaccountedKnown || r.Drain != result.Settled {
		t.Errorf("drain %q, %+v, want 7 unaccounted, settled, and the others arrived", r.Drain, l.Total)
	}
}

func TestStandInHeld(t *testing.T) { testHeld(t, standIn(t)) }
func TestRealHeld(t *testing.T)    { testHeld(t, realRelay(t)) }

func testHeld(t *testing.T, p relay.Program) {
	r, l := ran(t, p, Options{via: behind(t, func(envelope.Stamp, http.ResponseWriter) bool {
		time.Sleep(200 * time.Millisecond)
		return false
	})}, "mix=sessions")
	closed(t, r, l, 200)
	through, _ := r.Kinds[0].Through.Quantile(0.5)
	response, _ := r.Tally.AcceptedSpans.Response.Quantile(0.5)
	if through < 200e6 || response > through-200e6/2 {
		t.Errorf("through p50 %v, response p50 %v, want 200 ms or more, and nearly that less", time.Duration(through), time.Duration(response))
	}
}

// during does something to a run once so many of its sends have arrived.
func during(arrived uint64, do func(x *run)) Options {
	over := make(chan struct{})
	return Options{limits: quick(), at: func(step string, x *run) {
		switch step {
		case StepLoad:
			go func() {
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for x.agent.arrived() < arrived {
					select {
					case <-tick.C:
					case <-over:
						return
					}
				}
				do(x)
			}()
		case StepDrain:
			close(over)
		}
	}}
}

func TestStandInClientTimeout(t *testing.T) { testClientTimeout(t, standIn(t)) }
func TestRealClientTimeout(t *testing.T)    { testClientTimeout(t, realRelay(t)) }

func testClientTimeout(t *testing.T, p relay.Program) {
	o := during(20, func(x *run) {
		pid := x.pid()
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		time.AfterFunc(1500*time.Millisecond, func() { syscall.Kill(pid, syscall.SIGCONT) })
	})
	r, l := ran(t, p, o, "timeout=500ms", "duration=4s", "mix=sessions")
	if l.Total.Failed["timeout"] == 0 {
		t.Errorf("%+v, want time-outs", l.Total)
	}
	if l.Total.ArrivedFailed == 0 || l.Total.Items.Unaccounted != 0 && p.Form == relay.FormPath {
		t.Errorf("%+v, want what timed out to arrive all the same\n%s", l.Total, lastLog(r))
	}
}

func TestStandInKilled(t *testing.T) { testKilled(t, standIn(t)) }
func TestRealKilled(t *testing.T)    { testKilled(t, realRelay(t)) }

func testKilled(t *testing.T, p relay.Program) {
	o := during(20, func(x *run) {
		if err := syscall.Kill(x.pid(), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	r, err := Run(t.Context(), planned(t, "rate=100", "duration=2s"), p, o)
	if !errors.Is(err, ErrRelayDied) || r == nil {
		t.Fatalf("result %v, error %v, want %v", r != nil, err, ErrRelayDied)
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	if !strings.Contains(r.Relay.Died, "killed") || r.Drain != result.DrainExited && r.Drain != result.Drained {
		t.Errorf("died %q, drain %q, want killed and exited", r.Relay.Died, r.Drain)
	}
	if s := l.Total.Sends; s.Sent == 0 || s.NotSent+s.Failed == 0 && s.Due >= 200 {
		t.Errorf("%+v, want a part of the load sent", s)
	}
}

func TestRealOverload(t *testing.T) {
	r, l := ran(t, realRelay(t), Options{}, "rate=max", "duration=3s", "mix=mixed", "connections=64", "drain=1s")
	s := l.Total.Sends
	last := r.Samples[2]
	if last.Backlog < 1000 || last.Accepted < 2*last.Arrived {
		t.Errorf("at the end %+v, want accepted far above arrived", last)
	}
	if r.Relay.RSSPeak < 2*r.Relay.RSSStart {
		t.Errorf("memory from %d to %d, want growth", r.Relay.RSSStart, r.Relay.RSSPeak)
	}
	t.Logf("accepted %d, arrived at load end %d, in all %d; drain %q in %v; %d MiB at peak", s.Accepted, last.Arrived, s.Arrived, r.Drain,
		time.Duration(r.DrainEnd-r.LoadEnd), r.Relay.RSSPeak>>20)
}

func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	o := during(20, func(*run) { cancel(stop) })
	r, err := Run(ctx, planned(t, "duration=30s"), standIn(t), o)
	if !errors.Is(err, stop) || r == nil {
		t.Fatalf("result %v, error %v, want %v", r != nil, err, stop)
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	if r.Cancelled != "interrupted" || r.FailedStep != StepLoad || l.Total.Sends.Sent == 0 || l.Total.Items.Unaccounted != 0 {
		t.Errorf("cancelled %q in %q, %+v", r.Cancelled, r.FailedStep, l.Total)
	}
}

// A drain that is cut off is no whole run either, though the load was.
func TestRunCancelledInDrain(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	kill := make(chan struct{})
	o := Options{limits: quick(), Kill: kill, at: func(step string, _ *run) {
		if step == StepDrain {
			cancel(stop)
			close(kill)
		}
	}}
	r, err := Run(ctx, planned(t, "duration=200ms", "standin.delay=1m", "drain=1m"), standIn(t), o)
	if !errors.Is(err, stop) || r == nil {
		t.Fatalf("result %v, error %v, want %v", r != nil, err, stop)
	}
	if r.Cancelled != "interrupted" || r.FailedStep != StepDrain || r.Drain != result.NotDrained || r.Failed != "" {
		t.Errorf("cancelled %q in %q, failed %q, drain %q", r.Cancelled, r.FailedStep, r.Failed, r.Drain)
	}
}

func TestRunKilled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	kill := make(chan struct{})
	o := Options{limits: quick(), Kill: kill, Observer: &onSent{do: func() { cancel(errors.New("interrupted")); close(kill) }}}
	r, err := Run(ctx, planned(t, "duration=30s", "standin.delay=1m", "drain=1m"), standIn(t), o)
	if err == nil || r == nil {
		t.Fatalf("result %v, error %v", r != nil, err)
	}
	if r.Drain != result.NotDrained || !r.Relay.Exit.Killed {
		t.Errorf("drain %q, exit %+v, want the relay killed", r.Drain, r.Relay.Exit)
	}
}

func TestStandInSenderProcesses(t *testing.T) { testSenderProcesses(t, standIn(t)) }
func TestRealSenderProcesses(t *testing.T)    { testSenderProcesses(t, realRelay(t)) }

func testSenderProcesses(t *testing.T, p relay.Program) {
	r, l := ran(t, p, Options{}, "connections=3x4", "mix=mixed")
	closed(t, r, l, 200)
	if r.Tally.CPU == 0 || r.Tally.AcceptedSpans.Response.Count() != l.Total.Sends.Sent {
		t.Errorf("senders used %d ns, response rests on %d sends", r.Tally.CPU, r.Tally.AcceptedSpans.Response.Count())
	}
	if runtime.GOOS == "linux" && (r.Tally.Wait <= 0 || r.Harness.WaitLoad < r.Tally.Wait) {
		t.Errorf("senders waited %d ns for a CPU, and %d ns with this process", r.Tally.Wait, r.Harness.WaitLoad)
	}

	// Flat out one process is quicker than another: every send of each is in the ledger, and no other number.
	r, l = ran(t, p, Options{}, "connections=3x4", "mix=mixed", "rate=max", "duration=500ms")
	if s := l.Total.Sends; s.Due != r.Tally.Due || s.Sent != r.Tally.Sent || s.Arrived != r.Upstream.Envelopes {
		t.Errorf("flat out: %d due, %d sent, %d arrived in the ledger, of %d due, %d sent, %d that came", s.Due, s.Sent, s.Arrived, r.Tally.Due, r.Tally.Sent, r.Upstream.Envelopes)
	}
}

// onSent is an observer that does something once, with the first sample in which sends were accepted.
type onSent struct {
	do   func()
	done bool
}

func (*onSent) Step(string) {}

func (o *onSent) Sample(s result.Sample) {
	if s.Accepted > 0 && !o.done {
		o.done = true
		o.do()
	}
}
