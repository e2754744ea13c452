package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// scaled is steady runs around base, apart by its thousandths.
func scaled(base float64, thousandths ...float64) []float64 {
	var values []float64
	for _, v := range thousandths {
		values = append(values, base*(1+v/1000))
	}
	return values
}

func TestJudge(t *testing.T) {
	around := func(base float64) []float64 { return scaled(base, -2, -1, 0, 1, 2) }
	wide := func(base float64) []float64 { return scaled(base, -100, -50, 0, 50, 100) }
	less, more, neither := Question{Better: -1, Margin: 0.05}, Question{Better: +1, Margin: 0.05}, Question{Margin: 0.05}
	with := func(q Question, set func(*Question)) Question { set(&q); return q }

	tests := []struct {
		name string
		a, b []float64
		q    Question
		want Answer
		why  string
	}{
		{"more of what should be less", around(100), around(120), less, Worse, ""},
		{"less of what should be less", around(120), around(100), less, Better, ""},
		{"more of what should be more", around(100), around(120), more, Better, ""},
		{"less of what should be more", around(120), around(100), more, Worse, ""},
		{"no direction", around(100), around(120), neither, Different, ""},
		{"the same", around(100), around(100), less, NoDifference, ""},
		{"sure, and under the margin", around(100), around(103), less, NoDifference, ""},
		{"exactly the margin", scaled(100, 0, 0, 0, 0), scaled(105, 0, 0, 0, 0), less, Worse, ""},
		{"exactly the margin, down", scaled(100, 0, 0, 0, 0), scaled(95, 0, 0, 0, 0), less, Better, ""},
		{"sure, and about the margin", around(100), around(104.9), less, Inconclusive, "the interval reaches beyond the margin"},
		{"far, and unsure", wide(100), wide(106), less, Inconclusive, "the interval includes 0"},
		{"exactly a margin that does not divide", scaled(100, 0, 0, 0, 0), scaled(115, 0, 0, 0, 0), with(less, func(q *Question) { q.Margin = 0.15 }), Worse, ""},
		{"sure by the interval, not by p", []float64{2, 2, 4, 10}, []float64{5, 8, 8, 9, 11, 11, 13, 13}, less, Inconclusive, "ties, with which p=0.053"},
		{"near, and unsure", wide(100), wide(101), less, Inconclusive, "the interval reaches beyond the margin"},

		{"under the floor", around(100), around(120), with(less, func(q *Question) { q.Floor = 25 }), NoDifference, ""},
		{"exactly the floor", scaled(100, 0, 0, 0, 0), scaled(110, 0, 0, 0, 0), with(less, func(q *Question) { q.Floor = 10 }), NoDifference, ""},
		{"above the floor", around(100), around(120), with(less, func(q *Question) { q.Floor = 15 }), Worse, ""},
		{"about the floor", wide(100), wide(140), with(less, func(q *Question) { q.Floor = 41 }), Inconclusive, "the interval reaches beyond the margin"},

		{"from none", []float64{0, 0, 0, 0}, []float64{3, 4, 3, 5}, less, Worse, ""},
		{"to none", []float64{3, 4, 3, 5}, []float64{0, 0, 0, 0}, less, Better, ""},
		{"none at all", []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}, less, NoDifference, ""},
		{"from none, up to the floor", []float64{0, 0, 0, 0}, []float64{1, 1, 0, 1}, with(less, func(q *Question) { q.Floor = 1 }), NoDifference, ""},
		{"once", []float64{0, 0, 0, 0}, []float64{0, 0, 1, 0}, less, Inconclusive, "the interval reaches beyond the margin"},
		{"plain differences under the margin", []float64{-1000, -1000, -1000, -1000}, []float64{-1020, -1021, -1022, -1023}, less, NoDifference, ""},
		{"plain differences beyond it", []float64{-1000, -1000, -1000, -1000}, []float64{-1060, -1061, -1062, -1063}, less, Better, ""},

		{"three runs", around(100), []float64{200, 200, 200}, less, NoVerdict, "needs 4 runs a side, has 3"},
		{"no runs", nil, nil, less, NoVerdict, "no value on either side"},
		{"no baseline", nil, around(100), less, NoVerdict, "no value of the baseline"},
		{"no candidate", around(100), []float64{math.NaN()}, less, NoVerdict, "no value to compare with the baseline"},
		{"in blocks", around(100), around(200), with(less, func(q *Question) { q.Blocks = true }), NoVerdict, "not interleaved: the machine's drift is in this number"},
		{"a margin that is none", around(100), around(100.5), Question{Better: -1, Margin: math.NaN(), Floor: math.Inf(-1)}, Worse, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Compare(test.a, test.b).Judge(test.q)
			if got.Answer != test.want || got.Why != test.why {
				t.Errorf("%s (%q), want %s (%q): %+v", got.Answer, got.Why, test.want, test.why, got.Shift)
			}
			if got.Runs != 0 && got.Answer != Inconclusive {
				t.Errorf("%s, and yet needs %d runs", got.Answer, got.Runs)
			}
			if got.Adjusted != got.P {
				t.Errorf("p %v, adjusted %v", got.P, got.Adjusted)
			}
		})
	}
}

// Of every pair and direction exactly one order is worse, and the other is not.
func TestOneWayIsWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, better := range []int{-1, +1} {
		for range 200 {
			a, b := sample(r, 5, 0.01), sample(r, 5, 0.01)
			for i := range b {
				b[i] *= 1.2
			}
			q := Question{Better: better, Margin: 0.05}
			forth, back := Compare(a, b).Judge(q).Answer, Compare(b, a).Judge(q).Answer
			want := [2]Answer{Worse, Better}
			if better > 0 {
				want = [2]Answer{Better, Worse}
			}
			if got := [2]Answer{forth, back}; got != want {
				t.Errorf("better %+d: %v, want %v", better, got, want)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	tests := []struct {
		name          string
		a             float64
		margin, floor float64
		want          float64
	}{
		{"the margin", 200, 0.05, 1, 0.05},
		{"the floor, as a part of the baseline", 200, 0.05, 20, 0.1},
		{"the margin, of a plain baseline", -200, 0.05, 1, 10},
		{"the floor, of a plain baseline", -200, 0.05, 20, 20},
		{"no baseline to take a part of", 0, 0.05, 0, 0},
	}
	for _, test := range tests {
		side := scaled(test.a, 0, 0, 0, 0)
		if got := Compare(side, side).Judge(Question{Margin: test.margin, Floor: test.floor}).Limit; !near(got, test.want) {
			t.Errorf("%s: limit %v, want %v", test.name, got, test.want)
		}
	}
}

// The runs that an inconclusive answer asks for do settle it, more often than not.
func TestRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	q := Question{Better: -1, Margin: 0.05}
	for _, change := range []float64{0, 0.1} {
		draw := func(n int) Verdict {
			b := sample(r, n, 0.04)
			for i := range b {
				b[i] *= 1 + change
			}
			return Compare(sample(r, n, 0.04), b).Judge(q)
		}
		asked, settled, most := 0, 0, 0
		for range 600 {
			v := draw(5)
			if v.Answer != Inconclusive || v.Runs == 0 {
				continue
			}
			if v.Runs <= 5 {
				t.Fatalf("%d runs a side are to settle what 5 did not: %+v", v.Runs, v)
			}
			asked++
			most = max(most, v.Runs)
			if v.Runs > 100 || draw(v.Runs).Answer != Inconclusive {
				settled++
			}
		}
		if asked < 50 || settled*2 < asked {
			t.Errorf("change of %v: %d of %d settled", change, settled, asked)
		}
		if most > maxRuns {
			t.Errorf("%d runs suggested", most)
		}
	}

	onTheMargin := Compare(scaled(100, -100, 0, 0, 0, 100), scaled(105-1e-6, 0, 0, 0, 0, 0)).Judge(q)
	if onTheMargin.Answer != Inconclusive || onTheMargin.Runs != 0 {
		t.Errorf("a shift on the margin: %s after %d runs", onTheMargin.Answer, onTheMargin.Runs)
	}
}
