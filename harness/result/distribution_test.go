package result

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func distributionOf(standsFor float64, values ...float64) *Distribution {
	d := NewDistribution()
	for _, v := range values {
		d.Add(v, standsFor)
	}
	return d
}

// A value that stands for several weighs as many, and stays what it is.
func TestDistributionWeighs(t *testing.T) {
	d := distributionOf(4, 3, 5, 9)
	d.Add(100, 1)
	if d.Values() != 4 || d.Count() != 13 || d.Sum() != 4*17+100 {
		t.Errorf("%d values, count %v, sum %v, want 4, 13, 168", d.Values(), d.Count(), d.Sum())
	}
	for q, want := range map[float64]float64{0: 3, 0.25: 3, 0.5: 5, 0.75: 9, 0.9: 9, 1: 100} {
		if got, ok := d.Quantile(q); !ok || math.Abs(got-want) > Accuracy*want {
			t.Errorf("q%g is %v, %t, want %v", q, got, ok, want)
		}
	}
	if got, ok := d.Mean(); !ok || got != 168.0/13 {
		t.Errorf("mean %v, %t", got, ok)
	}
}

func TestDistributionIgnores(t *testing.T) {
	d := distributionOf(1, 2)
	for _, v := range [][2]float64{{math.NaN(), 1}, {math.Inf(1), 1}, {1e31, 1}, {-1e31, 1}, {1, 0.5}, {1, math.NaN()}, {1, math.Inf(1)}, {1, 0}, {1, -1}} {
		d.Add(v[0], v[1])
	}
	if d.Values() != 1 || d.Count() != 1 || d.Sum() != 2 {
		t.Errorf("%d values, count %v, sum %v, want the one of 2", d.Values(), d.Count(), d.Sum())
	}
	for name, d := range map[string]*Distribution{"empty": NewDistribution(), "nil": nil} {
		if _, ok := d.Quantile(0.5); ok || d.Values() != 0 || d.Count() != 0 || d.Sum() != 0 {
			t.Errorf("%s: there is something in it", name)
		}
	}
}

func TestDistributionMerges(t *testing.T) {
	d, want := distributionOf(2, 1, -7), distributionOf(2, 1, -7, 0.5, 1e9)
	if err := d.Merge(distributionOf(2, 0.5, 1e9)); err != nil {
		t.Fatal(err)
	}
	if err := d.Merge(nil); err != nil {
		t.Fatal(err)
	}
	if got, want := mustJSON(t, d), mustJSON(t, want); !bytes.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDistributionRefuses(t *testing.T) {
	good := distributionJSON{}
	if err := json.Unmarshal(mustJSON(t, distributionOf(2.5, 10, 20, 30)), &good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*distributionJSON){
		"no bins":         func(j *distributionJSON) { j.Bins = nil },
		"cut bins":        func(j *distributionJSON) { j.Bins = j.Bins[:len(j.Bins)-1] },
		"bins twice":      func(j *distributionJSON) { j.Bins = append(slices.Clone(j.Bins), j.Bins...) },
		"another count":   func(j *distributionJSON) { j.Count++ },
		"none":            func(j *distributionJSON) { j.Values = 0 },
		"minimum above":   func(j *distributionJSON) { j.Min = 31 },
		"another maximum": func(j *distributionJSON) { j.Max = 40 },
		"no values":       func(j *distributionJSON) { j.Count, j.Values, j.Bins = 0, 0, nil },
	} {
		j := good
		change(&j)
		if err := json.Unmarshal(mustJSON(t, j), NewDistribution()); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// FuzzDistribution: whatever is added is written and comes back as it was.
func FuzzDistribution(f *testing.F) {
	f.Add(1.0, 1.0, -3.0, 1e12, 2.5)
	f.Add(-1e-40, -1e30, -1e-29, 4.0, 1.0)
	f.Add(math.MaxFloat64, math.Inf(-1), 5e-324, 1/0.3, 1e12)
	f.Fuzz(func(t *testing.T, a, b, c, n, m float64) {
		d := NewDistribution()
		for _, v := range []float64{a, b, c} {
			d.Add(v, n)
			d.Add(-v, m)
		}
		once := mustJSON(t, d)
		again := NewDistribution()
		if err := json.Unmarshal(once, again); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice := mustJSON(t, again); !bytes.Equal(once, twice) {
			t.Errorf("got %s, then %s", once, twice)
		}
		last := math.Inf(-1)
		for _, q := range quantiles {
			got, ok := again.Quantile(q)
			if ok != (d.Values() > 0) || ok && (got < last || got > d.max) {
				t.Errorf("q%g is %v, %t after %v", q, got, ok, last)
			}
			last = got
		}
	})
}
