package stats

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// reference is testdata/scipy.json: how it was made is in testdata/README.md.
type reference struct {
	Cases []struct {
		Name       string
		A, B       []float64
		U, P       float64
		How        string
		Relative   bool
		Shift      float64
		Low, High  *float64
		Coverage   *float64
		AQuartiles []float64 `json:"a_quartiles"`
		BQuartiles []float64 `json:"b_quartiles"`
	}
	ExactTies []struct {
		Name string
		A, B []float64
		U, P float64
	} `json:"exact_ties"`
	Holm []struct{ P, Adjusted []float64 }
}

func readReference(t *testing.T) reference {
	t.Helper()
	data, err := os.ReadFile("testdata/scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// near reports whether two numbers agree to about nine digits.
func near(got, want float64) bool {
	return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))
}

func TestAgainstSciPy(t *testing.T) {
	for _, c := range readReference(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			got := Compare(c.A, c.B)
			if got.U != c.U || !near(got.P, c.P) {
				t.Errorf("U %v p %v, want %v %v", got.U, got.P, c.U, c.P)
			}
			if want := c.How != "asymptotic"; got.Exact != want {
				t.Errorf("exact %v, want %v", got.Exact, want)
			}
			s := got.Shift
			if s.Relative != c.Relative || !near(s.Value, c.Shift) {
				t.Errorf("shift %v (relative %v), want %v (%v)", s.Value, s.Relative, c.Shift, c.Relative)
			}
			if c.Low != nil && (!near(s.Low, *c.Low) || !near(s.High, *c.High) || !near(s.Coverage, *c.Coverage)) {
				t.Errorf("interval [%v, %v] of %v, want [%v, %v] of %v", s.Low, s.High, s.Coverage, *c.Low, *c.High, *c.Coverage)
			}
			for _, side := range []struct {
				name string
				got  Summary
				want []float64
			}{{"A", got.A, c.AQuartiles}, {"B", got.B, c.BQuartiles}} {
				if g, w := side.got, side.want; !near(g.Q1, w[0]) || !near(g.Median, w[1]) || !near(g.Q3, w[2]) {
					t.Errorf("%s: quartiles %v %v %v, want %v", side.name, g.Q1, g.Median, g.Q3, w)
				}
			}
		})
	}
}

// Ties in groups too large for SciPy's permutations.
func TestExactTies(t *testing.T) {
	for _, c := range readReference(t).ExactTies {
		got := Compare(c.A, c.B)
		if got.U != c.U || !near(got.P, c.P) || !got.Exact {
			t.Errorf("%s: U %v p %v (exact %v), want %v %v", c.Name, got.U, got.P, got.Exact, c.U, c.P)
		}
	}
}

func TestHolm(t *testing.T) {
	for _, c := range readReference(t).Holm {
		got := Holm(c.P)
		for i, want := range c.Adjusted {
			if !near(got[i], want) {
				t.Errorf("%v: got %v, want %v", c.P, got, c.Adjusted)
				break
			}
		}
	}
}
