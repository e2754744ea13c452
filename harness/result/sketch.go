package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
)

// Sketch is a mergeable distribution of durations in nanoseconds: quantiles
// within [Accuracy], with exact count, sum, minimum and maximum beside them.
// It is not safe for concurrent use.
type Sketch struct {
	binned
	count uint64
}

// NewSketch is an empty sketch.
func NewSketch() *Sketch { return &Sketch{binned: newBinned()} }

// Reserve makes room in an empty sketch, so that adding values from low to high allocates nothing.
func (s *Sketch) Reserve(low, high int64) {
	if s.count > 0 {
		return
	}
	s.Add(low)
	s.Add(high)
	s.dd.Clear() // keeps its memory
	*s = Sketch{binned: binned{dd: s.dd}}
}

// Add adds a value in nanoseconds; a negative one counts as 0.
func (s *Sketch) Add(ns int64) {
	v := float64(max(ns, 0))
	if s.dd.Add(v) != nil {
		return // out of the mapping's range: over 10^300
	}
	s.bound(v, v, s.count == 0)
	s.count++
	s.sum += v
}

// Merge adds all of o's values; o may be nil.
func (s *Sketch) Merge(o *Sketch) error {
	if o == nil || o.count == 0 {
		return nil
	}
	if err := s.merge(&o.binned, s.count == 0); err != nil {
		return fmt.Errorf("merge sketch: %w", err)
	}
	s.count += o.count
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
	if s.Count() == 0 {
		return 0, false
	}
	return s.quantile(q)
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
func (s *Sketch) UnmarshalJSON(b []byte) error {
	var j sketchJSON
	read, err := readBinned(b, &j)
	if err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	read.sum, read.min, read.max = j.Sum, j.Min, j.Max
	*s = Sketch{binned: read, count: j.Count}
	return nil
}

func (j *sketchJSON) bins() []byte { return j.Bins }

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
