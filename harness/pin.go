package harness

import (
	"fmt"
	"os"
	"slices"

	"relaybench/harness/host"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/variable"
)

// CheckHost says why this host cannot run a plan, whatever the relay.
func CheckHost(p plan.Plan) error {
	if err := host.CheckCPUs(p.RelayCPUs); err != nil {
		return fmt.Errorf("relay-cpus %s: %w", p.RelayCPUs.List(), err)
	}
	if err := host.CheckCPUs(p.HarnessCPUs); err != nil {
		return fmt.Errorf("harness-cpus %s: %w", p.HarnessCPUs.List(), err)
	}
	return nil
}

// Pins are the CPUs that would be whose in a run of a plan, and the cores that
// they would share, by their threads; pinned is false where none are chosen.
func Pins(p plan.Plan) (relays, own variable.CPUs, cores []string, pinned bool) {
	relays, own = p.RelayCPUs, p.HarnessCPUs
	pinned = len(relays) > 0 || len(own) > 0
	all, err := host.Allowed()
	if !pinned || err != nil {
		return nil, nil, nil, false
	}
	if len(relays) == 0 {
		relays = all
	}
	if len(own) == 0 {
		own = all
	}
	return relays, own, host.Cores(relays, own), true
}

// givable refuses CPUs and memory for a relay that is not started here.
func givable(p plan.Plan, r relay.Program) error {
	if r.Form != relay.FormNone && r.Form != relay.FormURL {
		return nil
	}
	const why = "no relay is started here that could be held to it"
	if len(p.RelayCPUs) > 0 {
		return fmt.Errorf("relay-cpus %s: %s", p.RelayCPUs.List(), why)
	}
	if p.Memory > 0 {
		return fmt.Errorf("mem %s: %s", variable.FormatSize(p.Memory), why)
	}
	return nil
}

// pin has this process run on the plan's CPUs until free.
func (x *run) pin() (err error) {
	if err := CheckHost(x.plan); err != nil {
		return err
	}
	if x.unpin, err = host.Pin(x.plan.HarnessCPUs); err != nil {
		return fmt.Errorf("harness-cpus %s: %w", x.plan.HarnessCPUs.List(), err)
	}
	return nil
}

// free has it run where it may again.
func (x *run) free() error {
	if x.unpin == nil {
		return nil
	}
	if err := x.unpin(); err != nil {
		return fmt.Errorf("harness-cpus %s: undo: %w", x.plan.HarnessCPUs.List(), err)
	}
	return nil
}

// seePins notes which CPUs are whose now. What is gone keeps what was seen of it before.
func (x *run) seePins() {
	relays := host.CPUsOf(x.pid())
	if len(relays) > 0 {
		x.res.Relay.CPUs = relays.List()
	}
	own := host.CPUsOf(os.Getpid())
	if x.senders != nil {
		for _, pid := range x.senders.PIDs() {
			own = append(own, host.CPUsOf(pid)...)
		}
	}
	slices.Sort(own)
	if own = slices.Compact(own); len(own) > 0 {
		x.res.Harness.Allowed = own.List()
	}
	if len(x.plan.RelayCPUs) > 0 || len(x.plan.HarnessCPUs) > 0 {
		x.res.Harness.Cores = host.Cores(relays, own)
	}
}
