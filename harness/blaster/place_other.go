//go:build !linux

package blaster

var newPlaces = goroutines
