package harness

import (
	"os"
	"strings"
	"testing"

	"relaybench/harness/host"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

func TestStandInPinned(t *testing.T) { testPinned(t, standIn(t)) }
func TestRealPinned(t *testing.T)    { testPinned(t, realRelay(t)) }

// testPinned wants each side to be where the plan has it, sender processes too, and this process free afterwards.
func testPinned(t *testing.T, p relay.Program) {
	all, err := host.Allowed()
	if err != nil {
		t.Skip(err)
	}
	first, last := all[:1].List(), all[len(all)-1:].List()
	r, l := ran(t, p, Options{}, "relay-cpus="+first, "harness-cpus="+last, "connections=2x2")
	closed(t, r, l, 200)
	if r.Relay.CPUs != first || r.Harness.Allowed != last {
		t.Errorf("the relay ran on %q, relaybench on %q, want %q and %q", r.Relay.CPUs, r.Harness.Allowed, first, last)
	}
	if got := host.CPUsOf(os.Getpid()).List(); got != all.List() {
		t.Errorf("afterwards this process may run on %s, want %s", got, all.List())
	}
	r, _ = ran(t, p, Options{})
	if r.Relay.CPUs != all.List() || r.Harness.Allowed != all.List() {
		t.Errorf("not pinned: the relay ran on %q, relaybench on %q, want %q", r.Relay.CPUs, r.Harness.Allowed, all.List())
	}
}

// What cannot be had is refused before anything starts.
func TestPinRefused(t *testing.T) {
	for _, c := range []struct {
		program relay.Program
		knob    string
		want    string
	}{
		{standIn(t), "relay-cpus=1023", "relay-cpus 1023: CPU 1023 is not online"},
		{standIn(t), "harness-cpus=1023", "harness-cpus 1023: CPU 1023 is not online"},
		{relay.Program{Form: relay.FormNone}, "relay-cpus=0", "no relay is started here"},
		{relay.Program{Form: relay.FormNone}, "mem=64m", "no relay is started here"},
	} {
		r, err := Run(t.Context(), planned(t, c.knob), c.program, Options{limits: quick()})
		if err == nil || !strings.Contains(err.Error(), c.want) || r != nil {
			t.Errorf("%s: got %v and a result %t, want %q and none", c.knob, err, r != nil, c.want)
		}
	}
}

func TestStandInMemory(t *testing.T) { testMemory(t, standIn(t)) }
func TestRealMemory(t *testing.T)    { testMemory(t, realRelay(t)) }

// testMemory wants the limit to be held by a cgroup where one may be made here, and by Relay's config elsewhere.
func testMemory(t *testing.T, p relay.Program) {
	want := result.LimitRelay
	if g, err := host.MakeGroup(64 << 20); err == nil {
		want = result.LimitGroup
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, l := ran(t, p, Options{}, "mem=1g")
	closed(t, r, l, 200)
	m := r.Relay.MemoryLimit
	if m == nil || m.Way != want || m.Bytes != 1<<30 || m.Kills != 0 || (m.Why == "") != (want == result.LimitGroup) {
		t.Errorf("got limit %+v, want 1 GiB by %s", m, want)
	}
}

// No collector runs while a load is sent.
func TestNoCollections(t *testing.T) {
	r, l := ran(t, standIn(t), Options{}, "rate=1000", "mix=mixed")
	closed(t, r, l, 1000)
	if r.Harness.GCs != 0 {
		t.Errorf("got %d collections during the load, want none", r.Harness.GCs)
	}
}
