package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// machine is a simulated host on which n runs a side are made: every metric's
// value is 1000, times the machine's drift, times noise.
type machine struct {
	*rand.Rand
	// drift is by what part the machine is slower at x, from 0 to 1 of the series.
	drift func(x float64) float64
}

func steady(float64) float64 { return 0 }

// linear gets 6% slower from the first run to the last.
func linear(x float64) float64 { return 0.06 * x }

// wave is one wave of 6% from crest to trough in a series, from anywhere on it.
func wave(r *rand.Rand) func(x float64) float64 {
	phase := r.Float64()
	return func(x float64) float64 { return 0.03 * math.Sin(2*math.Pi*(x+phase)) }
}

// inTurns is A B B A …, inBlocks all of A before all of B.
func inTurns(i, n int) int  { return (i + 1) / 2 % 2 }
func inBlocks(i, n int) int { return i / n }

// series makes n runs a side of metrics with these coefficients of variation
// (of 0: a count that is 0 in every run), B's being higher by change.
func (m machine) series(n int, turn func(i, n int) int, change float64, variation ...float64) []Comparison {
	sides := make([][2][]float64, len(variation))
	for i := range 2 * n {
		side, slower := turn(i, n), 1+m.drift(float64(i)/float64(2*n-1))
		for metric, cv := range variation {
			value := 0.0
			if cv > 0 {
				value = 1000 * slower * math.Exp(cv*m.NormFloat64()) * (1 + change*float64(side))
			}
			sides[metric][side] = append(sides[metric][side], value)
		}
	}
	var cs []Comparison
	for _, s := range sides {
		cs = append(cs, Compare(s[0], s[1]))
	}
	return cs
}

// table judges the first one as the primary metric and the others as others, and
// reports whether any is called worse or better.
func table(cs []Comparison) bool {
	var vs []Verdict
	for _, c := range cs {
		vs = append(vs, c.Judge(Question{Better: -1, Margin: 0.05}))
	}
	Correct(vs[1:], FamilyLevel)
	for _, v := range vs {
		if v.Answer == Worse || v.Answer == Better {
			return true
		}
	}
	return false
}

// At no change, and 6% of drift, at most 1% of whole tables may say worse or
// better of any of seven metrics.
func TestFalseAlarms(t *testing.T) {
	const tables = 300
	for name, variation := range map[string][]float64{
		"steady metrics": {0.017, 0.017, 0.017, 0.017, 0.017, 0.017, 0.017},
		// As a default table is: CPU, rate, p50, two p99, memory, unaccounted.
		"with two p99": {0.017, 0.001, 0.03, 0.13, 0.13, 0.02, 0},
	} {
		for _, n := range []int{4, 6, 10} {
			r := rand.New(rand.NewPCG(10, uint64(n)))
			alarms := 0
			for i := range tables {
				m := machine{r, linear}
				if i%2 == 0 {
					m.drift = wave(r)
				}
				if table(m.series(n, inTurns, 0, variation...)) {
					alarms++
				}
			}
			if alarms*100 > tables {
				t.Errorf("%s, n=%d: %d of %d tables raise a false alarm", name, n, alarms, tables)
			}
		}
	}
}

// In blocks the drift is called a difference, which is why they get no verdict.
func TestBlocksMislead(t *testing.T) {
	const tries = 500
	for n, least := range map[int]int{4: 25, 10: 80} {
		m := machine{rand.New(rand.NewPCG(11, uint64(n))), linear}
		alarms := 0
		for range tries {
			if m.series(n, inBlocks, 0, 0.017)[0].P <= 0.05 {
				alarms++
			}
		}
		if alarms*100 < least*tries {
			t.Errorf("n=%d: %d of %d, want at least %d%%", n, alarms, tries, least)
		}
	}
}

// What A B B A with a margin of 5% finds at a coefficient of variation of 1.7%,
// in percent of 1000 simulated series: on a machine that keeps its speed, and on
// one that loses 6% over the series. "False alarm" is a p of at most 0.05 at no
// change, before any margin.
func Example_power() {
	const tries = 1000
	of := func(seed uint64, n int, turn func(i, n int) int, drift func(float64) float64, change float64, is func(Comparison) bool) float64 {
		m := machine{rand.New(rand.NewPCG(seed, uint64(n))), drift}
		found := 0
		for range tries {
			if is(m.series(n, turn, change, 0.017)[0]) {
				found++
			}
		}
		return 100 * float64(found) / tries
	}
	significant := func(c Comparison) bool { return c.P <= 0.05 }
	says := func(a Answer) func(Comparison) bool {
		return func(c Comparison) bool { return c.Judge(Question{Better: -1, Margin: 0.05}).Answer == a }
	}
	fmt.Println("| runs a side | false alarm, A A B B, drift | false alarm, A B B A, drift | +5% worse | +7.5% worse | +10% worse | no change: no difference |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, n := range []int{4, 5, 6, 8, 10} {
		fmt.Printf("| %d | %.0f | %.1f |", n, of(1, n, inBlocks, linear, 0, significant), of(2, n, inTurns, linear, 0, significant))
		for i, change := range []float64{0.05, 0.075, 0.1} {
			seed := uint64(3 + i)
			fmt.Printf(" %.0f, drift %.0f |", of(seed, n, inTurns, steady, change, says(Worse)), of(seed, n, inTurns, linear, change, says(Worse)))
		}
		fmt.Printf(" %.0f, drift %.0f |\n", of(6, n, inTurns, steady, 0, says(NoDifference)), of(6, n, inTurns, linear, 0, says(NoDifference)))
	}
	// Output:
	// | runs a side | false alarm, A A B B, drift | false alarm, A B B A, drift | +5% worse | +7.5% worse | +10% worse | no change: no difference |
	// |---|---|---|---|---|---|---|
	// | 4 | 32 | 0.0 | 48, drift 24 | 95, drift 71 | 100, drift 97 | 66, drift 11 |
	// | 5 | 52 | 0.1 | 49, drift 43 | 99, drift 95 | 100, drift 100 | 88, drift 35 |
	// | 6 | 66 | 0.3 | 51, drift 49 | 99, drift 99 | 100, drift 100 | 98, drift 73 |
	// | 8 | 84 | 0.1 | 50, drift 49 | 100, drift 99 | 100, drift 100 | 100, drift 97 |
	// | 10 | 89 | 0.4 | 51, drift 52 | 100, drift 100 | 100, drift 100 | 100, drift 100 |
}
