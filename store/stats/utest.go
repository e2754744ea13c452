package stats

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// exactPairs is up to how many pairs of runs the distribution of U is computed
// exactly: 20 runs a side, and all of 40 in all however they are shared out.
const exactPairs = 400

// uTest is the two-sided Mann-Whitney U test of two sorted groups that are not
// empty. Ties count half, and P is conditional on them (Klotz 1966), as in a
// permutation test. With more than exactPairs pairs it is the normal
// approximation, corrected for ties and continuity.
func uTest(a, b []float64) (u, p float64, exact bool) {
	var ties []int
	ranks, tied, exact := 0, 0.0, len(a)*len(b) <= exactPairs
	u = pairsAbove(a, b, func(values int) {
		ranks++
		t := float64(values)
		tied += t * (t*t - 1)
		if exact {
			ties = append(ties, values)
		}
	})
	switch {
	case ranks == 1:
		return u, 1, true
	case !exact:
		return u, normalP(u, len(a), len(b), tied), false
	case ranks == len(a)+len(b):
		return u, min(1, 2*untied(len(a), len(b))[int(min(u, float64(len(a)*len(b))-u))]), true
	}
	return u, min(1, 2*smallerTail(u, len(a), len(b), ties)), true
}

// pairsAbove merges two sorted groups: u of b over a. rank hears how many values are
// at each rank.
func pairsAbove(a, b []float64, rank func(values int)) (u float64) {
	for below := 0; len(a)+len(b) > 0; {
		v := math.Inf(1)
		if len(a) > 0 {
			v = a[0]
		}
		if len(b) > 0 {
			v = min(v, b[0])
		}
		inA, inB := run(a, v), run(b, v)
		u += float64(inB) * (float64(below) + float64(inA)/2)
		rank(inA + inB)
		below += inA
		a, b = a[inA:], b[inB:]
	}
	return u
}

// run is how many of the first values of sorted are v.
func run(sorted []float64, v float64) int {
	n := 0
	for n < len(sorted) && sorted[n] == v {
		n++
	}
	return n
}

// smallerTail is the smaller one of P(U <= u) and P(U >= u).
//
// Note: with ties in groups of different sizes the distribution of U need not
// be symmetric. Then the upper tail of b over a is the lower tail of a over b
// with the sizes exchanged, and not the lower tail at the mirrored u, which is
// what stats.MannWhitneyUTest takes.
func smallerTail(u float64, na, nb int, ties []int) float64 {
	over := stats.UDist{N1: nb, N2: na, T: ties}
	under := stats.UDist{N1: na, N2: nb, T: ties}
	mirrored := float64(na)*float64(nb) - u
	if mirrored < u {
		over, under, u, mirrored = under, over, mirrored, u
	}
	tail := over.CDF(u)
	if tail > 0.5 { // else the other one is at least 1 - tail
		tail = min(tail, under.CDF(mirrored))
	}
	return tail
}

// normalP is the two-sided p of u by the normal approximation; tied is the sum
// of t³-t over the ranks, of t values each.
func normalP(u float64, na, nb int, tied float64) float64 {
	n := float64(na + nb)
	mean, variance := normalU(na, nb)
	variance *= 1 - tied/(n*(n*n-1))
	return math.Erfc(max(0, math.Abs(u-mean)-0.5) / math.Sqrt(2*variance))
}

// normalU is the mean and the variance of U without ties.
func normalU(na, nb int) (mean, variance float64) {
	product := float64(na) * float64(nb)
	return product / 2, product * float64(na+nb+1) / 12
}

// intervalRank is the rank k of the order statistics of all pairs, the k-th
// from below and the k-th from above, that cover the shift with at least Level,
// and their true coverage. Where even the outermost pair does not reach Level
// it is 1, with the lower coverage.
func intervalRank(na, nb int) (k int, coverage float64) {
	const tail = (1 - Level) / 2
	if na*nb > exactPairs {
		mean, variance := normalU(na, nb)
		k = max(1, int(mean-math.Sqrt2*math.Erfinv(Level)*math.Sqrt(variance)+0.5))
		return k, math.Erf((mean + 0.5 - float64(k)) / math.Sqrt(2*variance))
	}
	below := untied(na, nb) // below[k-1]: the shift is under the k-th pair
	k = 1
	for k < len(below) && below[k] <= tail {
		k++
	}
	return k, 1 - 2*min(below[k-1], 0.5)
}

// untied is P(U <= u) of each u where no values tie. The ways to each u are the
// coefficients of the Gaussian binomial, all of them below 2^53.
func untied(na, nb int) []float64 {
	na, nb = min(na, nb), max(na, nb)
	ways := make([]float64, na*nb+1)
	ways[0] = 1
	for i := 1; i <= na; i++ {
		for u := na * nb; u >= nb+i; u-- {
			ways[u] -= ways[u-nb-i]
		}
		for u := i; u < len(ways); u++ {
			ways[u] += ways[u-i]
		}
	}
	for u := 1; u < len(ways); u++ {
		ways[u] += ways[u-1]
	}
	all := ways[len(ways)-1]
	for u := range ways {
		ways[u] /= all
	}
	return ways
}
