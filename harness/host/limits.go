package host

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

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

// cgroupMemory is what is left of the limits of memory of this process's
// cgroup and those above it, of that with the least share left. What the
// kernel gives up when it is short, the cache of files not lately used, is left.
// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html.
func cgroupMemory(root fs.FS) (left, total uint64, limited bool) {
	mount, dir, ok := cgroup(root)
	if !ok {
		return 0, 0, false
	}
	for ; ; dir = path.Dir(dir) {
		at := path.Join(mount, dir)
		most, err1 := strconv.ParseUint(read(root, path.Join(at, "memory.max")), 10, 64)
		used, err2 := strconv.ParseUint(read(root, path.Join(at, "memory.current")), 10, 64)
		if err1 == nil && err2 == nil && most > 0 {
			used -= min(used, inactiveFile(read(root, path.Join(at, "memory.stat"))))
			l := most - min(used, most)
			if !limited || float64(l)/float64(most) < float64(left)/float64(total) {
				left, total, limited = l, most, true
			}
		}
		if dir == "/" {
			return left, total, limited
		}
	}
}

// inactiveFile is the line inactive_file of a memory.stat; 0 where there is none.
func inactiveFile(stat string) uint64 {
	for line := range strings.Lines(stat) {
		if v, is := strings.CutPrefix(line, "inactive_file "); is {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
