package stats

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"
)

// floats reads values of 8 bytes each, or, coarse, of one byte each, which tie.
func floats(data []byte, coarse bool) []float64 {
	var values []float64
	for len(data) > 0 && len(values) < 50 {
		if coarse {
			values, data = append(values, float64(int8(data[0]))), data[1:]
			continue
		}
		var word [8]byte
		data = data[copy(word[:], data):]
		values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(word[:])))
	}
	return values
}

// notFinite is the name of a field, of any depth, that is no finite number.
func notFinite(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return "."
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := notFinite(v.Field(i)); name != "" {
				return v.Type().Field(i).Name + " " + name
			}
		}
	}
	return ""
}

func FuzzJudge(f *testing.F) {
	seed := func(values ...float64) (data []byte) {
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		}
		return data
	}
	up, down := math.MaxFloat64, math.SmallestNonzeroFloat64
	f.Add(seed(1, 2, 3, 4, 5), seed(2, 3, 4, 5, 6), false, 0.05, 1.0, -1)
	f.Add(seed(up, -up, up, -up), seed(down, -down, 0, up), false, 0.05, up, 1)
	f.Add(seed(down, down, down, down), seed(up, up, up, up), false, up, down, 0)
	f.Add(seed(math.NaN(), math.Inf(1), math.Inf(-1)), seed(1), false, math.NaN(), math.Inf(1), 1)
	f.Add([]byte{0, 0, 0, 0}, []byte{0, 0, 0, 1}, true, 0.05, 0.0, -1)
	f.Add([]byte{1, 1, 2, 2, 3, 3, 3}, []byte{1, 2, 2, 2, 3, 9}, true, 0.05, 0.0, -1)
	f.Add([]byte{}, []byte{7}, true, -1.0, -1.0, 7)
	f.Fuzz(func(t *testing.T, dataA, dataB []byte, coarse bool, margin, floor float64, better int) {
		a, b := floats(dataA, coarse), floats(dataB, coarse)
		v := Compare(a, b).Judge(Question{Better: better, Margin: margin, Floor: floor})
		both := []Verdict{v, v}
		Correct(both, FamilyLevel)
		for _, v := range append(both, v) {
			if name := notFinite(reflect.ValueOf(v)); name != "" {
				t.Errorf("%s is no finite number: %+v", name, v)
			}
		}
		for _, s := range []Summary{v.A, v.B} {
			spread, _ := s.Spread()
			relative, _ := s.RelativeSpread()
			if math.IsNaN(spread+relative) || math.IsInf(spread, 0) || math.IsInf(relative, 0) || spread < 0 || relative < 0 {
				t.Errorf("spread %v, relative %v: %+v", spread, relative, s)
			}
			if s.N > 0 && !(s.Min <= s.Q1 && s.Q1 <= s.Median && s.Median <= s.Q3 && s.Q3 <= s.Max) {
				t.Errorf("out of order: %+v", s)
			}
		}
		if v.A.N+v.A.NotFinite != len(a) || v.B.N+v.B.NotFinite != len(b) {
			t.Errorf("of %d and %d values: %+v", len(a), len(b), v.Comparison)
		}
		s := v.Shift
		if !(s.Low <= s.Value && s.Value <= s.High) || s.HalfWidth() < 0 || math.IsInf(s.HalfWidth(), 0) {
			t.Errorf("out of order: %+v", s)
		}
		if !(0 <= v.P && v.P <= 1 && v.P <= both[0].Adjusted && both[0].Adjusted <= 1 && 0 <= s.Coverage && s.Coverage <= 1) {
			t.Errorf("no chance: %+v", v)
		}
		if v.U < 0 || v.U > float64(v.A.N*v.B.N) || v.Runs < 0 || v.Runs > maxRuns || v.Limit < 0 {
			t.Errorf("out of range: %+v", v)
		}
		if v.Known() {
			w := Compare(b, a)
			if !near(w.P, v.P) || w.U+v.U != float64(v.A.N*v.B.N) {
				t.Errorf("swapped: U %v p %v; U %v p %v", v.U, v.P, w.U, w.P)
			}
		}
	})
}
