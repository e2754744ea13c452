package commands

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// The bounds of a search.
const (
	bracketWidth = 0.02 // of the rate that is kept up with
	mostSteps    = 25   // runs of one search
	leastRate    = 1.0  // sends a second: slower ones are not tried
	mostRate     = 1e7
	agreeing     = 2 // runs that say the same of each end of the bracket
	barren       = 2 // runs of one rate that say nothing of the relay, then it is given up
)

// hunt is a search as far as it has come. It is pure: the rate that it asks for next follows from its steps alone.
type hunt struct {
	from, to float64 // to 0: no limit
	steps    []step
}

// ending is how a search ended.
type ending string

const (
	endFound   ending = "found"   // a bracket of 2%, each end agreed on by two runs
	endTo      ending = "to"      // it keeps up with the highest rate that was asked for
	endHarness ending = "harness" // something else than the relay was the limit
	endLeast   ending = "least"   // it does not keep up with the lowest rate that is tried
	endSteps   ending = "steps"   // too many steps
	endStopped ending = "stopped" // an error or somebody ended it
)

// votes are what the runs of one rate said.
type votes struct {
	rate            float64
	kept, fell, not int
	clear           bool // one of them has no doubt
}

func (v votes) keeps() bool { return v.kept > v.fell }
func (v votes) falls() bool { return v.fell > v.kept }

// open says that another run of the rate is needed: the runs contradict each
// other, the only one is in doubt, or there is none that says anything.
func (v votes) open() bool { return v.kept == v.fell || !v.clear && !v.agreed() }

// agreed says that as many runs as it takes say the same.
func (v votes) agreed() bool { return max(v.kept, v.fell) >= agreeing }

func (h *hunt) votes() []votes {
	var all []votes
	for _, s := range h.steps {
		i := slices.IndexFunc(all, func(v votes) bool { return v.rate == s.rate })
		if i < 0 {
			i, all = len(all), append(all, votes{rate: s.rate})
		}
		switch s.says {
		case keepsUp:
			all[i].kept++
		case falls:
			all[i].fell++
		default:
			all[i].not++
			continue
		}
		all[i].clear = all[i].clear || !s.doubt
	}
	slices.SortFunc(all, func(a, b votes) int { return cmp.Compare(a.rate, b.rate) })
	return all
}

// bracket is the highest rate that the relay keeps up with, and the lowest
// above it that it does not; a rate of 0 is none.
func (h *hunt) bracket() (low, high votes) {
	for _, v := range h.votes() {
		if v.falls() {
			return low, v
		}
		if v.keeps() {
			low = v
		}
	}
	return low, high
}

// next is the rate of the next step, or how the search ended.
//
// The rate is doubled until the relay does not keep up, then the bracket is
// halved. A run may err, by a machine that was busy for a second: so one in doubt is run
// again, and so is each end of the last bracket; where two contradict each other a
// third one decides. An end that is refuted is the other end from then on, and the search goes on.
func (h *hunt) next() (rate float64, end ending) {
	if len(h.steps) == 0 {
		return h.from, ""
	}
	low, high := h.bracket()
	last := h.steps[len(h.steps)-1]
	for _, v := range h.votes() {
		if v.not >= barren {
			return 0, endHarness
		}
		if v.rate == last.rate && (v.open() || last.says == barely) {
			return h.limited(v.rate)
		}
	}
	switch {
	case high.rate == 0 && h.to > 0 && low.rate >= h.to:
		return h.confirm(low, endTo)
	case high.rate == 0 && low.rate >= mostRate:
		return 0, endTo
	case high.rate == 0:
		rate = min(2*low.rate, mostRate)
		if h.to > 0 {
			rate = min(rate, h.to)
		}
		return h.limited(rate)
	case low.rate == 0 && high.rate/2 < leastRate:
		return h.confirm(high, endLeast)
	case low.rate == 0:
		return h.limited(between(0, high.rate))
	case high.rate > low.rate*(1+bracketWidth):
		return h.limited(between(low.rate, high.rate))
	case !high.agreed():
		return h.limited(high.rate)
	}
	return h.confirm(low, endFound)
}

// confirm runs a rate again where only one run has spoken of it.
func (h *hunt) confirm(v votes, end ending) (float64, ending) {
	if v.agreed() {
		return 0, end
	}
	return h.limited(v.rate)
}

// limited is a rate unless there were steps enough.
func (h *hunt) limited(rate float64) (float64, ending) {
	if len(h.steps) < mostSteps {
		return rate, ""
	}
	if low, high := h.bracket(); low.rate > 0 && high.rate > 0 && high.rate <= low.rate*(1+bracketWidth) {
		return 0, endFound
	}
	return 0, endSteps
}

// between is the middle of two rates, in three digits where that lies between them.
func between(low, high float64) float64 {
	middle := (low + high) / 2
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', 3, 64), 64)
	if err == nil && rounded > low && rounded < high {
		return rounded
	}
	return middle
}

// left is how many steps are needed yet, about, where no run errs and the
// capacity is not over a few times the rates that were tried.
func (h *hunt) left() int {
	low, high := h.bracket()
	n := 0
	for _, v := range []votes{low, high} {
		if !v.agreed() {
			n++
		}
	}
	switch {
	case high.rate == 0: // one more that falls, then from a factor of two to 2%
		n += 7
	case low.rate == 0:
		n += 6
	default:
		n += max(0, int(math.Ceil(math.Log2((high.rate-low.rate)/(bracketWidth*low.rate)))))
	}
	return max(1, min(n, mostSteps-len(h.steps)))
}
