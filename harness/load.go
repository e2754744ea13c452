package harness

import (
	"context"
	"errors"
	"time"

	"relaybench/harness/blaster"
	"relaybench/harness/host"
)

// load sends. It returns when the last send is answered or given up.
func (x *run) load(ctx context.Context) error {
	if x.proc != nil {
		x.proc.ResetMessages()
	}
	defer host.HoldCollector()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	if err := x.attachProfiler(ctx); err != nil {
		return err
	}
	x.base = x.up.Stats()
	x.startMeter()
	if err := x.beginProfile(ctx); err != nil {
		return err
	}
	start := x.now() + int64(10*time.Millisecond)
	x.res.LoadStart = start
	x.sampler = x.startSampler(start)
	load := x.share()
	load.Schedule.Start = start

	watch := make(chan struct{})
	go func() {
		defer close(watch)
		x.guard(ctx, cancel)
	}()
	x.hook("send")
	var err error
	if x.senders != nil {
		x.tally, err = x.senders.Run(ctx, x.zero, start, &x.live)
	} else {
		x.tally, err = blaster.Run(ctx, load, x.pool, &x.live)
	}
	x.hook("sent")
	x.res.LoadEnd = start + int64(x.plan.Duration)
	if left := x.res.LoadEnd - x.now(); err == nil && left > 0 {
		// The load lasts as long as the plan says, also where its last send is answered earlier.
		err = x.sleep(ctx, time.Duration(left))
	}
	if err != nil {
		x.res.LoadEnd = min(x.res.LoadEnd, x.now())
		close(x.sampler.cut)
	}
	x.meter.loadEnded()
	x.endProfile()
	stopped := ctx.Err() != nil
	cancel(nil)
	<-watch

	var guard *memoryGuard
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case stopped && errors.Is(cause, ErrRelayDied):
		return x.death()
	case stopped && errors.As(cause, &guard):
		x.res.MemoryGuard = guard.Error()
		return nil
	}
	return err
}

// share is the whole load, as one blaster would send it.
func (x *run) share() blaster.Load {
	return blaster.Load{Addr: x.addr, Pool: x.conf, Zero: x.zero, Duration: x.plan.Duration,
		Schedule:    blaster.Schedule{Rate: x.plan.Rate, Burst: uint64(x.plan.Burst), Stride: 1},
		Connections: x.plan.Connections, Reconnect: x.plan.Reconnect, Timeout: x.plan.Timeout}
}
