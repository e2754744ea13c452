package stats

import (
	"fmt"
	"slices"
	"time"
)

// Order is how the runs of two sides followed each other in time.
type Order struct {
	// Interleaved: no side has more than two runs in a row, and the mean positions
	// differ by at most one. Runs of A B B A … are, those of A A B B are not, and
	// in theirs a drift of the machine is a difference.
	Interleaved bool
	// Longest is the most runs in a row of one side.
	Longest int
	// Gap is how far the mean positions of the two sides lie apart, in runs.
	Gap float64
}

// Interleave takes the times at which the runs of two sides started, in any
// order. Runs of one moment stand one side after the other. A side without a
// run is not interleaved with another.
func Interleave(a, b []time.Time) Order {
	a, b = inOrder(a), inOrder(b)
	var o Order
	var passed, sums [2]int
	inARow, before := 0, 0
	for i := range len(a) + len(b) {
		side := 0
		if passed[0] == len(a) || passed[1] < len(b) && b[passed[1]].Before(a[passed[0]]) {
			side = 1
		}
		passed[side]++
		if side != before {
			inARow, before = 0, side
		}
		inARow++
		o.Longest = max(o.Longest, inARow)
		sums[side] += i
	}
	if len(a) == 0 || len(b) == 0 {
		return o
	}
	apart := sums[0]*len(b) - sums[1]*len(a)
	apart = max(apart, -apart)
	o.Gap = float64(apart) / float64(len(a)*len(b))
	o.Interleaved = o.Longest <= 2 && apart <= len(a)*len(b)
	return o
}

// inOrder are the times, or where they are in another order a sorted copy.
func inOrder(times []time.Time) []time.Time {
	if slices.IsSortedFunc(times, time.Time.Compare) {
		return times
	}
	return slices.SortedFunc(slices.Values(times), time.Time.Compare)
}

// String says how the runs follow each other: "interleaved", "not interleaved
// (4 runs of one side in a row)".
func (o Order) String() string {
	switch {
	case o.Interleaved:
		return "interleaved"
	case o.Longest > 2:
		return fmt.Sprintf("not interleaved (%d runs of one side in a row)", o.Longest)
	case o.Gap > 1:
		return fmt.Sprintf("not interleaved (mean positions %.1f runs apart)", o.Gap)
	default:
		return "not interleaved (one side has no run)"
	}
}
