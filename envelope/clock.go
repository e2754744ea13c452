package envelope

import "time"

// origin ties Go's monotonic clock to the system's: both readings are taken
// together, once, and the two run at the same pace.
var origin = struct {
	at   time.Time
	nano int64
}{time.Now(), monotonic()}

// Now reads the clock that stamps are in: nanoseconds of the system's
// CLOCK_MONOTONIC, the same in every process of the host and untouched by a
// change of the wall clock.
//
// Note: time.Since costs no system call, unlike clock_gettime through
// golang.org/x/sys; hence the detour by origin.
func Now() int64 { return origin.nano + int64(time.Since(origin.at)) }
