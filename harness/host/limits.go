package host

import (
	"io/fs"
	"os"
	"path"
	"runtime"

	"github.com/shirou/gopsutil/v4/mem"
)

// CPUs is how many CPUs this process may use at once: those that it may run
// on, or what its cgroup allows where that is less, such as 0.5.
func CPUs() float64 {
	n := float64(runtime.NumCPU())
	if quota, _ := cgroupLimits(os.DirFS("/")); quota > 0 {
		n = min(n, quota)
	}
	return n
}

// RelayCounts is the memory in use as a Relay on this host counts it for its
// health.max_memory_bytes, and whose it is: "cgroup", that of the topmost
// folder that is mounted (in a container, its own), or "host".
// Source: relay-server/src/utils/memory.rs, and cgroup_limits of its crate sysinfo 0.35.
func RelayCounts() (used uint64, whose string) {
	if used, whose = relayCounts(os.DirFS("/")); whose != "" {
		return used, whose
	}
	if m, err := mem.VirtualMemory(); err == nil {
		used = m.Total - m.Available
	}
	return used, "host"
}

func relayCounts(root fs.FS) (used uint64, whose string) {
	for _, v := range []struct{ dir, current, rss string }{
		{"sys/fs/cgroup", "memory.current", "anon "},
		{"sys/fs/cgroup/memory", "memory.usage_in_bytes", "total_rss "},
	} {
		if read(root, path.Join(v.dir, v.current)) != "" {
			return line([]byte(read(root, path.Join(v.dir, "memory.stat"))), v.rss), "cgroup"
		}
	}
	return 0, ""
}
