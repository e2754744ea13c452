//go:build !linux

package relay

import "syscall"

// Without a subreaper what leaves the program's process group gets away.
func adopt() {}

func dieWithParent(*syscall.SysProcAttr) {}

func waitFor(pid int) int { return pid }

func below(int) []int { return nil }

func isBelow(int) bool { return false }

func killBelow(program int) { _ = syscall.Kill(-program, syscall.SIGKILL) }

func (k *keeper) sweep() []int {
	killBelow(k.program.Pid)
	return nil
}
