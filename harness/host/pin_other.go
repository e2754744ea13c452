//go:build !linux

package host

import (
	"fmt"
	"runtime"

	"relaybench/harness/variable"
)

func allowed() (variable.CPUs, error) {
	return nil, fmt.Errorf("on %s relaybench cannot choose the CPUs that a process runs on", runtime.GOOS)
}

// Pin has all threads of this process run on some CPUs, which here it cannot. No CPUs: nothing is done.
func Pin(cpus variable.CPUs) (undo func() error, err error) {
	if len(cpus) > 0 {
		_, err = allowed()
		return nil, err
	}
	return func() error { return nil }, nil
}

// On calls do, which starts a process; that it run on some CPUs cannot be had here.
func On(cpus variable.CPUs, do func() error) error {
	if len(cpus) > 0 {
		_, err := allowed()
		return err
	}
	return do()
}
