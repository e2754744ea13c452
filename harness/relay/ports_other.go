//go:build !linux

package relay

import "errors"

func hidden(int) bool { return false }

func owner(pids []int, port int) (pid int, shared bool, err error) {
	return 0, false, errors.ErrUnsupported
}
