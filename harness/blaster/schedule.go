package blaster

import (
	"math"
	"sort"
	"time"
)

// Schedule says when the numbers of a share are due: a pure function of an
// integer clock. A blaster sends the numbers First, First+Stride, First+2*Stride, …
type Schedule struct {
	Start  int64   // when number 0 is due, nanoseconds since the run's zero
	Rate   float64 // numbers a second over all shares; 0: closed loop, a number is due when a sender is free
	Burst  uint64  // numbers, over all shares, that are due at once, every Burst/Rate seconds; 0 is 1
	First  uint64
	Stride uint64
}

// Open says that numbers are due by the clock, whether or not a sender is free.
func (s Schedule) Open() bool { return s.Rate > 0 }

// Due is when number k is due, in nanoseconds since the run's zero; Start for
// every number of a closed loop. No error adds up: it is computed from k, not
// from the number before.
//
// Note: k * 1e9 is exact in a float64 for every k below 2^53 / 5^9 = 4.6e9, so
// a rate that divides gives the very nanosecond; rounding to the nearest one
// then hides that a rate such as 0.1 is no exact float64.
func (s Schedule) Due(k uint64) int64 {
	if !s.Open() {
		return s.Start
	}
	if s.Burst > 1 {
		k -= k % s.Burst
	}
	after := math.Round(float64(k) * 1e9 / s.Rate)
	if after >= float64(math.MaxInt64-max(s.Start, 0)) {
		return math.MaxInt64
	}
	return s.Start + int64(after)
}

// Count is how many numbers, over all shares, are due before Start + duration (nanoseconds); 0 in a closed loop.
func (s Schedule) Count(duration int64) uint64 {
	if !s.Open() || duration <= 0 {
		return 0
	}
	end := s.Start + duration
	return uint64(sort.Search(math.MaxInt, func(k int) bool { return s.Due(uint64(k)) >= end }))
}

// number is the i-th number of the share.
func (s Schedule) number(i uint64) uint64 { return s.First + i*s.Stride }

// share is how many numbers of the share are due before Start + duration; 0 in a closed loop.
func (s Schedule) share(duration time.Duration) uint64 {
	n := s.Count(int64(duration))
	if n <= s.First {
		return 0
	}
	return (n-s.First-1)/s.Stride + 1
}
