package stats

import (
	"fmt"
	"math"
)

// Answer is what may be said of B against A, in the words that are printed.
type Answer string

// The four answers, a fifth for a metric that has no better direction, and
// that there is none.
const (
	// Worse: the interval excludes 0, the shift is at least the margin and above
	// the floor, in the worse direction.
	Worse Answer = "worse"
	// Better is the same in the better direction.
	Better Answer = "better"
	// Different is the same of a metric without a better direction.
	Different Answer = "different"
	// NoDifference: the whole interval lies within the margin, or within the floor.
	// It means none beyond Verdict.Limit.
	NoDifference Answer = "no difference"
	// Inconclusive is everything else.
	Inconclusive Answer = "inconclusive"
	// NoVerdict: the runs allow none; Verdict.Why says what is missing.
	NoVerdict Answer = "no verdict"
)

// maxRuns is the most runs a side that are ever suggested.
const maxRuns = 1000

// Question is what is asked of a comparison.
type Question struct {
	// Better is +1 where more is better, -1 where less is, 0 where neither.
	Better int
	// Margin is the relative difference that matters: 0.05 is 5%. Of plain
	// differences it is that part of the baseline's median.
	Margin float64
	// Floor is the difference, in the values' unit, that is none.
	Floor float64
	// Blocks: the runs did not interleave, and the metric is one that a drift of
	// the machine moves (CPU, latency): there is no verdict.
	Blocks bool
}

// Verdict is the answer to a question, with the figures it rests on.
type Verdict struct {
	Comparison
	Question
	Answer Answer
	// Limit is the difference up to which there is none: the margin, or the floor
	// where that is more. It is on the scale of Shift.
	Limit float64
	// Adjusted is P after the correction for several comparisons; P before.
	Adjusted float64
	// Why says in words why there is no verdict or no conclusion: "needs 4 runs a
	// side, has 3". Else it is empty.
	Why string
	// Runs is, of an inconclusive answer, about how many runs a side would settle
	// it. It is 0 where that cannot be said: the shift is so near the limit that
	// over a thousand would be needed.
	Runs int
}

// Judge answers the question. The interval decides; a p above 0.05, as ties
// may give beside an interval that excludes 0, keeps it from claiming a difference.
func (c Comparison) Judge(q Question) Verdict {
	q.Margin, q.Floor = size(q.Margin), size(q.Floor)
	v := Verdict{Comparison: c, Question: q, Adjusted: c.P}
	base := math.Abs(c.A.Median)
	margin, floor := q.Margin, q.Floor
	if c.Shift.Relative {
		floor = finite(floor / base)
	} else {
		margin = finite(margin * base)
	}
	v.Limit = max(margin, floor)

	s, far := c.Shift, math.Abs(c.Shift.Value)
	beyond := far >= margin*(1-rounding) && far > floor*(1+rounding)
	excludes0 := s.Low > 0 || s.High < 0
	switch {
	case !c.Known():
		v.Answer, v.Why = NoVerdict, missing(c)
	case min(c.A.N, c.B.N) < MinRuns:
		v.Answer, v.Why = NoVerdict, fmt.Sprintf("needs %d runs a side, has %d", MinRuns, min(c.A.N, c.B.N))
	case q.Blocks:
		v.Answer, v.Why = NoVerdict, "not interleaved: the machine's drift is in this number"
	case beyond && excludes0 && c.P <= 1-Level:
		v.Answer = direction(s.Value, q.Better)
	case max(s.High, -s.Low) <= v.Limit*(1+rounding):
		v.Answer = NoDifference
	default:
		v.Answer, v.Runs = Inconclusive, v.needed(beyond)
		switch {
		case !beyond:
			v.Why = "the interval reaches beyond the margin"
		case excludes0:
			v.Why = fmt.Sprintf("ties, with which p=%.2g", c.P)
		default:
			v.Why = "the interval includes 0"
		}
	}
	return v
}

// size is v, or 0 where it is no size.
func size(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return finite(v)
}

// missing says which side has no value.
func missing(c Comparison) string {
	switch {
	case c.A.N == 0 && c.B.N == 0:
		return "no value on either side"
	case c.A.N == 0:
		return "no value of the baseline"
	default:
		return "no value to compare with the baseline"
	}
}

func direction(shift float64, better int) Answer {
	switch {
	case better == 0:
		return Different
	case (shift > 0) == (better > 0):
		return Better
	default:
		return Worse
	}
}

// needed estimates how many runs a side would settle the verdict if the shift
// stayed as it is: the interval's arms shrink with the root of the runs, until they
// exclude 0 (beyond) or lie within the limit.
func (v *Verdict) needed(beyond bool) int {
	value, low, high := v.Shift.Value, v.Shift.Low, v.Shift.High
	if value < 0 {
		value, low, high = -value, -high, -low
	}
	over := (value - low) / value
	if !beyond {
		over = max((high-value)/(v.Limit-value), (value-low)/(v.Limit+value))
		if value >= v.Limit {
			return 0
		}
	}
	return v.runs(over)
}

// runs is how many a side make the interval over times as narrow, at least one
// more than now, or 0 for more than are ever suggested.
func (v *Verdict) runs(over float64) int {
	a, b := float64(v.A.N), float64(v.B.N)
	n := math.Ceil(2 * a * b / (a + b) * over * over)
	n = max(n, min(a, b)+1)
	if !(n <= maxRuns) {
		return 0
	}
	return int(n)
}
