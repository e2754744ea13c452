package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/statsd"
)

// flushEvery is how often a relay sends what it has gathered for statsd, and
// over how long it then spreads it. Source: metrics-exporter-dogstatsd 0.9.6, of
// Relay 26.4, which sets no other.
const flushEvery = 10 * time.Second

// Held is about how much longer a run takes for its plan's statsd: the load
// waits for a flush, and the relay is kept until a last one is out.
func Held(p plan.Plan) time.Duration {
	switch p.Statsd {
	case plan.StatsdOff, "":
		return 0
	case plan.StatsdOn:
		return 2 * flushEvery // half of one before, and one and a half after
	}
	return 2*flushEvery + time.Second
}

// startStatsd starts the receiver where the plan has one, and completes what the relay is started with.
func (x *run) startStatsd(s *relay.Setup) error {
	if x.plan.Statsd != plan.StatsdOn {
		return nil
	}
	r, err := statsd.Start()
	if err != nil {
		return err
	}
	x.statsd = r
	s.Statsd = r.Addr()
	return nil
}

// awaitFlush waits until the relay has sent off what it has gathered, so that
// nothing of the warm-up is in what it gathers from here on.
func (x *run) awaitFlush(ctx context.Context) error {
	none := fmt.Errorf("nothing came at %s within %v", x.statsd.Addr(), x.limits.flush)
	ctx, done := x.alive(ctx, none)
	defer done()
	if err := x.statsd.Begin(ctx); err != nil {
		if errors.Is(err, ErrRelayDied) {
			return x.death()
		}
		return err
	}
	x.from = x.now()
	return nil
}

// holdForFlush keeps the relay until what it has gathered for statsd is out,
// while ctx lasts, and takes what the receiver has.
func (x *run) holdForFlush(ctx context.Context) error {
	if x.statsd == nil { // nobody here sees it go out
		_ = x.sleep(ctx, Held(x.plan))
		return nil
	}
	ctx, done := x.alive(ctx, fmt.Errorf("no flush was whole within %v", x.limits.flush))
	defer done()
	to := x.now()
	err := x.statsd.End(ctx)
	s := x.statsd.Result()
	s.From, s.To = x.from, to
	if err != nil {
		s.Cut = err.Error()
	}
	x.res.Statsd = s
	return nil
}

// alive is ctx until the limit for flushes, or until the relay ends or is to be
// killed. done is to be called when it is not needed any more.
func (x *run) alive(ctx context.Context, late error) (alive context.Context, done func()) {
	ctx, stop := context.WithTimeoutCause(ctx, x.limits.flush, late)
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-x.died():
			cancel(ErrRelayDied)
		case <-x.opts.Kill:
			cancel(errors.New("the relay was killed"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		stop()
		<-watched
	}
}
