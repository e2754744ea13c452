// Package harness is the engine: it executes one plan against one relay and
// brings back what was observed.
//
// It knows the relay process, the blaster, the upstream, samples and drain. It
// must never know the store, commands, printing or signals.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"relaybench/envelope"
	"relaybench/harness/blaster"
	"relaybench/harness/perf"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/harness/statsd"
	"relaybench/harness/variable"
	"relaybench/upstream"
)

// Observer is told how a run goes. Its methods are called from one goroutine
// at a time and must not block.
type Observer interface {
	// Step is called when a step of the run begins, with its name.
	Step(name string)
	// Sample is called with each sample, once a second during load and drain.
	Sample(result.Sample)
}

// Options are what a run may be given beside its plan and relay. The zero value is fine.
type Options struct {
	Observer Observer
	// Kill, when closed after ctx has ended, ends the relay at once instead of
	// waiting for it to drain or stopping it gently.
	Kill <-chan struct{}
	// Relay is called with the run's relay once it is started, where it is one of ours.
	// Its log may be asked for at any time. May be nil.
	Relay func(*relay.Process)

	// For tests.
	kinds  []envelope.Kind
	fault  upstream.Fault
	quotas []upstream.Quota
	via    func(upstream string) (addr string) // what the relay forwards to instead
	perf   func(ctx context.Context, callGraphs ...string) (perf.Means, error)
	limits *limits
	at     func(step string, x *run) // called when a step begins
}

// The steps of a run, by the names that observers, results and errors have them.
const (
	StepCheck    = "check"
	StepUpstream = "start upstream"
	StepRelay    = "start relay"
	StepReady    = "ready"
	StepIdle     = "idle"
	StepStatsd   = "statsd flush" // before the load, and again after the drain
	StepLoad     = "load"
	StepDrain    = "drain"
	StepStop     = "stop relay"
	StepProfile  = "profile"
)

// limits are how long a run waits for what.
type limits struct {
	ready  time.Duration                        // from the relay's start to its health check
	global time.Duration                        // then to its query for the global config
	warm   time.Duration                        // then to settled warm-up, with progress
	idle   time.Duration                        // the idle window
	flush  time.Duration                        // until a flush of statsd begins, or after the drain until one is whole
	grace  time.Duration                        // from SIGTERM to SIGKILL
	rounds int                                  // of the calibration
	memory func() (left, total uint64, ok bool) // nil: what the host tells
}

var defaultLimits = limits{ready: 60 * time.Second, global: 30 * time.Second, warm: 30 * time.Second,
	idle: 500 * time.Millisecond, flush: 3 * flushEvery, grace: 10 * time.Second, rounds: calibrateRounds}

// ErrRelayDied is in the error of a run whose relay ended by itself.
var ErrRelayDied = errors.New("the relay ended by itself")

// run is the state of one Run.
type run struct {
	plan    plan.Plan
	program relay.Program
	opts    Options
	limits  limits
	zero    int64 // on envelope.Now
	epoch   time.Time

	kinds []envelope.Kind // the whole table: the upstream's indexes are into it
	index []int           // pool kind index → index in kinds
	pool  *envelope.Pool
	conf  envelope.PoolConfig
	up    *upstream.Server
	proc  *relay.Process // nil where there is none of ours
	addr  string         // where sends go
	agent *through
	live  blaster.Live
	tally *result.Tally
	kept  uint64         // sends that the upstream turned away and that the relay keeps, by the last join
	base  upstream.Stats // at load start: warm-up's share is taken off

	statsd *statsd.Receiver // nil: none
	from   int64            // since when it counts

	senders *blaster.Processes // nil: this process sends
	meter   *meter
	sampler *sampler

	unpin     func() error // nil: this process is not pinned
	means     perf.Means
	recording *perf.Recording // nil: the relay is not profiled

	res   *result.Result
	step  string
	notes sync.Mutex // one call of the observer at a time
}

// Run executes p against r. Nothing starts before it and nothing survives it.
// The result is not nil once a relay was started, also with an error: what was
// observed until then is worth keeping. When ctx ends, the load stops, what
// was sent is drained for at most the plan's drain, the result says so, and
// the error is ctx's cause.
func Run(ctx context.Context, p plan.Plan, r relay.Program, o Options) (*result.Result, error) {
	x := &run{plan: p, program: r, opts: o, limits: defaultLimits, kinds: o.kinds, zero: envelope.Now(), epoch: time.Now()}
	if o.limits != nil {
		x.limits = *o.limits
	}
	if x.kinds == nil {
		x.kinds = envelope.Kinds
	}
	if p.Folder != nil {
		x.kinds = p.Folder.Kinds
	}
	x.res = &result.Result{Started: x.epoch.UTC(), Target: "relay"}

	started := false
	err := func() error {
		if err := x.begin(ctx, StepCheck, x.check); err != nil {
			return err
		}
		if err := x.begin(ctx, StepUpstream, x.startUpstream); err != nil {
			return err
		}
		if err := x.begin(ctx, StepRelay, x.startRelay); err != nil {
			return err
		}
		started = true
		for _, s := range []struct {
			name string
			do   func(context.Context) error
		}{{StepReady, x.ready}, {StepIdle, x.idle}, {StepStatsd, x.awaitFlush}, {StepLoad, x.load}} {
			if s.name == StepStatsd && x.statsd == nil {
				continue
			}
			if err := x.begin(ctx, s.name, s.do); err != nil {
				return err
			}
		}
		return nil
	}()
	step := x.step
	if x.tally != nil {
		// The drain outlives a cancelled ctx: what was sent is to be accounted for.
		if cut := x.begin(context.WithoutCancel(ctx), StepDrain, func(context.Context) error { return x.drain(ctx) }); err == nil && cut != nil {
			step, err = StepDrain, cut
		}
		if Held(x.plan) > 0 {
			// What cuts it short is no error: load and drain were whole.
			_ = x.begin(context.WithoutCancel(ctx), StepStatsd, func(context.Context) error { return x.holdForFlush(ctx) })
		}
	}
	x.stop()
	x.profile(ctx)
	x.finish()
	if free := x.free(); err == nil && free != nil {
		err = free
	}
	if err != nil {
		x.res.FailedStep = step
		if cause := context.Cause(ctx); ctx.Err() != nil && errors.Is(err, cause) {
			x.res.Cancelled = cause.Error()
		} else {
			x.res.Failed = err.Error()
		}
	}
	if !started {
		return nil, err
	}
	return x.res, err
}

// begin tells the observer and does a step; its error names the step.
func (x *run) begin(ctx context.Context, name string, do func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x.step = name
	x.hook(name)
	x.tell(func(o Observer) { o.Step(name) })
	if err := do(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// hook lets a test act at a step.
func (x *run) hook(name string) {
	if x.opts.at != nil {
		x.opts.at(name, x)
	}
}

func (x *run) tell(say func(Observer)) {
	if x.opts.Observer == nil {
		return
	}
	x.notes.Lock()
	defer x.notes.Unlock()
	say(x.opts.Observer)
}

// now is the time since the run's zero.
func (x *run) now() int64 { return envelope.Now() - x.zero }

// check does all that can fail before anything is started, and builds the pool.
func (x *run) check(ctx context.Context) error {
	if err := x.plan.Check(); err != nil {
		return err
	}
	if err := readable(x.plan, x.program); err != nil {
		return err
	}
	if err := x.pin(); err != nil {
		return err
	}
	if err := x.findProfiler(ctx); err != nil {
		return err
	}
	if err := checkFiles(filesNeeded(x.plan, x.program.Form)); err != nil {
		return err
	}
	var err error
	if x.conf, err = x.plan.PoolConfig(x.opts.kinds, x.epoch); err != nil {
		return fmt.Errorf("mix: %w", err)
	}
	if x.pool, err = envelope.NewPool(x.conf); err != nil {
		return err
	}
	for _, k := range x.pool.Kinds() {
		for i := range x.kinds {
			if x.kinds[i].Name == k.Name {
				x.index = append(x.index, i)
			}
		}
	}
	x.agent = newThrough(len(x.kinds))
	x.res.CalibrationBefore = calibrate(ctx, x.limits.rounds)
	return nil
}

func (x *run) startUpstream(context.Context) error {
	conns := 0
	if x.program.Form == relay.FormNone {
		conns = x.plan.Processes*x.plan.Connections + spareFiles
	}
	up, err := upstream.Start(upstream.Config{Conns: conns, Addr: x.program.Upstream, Kinds: x.kinds, Zero: x.zero,
		Latency: x.plan.Latency, Quotas: x.opts.quotas, Fault: x.opts.fault, Arrived: x.agent.add})
	if err != nil {
		return err
	}
	x.up = up
	return nil
}

func (x *run) startRelay(ctx context.Context) error {
	forward := x.up.Addr()
	if x.opts.via != nil {
		forward = x.opts.via(forward)
	}
	switch x.program.Form {
	case relay.FormNone:
		x.addr, x.res.Target = forward, "upstream"
	case relay.FormURL:
		u, err := url.Parse(x.program.URL)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%q is not the URL of a relay", x.program.URL)
		}
		if x.addr = u.Host; u.Port() == "" {
			x.addr += ":80"
		}
	default:
		with := setup(x.plan, forward)
		if err := x.startStatsd(&with); err != nil {
			return err
		}
		proc, err := relay.Start(ctx, x.program, with)
		if err != nil {
			return err
		}
		x.proc, x.addr = proc, proc.Addr()
		if x.opts.Relay != nil {
			x.opts.Relay(proc)
		}
		e := proc.Effective()
		x.res.Relay.Config, x.res.Relay.ConfigHash, x.res.Relay.Ignored = e.YAML, e.Hash, e.Ignored
		x.res.Relay.Limit = concurrencyLimit(e.YAML)
	}
	return nil
}

// idle measures the relay's CPU without load.
func (x *run) idle(ctx context.Context) error {
	pid := x.pid()
	before, ok := processCPU(pid)
	from := x.now()
	if !ok {
		return nil
	}
	if err := x.sleep(ctx, x.limits.idle); err != nil {
		return err
	}
	if after, ok := processCPU(pid); ok {
		x.res.Relay.IdleCPU, x.res.Relay.IdleTook = after-before, x.now()-from
	}
	return nil
}

// pid is the process that is measured; 0 where there is none that can be seen.
func (x *run) pid() int {
	if x.proc == nil {
		return 0
	}
	return x.proc.PID()
}

// sleep waits for d, or for the end of ctx or of the relay.
func (x *run) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.died():
		return x.death()
	}
}

// died is closed when a relay of ours has ended.
func (x *run) died() <-chan struct{} {
	if x.proc == nil {
		return nil
	}
	return x.proc.Done()
}

// death is the error of a relay that ended by itself.
func (x *run) death() error {
	how := x.proc.Exit().Status
	if how == "" {
		how = "exit status 0"
	}
	if l := x.proc.MemoryLimit(); l != nil && l.Kills > 0 {
		how += fmt.Sprintf(", by the kernel, at its limit of %s of memory", variable.FormatSize(l.Bytes))
	}
	x.res.Relay.Died = how
	return fmt.Errorf("%w: %s", ErrRelayDied, how)
}

// stop ends the senders, the relay and then the upstream.
func (x *run) stop() {
	if x.senders != nil {
		x.senders.Close()
	}
	if x.proc != nil {
		x.step = StepStop
		x.hook(StepStop)
		x.tell(func(o Observer) { o.Step(StepStop) })
		if x.tally != nil {
			for _, m := range x.proc.Messages() {
				x.res.Relay.Messages = append(x.res.Relay.Messages, result.Message(m))
			}
		}
		grace := x.limits.grace
		if d := x.res.Drain; d != result.Drained && d != result.Settled && x.tally != nil {
			grace = 0 // it would write a line for each envelope that it drops
		}
		stopped := make(chan struct{})
		go func() { // a kill cuts the grace short
			defer close(stopped)
			e := x.proc.Stop(grace)
			x.res.Relay.Exit = result.Exit{Ended: e.Ended, Status: e.Status, Killed: e.Killed, Took: int64(e.Took)}
		}()
		select {
		case <-stopped:
		case <-x.opts.Kill:
			x.proc.Stop(0)
			<-stopped
		}
		x.res.Relay.Log = x.proc.Tail(logTail)
		x.res.Relay.MemoryLimit = x.proc.MemoryLimit()
	}
	if x.up != nil {
		x.up.Close()
	}
	if x.statsd != nil {
		x.statsd.Close()
	}
}

// logTail is how many of the relay's last log lines a result keeps.
const logTail = 100

// finish puts together what is left.
func (x *run) finish() {
	if x.pool != nil {
		x.res.Pool = x.poolFacts()
	}
	if x.up != nil {
		x.res.Upstream = x.upstreamFacts()
	}
	if x.tally != nil {
		x.join()
		x.res.CalibrationAfter = calibrate(context.Background(), x.limits.rounds)
	}
	x.res.Ended = time.Now().UTC()
}
