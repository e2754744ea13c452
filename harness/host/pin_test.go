package host

import (
	"slices"
	"testing"

	"relaybench/harness/variable"
)

func TestCheckCPUs(t *testing.T) {
	for _, c := range []struct {
		cpus, online, may variable.CPUs
		want              string
	}{
		{variable.CPUs{0, 1}, variable.CPUs{0, 1}, variable.CPUs{0, 1}, ""},
		{variable.CPUs{7}, variable.CPUs{0, 1}, variable.CPUs{0, 1}, "CPU 7 is not online: this machine has 0-1"},
		{variable.CPUs{0, 2, 3}, variable.CPUs{0, 1}, variable.CPUs{0, 1}, "CPUs 2-3 are not online: this machine has 0-1"},
		{variable.CPUs{0, 2}, variable.CPUs{0, 1, 2, 3}, variable.CPUs{0, 1}, "CPU 2 is not allowed to relaybench, whose own affinity or cpuset has 0-1"},
	} {
		got := ""
		if err := checkCPUs(c.cpus, c.online, c.may); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v of %v, %v: got %q, want %q", c.cpus, c.online, c.may, got, c.want)
		}
	}
	if err := CheckCPUs(nil); err != nil {
		t.Error(err)
	}
}

func TestOnline(t *testing.T) {
	if got := online(files(map[string]string{"sys/devices/system/cpu/online": "0-2,4\n"}), nil).List(); got != "0-2,4" {
		t.Errorf("got %q", got)
	}
	if got := online(files(nil), variable.CPUs{3}).List(); got != "3" {
		t.Errorf("where it is not told: got %q", got)
	}
}

func TestCores(t *testing.T) {
	const at = "sys/devices/system/cpu/cpu"
	root := files(map[string]string{at + "0/topology/thread_siblings_list": "0,4\n", at + "4/topology/thread_siblings_list": "0,4\n",
		at + "1/topology/thread_siblings_list": "1,5\n", at + "2/topology/thread_siblings_list": "2\n"})
	for _, c := range []struct {
		a, b variable.CPUs
		want []string
	}{
		{variable.CPUs{0}, variable.CPUs{4}, []string{"0,4"}},
		{variable.CPUs{0, 4}, variable.CPUs{0, 4}, []string{"0,4"}},
		{variable.CPUs{0, 1}, variable.CPUs{4, 5}, []string{"0,4", "1,5"}},
		{variable.CPUs{0}, variable.CPUs{1}, nil},
		{variable.CPUs{0}, variable.CPUs{0}, nil}, // the CPU itself: the lists say so
		{variable.CPUs{2, 9}, variable.CPUs{2, 3}, nil},
	} {
		if got := cores(root, c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v: got %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestCPUsOf(t *testing.T) {
	root := files(map[string]string{"proc/7/task/7/status": "Name:\tx\nCpus_allowed_list:\t0-1\n", "proc/7/task/9/status": "Cpus_allowed_list:\t3\n", "proc/8/task/8/status": "Name:\tx\n"})
	if got := cpusOf(root, 7).List(); got != "0-1,3" {
		t.Errorf("got %q, want 0-1,3", got)
	}
	if got := cpusOf(root, 8); got != nil {
		t.Errorf("not told: got %v", got)
	}
}

func TestRelayCounts(t *testing.T) {
	const at = "sys/fs/cgroup/"
	for _, c := range []struct {
		files map[string]string
		used  uint64
		whose string
	}{
		{nil, 0, ""},
		{map[string]string{at + "memory.current": "900\n", at + "memory.stat": "anon 500\nfile 400\n"}, 500, "cgroup"},
		{map[string]string{at + "memory/memory.usage_in_bytes": "900\n", at + "memory/memory.stat": "rss 1\ntotal_rss 600\n"}, 600, "cgroup"},
	} {
		if used, whose := relayCounts(files(c.files)); used != c.used || whose != c.whose {
			t.Errorf("got %d of %q, want %d of %q", used, whose, c.used, c.whose)
		}
	}
	if used, whose := RelayCounts(); used == 0 || whose == "" {
		t.Errorf("here: %d of %q", used, whose)
	}
}
