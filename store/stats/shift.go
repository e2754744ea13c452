package stats

import (
	"math"
	"slices"
)

// Shift is the Hodges-Lehmann estimate of how far one group lies from another
// (the median over all pairs of a value of each), with its interval from the
// distribution of U (Moses; Bauer 1972).
type Shift struct {
	// Relative: the figures are parts of the baseline (the median of the ratios,
	// less one, which is the shift of the logs): -0.31 is -31%. Else, where a value
	// is 0 or below, they are plain differences in the values' unit.
	Relative bool
	// Value is positive where B lies above A. Low and High are its interval's ends.
	Value, Low, High float64
	// Coverage is the interval's confidence: at least Level, or less where so few
	// runs cannot reach it (0.9 of 3+3 runs, 0 of 1+1), and the interval goes over
	// all pairs.
	Coverage float64
}

// HalfWidth is half the width of the interval. Of one build against itself it
// is the noise: no margin below it can be judged.
func (s Shift) HalfWidth() float64 { return finite(s.High/2 - s.Low/2) }

// shift compares two sorted groups that are not empty.
//
// Note: the interval is the one of values without ties, and covers at least as
// much with them.
func shift(a, b []float64) Shift {
	k, coverage := intervalRank(len(a), len(b))
	p := pairs{a: a, b: b, ratio: a[0] > 0 && b[0] > 0}
	low, high := p.near(k, p.all()), p.all()
	high.low, high.below = low.low, low.below
	high = p.near(high.upTo+1-k, high)
	s := Shift{Relative: p.ratio, Coverage: coverage, Low: p.kth(k, low), High: p.kth(len(a)*len(b)+1-k, high)}
	lower, upper := p.middle(span{low: low.low, high: high.high, below: low.below, upTo: high.upTo})
	s.Value = lower/2 + upper/2
	if p.ratio {
		s.Value = math.Sqrt(lower) * math.Sqrt(upper)
	}
	s.Value = min(max(s.Value, lower), upper)
	if p.ratio {
		s.Value, s.Low, s.High = s.Value-1, s.Low-1, s.High-1
	}
	s.Value, s.Low, s.High = finite(s.Value), finite(s.Low), finite(s.High)
	return s
}

// pairs are the ratios or the differences of all pairs of a value of b and one
// of a, both sorted. They are never all laid out: there may be thousands of millions.
type pairs struct {
	a, b  []float64
	ratio bool
}

// of is the value of one pair. Also after rounding it never falls with b, and never
// rises with a.
func (p *pairs) of(b, a float64) float64 {
	if p.ratio {
		switch v := b / a; {
		case v > math.MaxFloat64:
			return math.MaxFloat64
		case v < math.SmallestNonzeroFloat64:
			return math.SmallestNonzeroFloat64
		default:
			return v
		}
	}
	return finite(b - a)
}

// span is where a pair is looked for.
type span struct {
	low, high   float64
	below, upTo int // how many pairs lie below low, and how many up to high
}

// all is where all pairs lie.
func (p *pairs) all() span {
	return span{low: p.of(p.b[0], p.a[len(p.a)-1]), high: p.of(p.b[len(p.b)-1], p.a[0]), upTo: len(p.a) * len(p.b)}
}

// kth is the k-th smallest pair, k from 1, which lies in a span that [pairs.near] made narrow.
func (p *pairs) kth(k int, in span) float64 {
	if in.low == in.high {
		return in.high
	}
	return p.within(in.low, in.high)[k-in.below-1]
}

// middle are the two pairs in the middle, which are one where their number is
// odd. They lie in a span.
func (p *pairs) middle(in span) (lower, upper float64) {
	all := len(p.a) * len(p.b)
	k := (all + 1) / 2
	at := p.near(k, in)
	if at.low < at.high && all%2 == 0 && k < at.upTo {
		both := p.within(at.low, at.high)[k-at.below-1:]
		return both[0], both[1]
	}
	if lower = p.kth(k, at); all%2 == 0 {
		return lower, p.kth(k+1, p.near(k+1, in))
	}
	return lower, lower
}

// near narrows a span in which the k-th smallest pair lies until few are left
// in it, or all that are have its value.
func (p *pairs) near(k int, in span) span {
	const few = 64
	for turn := 0; in.upTo-in.below > few && in.low < in.high; turn++ {
		middle := between(in.low, in.high)
		if turn%3 > 0 { // as if they lay evenly: a little above the k-th, then a little below
			among := float64(in.upTo - in.below)
			part := (float64(k-in.below) + float64(3-2*(turn%3))*(among/64+few/8)) / among
			if guess := in.low*(1-part) + in.high*part; in.low <= guess && guess < in.high {
				middle = guess
			}
		}
		if n := p.count(middle); n >= k {
			in.high, in.upTo = middle, n
		} else {
			in.low, in.below = math.Nextafter(middle, in.high), n
		}
	}
	return in
}

// count is the number of pairs of at most limit.
func (p *pairs) count(limit float64) int {
	n, i := 0, 0
	for _, b := range p.b {
		for i < len(p.a) && p.of(b, p.a[i]) > limit {
			i++
		}
		n += len(p.a) - i
	}
	return n
}

// within are the pairs from low to high, sorted.
func (p *pairs) within(low, high float64) []float64 {
	var values []float64
	i := 0
	for _, b := range p.b {
		for i < len(p.a) && p.of(b, p.a[i]) > high {
			i++
		}
		for _, a := range p.a[i:] {
			v := p.of(b, a)
			if v < low {
				break
			}
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return values
}

// between is the float64 with as many float64s from low up to it as from it up
// to high: at most 64 halvings end at one, whatever the values are.
func between(low, high float64) float64 {
	l, h := order(int64(math.Float64bits(low))), order(int64(math.Float64bits(high)))
	return math.Float64frombits(uint64(order((l & h) + (l^h)>>1)))
}

// order maps the bits of a float64 to a number that is ordered as it is, and
// back.
func order(bits int64) int64 {
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return bits
}
