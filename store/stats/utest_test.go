package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
)

// critical05 are the largest U that are significant at 0.05, two-sided, for
// n1 = 2 to 20 (lines) and n2 = 2 to 20; "-": none is. It is the table that textbooks
// and course pages print (numeracy-bank.net/?q=t/stt/mwu/3 among them).
const critical05 = `
- - - - - - 0 0 0 0 1 1 1 1 1 2 2 2 2
- - - 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8
- - 0 1 2 3 4 4 5 6 7 8 9 10 11 11 12 13 13
- 0 1 2 3 5 6 7 8 9 11 12 13 14 15 17 18 19 20
- 1 2 3 5 6 8 10 11 13 14 16 17 19 21 22 24 25 27
- 1 3 5 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34
0 2 4 6 8 10 13 15 17 19 22 24 26 29 31 34 36 38 41
0 2 4 7 10 12 15 17 20 23 26 28 31 34 37 39 42 45 48
0 3 5 8 11 14 17 20 23 26 29 33 36 39 42 45 48 52 55
0 3 6 9 13 16 19 23 26 30 33 37 40 44 47 51 55 58 62
1 4 7 11 14 18 22 26 29 33 37 41 45 49 53 57 61 65 69
1 4 8 12 16 20 24 28 33 37 41 45 50 54 59 63 67 72 76
1 5 9 13 17 22 26 31 36 40 45 50 55 59 64 67 74 78 83
1 5 10 14 19 24 29 34 39 44 49 54 59 64 70 75 80 85 90
1 6 11 15 21 26 31 37 42 47 53 59 64 70 75 81 86 92 98
2 6 11 17 22 28 34 39 45 51 57 63 67 75 81 87 93 99 105
2 7 12 18 24 30 36 42 48 55 61 67 74 80 86 93 99 106 112
2 7 13 19 25 32 38 45 52 58 65 72 78 85 92 99 106 113 119
2 8 13 20 27 34 41 48 55 62 69 76 83 90 98 105 112 119 127
`

// critical01 is the same at 0.01 for n1 = 12, n2 = 3 to 12, and for n1 = n2 = 5 to
// 11, from a table of smallest rank sums (less n2(n2+1)/2).
var critical01 = map[[2]int]int{
	{12, 3}: 1, {12, 4}: 3, {12, 5}: 6, {12, 6}: 9, {12, 7}: 12, {12, 8}: 15, {12, 9}: 18, {12, 10}: 21, {12, 11}: 24, {12, 12}: 27,
	{5, 5}: 0, {6, 6}: 2, {7, 7}: 4, {8, 8}: 7, {9, 9}: 11, {10, 10}: 16, {11, 11}: 21,
}

// apart gives two groups without ties in which u pairs have b above a.
func apart(na, nb, u int) (a, b []float64) {
	for i := range na {
		a = append(a, float64(i))
	}
	for j := range nb {
		above := min(na, u)
		u -= above
		b = append(b, float64(above)-0.5-float64(j)/1000)
	}
	return a, b
}

// isCritical checks that u is significant at level and the next one is not.
func isCritical(t *testing.T, na, nb, u int, level float64) {
	t.Helper()
	for _, side := range []struct {
		u    int
		want bool
	}{{u, true}, {u + 1, false}} {
		if side.u < 0 {
			continue
		}
		c := Compare(apart(na, nb, side.u))
		if c.U != float64(side.u) || !c.Exact || (c.P <= level) != side.want {
			t.Errorf("%d+%d, U %d: U %v p %v (exact %v), want significant at %v: %v", na, nb, side.u, c.U, c.P, c.Exact, level, side.want)
		}
	}
}

func TestPublishedCriticalValues(t *testing.T) {
	// Two misprints that the printed tables hand on, and the exact values.
	misprints := map[[2]int]int{{14, 17}: 69, {4, 20}: 14}
	for i, line := range strings.Split(strings.TrimSpace(critical05), "\n") {
		for j, cell := range strings.Fields(line) {
			na, nb, want := i+2, j+2, -1
			if cell != "-" {
				var err error
				if want, err = strconv.Atoi(cell); err != nil {
					t.Fatal(err)
				}
			}
			if exact, ok := misprints[[2]int{min(na, nb), max(na, nb)}]; ok {
				want = exact
			}
			isCritical(t, na, nb, want, 0.05)
		}
	}
	for n, want := range critical01 {
		isCritical(t, n[0], n[1], want, 0.01)
	}
}

// Every way to deal the values to two sides, counted.
func TestTiesAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 400 {
		na, nb := 1+r.IntN(6), 1+r.IntN(6)
		values := make([]float64, na+nb)
		for i := range values {
			values[i] = float64(r.IntN(1 + r.IntN(6)))
		}
		u := func(inB uint) (u float64) {
			for i, b := range values {
				for j, a := range values {
					switch {
					case inB>>i&1 == 0 || inB>>j&1 == 1:
					case b > a:
						u++
					case b == a:
						u += 0.5
					}
				}
			}
			return u
		}
		observed := u(1<<nb - 1)
		var low, high, all float64
		for deal := uint(0); deal < 1<<(na+nb); deal++ {
			if bits.OnesCount(deal) != nb {
				continue
			}
			all++
			d := u(deal)
			if d <= observed {
				low++
			}
			if d >= observed {
				high++
			}
		}
		want := min(1, 2*min(low, high)/all)
		if c := Compare(values[nb:], values[:nb]); c.U != observed || !near(c.P, want) {
			t.Errorf("a %v b %v: U %v p %v, want %v %v", values[nb:], values[:nb], c.U, c.P, observed, want)
		}
	}
}

// The approximation takes over where it is as good as exact.
func TestApproximation(t *testing.T) {
	for _, n := range [][2]int{{20, 21}, {21, 21}, {10, 41}, {45, 30}, {60, 60}} {
		k, coverage := intervalRank(n[0], n[1])
		exact := 1 - 2*stats.UDist{N1: n[0], N2: n[1]}.CDF(float64(k-1))
		if math.Abs(coverage-exact) > 0.003 || coverage < Level-1e-9 {
			t.Errorf("%v: coverage %v, exactly %v", n, coverage, exact)
		}
		r := rand.New(rand.NewPCG(3, 3))
		for range 20 {
			u := r.IntN(n[0]*n[1] + 1)
			c := Compare(apart(n[0], n[1], u))
			want := min(1, 2*stats.UDist{N1: n[0], N2: n[1]}.CDF(min(float64(u), float64(n[0]*n[1]-u))))
			if c.Exact || math.Abs(c.P-want) > 0.02*want+0.002 {
				t.Errorf("%v U %d: p %v (exact %v), want about %v", n, u, c.P, c.Exact, want)
			}
		}
	}
}

// U and p rest on the order of the values alone, and do not depend on which side is which.
func TestUnderTransforms(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	each := func(values []float64, f func(float64) float64) []float64 {
		out := slices.Clone(values)
		for i, v := range out {
			out[i] = f(v)
		}
		return out
	}
	for range 300 {
		a, b := sample(r, 1+r.IntN(12), 0.1), sample(r, 1+r.IntN(12), 0.1)
		if r.IntN(2) == 0 {
			a, b = each(a, func(v float64) float64 { return math.Round(v / 50) }), each(b, func(v float64) float64 { return math.Round(v / 50) })
		}
		c := Compare(a, b)

		for name, f := range map[string]func(float64) float64{
			"log": math.Log, "cube": func(v float64) float64 { return v * v * v }, "scale": func(v float64) float64 { return 4 * v },
		} {
			if got := Compare(each(a, f), each(b, f)); got.U != c.U || got.P != c.P {
				t.Errorf("%s of %v, %v: U %v p %v, want %v %v", name, a, b, got.U, got.P, c.U, c.P)
			}
		}
		scaled := Compare(each(a, func(v float64) float64 { return 3 * v }), each(b, func(v float64) float64 { return 3 * 1.5 * v })).Shift
		if want := 1.5*(1+c.Shift.Value) - 1; !near(scaled.Value, want) {
			t.Errorf("b half as large again: shift %v, want %v", scaled.Value, want)
		}

		swapped := Compare(b, a)
		if swapped.U != float64(len(a)*len(b))-c.U || !near(swapped.P, c.P) {
			t.Errorf("%v, %v: swapped U %v p %v, want of %v %v", a, b, swapped.U, swapped.P, c.U, c.P)
		}
		s, w := c.Shift, swapped.Shift
		if !near((1+s.Value)*(1+w.Value), 1) || !near((1+s.Low)*(1+w.High), 1) || !near((1+s.High)*(1+w.Low), 1) || s.Coverage != w.Coverage {
			t.Errorf("%v, %v: shift %+v, swapped %+v", a, b, s, w)
		}
		negative := func(v float64) float64 { return -v }
		s, w = Compare(each(a, negative), each(b, negative)).Shift, Compare(each(b, negative), each(a, negative)).Shift
		if s.Value != -w.Value || s.Low != -w.High || s.High != -w.Low || s.Relative {
			t.Errorf("%v, %v: plain shift %+v, swapped %+v", a, b, s, w)
		}
	}
}
