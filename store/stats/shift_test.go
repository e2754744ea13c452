package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestShift(t *testing.T) {
	up := math.MaxFloat64
	tests := []struct {
		name string
		a, b []float64
		want Shift
	}{
		{"5% by exact figures", []float64{100, 100, 100, 100}, []float64{105, 105, 105, 105},
			Shift{Relative: true, Value: 0.05, Low: 0.05, High: 0.05, Coverage: 1 - 2.0/70}},
		{"a third less, apart", []float64{99, 100, 101, 102}, []float64{66, 67, 68, 69},
			Shift{Relative: true, Value: math.Sqrt(67.0/100*68/101) - 1, Low: 66.0/102 - 1, High: 69.0/99 - 1, Coverage: 1 - 2.0/70}},
		{"a zero", []float64{0, 1, 2, 3}, []float64{10, 11, 12, 13}, Shift{Value: 10, Low: 7, High: 13, Coverage: 1 - 2.0/70}},
		{"below zero", []float64{-1, -1, -1, -1}, []float64{-3, -3, -3, -3}, Shift{Value: -2, Low: -2, High: -2, Coverage: 1 - 2.0/70}},
		{"one each", []float64{10}, []float64{20}, Shift{Relative: true, Value: 1, Low: 1, High: 1}},
		{"three each", []float64{1, 2, 3}, []float64{1, 2, 3}, Shift{Relative: true, Low: 1.0/3 - 1, High: 2, Coverage: 0.9}},
		{"all zero", make([]float64, 4), make([]float64, 4), Shift{Coverage: 1 - 2.0/70}},
		{"minus zero", []float64{0}, []float64{math.Copysign(0, -1)}, Shift{}},
		{"out of range", []float64{-up}, []float64{up}, Shift{Value: up, Low: up, High: up}},
		{"ratio out of range", []float64{1e-300}, []float64{1e300}, Shift{Relative: true, Value: up, Low: up, High: up}},
		{"ratio out of range below", []float64{1e300}, []float64{1e-300}, Shift{Relative: true, Value: -1, Low: -1, High: -1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, want := Compare(test.a, test.b).Shift, test.want
			if got.Relative != want.Relative || !near(got.Value, want.Value) || !near(got.Low, want.Low) || !near(got.High, want.High) || !near(got.Coverage, want.Coverage) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if math.Signbit(got.Value) && got.Value == 0 {
				t.Error("a zero with a sign")
			}
		})
	}
}

// Too many pairs to lay out, against laying them out.
func TestKthPair(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	makers := map[string]func() float64{
		"steady":    func() float64 { return 1000 * math.Exp(0.02*r.NormFloat64()) },
		"ties":      func() float64 { return float64(1 + r.IntN(9)) },
		"signs":     r.NormFloat64,
		"one value": func() float64 { return 7 },
		"every size": func() float64 {
			return math.Exp(700 * (2*r.Float64() - 1))
		},
		"every size and sign": func() float64 {
			return math.Copysign(math.Exp(700*(2*r.Float64()-1)), r.NormFloat64())
		},
		"far apart": func() float64 { return []float64{1e-300, 1, 1e300}[r.IntN(3)] },
	}
	for name, value := range makers {
		t.Run(name, func(t *testing.T) {
			var a, b []float64
			for range 60 {
				a = append(a, value())
			}
			for range 70 {
				b = append(b, value())
			}
			slices.Sort(a)
			slices.Sort(b)
			p := pairs{a: a, b: b, ratio: a[0] > 0 && b[0] > 0}
			var all []float64
			for _, y := range b {
				for _, x := range a {
					all = append(all, p.of(y, x))
				}
			}
			slices.Sort(all)
			for _, k := range []int{1, 2, 30, 1024, 2100, 2101, 4000, 4199, 4200} {
				if got, want := p.kth(k, p.near(k, p.all())), all[k-1]; got != want {
					t.Errorf("pair %d: %v, want %v", k, got, want)
				}
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	const tries, truth = 2000, 0.1
	for _, n := range []int{4, 6} {
		covered, said := 0, 0.0
		for range tries {
			b := sample(r, n, 0.03)
			for i := range b {
				b[i] *= 1 + truth
			}
			s := Compare(sample(r, n, 0.03), b).Shift
			said = s.Coverage
			if s.Low <= truth && truth <= s.High {
				covered++
			}
		}
		if got := float64(covered) / tries; math.Abs(got-said) > 0.012 || said < Level {
			t.Errorf("n=%d: %v of the intervals cover the shift, said %v", n, got, said)
		}
	}
}

// sample is n runs around 1000, log-normal, with a coefficient of variation.
func sample(r *rand.Rand, n int, cv float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = 1000 * math.Exp(cv*r.NormFloat64())
	}
	return values
}
