//go:build !linux

package blaster

func newTimer() (timer, error) { return newSleeper(), nil }
