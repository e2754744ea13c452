package host

import (
	"runtime"
	"runtime/debug"
)

// HoldCollector keeps the garbage collector of this process out of a load, up
// to 1 GiB more than it has now, and gives what undoes it.
func HoldCollector() (undo func()) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	limit := debug.SetMemoryLimit(int64(m.Sys) + 1<<30)
	percent := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
