package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
)

// Distribution is a mergeable distribution of any finite numbers, each of which
// may stand for several: quantiles within [Accuracy], with count, sum, minimum
// and maximum beside them. It is not safe for concurrent use.
type Distribution struct {
	binned
	values uint64
	count  float64
}

// NewDistribution is an empty distribution.
func NewDistribution() *Distribution { return &Distribution{binned: newBinned()} }

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
	d.bound(v, v, d.values == 0)
	d.values++
	d.count += standsFor
	d.sum += v * standsFor
}

// Merge adds all of o's values; o may be nil.
func (d *Distribution) Merge(o *Distribution) error {
	if o == nil || o.values == 0 {
		return nil
	}
	if err := d.merge(&o.binned, d.values == 0); err != nil {
		return fmt.Errorf("merge distribution: %w", err)
	}
	d.values += o.values
	d.count += o.count
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
	if d.Values() == 0 {
		return 0, false
	}
	return d.quantile(q)
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
func (d *Distribution) UnmarshalJSON(b []byte) error {
	var j distributionJSON
	read, err := readBinned(b, &j)
	if err != nil {
		return fmt.Errorf("decode distribution: %w", err)
	}
	read.sum, read.min, read.max = j.Sum, j.Min, j.Max
	*d = Distribution{binned: read, values: j.Values, count: j.Count}
	return nil
}

func (j *distributionJSON) bins() []byte { return j.Bins }

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
