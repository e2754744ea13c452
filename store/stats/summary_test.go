package stats

import (
	"math"
	"slices"
	"testing"
)

func TestSummarize(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name             string
		values           []float64
		want             Summary
		spread, relative float64 // -1: unknown
	}{
		{"none", nil, Summary{}, -1, -1},
		{"one", []float64{3}, Summary{N: 1, Median: 3, Q1: 3, Q3: 3, Min: 3, Max: 3}, -1, -1},
		{"two", []float64{4, 2}, Summary{N: 2, Median: 3, Q1: 2.5, Q3: 3.5, Min: 2, Max: 4}, 2, 2.0 / 3},
		{"three", []float64{1, 9, 5}, Summary{N: 3, Median: 5, Q1: 3, Q3: 7, Min: 1, Max: 9}, 8, 1.6},
		{"five, one odd", []float64{10, 11, 12, 13, 9999}, Summary{N: 5, Median: 12, Q1: 11, Q3: 13, Min: 10, Max: 9999}, 2, 2.0 / 12},
		{"no numbers left out", []float64{nan, 4, inf, 2, -inf, nan}, Summary{N: 2, Median: 3, Q1: 2.5, Q3: 3.5, Min: 2, Max: 4, NotFinite: 4}, 2, 2.0 / 3},
		{"nothing but no numbers", []float64{nan, inf}, Summary{NotFinite: 2}, -1, -1},
		{"around zero", []float64{-1, 0, 0, 1}, Summary{N: 4, Q1: -0.25, Q3: 0.25, Min: -1, Max: 1}, 0.5, -1},
		{"below zero", []float64{-8, -10, -12, -14, -16}, Summary{N: 5, Median: -12, Q1: -14, Q3: -10, Min: -16, Max: -8}, 4, 1.0 / 3},
		{"all the same", []float64{0.1, 0.1, 0.1, 0.1}, Summary{N: 4, Median: 0.1, Q1: 0.1, Q3: 0.1, Min: 0.1, Max: 0.1}, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			given := slices.Clone(test.values)
			s := Summarize(test.values)
			if s != test.want {
				t.Errorf("got %+v, want %+v", s, test.want)
			}
			for i, v := range test.values {
				if v != given[i] && !math.IsNaN(v) {
					t.Fatalf("the values were changed: %v", test.values)
				}
			}
			known := func(v float64, ok bool) float64 {
				if !ok {
					return -1
				}
				return v
			}
			if got := known(s.Spread()); !near(got, test.spread) {
				t.Errorf("spread %v, want %v", got, test.spread)
			}
			if got := known(s.RelativeSpread()); !near(got, test.relative) {
				t.Errorf("relative spread %v, want %v", got, test.relative)
			}
		})
	}
}
