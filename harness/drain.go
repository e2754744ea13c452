package harness

import (
	"context"
	"fmt"
	"math"
	"time"

	"relaybench/harness/result"
)

// quietCPU is how much of a core above its idle use a relay may take and still count as quiet.
const quietCPU = 0.05

// againWithin is how long ago a request must have come for a relay to be at
// sending again what was turned away. Source: Relay waits 1 s (http.retry_delay).
const againWithin = 3 * time.Second

// drain waits until everything is accounted for, or until nothing that was
// missing has come for the plan's drain time. What comes again and is turned
// away again does not prolong it: an upstream that answers 5xx for ever ends it too. It outlives ctx, for the sake of what was sent, but
// then for no longer than that time; where that cut it off, the error is ctx's
// cause. A relay that ends by itself meanwhile is an error.
func (x *run) drain(ctx context.Context) error {
	x.res.Drain = x.awaitDrain(ctx)
	x.res.DrainEnd = max(x.now(), x.res.LoadEnd)
	x.res.Samples = x.sampler.close()
	x.meter.drainEnded()
	if died := x.res.Relay.Died; died != "" {
		return fmt.Errorf("%w: %s", ErrRelayDied, died)
	}
	if x.res.Drain == result.NotDrained {
		return context.Cause(ctx)
	}
	return nil
}

func (x *run) awaitDrain(ctx context.Context) result.Drain {
	const poll = 10 * time.Millisecond
	tick := time.NewTicker(poll)
	defer tick.Stop()
	from := x.now()
	var nextJoin int64
	news, left := from, uint64(math.MaxUint64) // when the fewest were missing, and how many
	died := x.died()
	exited := int64(0)
	pid := x.pid()
	busy := newBusy(pid, x.res.Relay.IdleCPU, x.res.Relay.IdleTook)
	for {
		now := x.now()
		if now >= nextJoin {
			missing := x.missing()
			if missing == 0 {
				return result.Drained
			}
			if missing < left {
				left, news = missing, x.now()
			}
			// A join looks at every send: it may take a tenth of the time, no more.
			nextJoin = x.now() + max(int64(poll), 10*(x.now()-now))
		}
		switch quiet := time.Duration(x.now() - news); {
		case exited != 0:
		case quiet >= x.plan.Drain && busy.looked():
			if x.missing() == 0 {
				return result.Drained
			}
			if ago := x.now() - x.up.Changed(); x.kept > 0 && ago < int64(max(againWithin, x.plan.Drain/2)) {
				x.res.DrainWhy = fmt.Sprintf("the upstream turned %d of them away, and none of what came again within %v was new", x.kept, x.plan.Drain)
				return result.NotDrained
			}
			if !busy.known() {
				return result.DrainUnknown
			}
			if x.up.Open() > 0 || busy.working() {
				return result.NotDrained
			}
			return result.Settled
		case quiet > x.plan.Drain-min(time.Second, x.plan.Drain/2):
			busy.look()
		default:
			busy.forget() // something new came: the window begins anew
		}
		if ctx.Err() != nil && x.now()-from > int64(x.plan.Drain) {
			return result.NotDrained
		}
		if exited != 0 && x.up.Open() == 0 && x.now()-max(x.up.Changed(), exited) > int64(200*time.Millisecond) {
			if x.missing() == 0 {
				return result.Drained
			}
			return result.DrainExited
		}
		select {
		case <-tick.C:
		case <-died:
			died, exited = nil, x.now()
			if x.res.Relay.Died == "" {
				_ = x.death()
			}
		case <-x.opts.Kill:
			return result.NotDrained
		}
	}
}

// missing is how many items the ledger lacks as things stand.
func (x *run) missing() uint64 {
	x.join()
	r := *x.res
	r.Drain = result.NotDrained
	return result.LedgerOf(&r).Total.Items.InFlight
}

// busy tells whether the relay still works: its CPU use over the last part of the drain, less its idle use.
type busy struct {
	pid      int
	idle     float64   // cores
	from     time.Time // the window's begin; zero: there is none yet
	cpu      int64
	measured bool
}

func newBusy(pid int, idleCPU, idleTook int64) *busy {
	b := &busy{pid: pid}
	if idleTook > 0 {
		b.idle = float64(idleCPU) / float64(idleTook)
	}
	_, b.measured = processCPU(pid)
	return b
}

func (b *busy) known() bool { return b.measured }

func (b *busy) looked() bool { return !b.from.IsZero() }

func (b *busy) forget() { b.from = time.Time{} }

// look begins the window, where there is none.
func (b *busy) look() {
	if b.from.IsZero() {
		b.from = time.Now()
		b.cpu, b.measured = processCPU(b.pid)
	}
}

func (b *busy) working() bool {
	cpu, ok := processCPU(b.pid)
	took := time.Since(b.from)
	if !ok || took <= 0 {
		return false
	}
	return float64(cpu-b.cpu)/float64(took) > b.idle+quietCPU
}
