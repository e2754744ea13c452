//go:build !linux

package relay

import "errors"

func owner(keeper, port int) (pid int, shared bool, err error) {
	return 0, false, errors.ErrUnsupported
}
