package host

import (
	"io/fs"
	"os"
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

// Memory is how many bytes are left, of how many, of what this process can
// have: the system's, or its cgroup's or those of one above it, whichever has
// the least share left. ok is false where nothing of it is told.
func Memory() (left, total uint64, ok bool) {
	if m, err := mem.VirtualMemory(); err == nil && m.Total > 0 {
		left, total, ok = m.Available, m.Total, true
	}
	if l, t, limited := cgroupMemory(os.DirFS("/")); limited && (!ok || float64(l)/float64(t) < float64(left)/float64(total)) {
		return l, t, true
	}
	return left, total, ok
}

// cgroupMemory is what is left of the limit of memory that has the least share left.
func cgroupMemory(root fs.FS) (left, total uint64, limited bool) {
	for _, m := range memories(root) {
		if l := m.most - m.used; m.known && (!limited || float64(l)/float64(m.most) < float64(left)/float64(total)) {
			left, total, limited = l, m.most, true
		}
	}
	return left, total, limited
}
