//go:build !linux

package perf

import "syscall"

func probe(string, bool) error { return syscall.ENOSYS }

func cpuModel() string { return "a CPU of unknown model" }
