// Package stats says what may be claimed of two groups of runs: medians and
// spread, the exact Mann-Whitney U test, the shift between the groups with its
// interval, and an answer with a margin. It is pure: numbers in, numbers out,
// no clock, no randomness, no state; it knows neither reports nor metrics.
//
// The way through it, for one metric of two groups:
//
//	c := stats.Compare(old, new)                            // the figures, always
//	v := c.Judge(stats.Question{Better: -1, Margin: 0.05})  // the answer
//
// and for the other metrics of the same table, none of which is the primary one:
//
//	stats.Correct(others, stats.FamilyLevel) // Holm, in place
//
// [Interleave] says whether the runs of the two groups took turns, without
// which drift of the machine cannot be told from a difference.
//
// No field ever is NaN or infinite, whatever was put in: what is not a finite
// number is left out of a group and counted, and what would overflow stays at
// the largest float64.
package stats

import "math"

// Level is the confidence of the intervals. As the U distribution is discrete,
// an interval covers a little more: [Shift.Coverage].
const Level = 0.95

// MinRuns is how many runs each side must have for a verdict. With three a side
// no result at all has a p under 0.1.
const MinRuns = 4

// rounding is how far, relatively, a figure may miss a margin by rounding alone:
// from 100 to 105 is a change of 5%.
const rounding = 1e-9

// Comparison holds the figures of two groups of values: B, the one in
// question, against A, the baseline. Everything but the two summaries is known
// only where both have a value: [Comparison.Known].
type Comparison struct {
	A, B Summary
	// U counts the pairs in which B's value is the larger one, and half of those in
	// which both are equal: from 0 (all of B below all of A) to A.N x B.N.
	U float64
	// P is the two-sided p value of U: twice the smaller tail, at most 1.
	P float64
	// Exact: P and the interval are of the exact distribution (up to 20+20
	// runs, or 400 pairs), not of its normal approximation.
	Exact bool
	// Shift is how far B is from A.
	Shift Shift
}

// Known reports whether both sides have a value, so that there is a U, a P and
// a shift.
func (c Comparison) Known() bool { return c.A.N > 0 && c.B.N > 0 }

// Compare compares group b with the baseline a, in any order of the values,
// which it leaves as they are.
func Compare(a, b []float64) Comparison {
	return CompareSorted(sorted(a), sorted(b))
}

// CompareSorted is [Compare] of values in ascending order.
func CompareSorted(a, b []float64) Comparison {
	var c Comparison
	c.A, a = summarize(a)
	c.B, b = summarize(b)
	if !c.Known() {
		return c
	}
	c.U, c.P, c.Exact = uTest(a, b)
	c.Shift = shift(a, b)
	return c
}

// finite keeps v within the finite numbers, and has one zero only.
func finite(v float64) float64 {
	return min(max(v, -math.MaxFloat64), math.MaxFloat64) + 0
}
