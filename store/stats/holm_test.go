package stats

import (
	"slices"
	"testing"
)

func TestHolmProperties(t *testing.T) {
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
	p := []float64{0.04, 0.001, 0.9, 0.001}
	want := []float64{0.08, 0.004, 0.9, 0.004}
	got := Holm(p)
	for i := range want {
		if !near(got[i], want[i]) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if !slices.Equal(p, []float64{0.04, 0.001, 0.9, 0.001}) {
		t.Errorf("the p values were changed: %v", p)
	}
}

func TestCorrect(t *testing.T) {
	q := Question{Better: -1, Margin: 0.05}
	low, high := scaled(100, 0, 1, 2, 3, 4, 5), scaled(120, 0, 1, 2, 3, 4, 5)
	apart := func(n int) Verdict { return Compare(low[:n], high[:n]).Judge(q) }
	same := Compare(low, low).Judge(q)

	tests := []struct {
		name  string
		given []Verdict
		level float64
		want  []Answer
	}{
		{"one alone", []Verdict{apart(5)}, FamilyLevel, []Answer{Worse}},
		{"six of six runs", []Verdict{apart(6), same, same, same, same, same}, FamilyLevel, []Answer{Worse, NoDifference, NoDifference, NoDifference, NoDifference, NoDifference}},
		{"six of five runs", []Verdict{apart(5), same, same, same, same, same}, FamilyLevel, []Answer{Inconclusive, NoDifference, NoDifference, NoDifference, NoDifference, NoDifference}},
		{"those without verdict do not count", []Verdict{apart(5), apart(3), apart(3), same}, FamilyLevel, []Answer{Worse, NoVerdict, NoVerdict, NoDifference}},
		{"one after the other", []Verdict{apart(4), apart(6)}, 1 - Level, []Answer{Worse, Worse}},
		{"none", nil, FamilyLevel, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vs := slices.Clone(test.given)
			Correct(vs, test.level)
			for i, v := range vs {
				if v.Answer != test.want[i] {
					t.Errorf("verdict %d: %s (%s), want %s", i, v.Answer, v.Why, test.want[i])
				}
				if v.Adjusted < v.P || v.P != test.given[i].P || v.Shift != test.given[i].Shift {
					t.Errorf("verdict %d: p %v, adjusted %v, was %v", i, v.P, v.Adjusted, test.given[i].P)
				}
			}
		})
	}

	for _, v := range []Verdict{apart(5), Compare(high[:5], low[:5]).Judge(q)} {
		vs := []Verdict{v, same, same, same, same, same}
		Correct(vs, FamilyLevel)
		if want := "p=0.048 when corrected over 6 comparisons"; vs[0].Why != want || vs[0].Runs != 6 {
			t.Errorf("%q, %d runs; want %q, 6 runs", vs[0].Why, vs[0].Runs, want)
		}
	}

	// Not wholly apart: it takes more runs than the first that could do.
	vs := []Verdict{Compare([]float64{100, 101, 102, 103, 104, 120.2}, high).Judge(q), same, same, same, same, same}
	Correct(vs, FamilyLevel)
	if want := "p=0.052 when corrected over 6 comparisons"; vs[0].Why != want || vs[0].Runs != 8 {
		t.Errorf("overlapping: %q, %d runs; want %q, 8 runs", vs[0].Why, vs[0].Runs, want)
	}
}
