package result

import (
	"encoding/json"
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

// binned is what [Sketch] and [Distribution] have in common: values in bins, with
// their sum, minimum and maximum beside them. How many there are is theirs to count.
type binned struct {
	dd       *ddsketch.DDSketch
	sum      float64
	min, max float64
}

func newBinned() binned {
	if sketchMappingErr != nil {
		panic(sketchMappingErr) // Accuracy is a constant: a programming error
	}
	return binned{dd: ddsketch.NewDDSketch(sketchMapping,
		store.NewCollapsingLowestDenseStore(sketchBins), store.NewCollapsingLowestDenseStore(sketchBins))}
}

// bound widens minimum and maximum to values from low to high; first says that there were none before.
func (b *binned) bound(low, high float64, first bool) {
	if first || low < b.min {
		b.min = low
	}
	if first || high > b.max {
		b.max = high
	}
}

// merge adds o, which is not empty; first says that b is.
func (b *binned) merge(o *binned, first bool) error {
	if err := b.dd.MergeWith(o.dd); err != nil {
		return err
	}
	b.bound(o.min, o.max, first)
	b.sum += o.sum
	return nil
}

// quantile is the q-quantile of bins that are not empty, clamped to minimum and
// maximum (q = 0 and 1 are those).
func (b *binned) quantile(q float64) (v float64, ok bool) {
	switch {
	case math.IsNaN(q):
		return 0, false
	case q <= 0:
		return b.min, true
	case q >= 1:
		return b.max, true
	}
	v, err := b.dd.GetValueAtQuantile(q)
	if err != nil {
		return 0, false
	}
	return min(max(v, b.min), b.max), true
}

// binnedJSON is the stored form of something binned.
type binnedJSON interface {
	bins() []byte                   // DDSketch's own encoding
	check(*ddsketch.DDSketch) error // whether bins can be those of what stands beside them
}

// readBinned reads a stored form into j, and its bins.
func readBinned(text []byte, j binnedJSON) (b binned, err error) {
	defer func() {
		// The library indexes into what it decodes without checking it.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if err := json.Unmarshal(text, j); err != nil {
		return b, err
	}
	b = newBinned()
	if err := b.dd.DecodeAndMergeWith(j.bins()); err != nil {
		return b, err
	}
	if err := j.check(b.dd); err != nil {
		return b, err
	}
	b.dd.IndexMapping = sketchMapping
	return b, nil
}
