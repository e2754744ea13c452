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
	all := len(a) * len(b)
	s := Shift{Relative: p.ratio, Coverage: coverage, Low: p.kth(k), High: p.kth(all + 1 - k)}
	lower, upper := p.middle()
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

// kth is the k-th smallest pair, k from 1: halve the float64s that it may be
// until few pairs are left between them, then sort those.
func (p *pairs) kth(k int) float64 {
	low, high, below := p.near(k)
	if low == high {
		return high
	}
	return p.within(low, high)[k-below-1]
}

// middle are the two pairs in the middle, which are one where their number is odd.
func (p *pairs) middle() (lower, upper float64) {
	k, all := (len(p.a)*len(p.b)+1)/2, len(p.a)*len(p.b)
	low, high, below := p.near(k)
	if low == high {
		lower = high
	} else {
		values := p.within(low, high)
		if lower = values[k-below-1]; k-below < len(values) && all%2 == 0 {
			return lower, values[k-below]
		}
	}
	if all%2 == 0 {
		return lower, p.kth(k + 1)
	}
	return lower, lower
}

// near are bounds between which the k-th smallest pair lies with few others,
// and how many lie below; both are the pair's own value where many are of it.
func (p *pairs) near(k int) (low, high float64, below int) {
	const few = 64
	low, high = p.of(p.b[0], p.a[len(p.a)-1]), p.of(p.b[len(p.b)-1], p.a[0])
	upTo := len(p.a) * len(p.b) // pairs up to high
	for upTo-below > few && low < high {
		middle := between(low, high)
		if n := p.count(middle); n >= k {
			high, upTo = middle, n
		} else {
			low, below = math.Nextafter(middle, high), n
		}
	}
	return low, high, below
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
