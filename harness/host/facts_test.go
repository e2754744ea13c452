package host

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
)

func TestFacts(t *testing.T) {
	got := Facts(t.Context(), "")
	if want, _ := os.Hostname(); got.Name != want {
		t.Errorf("name: got %q, want %q", got.Name, want)
	}
	if got.OS != runtime.GOOS || got.CPUs != runtime.NumCPU() {
		t.Errorf("got %s with %d CPUs, want %s with %d", got.OS, got.CPUs, runtime.GOOS, runtime.NumCPU())
	}
	if got.Memory < 64<<20 || got.Memory > 1<<50 {
		t.Errorf("memory: got %d bytes", got.Memory)
	}
	if got.Kernel == "" {
		t.Error("no kernel")
	}
	if got.Load1 < 0 || got.CgroupCPU < 0 {
		t.Errorf("got load %v, CPUs of the cgroup %v", got.Load1, got.CgroupCPU)
	}
	if got := Facts(t.Context(), "bench1").Name; got != "bench1" {
		t.Errorf("named: got %q, want bench1", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Facts(ended, "").CPUs; got != runtime.NumCPU() {
		t.Errorf("after the end of ctx: got %d CPUs, want %d", got, runtime.NumCPU())
	}
}

func files(of map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range of {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const mounts = `22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
`

// mounts1 are a container's of version 1: of its CPUs it sees its own folder alone.
const mounts1 = `31 23 0:27 /docker/x /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct
32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
`

func TestCgroupLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		cpus   float64
		memory uint64
	}{
		{"nothing", nil, 0, 0},
		{"version 1", map[string]string{"proc/self/cgroup": "4:memory:/a\n1:cpu:/\n", "proc/self/mountinfo": mounts, "sys/fs/cgroup/memory.max": "7"}, 0, 0},
		{"version 1, half a CPU", map[string]string{"proc/self/cgroup": "4:memory:/a\n1:cpuacct,cpu:/docker/x\n0::/\n", "proc/self/mountinfo": mounts1,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 0.5, 1000},
		{"version 1, no limit", map[string]string{"proc/self/cgroup": "4:memory:/a\n1:cpu:/\n", "proc/self/mountinfo": mounts1,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712"}, 0, 0},
		{"version 2 not mounted", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": "\nx\n", "sys/fs/cgroup/a/memory.max": "7"}, 0, 0},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0, 0},
		{"its own", map[string]string{"proc/self/cgroup": "1:name=systemd:/\n0::/a\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/memory.max": "536870912\n"}, 1.5, 512 << 20},
		{"the least of those above", map[string]string{"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/a/b/c/cpu.max": "max 100000", "sys/fs/cgroup/a/b/cpu.max": "400000 100000", "sys/fs/cgroup/a/cpu.max": "50000 100000",
			"sys/fs/cgroup/a/b/memory.max": "1000", "sys/fs/cgroup/a/memory.max": "2000"}, 0.5, 1000},
		{"a namespace's root", map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/cpu.max": "200000 100000", "sys/fs/cgroup/memory.max": "1000"}, 2, 1000},
		{"outside the namespace", map[string]string{"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/memory.max": "1000"}, 0, 1000},
		{"rubbish", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/a/cpu.max": "1 0", "sys/fs/cgroup/cpu.max": "-1 x", "sys/fs/cgroup/a/memory.max": "-5"}, 0, 0},
	} {
		cpus, memory := cgroupLimits(files(c.files))
		if cpus != c.cpus || memory != c.memory {
			t.Errorf("%s: got %v CPUs, %d bytes, want %v, %d", c.name, cpus, memory, c.cpus, c.memory)
		}
	}
}

func TestCgroupMemory(t *testing.T) {
	const at = "sys/fs/cgroup/"
	for _, c := range []struct {
		name        string
		files       map[string]string
		left, total uint64
	}{
		{"no limit", map[string]string{at + "a/memory.max": "max", at + "a/memory.current": "7"}, 0, 0},
		{"half", map[string]string{at + "a/memory.max": "1000", at + "a/memory.current": "500"}, 500, 1000},
		{"the cache of files is left", map[string]string{at + "a/memory.max": "1000", at + "a/memory.current": "900",
			at + "a/memory.stat": "anon 500\ninactive_file 300\nactive_file 100\n"}, 400, 1000},
		{"over the limit", map[string]string{at + "a/memory.max": "1000", at + "a/memory.current": "1001"}, 0, 1000},
		{"the one above has less", map[string]string{at + "a/memory.max": "1000", at + "a/memory.current": "500",
			at + "memory.max": "8000", at + "memory.current": "7900"}, 100, 8000},
		{"the one above has a larger share", map[string]string{at + "a/memory.max": "1000", at + "a/memory.current": "990",
			at + "memory.max": "100", at + "memory.current": "50"}, 10, 1000},
		{"rubbish", map[string]string{at + "a/memory.max": "0", at + "a/memory.current": "x", at + "a/memory.stat": "inactive_file x"}, 0, 0},
	} {
		c.files["proc/self/cgroup"], c.files["proc/self/mountinfo"] = "0::/a\n", mounts
		left, total, limited := openMemory(files(c.files)).cgroup()
		if left != c.left || total != c.total || limited != (c.total > 0) {
			t.Errorf("%s: got %d of %d, %v, want %d of %d", c.name, left, total, limited, c.left, c.total)
		}
	}
	old := map[string]string{"proc/self/cgroup": "4:memory:/a", "proc/self/mountinfo": mounts1, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000",
		"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "800", "sys/fs/cgroup/memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n"}
	if left, total, limited := openMemory(files(old)).cgroup(); left != 300 || total != 1000 || !limited {
		t.Errorf("version 1: got %d of %d, %v, want 300 of 1000", left, total, limited)
	}
	if _, _, limited := openMemory(files(nil)).cgroup(); limited {
		t.Error("without a cgroup there is a limit")
	}
	if n := CPUs(); n <= 0 || n > float64(runtime.NumCPU()) {
		t.Errorf("%v CPUs", n)
	}
}

func TestMemory(t *testing.T) {
	m := OpenMemory()
	defer m.Close()
	left, total, ok := m.Left()
	if ok && (left == 0 || left > total) || !ok && runtime.GOOS == "linux" {
		t.Errorf("%d of %d left, %v", left, total, ok)
	}
	if v, err := mem.VirtualMemory(); err == nil && ok && total > v.Total {
		t.Errorf("%d bytes, where the system has %d", total, v.Total)
	}
	if n := testing.AllocsPerRun(10, func() { m.Left() }); runtime.GOOS == "linux" && n != 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

func TestDistribution(t *testing.T) {
	for _, c := range []struct{ name, text, want, full string }{
		{"etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"13\"\n# x\n\n", "debian 13", "Debian GNU/Linux 13 (trixie)"},
		{"usr/lib/os-release", "ID='arch'\n", "arch", ""},
	} {
		if got, full := distribution(t.Context(), files(map[string]string{c.name: c.text})); got != c.want || full != c.full {
			t.Errorf("%s: got %q, %q, want %q, %q", c.name, got, full, c.want, c.full)
		}
	}
}

func TestTurbo(t *testing.T) {
	const intel, other = "sys/devices/system/cpu/intel_pstate/no_turbo", "sys/devices/system/cpu/cpufreq/boost"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{intel: "0\n"}, "on"},
		{map[string]string{intel: "1\n"}, "off"},
		{map[string]string{other: "1\n"}, "on"},
		{map[string]string{other: "0\n"}, "off"},
		{map[string]string{other: "x\n"}, ""},
	} {
		if got := turbo(files(c.files)); got != c.want {
			t.Errorf("%v: got %q, want %q", c.files, got, c.want)
		}
	}
}

func TestUname(t *testing.T) {
	got := uname(files(map[string]string{"proc/sys/kernel/ostype": "Linux\n", "proc/sys/kernel/version": "#1 SMP Debian 6.18.44-1\n"}), "6.18.44")
	if !strings.HasPrefix(got, "Linux 6.18.44 #1 SMP Debian 6.18.44-1 ") {
		t.Errorf("got %q", got)
	}
	if n := sockets([]cpu.InfoStat{{PhysicalID: "0"}, {PhysicalID: "0"}, {PhysicalID: "1"}, {}}); n != 2 {
		t.Errorf("%d sockets, want 2", n)
	}
}

func TestGovernor(t *testing.T) {
	const dir = "sys/devices/system/cpu/"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{dir + "cpu0/cpufreq/scaling_governor": "powersave\n", dir + "cpu12/cpufreq/scaling_governor": "powersave\n"}, "powersave"},
		{map[string]string{dir + "cpu0/cpufreq/scaling_governor": "powersave\n", dir + "cpu1/cpufreq/scaling_governor": "performance\n"}, "performance,powersave"},
	} {
		if got := governor(files(c.files)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func BenchmarkFacts(b *testing.B) {
	for b.Loop() {
		Facts(b.Context(), "")
	}
}
