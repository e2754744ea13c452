package stats

import (
	"fmt"
	"math"
	"slices"
)

// FamilyLevel is the chance at which, with no difference at all, any metric of
// a table but the primary one is called different: the level for [Correct].
//
// Note: it is under the usual 5% because tables are read whole and often. The
// margin keeps steady metrics from false alarms, but not a p99 that spreads
// 10%: at 5% one table in fifty had one in simulation. At 1% six runs a side
// could not claim anything of six metrics, however far apart they are.
const FamilyLevel = 0.02

// Holm adjusts p values of several comparisons by Holm's step-down method
// (1979): those at most a level then hold together at that level. The order is
// kept, and the p values are left as they are.
func Holm(p []float64) []float64 {
	byP := make([]int, len(p))
	for i := range byP {
		byP[i] = i
	}
	slices.SortStableFunc(byP, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		default:
			return 0
		}
	})
	adjusted, least := make([]float64, len(p)), 0.0
	for rank, i := range byP {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = least
	}
	return adjusted
}

// Correct applies Holm's correction over all verdicts that have an answer, in
// place: it fills Adjusted, and a difference whose adjusted p is above level
// becomes inconclusive. The verdicts are those that are read together: of one
// table's other metrics (with FamilyLevel), or of one build against several
// earlier ones (with 1-Level).
//
// Intervals and NoDifference stay as they are.
func Correct(verdicts []Verdict, level float64) {
	var ps []float64
	for _, v := range verdicts {
		if v.Answer != NoVerdict {
			ps = append(ps, v.P)
		}
	}
	adjusted := Holm(ps)
	for i := range verdicts {
		v := &verdicts[i]
		if v.Answer == NoVerdict {
			continue
		}
		v.Adjusted, adjusted = adjusted[0], adjusted[1:]
		claims := v.Answer == Worse || v.Answer == Better || v.Answer == Different
		if claims && v.Adjusted > level {
			v.Answer = Inconclusive
			v.Why = fmt.Sprintf("p=%.2g when corrected over %d comparisons", v.Adjusted, len(ps))
			v.Runs = v.neededFor(level / float64(len(ps)))
		}
	}
}

// neededFor estimates how many runs a side would give a p of at most level. The
// test's z grows with the root of the runs, but no p is under the one of two
// groups that lie wholly apart, as these may do already.
func (v *Verdict) neededFor(level float64) int {
	over := math.Erfcinv(level) / math.Erfcinv(v.P)
	if v.U == 0 || v.U == float64(v.A.N)*float64(v.B.N) {
		over = 1
	}
	n := v.runs(over)
	for n > 0 && apartP(n) > level {
		n++
	}
	return n
}

// apartP is the p of two groups of n runs that do not overlap.
func apartP(n int) float64 {
	p := 2.0
	for i := 1; i <= n; i++ {
		p *= float64(i) / float64(n+i)
	}
	return p
}
