package stats

import (
	"math"
	"slices"
)

// Summary describes one group of values, in their unit. With N 0 nothing else
// is known.
type Summary struct {
	N                        int
	Median, Q1, Q3, Min, Max float64
	// NotFinite counts values that were left out because they are no finite numbers.
	NotFinite int
}

// Summarize summarizes values, in any order. Quartiles are interpolated
// between the order statistics (type 7 of Hyndman and Fan, the default of R and NumPy).
func Summarize(values []float64) Summary {
	return SummarizeSorted(sorted(values))
}

// SummarizeSorted is [Summarize] of values in ascending order.
func SummarizeSorted(values []float64) Summary {
	s, _ := summarize(values)
	return s
}

// Spread is how far the values lie apart, in their unit: the width of their
// middle half (Q3 - Q1), which no single odd run moves; of two or three
// values the whole range. Of one value it is unknown.
//
// Note: both come to about one standard deviation for up to six runs, and the
// middle half to 1.35 of them for many.
func (s Summary) Spread() (spread float64, ok bool) {
	switch {
	case s.N < 2:
		return 0, false
	case s.N < 4:
		return finite(s.Max - s.Min), true
	default:
		return finite(s.Q3 - s.Q1), true
	}
}

// RelativeSpread is the spread as a part of the median: 0.02 is 2%. It is
// unknown where the spread is, and where the median is 0.
func (s Summary) RelativeSpread() (part float64, ok bool) {
	spread, ok := s.Spread()
	if !ok || s.Median == 0 {
		return 0, false
	}
	return finite(spread / math.Abs(s.Median)), true
}

// sorted is a sorted copy of values; NaNs come first.
func sorted(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

// summarize takes sorted values and gives their summary and those of them that
// are finite.
func summarize(sorted []float64) (Summary, []float64) {
	given := len(sorted)
	for len(sorted) > 0 && !(sorted[0] >= -math.MaxFloat64) {
		sorted = sorted[1:]
	}
	for len(sorted) > 0 && sorted[len(sorted)-1] > math.MaxFloat64 {
		sorted = sorted[:len(sorted)-1]
	}
	s := Summary{N: len(sorted), NotFinite: given - len(sorted)}
	if s.N > 0 {
		s.Min, s.Max = sorted[0], sorted[s.N-1]
		s.Q1, s.Median, s.Q3 = quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)
	}
	return s, sorted
}

// quantile interpolates the q quantile of sorted values, q below 1.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	part, low, high := at-float64(i), sorted[i], sorted[i+1]
	if step := high - low; step <= math.MaxFloat64 {
		return low + part*step
	}
	return (1-part)*low + part*high
}
