package harness

import (
	"context"
	"fmt"
	"strings"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

// CheckConfig says before a run why the relay would not take the plan's config;
// nothing is started but `relay config show`, and without a config nothing at all.
func CheckConfig(ctx context.Context, p plan.Plan, r relay.Program) error {
	if err := readable(p, r); err != nil || len(p.Settings) == 0 && p.ConfigText == "" && p.Memory == 0 {
		return err
	}
	_, err := relay.Check(ctx, r, setup(p, ""))
	return err
}

// Effective is the config that a relay would run a plan with; nothing is started but `relay config show`.
func Effective(ctx context.Context, p plan.Plan, r relay.Program) (relay.Effective, error) {
	if r.Form == relay.FormNone || r.Form == relay.FormURL {
		return relay.Effective{}, fmt.Errorf("%s: its config is not ours to give", r)
	}
	return relay.Check(ctx, r, setup(p, "127.0.0.1:1"))
}

// setup is what a relay that sends to upstream is started with.
func setup(p plan.Plan, upstream string) relay.Setup {
	s := relay.Setup{Upstream: upstream, Base: p.ConfigText, CPUs: p.RelayCPUs, Memory: p.Memory}
	if p.Statsd != plan.StatsdOn { // whose address is not known yet
		s.Statsd = strings.TrimPrefix(p.Statsd, plan.StatsdOff)
	}
	for _, set := range p.Settings {
		s.Set = append(s.Set, relay.Setting(set))
	}
	return s
}

// readable refuses a config that nothing reads: the report would name it as a condition of its figures.
func readable(p plan.Plan, r relay.Program) error {
	why := ""
	switch r.Form {
	case relay.FormNone:
		why = "no relay is started that could read it"
	case relay.FormURL:
		why = "a relay that is not started here keeps the config that its owner gave it"
	default:
		return nil
	}
	if Held(p) > 0 {
		return fmt.Errorf("statsd %q: %s", p.Statsd, why)
	}
	if len(p.Settings) > 0 {
		return fmt.Errorf("set %q: %s", p.Settings[0].Key, why)
	}
	if p.ConfigText != "" {
		return fmt.Errorf("config %q: %s", p.Config, why)
	}
	return givable(p, r)
}
