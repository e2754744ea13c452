package relay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/harness/host"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// A relay runs on its CPUs from its start, and is asked for its config on them.
func TestCPUs(t *testing.T) {
	all, err := host.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	asked := filepath.Join(t.TempDir(), "asked")
	t.Setenv("ASKED", asked)
	path := script(t, "cat /proc/self/status; sleep 1000")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, path, strings.Replace(string(text), "exec cat", "cat /proc/self/status >\"$ASKED\" && exec cat", 1))
	r := start(t, find(t, path), relay.Setup{CPUs: last})
	want := "Cpus_allowed_list:\t" + last.List()
	wait(t, "its affinity in its log", func() bool { return strings.Contains(strings.Join(r.Tail(100), "\n"), "Cpus_allowed_list") })
	if got := strings.Join(r.Tail(100), "\n"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %q", got, want)
	}
	if got, _ := os.ReadFile(asked); !strings.Contains(string(got), want) {
		t.Errorf("config show: got %s, want %q", got, want)
	}
	if got := host.CPUsOf(os.Getpid()).List(); got != all.List() {
		t.Errorf("relaybench itself runs on %s, want %s", got, all.List())
	}
}

// A relay that needs more than its limit is killed by the kernel, what is known of it is told, and nothing is left.
func TestMemory(t *testing.T) {
	g, err := host.MakeGroup(16 << 20)
	if err != nil {
		t.Skipf("no cgroup may be made here: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	const most = 32 << 20
	r := start(t, find(t, script(t, "x=0123456789abcdef; while :; do x=$x$x; done")), relay.Setup{Memory: most})
	if e := ended(t, r); e.Status != "signal: killed" || e.Killed {
		t.Errorf("exit %+v, want killed, and not by us", e)
	}
	if l := r.MemoryLimit(); l.Way != result.LimitGroup || l.Bytes != most || l.Kills == 0 || l.Peak < most/2 {
		t.Errorf("got %+v, want that it was killed at its limit", l)
	}

	r = start(t, find(t, script(t, "cat /proc/self/cgroup; sleep 1000")), relay.Setup{Memory: most})
	base := filepath.Dir(g.Dir)
	groups := func() []string {
		found, _ := filepath.Glob(base + "/relaybench-*")
		var own []string
		for _, dir := range found {
			if strings.Contains(strings.Join(r.Tail(100), "\n"), filepath.Base(dir)) {
				own = append(own, dir)
			}
		}
		return own
	}
	wait(t, "its cgroup", func() bool { return len(groups()) == 1 })
	r.Stop(0)
	if l := r.MemoryLimit(); l.Kills != 0 {
		t.Errorf("stopped: got %+v", l)
	}
	if left := groups(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	all, _ := host.Allowed()
	if _, err := relay.Check(t.Context(), find(t, script(t, "exit")), relay.Setup{Memory: most, CPUs: all}); err != nil {
		t.Error(err)
	}
}
