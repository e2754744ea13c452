package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// Distribution is a mergeable distribution of any finite numbers, each of which
// may stand for several: quantiles within [Accuracy], with count, sum, minimum
// and maximum beside them. It is not safe for concurrent use.
type Distribution struct {
	dd       *ddsketch.DDSketch
	values   uint64
	count    float64
	sum      float64
	min, max float64
}

// NewDistribution is an empty distribution.
func NewDistribution() *Distribution {
	if sketchMappingErr != nil {
		panic(sketchMappingErr) // Accuracy is a constant: a programming error
	}
	return &Distribution{dd: ddsketch.NewDDSketch(sketchMapping,
		store.NewCollapsingLowestDenseStore(sketchBins), store.NewCollapsingLowestDenseStore(sketchBins))}
}

// What a distribution takes: sums of it never overflow.
const (
	MaxValue     = 1e30 // either way
	MaxStandsFor = 1e12
	leastValue   = 1e-30 // what is nearer to 0 counts as 0
)

// Add adds a value that stands for so many, from 1 to MaxStandsFor; it is
// ignored where either is no such number.
func (d *Distribution) Add(v, standsFor float64) {
	if math.Abs(v) < leastValue {
		v = 0
	}
	if !(standsFor >= 1 && standsFor <= MaxStandsFor) || !(math.Abs(v) <= MaxValue) || d.dd.AddWithCount(v, standsFor) != nil {
		return
	}
	if d.values == 0 || v < d.min {
		d.min = v
	}
	if d.values == 0 || v > d.max {
		d.max = v
	}
	d.values++
	d.count += standsFor
	d.sum += v * standsFor
}

// Merge adds all of o's values; o may be nil.
func (d *Distribution) Merge(o *Distribution) error {
	if o == nil || o.values == 0 {
		return nil
	}
	if err := d.dd.MergeWith(o.dd); err != nil {
		return fmt.Errorf("merge distribution: %w", err)
	}
	if d.values == 0 || o.min < d.min {
		d.min = o.min
	}
	if d.values == 0 || o.max > d.max {
		d.max = o.max
	}
	d.values += o.values
	d.count += o.count
	d.sum += o.sum
	return nil
}

// Values is how many values were added.
func (d *Distribution) Values() uint64 {
	if d == nil {
		return 0
	}
	return d.values
}

// Count is how many the values stand for.
func (d *Distribution) Count() float64 {
	if d == nil {
		return 0
	}
	return d.count
}

// Sum is the sum of all that the values stand for.
func (d *Distribution) Sum() float64 {
	if d == nil {
		return 0
	}
	return d.sum
}

// Quantile is the q-quantile of all that the values stand for, clamped to the
// least and greatest value (q = 0 and 1 are those); ok is false where there are none.
func (d *Distribution) Quantile(q float64) (v float64, ok bool) {
	if d.Values() == 0 || math.IsNaN(q) {
		return 0, false
	}
	if q <= 0 {
		return d.min, true
	}
	if q >= 1 {
		return d.max, true
	}
	v, err := d.dd.GetValueAtQuantile(q)
	if err != nil {
		return 0, false
	}
	return min(max(v, d.min), d.max), true
}

// Mean is the mean of all that the values stand for.
func (d *Distribution) Mean() (v float64, ok bool) {
	if d.Values() == 0 {
		return 0, false
	}
	return d.sum / d.count, true
}

type distributionJSON struct {
	Values uint64  `json:"values"`
	Count  float64 `json:"count"`
	Sum    float64 `json:"sum"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Bins   []byte  `json:"bins,omitempty"` // DDSketch's own encoding
}

// MarshalJSON writes the distribution whole: the same one gives the same bytes.
func (d *Distribution) MarshalJSON() ([]byte, error) {
	j := distributionJSON{Values: d.values, Count: d.count, Sum: d.sum, Min: d.min, Max: d.max}
	if d.values > 0 {
		d.dd.Encode(&j.Bins, false)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Distribution) UnmarshalJSON(b []byte) (err error) {
	defer func() {
		// The library indexes into what it decodes without checking it.
		if r := recover(); r != nil {
			err = fmt.Errorf("decode distribution: %v", r)
		}
	}()
	var j distributionJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("decode distribution: %w", err)
	}
	read := NewDistribution()
	if err := read.dd.DecodeAndMergeWith(j.Bins); err != nil {
		return fmt.Errorf("decode distribution: %w", err)
	}
	if err := j.check(read.dd); err != nil {
		return fmt.Errorf("decode distribution: %w", err)
	}
	read.dd.IndexMapping = sketchMapping
	read.values, read.count, read.sum, read.min, read.max = j.Values, j.Count, j.Sum, j.Min, j.Max
	*d = *read
	return nil
}

// check says whether bins can be those of what stands beside them.
func (j *distributionJSON) check(bins *ddsketch.DDSketch) error {
	if n := bins.GetCount(); !(math.Abs(n-j.Count) <= 1e-6*j.Count) {
		return fmt.Errorf("%v in its bins, %v in its count", n, j.Count)
	}
	if (j.Values == 0) != (j.Count == 0) {
		return fmt.Errorf("%d values that stand for %v", j.Values, j.Count)
	}
	if j.Values == 0 {
		if j.Min != 0 || j.Max != 0 || j.Sum != 0 {
			return errors.New("no values, but a sum of them")
		}
		return nil
	}
	largest, err := bins.GetMaxValue()
	if err != nil {
		return err
	}
	// Note: bins near 0 collapse, so what is near 0 need not be near a bin.
	if !(j.Min <= j.Max) || j.Max > 0 && !(math.Abs(largest-j.Max) <= 2*Accuracy*j.Max) {
		return fmt.Errorf("values from %v to %v, but up to %v in its bins", j.Min, j.Max, largest)
	}
	return nil
}
