package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relaybench/harness/host"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/upstream"
)

// made is one run of the stand-in, or of what form says.
type made struct {
	knobs []string
	form  string // of the relay; "" is the stand-in
	with  func(t *testing.T, o *Options) (ctx context.Context)
	calm  bool // it proves nothing on a machine that is busy with other things
}

// causes is, for each mark that a run can make, a run that makes its cause and
// one that nearly does.
var causes = []struct {
	mark string
	with made
	near made
}{
	{"cancelled", made{knobs: []string{"duration=30s"}, with: func(t *testing.T, o *Options) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		o.at = at("send", func(*run) { cancel(errors.New("interrupted")) })
		return ctx
	}}, made{with: func(t *testing.T, o *Options) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		o.at = at(StepStop, func(*run) { cancel(errors.New("interrupted")) }) // all is over
		return ctx
	}}},
	{"failed", made{knobs: []string{"standin.hold=true"}, with: func(_ *testing.T, o *Options) context.Context {
		o.limits.warm = 300 * time.Millisecond
		return nil
	}}, made{knobs: []string{"standin.slow_start=300ms"}}},
	{"relay-died", made{knobs: []string{"standin.crash_after=5"}}, made{with: func(_ *testing.T, o *Options) context.Context {
		o.limits.grace = 0 // it is killed, by us
		return nil
	}}},
	{"no-load", made{form: relay.FormNone, with: func(_ *testing.T, o *Options) context.Context {
		o.at = at(StepLoad, func(x *run) { x.addr = "127.0.0.1:1" }) // nobody listens there
		return nil
	}}, made{form: relay.FormNone, knobs: []string{"rate=5"}}},
	{"short", made{}, made{knobs: []string{"duration=5s", "rate=5"}}},
	{"harness-limited", made{knobs: []string{"rate=20000", "connections=1", "standin.answer_delay=5ms"}},
		made{knobs: []string{"rate=50"}, calm: true}},
	{"upstream-limited", made{knobs: []string{"rate=100", "limits.max_concurrent_requests=5", "upstream-latency=500ms", "duration=3s"},
		with: func(_ *testing.T, o *Options) context.Context { // 10/s come through: the rest is not waited for
			kill := make(chan struct{})
			o.Kill, o.at = kill, at(StepDrain, func(*run) { close(kill) })
			return nil
		}}, made{knobs: []string{"rate=2", "limits.max_concurrent_requests=5", "upstream-latency=500ms", "duration=3s"}}},
	{"behind", made{knobs: []string{"rate=100", "standin.capacity=80", "duration=6s", "drain=1s"}},
		made{knobs: []string{"rate=100", "standin.delay=300ms", "duration=6s"}, calm: true}}, // a backlog, but no slope
	{"not-drained", made{knobs: []string{"drain=500ms", "http.retry_delay=0"}, with: func(_ *testing.T, o *Options) context.Context {
		o.fault = func(upstream.Request) upstream.Treatment { return upstream.Treatment{Status: 503} }
		return nil
	}}, made{knobs: []string{"drain=3s", "http.retry_delay=0"}, with: func(_ *testing.T, o *Options) context.Context {
		o.fault = upstream.Share(0.5, upstream.Treatment{Status: 503})
		return nil
	}}},
	{"memory-guard", made{knobs: []string{"standin.leak=1048576", "duration=30s"}, with: small}, made{with: small}},
	{"host-busy", made{with: func(t *testing.T, o *Options) context.Context { neighbour(t); return nil }},
		made{knobs: []string{"standin.cpu=1ms"}, calm: true}}, // what the relay takes is no other's
	{"unaccounted", made{knobs: []string{"standin.drop=10", "drain=500ms"}}, made{knobs: []string{"standin.outcome_every=10", "mix=errors"}}},
	{"stand-in", made{}, made{form: relay.FormNone}},
	{"relay-errors", made{with: func(_ *testing.T, o *Options) context.Context {
		// The global config is asked for again, and not answered, while the relay stops.
		o.at = at(StepDrain, func(x *run) { x.up.Close() })
		return nil
	}, knobs: []string{"cache.global_config_fetch_interval=1", "standin.drop=10", "drain=1500ms"}}, made{}},
	{"rate-limited", made{knobs: []string{"standin.refuse=429", "standin.refuse_every=4"}}, made{knobs: []string{"standin.refuse=413", "standin.refuse_every=4"}}},
	{"profiled", made{knobs: []string{"profiled=dwarf@99"}, with: func(t *testing.T, o *Options) context.Context {
		o.perf = fakePerf(t, "")
		return nil
	}}, made{knobs: []string{"profiled=no"}}},
	{"not-understood", made{with: func(t *testing.T, o *Options) context.Context {
		o.at = at("send", func(x *run) {
			attack(t, x.up.Addr(), "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{]")
		})
		return nil
	}}, made{}},
	{"flat-out", made{knobs: []string{"rate=max", "connections=1", "standin.answer_delay=20ms"}}, made{knobs: []string{"rate=50"}}},
}

// ofBuilds are the marks that tell of how a relay was built; no run makes them.
var ofBuilds = map[string]bool{"dirty-tree": true, "debug-build": true}

// TestMarksOfRuns makes the cause of each mark, and what is nearly its cause.
func TestMarksOfRuns(t *testing.T) {
	proved := map[string]bool{}
	for _, c := range causes {
		proved[c.mark] = true
		t.Run(c.mark, func(t *testing.T) {
			t.Parallel()
			if why, ok := c.with.marked(t, c.mark); !ok {
				t.Error("it is not marked")
			} else {
				t.Log(why)
			}
		})
		t.Run("not "+c.mark, func(t *testing.T) {
			t.Parallel()
			why, ok := c.near.marked(t, c.mark)
			for tries := 0; ok && c.near.calm && tries < 2; tries++ {
				why, ok = c.near.marked(t, c.mark)
			}
			if ok && c.near.calm && busyHost(t) {
				t.Skipf("the machine is too busy with other things to tell: %s", why)
			}
			if ok {
				t.Errorf("it is marked: %s", why)
			}
		})
	}
	for _, m := range store.Marks {
		if !proved[m.Name] && !ofBuilds[m.Name] {
			t.Errorf("%s: no run makes it", m.Name)
		}
	}
}

// marked makes the run and says whether its report has the mark.
func (m *made) marked(t *testing.T, mark string) (why string, ok bool) {
	t.Helper()
	p := relay.Program{Form: m.form}
	if m.form == "" {
		p = standIn(t)
	}
	o := Options{limits: quick()}
	ctx := context.Context(nil)
	if m.with != nil {
		ctx = m.with(t, &o)
	}
	if ctx == nil {
		ctx = t.Context()
	}
	plan := planned(t, append([]string{"mix=sessions", "pool=10", "duration=500ms", "rate=50"}, m.knobs...)...)
	r, err := Run(ctx, plan, p, o)
	if r == nil {
		t.Fatal(err)
	}
	report := &store.Report{Plan: plan.Record(), Result: r}
	report.Provenance.Relay = result.Relay(p)
	for _, m := range store.MarksOf(report) {
		if m.Name == mark {
			return m.Why, true
		}
	}
	return "", false
}

// at is a hook that does something at one step.
func at(step string, do func(x *run)) func(string, *run) {
	return func(s string, x *run) {
		if s == step {
			do(x)
		}
	}
}

// small has a run end when the relay has grown by about 50 MiB.
func small(t *testing.T, o *Options) context.Context {
	if runtime.GOOS != "linux" {
		t.Skip("the relay's memory is not known here")
	}
	var pid, limit atomic.Int64
	o.at = at(StepIdle, func(x *run) {
		rss, _, _, _ := processMemory(x.pid())
		pid.Store(int64(x.pid()))
		limit.Store(rss + 64<<20)
	})
	o.limits.memory = func() (left, total uint64, ok bool) {
		rss, _, _, ok := processMemory(int(pid.Load()))
		return uint64(max(0, limit.Load()-rss)), uint64(limit.Load()), ok
	}
	return nil
}

// neighbour is a process that keeps a CPU busy and is none of ours: it was left by a shell that has ended.
func neighbour(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other processes are not known here")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", "RELAYBENCH_ROLE=neighbour "+strconv.Quote(exe)+" >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
}

// neighbourMain keeps a CPU busy, for half a minute at most.
func neighbourMain() int {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
	}
	return 0
}

// busyHost says that others than this test take more of the CPUs than they may in a run.
func busyHost(t *testing.T) bool {
	t.Helper()
	before, from := othersCPU(os.Getpid()), time.Now()
	time.Sleep(500 * time.Millisecond)
	sum := int64(0)
	for pid, cpu := range othersCPU(os.Getpid()) {
		sum += cpu - before[pid]
	}
	// Other packages' tests, and their builds, come and go; so do those of this one, which are ours.
	load, _ := os.ReadFile("/proc/loadavg")
	var one float64
	fmt.Sscan(string(load), &one)
	return float64(sum) > 0.05*float64(time.Since(from))*host.CPUs() || one > host.CPUs()
}

// attack writes to an address and reads what comes until the other side closes, or for a second.
func attack(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	io.WriteString(c, text)
	answer := make([]byte, 1<<10)
	n, _ := c.Read(answer)
	return string(answer[:n])
}
