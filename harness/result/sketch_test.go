package result

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var quantiles = []float64{0, .001, .01, .5, .9, .99, .999, 1}

func sketchOf(values ...int64) *Sketch {
	s := NewSketch()
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// Quantiles lie between the exact minimum and maximum, in order, however few
// values there are.
func TestSketchClamps(t *testing.T) {
	const ms = 1e6
	for name, values := range map[string][]int64{
		"four":     {288 * ms, 137 * ms, 389 * ms, 210 * ms},
		"one":      {682 * ms},
		"equal":    {5 * ms, 5 * ms, 5 * ms},
		"zeros":    {0, 0, 0},
		"negative": {-7, 0, 3},
		"wide":     {1, 1e3, 1e6, 1e9, 1e12, 86400e9},
		"huge":     {math.MaxInt64, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := sketchOf(values...)
			for i, v := range values {
				values[i] = max(v, 0)
			}
			slices.Sort(values)
			low, high := float64(values[0]), float64(values[len(values)-1])
			last := low
			for _, q := range quantiles {
				got, ok := s.Quantile(q)
				if !ok || got < last || got > high {
					t.Errorf("q%g is %v, %t, want between %v and %v", q, got, ok, last, high)
				}
				exact := float64(values[int(q*float64(len(values)-1))])
				if math.Abs(got-exact) > (Accuracy+1e-9)*exact && name != "huge" { // the least of it collapses
					t.Errorf("q%g is %v, want %v within %v", q, got, exact, Accuracy)
				}
				last = got
			}
			if got, _ := s.Quantile(0); got != low {
				t.Errorf("minimum %v, want %v", got, low)
			}
			if got, _ := s.Quantile(1); got != high {
				t.Errorf("maximum %v, want %v", got, high)
			}
			sum := 0.0
			for _, v := range values {
				sum += float64(v)
			}
			if got, ok := s.Mean(); !ok || got != sum/float64(len(values)) {
				t.Errorf("mean %v, %t, want %v", got, ok, sum/float64(len(values)))
			}
		})
	}
}

func TestSketchEmpty(t *testing.T) {
	for name, s := range map[string]*Sketch{"empty": NewSketch(), "nil": nil} {
		for _, q := range append(quantiles, math.NaN(), -1, 2) {
			if got, ok := s.Quantile(q); ok || got != 0 {
				t.Errorf("%s: q%g is %v, %t, want none", name, q, got, ok)
			}
		}
		if _, ok := s.Mean(); ok || s.Count() != 0 {
			t.Errorf("%s: a mean, or %d values", name, s.Count())
		}
	}
	if _, ok := sketchOf(1).Quantile(math.NaN()); ok {
		t.Error("got a NaN-quantile")
	}
}

func randomValues(seed uint64, n int) []int64 {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(math.Exp(random.Float64() * 30))
	}
	return values
}

func TestSketchMerge(t *testing.T) {
	a, b := randomValues(1, 1000), randomValues(2, 700)
	want := sketchOf(append(slices.Clone(a), b...)...)
	got := sketchOf(a...)
	for _, o := range []*Sketch{sketchOf(b...), NewSketch(), nil} {
		if err := got.Merge(o); err != nil {
			t.Fatal(err)
		}
	}
	if g, w := mustJSON(t, got), mustJSON(t, want); !sameButSum(t, g, w) {
		t.Errorf("got %s, want %s", g, w)
	}
	empty := NewSketch()
	if err := empty.Merge(sketchOf(b...)); err != nil {
		t.Fatal(err)
	}
	if g, w := mustJSON(t, empty), mustJSON(t, sketchOf(b...)); !bytes.Equal(g, w) {
		t.Errorf("merged into none: got %s, want %s", g, w)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameButSum compares two sketches' JSON; sums may differ by the order of their addends.
func sameButSum(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y sketchJSON
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("not JSON: %s, %s", a, b)
	}
	near := math.Abs(x.Sum-y.Sum) <= 1e-12*math.Abs(y.Sum)
	x.Sum, y.Sum = 0, 0
	return near && bytes.Equal(mustJSON(t, x), mustJSON(t, y))
}

// A sketch that was read writes the very bytes that it was read from, and has the same quantiles.
func TestSketchRoundTrip(t *testing.T) {
	for name, want := range map[string]*Sketch{
		"empty": NewSketch(), "one": sketchOf(682e6), "zeros": sketchOf(0, 0), "few": sketchOf(0, 1, 5, 7e9),
		"many": sketchOf(randomValues(3, 10_000)...), "wide": sketchOf(1, math.MaxInt64), "wider": sketchOf(math.MaxInt64, 1, 2, 3),
	} {
		t.Run(name, func(t *testing.T) {
			b := mustJSON(t, want)
			got := sketchOf(1, 2, 3) // what it had is gone
			if err := json.Unmarshal(b, got); err != nil {
				t.Fatal(err)
			}
			if again := mustJSON(t, got); !bytes.Equal(again, b) {
				t.Errorf("got %s, want %s", again, b)
			}
			for _, q := range quantiles {
				g, gok := got.Quantile(q)
				w, wok := want.Quantile(q)
				if g != w || gok != wok {
					t.Errorf("q%g is %v, %t, want %v, %t", q, g, gok, w, wok)
				}
			}
		})
	}
}

func TestSketchReserve(t *testing.T) {
	values := randomValues(4, 1000)
	s := NewSketch()
	s.Reserve(1, math.MaxInt64/1_000_000)
	if _, ok := s.Quantile(1); ok || s.Count() != 0 {
		t.Error("a reserve left values behind")
	}
	if n := testing.AllocsPerRun(1, func() {
		for _, v := range values {
			s.Add(v)
		}
	}); n > 0 {
		t.Errorf("%v allocations after a reserve", n)
	}
	want := sketchOf(append(slices.Clone(values), values...)...) // AllocsPerRun runs it once more
	s.Reserve(1, 2)                                              // too late: no effect
	if g, w := mustJSON(t, s), mustJSON(t, want); !sameButSum(t, g, w) {
		t.Errorf("got %s, want %s", g, w)
	}
}

func TestSketchRefuses(t *testing.T) {
	few := sketchJSON{}
	if err := json.Unmarshal(mustJSON(t, sketchOf(10, 20, 30)), &few); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sketchJSON){
		"no bins":         func(j *sketchJSON) { j.Bins = nil },
		"cut bins":        func(j *sketchJSON) { j.Bins = j.Bins[:len(j.Bins)-1] },
		"bins twice":      func(j *sketchJSON) { j.Bins = append(slices.Clone(j.Bins), j.Bins...) },
		"noise":           func(j *sketchJSON) { j.Bins = []byte("noise") },
		"another count":   func(j *sketchJSON) { j.Count++ },
		"none":            func(j *sketchJSON) { j.Count = 0 },
		"minimum above":   func(j *sketchJSON) { j.Min = 31 },
		"negative":        func(j *sketchJSON) { j.Min = -1 },
		"another maximum": func(j *sketchJSON) { j.Max = 40 },
		"no values":       func(j *sketchJSON) { j.Count, j.Bins = 0, nil },
	} {
		j := few
		change(&j)
		s := sketchOf(5)
		if err := json.Unmarshal(mustJSON(t, j), s); err == nil {
			t.Errorf("%s: got no error", name)
		}
		if got, _ := s.Quantile(.5); got != 5 {
			t.Errorf("%s: the sketch is changed by what is no sketch", name)
		}
	}
}

// FuzzSketch decodes what nobody encoded: it is an error, or a sketch that
// holds what all sketches do.
func FuzzSketch(f *testing.F) {
	for _, s := range []*Sketch{NewSketch(), sketchOf(0), sketchOf(137e6, 210e6, 288e6, 389e6), sketchOf(randomValues(5, 500)...), sketchOf(1, math.MaxInt64)} {
		j := sketchJSON{Count: s.count, Sum: s.sum, Min: s.min, Max: s.max}
		s.dd.Encode(&j.Bins, false)
		f.Add(j.Count, j.Sum, j.Min, j.Max, j.Bins)
	}
	f.Add(uint64(1), 1.0, 1.0, 1.0, []byte("\x05\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"))
	f.Fuzz(func(t *testing.T, count uint64, sum, low, high float64, bins []byte) {
		in, err := json.Marshal(sketchJSON{count, sum, low, high, bins})
		if err != nil {
			t.Skip() // not a number
		}
		s := NewSketch()
		if json.Unmarshal(in, s) != nil {
			return
		}
		last := 0.0
		for _, q := range quantiles {
			got, ok := s.Quantile(q)
			if ok != (count > 0) || !(got >= last) || ok && !(got <= high) {
				t.Errorf("q%g is %v, %t, of %d values from %v to %v", q, got, ok, count, low, high)
			}
			last = got
		}
		once := mustJSON(t, s)
		again := NewSketch()
		if err := json.Unmarshal(once, again); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice := mustJSON(t, again); !bytes.Equal(once, twice) {
			t.Errorf("got %s, then %s", once, twice)
		}
		s.Add(1e6)
		if err := s.Merge(again); err != nil {
			t.Error(err)
		}
		if got, want := s.Count(), 2*count+1; got != want {
			t.Errorf("got %d values, want %d", got, want)
		}
	})
}
