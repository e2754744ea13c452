package relay

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// adopt makes what is orphaned below this process its child: a program that
// forks twice, or begins a session of its own, does not get away.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// waitFor is whom to wait for: as a subreaper, all.
func waitFor(int) int { return -1 }

// below are the processes below pid, parents before their children.
func below(pid int) []int {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil {
			children[stat.PPID] = append(children[stat.PPID], p.PID)
		}
	}
	found := slices.Clone(children[pid])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

func isBelow(pid int) bool { return slices.Contains(below(os.Getpid()), pid) }

func killBelow(int) {
	for _, pid := range below(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// sweepLimit is when sweep gives up: something below belongs to another user,
// or hangs in the kernel.
const sweepLimit = 5 * time.Second

// sweep ends everything that is left below this process, also what is being
// forked meanwhile. It returns what would not end.
func (k *keeper) sweep() []int {
	for start := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		killBelow(k.program.Pid)
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err == syscall.ECHILD {
				return nil
			}
			if pid <= 0 && err != syscall.EINTR {
				break
			}
		}
		if time.Since(start) > sweepLimit {
			return below(os.Getpid())
		}
	}
}
