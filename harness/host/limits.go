package host

import (
	"os"
	"runtime"
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
