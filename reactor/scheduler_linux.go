package reactor

import (
	"runtime"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname
)

// A loop that waits in a system call keeps its processor of Go's scheduler and
// goes on with it at no cost, if two things hold. Else the scheduler hands the
// processor to another thread each time, which costs several futex calls:
// measured at 300 sends a second, half of what a send costs in all.
//   - Another processor has nothing to do: see spare.
//   - No goroutine has run on it for 10 ms without passing through the
//     scheduler: see goyield.
//
// Source: runtime.retake of Go 1.26.

// yieldEvery is how often a loop passes through the scheduler, at least.
const yieldEvery = int64(time.Millisecond)

// A wait of 10 ms loses the processor all the same, and the scheduler's monitor
// then has a millisecond's work with the next event: at 50 events a second, ten
// times what the event costs. So while events come, no wait is longer than
// shortWait. After shortWaits of them with no event the loop idles, at no cost.
const (
	shortWait  = int64(8 * time.Millisecond)
	shortWaits = 12
)

// goyield passes through the scheduler; unlike [runtime.Gosched] it wakes no
// thread for that. The runtime keeps it for such use: go.dev/issue/67401.
//
//go:linkname goyield runtime.goyield
func goyield()

var (
	processors = runtime.GOMAXPROCS(0) // as the program started
	loops      atomic.Int32            // that run
)

// spare sees to it that there are processors for n loops beside those that the
// program started with. They are never taken back.
func spare(n int32) {
	if want := processors + int(n); runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
}
