package harness

import (
	"context"
	"fmt"

	"relaybench/harness/perf"
	"relaybench/harness/relay"
)

// findProfiler sees whether the relay can be profiled as the plan has it, before anything starts.
func (x *run) findProfiler(ctx context.Context) error {
	if !x.plan.Profiled.On() {
		return nil
	}
	switch x.program.Form {
	case relay.FormNone:
		return fmt.Errorf("profile: no relay is started that could be profiled")
	case relay.FormURL:
		return fmt.Errorf("profile: a relay that is not started here is not profiled: its process is not known")
	case relay.FormImage:
		return fmt.Errorf("profile: a relay in a container is not profiled: what tells its functions' names is in the container, which is gone by then: profile the binary by its path")
	}
	find := perf.Find
	if x.opts.perf != nil {
		find = x.opts.perf
	}
	var err error
	if x.means, err = find(ctx, x.plan.Profiled.CallGraph); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}

// attachProfiler makes all ready to record the relay.
func (x *run) attachProfiler(ctx context.Context) (err error) {
	if x.plan.Profiled.On() {
		x.recording, err = perf.Start(ctx, x.means, x.plan.Profiled.Freq, x.pid())
	}
	return err
}

// beginProfile begins to record.
func (x *run) beginProfile(ctx context.Context) error {
	if x.recording == nil {
		return nil
	}
	return x.recording.Begin(ctx)
}

// endProfile ends recording, before the drain.
func (x *run) endProfile() {
	if x.recording != nil {
		x.recording.End()
	}
}

// profile makes the profile of what was recorded, once nothing is measured any more.
func (x *run) profile(ctx context.Context) {
	if x.recording == nil {
		return
	}
	defer x.recording.Close()
	if x.tally == nil { // the load did not begin
		return
	}
	x.hook(StepProfile)
	x.tell(func(o Observer) { o.Step(StepProfile) })
	x.res.Profile = x.recording.Profile(ctx)
}
