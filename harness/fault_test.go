package harness

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"relaybench/envelope"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// watchLeft gives a check that nothing of a run is left: no process below this one, no file in its own temporary folder.
func watchLeft(t *testing.T) (check func()) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return func() {
		t.Helper()
		if runtime.GOOS == "linux" {
			if left := descendants(t); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func descendants(t *testing.T) (commands []string) {
	t.Helper()
	procs, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	parent := map[int]int{}
	for _, p := range procs {
		if st, err := p.Stat(); err == nil && st.State != "Z" {
			parent[p.PID] = st.PPID
		}
	}
	for _, p := range procs {
		for at := parent[p.PID]; at > 0; at = parent[at] {
			if at == os.Getpid() {
				line, _ := p.CmdLine()
				commands = append(commands, strings.Join(line, " "))
			}
		}
	}
	return commands
}

// truths are what the stand-in can be told to do to its Nth sends, and where
// of all that was sent, and of what was struck, the ledger must have it.
var truths = []struct {
	name  string
	knobs []string
	every uint64 // which are struck, by their numbers
	want  func(k envelope.Kind, all, struck result.Cell, l result.Row) bool
	drain result.Drain
}{
	{"drop", []string{"standin.drop=10", "drain=1s"}, 10, func(_ envelope.Kind, all, struck result.Cell, l result.Row) bool {
		return l.Sends.Accepted == all.Sends && l.Sends.Arrived == all.Sends-struck.Sends && l.Items.Unaccounted == struck.Items && l.Repeats == 0
	}, result.Settled},
	{"repeat", []string{"standin.repeat=10"}, 10, func(_ envelope.Kind, all, struck result.Cell, l result.Row) bool {
		return l.Sends.Arrived == all.Sends && l.Repeats == struck.Sends && l.Items.Unaccounted == 0 && l.Items.Surplus == 0
	}, result.Drained},
	{"delay", []string{"standin.delay=300ms"}, 1, func(_ envelope.Kind, all, _ result.Cell, l result.Row) bool {
		return l.Sends.Arrived == all.Sends && l.Items.Arrived == all.Items && l.Items.Unaccounted == 0
	}, result.Drained},
	{"refuse 413", []string{"standin.refuse=413", "standin.refuse_every=4"}, 4, func(_ envelope.Kind, all, struck result.Cell, l result.Row) bool {
		return l.Sends.Arrived == all.Sends-struck.Sends && l.Refused["413 Request Entity Too Large"] == struck.Sends && l.Items.Outcomes == struck.Items &&
			l.Items.RefusedSilent == 0 && l.Items.Unaccounted == 0
	}, result.Drained},
	{"refuse 429", []string{"standin.refuse=429", "standin.refuse_every=4"}, 4, func(k envelope.Kind, all, struck result.Cell, l result.Row) bool {
		silent, reported := uint64(0), struck.Items
		if k.Name == "sessions" {
			silent, reported = reported, 0
		}
		return l.Sends.Arrived == all.Sends-struck.Sends && l.Sends.Refused == struck.Sends && l.Items.Outcomes == reported && l.Items.RefusedSilent == silent && l.Items.Unaccounted == 0
	}, result.Drained},
	{"outcome", []string{"standin.outcome_every=5"}, 5, func(_ envelope.Kind, all, struck result.Cell, l result.Row) bool {
		return l.Sends.Arrived == all.Sends-struck.Sends && l.Items.Outcomes == struck.Items && l.Items.Unaccounted == 0
	}, result.Drained},
	{"die", []string{"standin.crash_after=30"}, 1, func(_ envelope.Kind, all, _ result.Cell, l result.Row) bool {
		return l.Items.Unaccounted == all.Items-l.Items.Arrived && l.Items.Outcomes == 0 && l.Repeats == 0
	}, result.DrainExited},
}

// TestStandInTruths sets the stand-in to lose, repeat, hold back and refuse
// what is known, in all kinds at once, and wants exactly that in the ledger of
// each, whatever encoding it forwards in. RELAYBENCH_ALL=1 tries each with each
// encoding, else each encoding and each of them comes once at least.
func TestStandInTruths(t *testing.T) {
	var kinds []string
	for _, k := range envelope.Kinds {
		kinds = append(kinds, k.Name+"=1")
	}
	for i, tt := range truths {
		for j, encoding := range envelope.Encodings {
			if os.Getenv("RELAYBENCH_ALL") == "" && j != i%len(envelope.Encodings) {
				continue
			}
			t.Run(tt.name+"/"+encoding.Name, func(t *testing.T) {
				t.Parallel()
				var x *run
				o := Options{limits: quick(), at: at(StepLoad, func(r *run) { x = r })}
				plan := planned(t, append([]string{"mix=" + strings.Join(kinds, ","), "duration=500ms", "rate=200", "drain=5s", "http.encoding=" + encoding.Name}, tt.knobs...)...)
				r, err := Run(t.Context(), plan, standIn(t), o)
				if r == nil || (err != nil) != (tt.name == "die") || err != nil && !errors.Is(err, ErrRelayDied) {
					t.Fatalf("%v\n%s", err, lastLog(r))
				}
				l := result.LedgerOf(r)
				checkLedger(t, r, l)
				all, struck := map[string]*result.Cell{}, map[string]*result.Cell{}
				for _, k := range envelope.Kinds {
					all[k.Name], struck[k.Name] = &result.Cell{}, &result.Cell{}
				}
				for seq := range r.Tally.Due {
					if !r.Tally.Log.Answer(seq).Sent() {
						continue
					}
					name, items := x.pool.Kinds()[x.pool.Kind(seq)].Name, uint64(x.pool.Elements(seq))
					all[name].Sends++
					all[name].Items += items
					if (seq+1)%tt.every == 0 {
						struck[name].Sends++
						struck[name].Items += items
					}
				}
				if r.Tally.Sent == 0 {
					t.Error("nothing was sent")
				}
				for _, row := range l.Kinds {
					k := envelope.Find(envelope.Kinds, row.Kind)
					if !tt.want(*k, *all[row.Kind], *struck[row.Kind], row) {
						t.Errorf("%s: of %+v, %+v struck: %+v\n%s", row.Kind, *all[row.Kind], *struck[row.Kind], row, lastLog(r))
					}
				}
				if r.Drain != tt.drain {
					t.Errorf("drain %q, want %q\n%s", r.Drain, tt.drain, lastLog(r))
				}
			})
		}
	}
}

func TestStandInCrash(t *testing.T) {
	left := watchLeft(t)
	r, err := Run(t.Context(), planned(t, "standin.crash_after=50"), standIn(t), Options{limits: quick()})
	if !errors.Is(err, ErrRelayDied) || r == nil {
		t.Fatalf("result %v, error %v, want %v", r != nil, err, ErrRelayDied)
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	if s := l.Total.Sends; s.Accepted > 50 || !strings.Contains(r.Relay.Died, "101") {
		t.Errorf("died %q, %+v, want exit status 101 after about 50", r.Relay.Died, s)
	}
	left()
}

// TestEachStep ends the run in different ways at each of its steps, and wants
// an error that says so, and nothing left.
func TestEachStep(t *testing.T) {
	left := watchLeft(t)
	t.Run("all", testEachStep) // ends when all of its own have
	left()
}

func testEachStep(t *testing.T) {
	steps := []string{StepCheck, StepUpstream, StepRelay, StepReady, StepIdle, StepLoad, StepDrain, StepStop}
	stop := errors.New("interrupted")
	for _, tt := range []struct {
		name string
		from string // the first step in which it can be done
		do   func(t *testing.T, x *run, cancel context.CancelCauseFunc)
		ok   func(step string, r *result.Result, err error) bool
	}{
		{"cancelled", StepCheck, func(_ *testing.T, _ *run, cancel context.CancelCauseFunc) { cancel(stop) },
			func(step string, r *result.Result, err error) bool {
				if step == StepDrain || step == StepStop {
					return err == nil || errors.Is(err, stop)
				}
				return errors.Is(err, stop)
			}},
		{"relay killed", StepReady, func(t *testing.T, x *run, _ context.CancelCauseFunc) {
			if pid := x.pid(); pid > 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			} else {
				x.proc.Stop(0)
			}
		}, func(step string, r *result.Result, err error) bool {
			if step == StepDrain || step == StepStop { // nothing may be left to wait for
				return (err == nil || errors.Is(err, ErrRelayDied)) && r != nil
			}
			return errors.Is(err, ErrRelayDied) && r != nil
		}},
		{"relay stopped", StepIdle, func(t *testing.T, x *run, _ context.CancelCauseFunc) {
			if err := syscall.Kill(x.pid(), syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
		}, func(_ string, r *result.Result, err error) bool { return err == nil && r != nil && r.Relay.Exit.Killed }},
		{"upstream gone", StepRelay, func(_ *testing.T, x *run, _ context.CancelCauseFunc) { x.up.Close() },
			func(step string, r *result.Result, err error) bool {
				switch step {
				case StepRelay, StepReady:
					return err != nil && strings.Contains(err.Error(), "ready: ")
				}
				return err == nil && r != nil
			}},
	} {
		for _, step := range steps[slices.Index(steps, tt.from):] {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				short := *quick()
				short.ready, short.global, short.warm, short.grace = 3*time.Second, 3*time.Second, 3*time.Second, 3*time.Second
				o := Options{limits: &short, at: func(at string, x *run) {
					if at == step {
						tt.do(t, x, cancel)
					}
				}}
				r, err := Run(ctx, planned(t, "duration=300ms", "drain=300ms", "pool=20", "timeout=300ms"), standIn(t), o)
				if !tt.ok(step, r, err) {
					t.Errorf("result %v, error %v", r != nil, err)
				}
				if r != nil {
					checkLedger(t, resultWithTally(r), result.LedgerOf(r))
				}
			})
		}
	}
}

// resultWithTally is r with an empty tally where there was no load.
func resultWithTally(r *result.Result) *result.Result {
	if r.Tally == nil {
		c := *r
		c.Tally = result.NewTally(0, 1)
		return &c
	}
	return r
}

func TestStalledRelay(t *testing.T) {
	left := watchLeft(t)
	short := *quick()
	short.ready = time.Second
	r, err := Run(t.Context(), planned(t, "standin.slow_start=30s"), standIn(t), Options{limits: &short})
	if err == nil || r == nil || !strings.Contains(err.Error(), "did not become ready within 1s") {
		t.Errorf("error %v, want what was waited for", err)
	}
	left()
	short = *quick()
	short.warm = 1500 * time.Millisecond
	_, err = Run(t.Context(), planned(t, "standin.hold=true"), standIn(t), Options{limits: &short})
	if err == nil || !strings.Contains(err.Error(), "warm-up envelopes were answered but not seen again") {
		t.Errorf("error %v, want the warm-up that did not come", err)
	}
	left()
}

func TestRelayDiesInDrain(t *testing.T) {
	left := watchLeft(t)
	o := Options{limits: quick(), at: func(step string, x *run) {
		if step == StepDrain {
			syscall.Kill(x.pid(), syscall.SIGKILL)
		}
	}}
	r, err := Run(t.Context(), planned(t, "duration=300ms", "standin.delay=1m"), standIn(t), o)
	if !errors.Is(err, ErrRelayDied) || r == nil || r.FailedStep != StepDrain {
		t.Fatalf("result %v, error %v, want %v in the drain", r != nil, err, ErrRelayDied)
	}
	if l := result.LedgerOf(r); r.Drain != result.DrainExited || l.Total.Items.Unaccounted != l.Total.Items.Sent {
		t.Errorf("drain %q, %+v, want all that was sent unaccounted", r.Drain, l.Total)
	}
	left()
}

// TestUpstreamStalls has an upstream that takes everything and answers nothing
// for long: what it took has arrived, and the run does not wait for the answers.
func TestUpstreamStalls(t *testing.T) {
	left := watchLeft(t)
	r, l := ran(t, standIn(t), Options{}, "upstream-latency=1m", "duration=300ms", "drain=500ms")
	closed(t, r, l, 60)
	if r.Upstream.OpenMax < 50 {
		t.Errorf("at most %d requests were open at the upstream, want those of a stall", r.Upstream.OpenMax)
	}
	left()
}

// TestSenderProcessKilled wants the run of a sender that was killed to end with
// an error that says so, its result kept and the others ended.
func TestSenderProcessKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sender processes are found by /proc")
	}
	left := watchLeft(t)
	o := Options{limits: quick(), at: func(step string, _ *run) {
		if step == "send" {
			for _, pid := range sendersBelow(t)[:1] {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}}
	r, err := Run(t.Context(), planned(t, "duration=500ms", "connections=2x4"), standIn(t), o)
	if err == nil || r == nil || !strings.Contains(err.Error(), "sender process") || r.FailedStep != StepLoad {
		t.Fatalf("result %v, error %v, want one that names the sender process", r != nil, err)
	}
	checkLedger(t, r, result.LedgerOf(r))
	left()
}

// sendersBelow are the sender processes that this one started.
func sendersBelow(t *testing.T) (pids []int) {
	t.Helper()
	procs, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		st, err := p.Stat()
		if err != nil || st.PPID != os.Getpid() {
			continue
		}
		if env, err := p.Environ(); err == nil && slices.Contains(env, "RELAYBENCH_ROLE=sender") {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("%d sender processes, want 2", len(pids))
	}
	return pids
}

func TestSomebodyElsesUpstream(t *testing.T) {
	left := watchLeft(t)
	// A relay whose upstream is another address than the one that we listen on.
	other, err := relay.Start(t.Context(), standIn(t), relay.Setup{Upstream: "127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	short := *quick()
	short.warm = time.Second
	_, err = Run(t.Context(), planned(t), relay.Program{Form: relay.FormURL, URL: "http://" + other.Addr(), Upstream: "127.0.0.1:0"}, Options{limits: &short})
	if err == nil || !strings.Contains(err.Error(), "is the relay's upstream this address?") && !strings.Contains(err.Error(), "warm-up") {
		t.Errorf("error %v, want a hint at the upstream's address", err)
	}
	other.Stop(0)
	left()
}

// TestMallocs wants no memory to be allocated for a send, at either end.
func TestMallocs(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector pools drop what they hold: go test without -race counts allocations")
	}
	enough := errors.New("enough")
	mallocs := func(rate string) uint64 {
		before, after := runtime.MemStats{}, runtime.MemStats{}
		ctx, cancel := context.WithCancelCause(t.Context())
		o := Options{limits: quick(), at: func(step string, x *run) {
			switch step {
			case "send":
				runtime.ReadMemStats(&before)
				time.AfterFunc(800*time.Millisecond, func() { cancel(enough) }) // before the first sample, which allocates
			case "sent":
				runtime.ReadMemStats(&after)
			}
		}}
		p := planned(t, "duration=10s", "rate="+rate, "mix=mixed", "connections=8")
		if _, err := Run(ctx, p, relay.Program{Form: relay.FormNone}, o); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		return after.Mallocs - before.Mallocs
	}
	mallocs("12500") // pools fill
	few, many := mallocs("12500"), mallocs("25000")
	for range 2 { // the runtime's own come and go: the least of three counts
		few, many = min(few, mallocs("12500")), min(many, mallocs("25000"))
	}
	if many > few+100 {
		t.Errorf("10,000 more sends made %d more allocations (%d, %d), want under 100", many-few, few, many)
	}
}
