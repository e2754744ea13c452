package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// Accuracy is the relative error of a sketch's quantiles.
const Accuracy = 0.01

// sketchBins bounds a sketch's memory; the lowest bins collapse first. At this
// accuracy it spans more than 1 ns to a day without collapsing.
const sketchBins = 2048

var sketchMapping, sketchMappingErr = mapping.NewCubicallyInterpolatedMapping(Accuracy)

// Sketch is a mergeable distribution of durations in nanoseconds: quantiles
// within [Accuracy], with exact count, sum, minimum and maximum beside them.
// It is not safe for concurrent use.
type Sketch struct {
	dd       *ddsketch.DDSketch
	count    uint64
	sum      float64
	min, max float64
}

// NewSketch is an empty sketch.
func NewSketch() *Sketch {
	if sketchMappingErr != nil {
		panic(sketchMappingErr) // Accuracy is a constant: a programming error
	}
	return &Sketch{dd: ddsketch.NewDDSketch(sketchMapping,
		store.NewCollapsingLowestDenseStore(sketchBins), store.NewCollapsingLowestDenseStore(sketchBins))}
}

// Reserve makes room in an empty sketch, so that adding values from low to high allocates nothing.
func (s *Sketch) Reserve(low, high int64) {
	if s.count > 0 {
		return
	}
	s.Add(low)
	s.Add(high)
	s.dd.Clear() // keeps its memory
	*s = Sketch{dd: s.dd}
}

// Add adds a value in nanoseconds; a negative one counts as 0.
func (s *Sketch) Add(ns int64) {
	v := float64(max(ns, 0))
	if s.dd.Add(v) != nil {
		return // out of the mapping's range: over 10^300
	}
	if s.count == 0 || v < s.min {
		s.min = v
	}
	if s.count == 0 || v > s.max {
		s.max = v
	}
	s.count++
	s.sum += v
}

// Merge adds all of o's values; o may be nil.
func (s *Sketch) Merge(o *Sketch) error {
	if o == nil || o.count == 0 {
		return nil
	}
	if err := s.dd.MergeWith(o.dd); err != nil {
		return fmt.Errorf("merge sketch: %w", err)
	}
	if s.count == 0 || o.min < s.min {
		s.min = o.min
	}
	if s.count == 0 || o.max > s.max {
		s.max = o.max
	}
	s.count += o.count
	s.sum += o.sum
	return nil
}

// Count is how many values were added.
func (s *Sketch) Count() uint64 {
	if s == nil {
		return 0
	}
	return s.count
}

// Quantile is the q-quantile in nanoseconds, clamped to the exact minimum and
// maximum (q = 0 and 1 are those); ok is false for an empty or nil sketch.
func (s *Sketch) Quantile(q float64) (ns float64, ok bool) {
	if s.Count() == 0 || math.IsNaN(q) {
		return 0, false
	}
	if q <= 0 {
		return s.min, true
	}
	if q >= 1 {
		return s.max, true
	}
	v, err := s.dd.GetValueAtQuantile(q)
	if err != nil {
		return 0, false
	}
	return min(max(v, s.min), s.max), true
}

// Mean is the exact mean in nanoseconds.
func (s *Sketch) Mean() (ns float64, ok bool) {
	if s.Count() == 0 {
		return 0, false
	}
	return s.sum / float64(s.count), true
}

type sketchJSON struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum_ns"`
	Min   float64 `json:"min_ns"`
	Max   float64 `json:"max_ns"`
	Bins  []byte  `json:"bins,omitempty"` // DDSketch's own encoding
}

// MarshalJSON writes the sketch whole: the same sketch gives the same bytes.
func (s *Sketch) MarshalJSON() ([]byte, error) {
	j := sketchJSON{Count: s.count, Sum: s.sum, Min: s.min, Max: s.max}
	if s.count > 0 {
		s.dd.Encode(&j.Bins, false)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Sketch) UnmarshalJSON(b []byte) (err error) {
	defer func() {
		// The library indexes into what it decodes without checking it.
		if r := recover(); r != nil {
			err = fmt.Errorf("decode sketch: %v", r)
		}
	}()
	var j sketchJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	read := NewSketch()
	if err := read.dd.DecodeAndMergeWith(j.Bins); err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	if err := j.check(read.dd); err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	read.dd.IndexMapping = sketchMapping
	read.count, read.sum, read.min, read.max = j.Count, j.Sum, j.Min, j.Max
	*s = *read
	return nil
}

// check says whether bins can be those of what stands beside them.
func (j *sketchJSON) check(bins *ddsketch.DDSketch) error {
	count := 0.0
	bins.ForEach(func(_, n float64) bool { count += n; return false })
	if count != float64(j.Count) || count != bins.GetCount() {
		return fmt.Errorf("%v values in its bins, %d in its count", bins.GetCount(), j.Count)
	}
	if j.Count == 0 {
		if j.Min != 0 || j.Max != 0 || j.Sum != 0 {
			return errors.New("no values, but a sum of them")
		}
		return nil
	}
	largest, err := bins.GetMaxValue()
	if err != nil {
		return err
	}
	if !bins.GetNegativeValueStore().IsEmpty() || !(j.Min >= 0) || !(j.Min <= j.Max) || !(math.Abs(largest-j.Max) <= 2*Accuracy*j.Max) {
		return fmt.Errorf("values from %v to %v, but up to %v in its bins", j.Min, j.Max, largest)
	}
	return nil
}
