package commands

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"relaybench/commands/table"
	"relaybench/harness/result"
	"relaybench/store"
)

// evidence is what a run says of its rate.
type evidence int

const (
	barely  evidence = iota // nothing: something else than the relay was the limit
	keepsUp                 // the backlog did not grow, nothing was refused or lost
	falls                   // the relay did not keep up
)

// step is one run of a search.
type step struct {
	rate   float64
	says   evidence
	doubt  bool   // it may be of a second in which the machine was busy
	why    string // in a few words
	growth store.Growth
	known  bool // the growth is
	report string
}

// judgeStep is what a report says of its rate. It is judged by the backlog and
// by what was refused or lost, never by what was accepted.
//
// Where less was sent than was due, to keep up says nothing, and not to keep up
// says it all the more. Sends that were late, but went out, are a load all the
// same. What other programs took may be why the relay did not keep up, where
// with twice their share it would have (they slow the senders and the upstream
// too); but not where the relay used and waited for less than a CPU.
//
// A backlog that grows does so evenly; one that jumps once leaves a large error of the slope, and doubt.
func judgeStep(rate float64, r *store.Report) step {
	s := step{rate: rate, report: r.ID}
	s.growth, s.known = store.GrowthOf(r)
	marks := map[string]string{}
	for _, m := range store.MarksOf(r) {
		marks[m.Name] = m.Why
	}
	total, g := result.LedgerOf(r.Result).Total, s.growth
	sends := total.Sends
	switch {
	case sends.Refused > 0:
		s.says, s.why = falls, fmt.Sprintf("%s of %s sends refused: %s", count(sends.Refused), count(sends.Sent), mostly(total.Refused))
	case sends.Failed > 0:
		s.says, s.why = falls, fmt.Sprintf("%s of %s sends failed: %s", count(sends.Failed), count(sends.Sent), mostly(total.Failed))
	case total.NotConnected > 0:
		s.says, s.why = falls, fmt.Sprintf("%s sends found no connection", count(total.NotConnected))
	case sends.UnaccountedKnown && sends.Unaccounted > 0:
		s.says, s.why = falls, fmt.Sprintf("%s of %s sends unaccounted for", count(sends.Unaccounted), count(sends.Sent))
	case !s.known:
		s.why = "how the backlog grew is not known"
	case g.Behind():
		s.says, s.why = falls, fmt.Sprintf("falls behind: the backlog grows by %s, %s of the rate", quantity(g.Slope, "sends/s"), percent(g.Slope/g.Rate))
		if why, ok := marks["upstream-limited"]; ok {
			s.says, s.why = barely, s.why+", but upstream-limited: "+why
		} else if why, ok := marks["host-busy"]; ok && wanted(r.Result) > 0.9 && g.Rate-g.Slope >= 0.99*g.Rate*(1-2*others(r.Result)) {
			s.says, s.why = barely, s.why+", which host-busy explains: "+why
		}
		s.doubt = g.Slope < clearSlope*g.Error
	case float64(sends.Sent) < 0.99*float64(total.Sends.Due):
		s.why = "harness-limited: " + cmp.Or(marks["harness-limited"], "not all was sent")
	case marks["memory-guard"] != "":
		s.why = "memory-guard: " + marks["memory-guard"]
	case marks["not-drained"] != "":
		s.says, s.why = falls, "not drained: "+marks["not-drained"]
	default:
		s.says, s.why = keepsUp, "keeps up: the backlog is steady"
		if g.Slope < -0.01*g.Rate {
			s.why = "keeps up: the backlog is " + trend(g.Slope)
		}
	}
	return s
}

// mostly is what there is most of, with how many.
func mostly(of map[string]uint64) string {
	names := sorted(of)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(of[b], of[a]) })
	var parts []string
	for _, n := range firstOf(names, 2, "more") {
		if c, ok := of[n]; ok {
			n = count(c) + " " + table.Clean(n)
		}
		parts = append(parts, n)
	}
	return strings.Join(parts, ", ")
}

// clearSlope is how many times its standard error a slope is that leaves no doubt.
const clearSlope = 5

// wanted is how many CPUs the relay used or waited for in the load, of as many threads; many where that is unknown.
func wanted(r *result.Result) float64 {
	load := float64(r.LoadEnd - r.LoadStart)
	if load <= 0 || !r.Relay.CPUKnown || r.Harness.RelayWait < 0 {
		return math.Inf(1)
	}
	return (float64(r.Relay.CPULoad-r.Relay.CPUStart) + float64(r.Harness.RelayWait)) / load
}

// others is the share of the CPUs that other programs took, 0 where it is unknown.
func others(r *result.Result) float64 {
	of := float64(r.DrainEnd-r.LoadStart) * float64(r.Harness.CPUs)
	if of <= 0 || r.Harness.Others < 0 {
		return 0
	}
	return float64(r.Harness.Others) / of
}

// words is what the step says, in words.
func (t *step) words() string {
	if t.says == barely {
		return "says nothing: " + t.why
	}
	return t.why
}

// rateCell is a rate, where there is one.
func rateCell(rate float64) table.Cell { return table.Float(rate, rate > 0) }

var stepColumns = []table.Column{{Key: "step", Right: true}, {Key: "rate", Right: true}, {Key: "keeps_up"}, {Key: "why", Wrap: true},
	{Key: "backlog_slope", Right: true}, {Key: "slope_error", Right: true}, {Key: "report-id"}}

// row is a step as a row of stepColumns.
func (t *step) row(number int) []table.Cell {
	keeps := table.Cell{}
	if t.says != barely {
		keeps = table.Bool(t.says == keepsUp)
	}
	return []table.Cell{table.Int(number), rateCell(t.rate), keeps, table.Text(t.words()), table.Float(t.growth.Slope, t.known), table.Float(t.growth.Error, t.known), table.Text(t.report)}
}
