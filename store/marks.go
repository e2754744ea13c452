package store

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/harness/result"
	"relaybench/harness/variable"
)

// Mark is one entry of the table of marks: something that a reader must know
// of a report, derived from stored causes when it is read.
type Mark struct {
	Name  string
	Help  string   // when it stands, one line
	Unfit []string // the metrics that it makes unfit for comparison, by name; "*" is all; none: a notice
	// Of says whether the report has it, and why in a few words with figures.
	Of func(*Report) (why string, ok bool)
}

// The bounds of marks.
const (
	lateLimit   = 10 * time.Millisecond // of the p99 of lateness
	sentLimit   = 0.99                  // of the due sends
	shortLoad   = ShortLoad
	openShare   = 0.95 // of Relay's limit of upstream requests, at which a sample counts
	openSamples = 0.1  // of the samples
	behindShare = 0.01 // of the rate, that the backlog may grow by
	othersShare = 0.05 // of the CPUs
)

// ShortLoad is the load under which a run is marked short.
const ShortLoad = 5 * time.Second

// TooShort says whether a run of that load is marked short, and the mark makes the metric unfit.
func TooShort(load time.Duration, metric string) bool {
	i := slices.IndexFunc(Marks, func(m Mark) bool { return m.Name == "short" })
	return load < ShortLoad && Marks[i].unfits(metric)
}

// Marks is the table of marks.
var Marks = []Mark{
	{Name: "cancelled", Help: "the run was stopped from outside", Unfit: all,
		Of: marked(func(r *result.Result) (string, bool) { return why(r.Cancelled, r.Cancelled != "") })},
	{Name: "failed", Help: "the run ended with an error", Unfit: all,
		Of: marked(func(r *result.Result) (string, bool) { return why(r.Failed, r.Failed != "") })},
	{Name: "relay-died", Help: "Relay ended by itself in mid-run", Unfit: all,
		Of: marked(func(r *result.Result) (string, bool) { return why(r.Relay.Died, r.Relay.Died != "") })},
	{Name: "no-load", Help: "nothing was sent", Unfit: all,
		Of: marked(func(r *result.Result) (string, bool) {
			return why("nothing was sent", r.Tally == nil || r.Tally.Sent == 0)
		})},
	{Name: "short", Help: "the load lasted less than 5 s", Unfit: names(Rates, CPU, Memory),
		Of: marked(func(r *result.Result) (string, bool) {
			load := loadSeconds(r)
			return why(figure(load)+" s of load", load > 0 && load < shortLoad.Seconds())
		})},
	{Name: "harness-limited", Help: "relaybench could not keep the schedule of an open loop: sends late by over 10 ms at p99, under 99% of the due ones sent, or it waited for a CPU",
		Unfit: names(Through, Response, Service, Rates),
		Of: func(r *Report) (string, bool) {
			if r == nil || r.Result == nil || flatOut(r) {
				return "", false
			}
			return harnessLimited(r.Result)
		}},
	{Name: "upstream-limited", Help: "in a tenth of the samples or more, 95% of Relay's limit of upstream requests were open at the upstream, or the upstream waited for a CPU",
		Unfit: append(names(Through), "forwarded-rate"), Of: marked(upstreamLimited)},
	{Name: "behind", Help: "the backlog grew by more than 1% of the rate: Relay could not keep up", Unfit: names(Through, Response),
		Of: marked(behind)},
	{Name: "not-drained", Help: "the drain was cut off while Relay still worked, or sent again what the upstream turned away", Unfit: []string{"cpu-per-envelope", "cpu-per-item", "unaccounted", "unaccounted-items"},
		Of: marked(func(r *result.Result) (string, bool) {
			by := fmt.Sprintf("%d sends in flight", result.LedgerOf(r).Total.Sends.InFlight)
			if r.DrainWhy != "" {
				by += ": " + r.DrainWhy
			}
			return why(by, r.Drain == result.NotDrained)
		})},
	{Name: "memory-guard", Help: "the load was stopped because memory ran out: less than a tenth of the host's, or of its cgroup's, was left", Unfit: names(Rates, CPU),
		Of: marked(func(r *result.Result) (string, bool) { return why(r.MemoryGuard, r.MemoryGuard != "") })},
	{Name: "host-busy", Help: "other processes took more than 5% of the CPUs, or of what the cgroup allows of them", Unfit: names(CPU, Through, Response, Service),
		Of: marked(hostBusy)},
	{Name: "unaccounted", Help: "sends or items were missing after Relay had settled or exited",
		Of: marked(func(r *result.Result) (string, bool) {
			t := result.LedgerOf(r).Total
			return why(fmt.Sprintf("%d sends, %d items", t.Sends.Unaccounted, t.Items.Unaccounted), t.Sends.Unaccounted > 0 || t.Items.Unaccounted > 0)
		})},
	{Name: "stand-in", Help: "the relay was the one built into relaybench",
		Of: built(func(b *result.Relay) (string, bool) { return why("not Sentry's Relay", b.Form == "stand-in") })},
	{Name: "dirty-tree", Help: "Relay was built from a checkout with changes that no revision has",
		Of: built(func(b *result.Relay) (string, bool) { return why("changes on "+short(b.Revision), b.Dirty) })},
	{Name: "debug-build", Help: "Relay was built without optimisation",
		Of: built(func(b *result.Relay) (string, bool) { return why("built by the profile debug", b.Profile == "debug") })},
	{Name: "profiled", Help: "Relay was profiled, which costs it CPU: compared with others that were, only", Of: profiled},
	{Name: "relay-errors", Help: "Relay logged errors from the start of the load to the stop", Of: marked(relayErrors)},
	{Name: "rate-limited", Help: "Relay limited the rate of a client, by its own or the upstream's order", Of: marked(rateLimited)},
	{Name: "not-understood", Help: "bytes came to the upstream that are no envelope of this run, or a route that it does not know", Of: marked(notUnderstood)},
	{Name: "flat-out", Help: "a closed loop: each connection sends when it is answered, and latency is not that of clients who do not wait",
		Of: func(r *Report) (string, bool) { return why("rate max", flatOut(r)) }},
}

var all = []string{"*"}

// names are the metrics of some groups.
func names(groups ...Group) []string {
	var ns []string
	for _, m := range Metrics {
		if slices.Contains(groups, m.Group) {
			ns = append(ns, m.Name)
		}
	}
	return ns
}

// marked derives a mark from a result.
func marked(of func(*result.Result) (string, bool)) func(*Report) (string, bool) {
	return func(r *Report) (string, bool) {
		if r == nil || r.Result == nil {
			return "", false
		}
		return of(r.Result)
	}
}

// built derives a mark from which relay it was.
func built(of func(*result.Relay) (string, bool)) func(*Report) (string, bool) {
	return func(r *Report) (string, bool) {
		if r == nil {
			return "", false
		}
		return of(&r.Provenance.Relay)
	}
}

// why is the reason of a mark that stands.
func why(text string, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	return text, true
}

func flatOut(r *Report) bool { return r != nil && r.Plan["rate"] == "max" }

func harnessLimited(r *result.Result) (string, bool) {
	var whys []string
	if t := r.Tally; t != nil {
		if late, ok := t.Late.Quantile(0.99); ok && late > float64(lateLimit) {
			whys = append(whys, "p99 lateness "+time.Duration(late).Round(time.Millisecond).String())
		}
		if share, ok := ratio(float64(t.Sent), float64(t.Due)); ok && share < sentLimit {
			whys = append(whys, figure(100*share)+"% of due sends sent")
		}
	}
	if by, ok := starved(r); ok {
		whys = append(whys, by)
	}
	return why(strings.Join(whys, ", "), len(whys) > 0)
}

// starved says whether relaybench, senders and upstream, lacked CPU: on average
// over the load, as many of its threads stood ready and waiting for a CPU as
// it had CPUs.
//
// Note: waiting is no starvation by itself. On two CPUs that Relay keeps busy,
// the threads of a modest load wait a good part of a second each second, a
// fraction of a millisecond at a time, and are on time all the same. Lateness
// and what was not sent tell of the senders first; this is for the rest, the
// readers of answers and the upstream.
func starved(r *result.Result) (string, bool) {
	waiting, ok := ratio(float64(r.Harness.WaitLoad), loadSeconds(r)*1e9)
	cpus := r.Harness.CPUs
	if own, err := variable.ParseCPUs(r.Harness.Allowed); err == nil {
		cpus = min(cpus, float64(len(own)))
	}
	if !ok || waiting < max(1, cpus) {
		return "", false
	}
	return figure(waiting) + " threads of relaybench waited for a CPU", true
}

func upstreamLimited(r *result.Result) (string, bool) {
	var whys []string
	full, n := 0, 0
	for _, s := range r.Samples {
		if s.Draining {
			continue
		}
		n++
		if float64(s.Open) >= openShare*float64(r.Relay.Limit) {
			full++
		}
	}
	if r.Relay.Limit > 0 && full > 0 && float64(full) >= openSamples*float64(n) {
		whys = append(whys, fmt.Sprintf("Relay's %d upstream requests were open in %d of %d samples", r.Relay.Limit, full, n))
	}
	if by, ok := starved(r); ok {
		whys = append(whys, by)
	}
	return why(strings.Join(whys, ", "), len(whys) > 0)
}

func behind(r *result.Result) (string, bool) {
	g, ok := growthOf(r)
	if !ok || !g.Behind() {
		return "", false
	}
	return fmt.Sprintf("backlog grew by %s sends/s at %s/s", figure(g.Slope), figure(g.Rate)), true
}

// Growth is how the backlog grew over a load.
type Growth struct {
	Slope float64 // sends a second, by least squares
	Error float64 // its standard error
	Rate  float64 // sends that were due, a second
}

// GrowthOf is that of a report; ok is false where it is unknown.
func GrowthOf(r *Report) (g Growth, ok bool) {
	if r == nil || r.Result == nil {
		return g, false
	}
	return growthOf(r.Result)
}

func growthOf(r *result.Result) (g Growth, ok bool) {
	if r.Tally == nil {
		return g, false
	}
	rate, ok := perLoad(r, r.Tally.Due)
	f, fitted := backlogFit(r)
	return Growth{f.slope, f.spread, rate}, ok && fitted
}

// Behind says whether the relay did not keep up: the slope is more than 1% of
// the rate. One within twice its standard error is none.
func (g Growth) Behind() bool { return g.Slope > behindShare*g.Rate && g.Slope > 2*g.Error }

func hostBusy(r *result.Result) (string, bool) {
	span := float64(r.DrainEnd) - float64(r.LoadStart)
	share, ok := ratio(float64(r.Harness.Others), span*r.Harness.CPUs)
	if !ok || share <= othersShare {
		return "", false
	}
	if share > 1 { // they are not held by the cgroup of the run
		return fmt.Sprintf("others took %s CPUs, and the run could use %s", figure(share*r.Harness.CPUs), figure(r.Harness.CPUs)), true
	}
	return fmt.Sprintf("others took %s%% of the CPUs", figure(100*share)), true
}

func profiled(r *Report) (string, bool) {
	if r == nil || r.Plan["profiled"] == "" || r.Plan["profiled"] == "no" {
		return "", false
	}
	if r.Result == nil || r.Result.Profile == nil {
		return r.Plan["profiled"] + ", without a profile", true
	}
	p := r.Result.Profile
	by := fmt.Sprintf("call graph %s, %d samples a second of %s", p.CallGraph, p.Freq, p.Event)
	if p.Failed != "" {
		by += "; there is none, or not all of it: " + clip(p.Failed)
	}
	return by, true
}

func relayErrors(r *result.Result) (string, bool) {
	n, first := uint64(0), ""
	for _, m := range r.Relay.Messages {
		if strings.EqualFold(m.Level, "error") {
			if n += m.Count; first == "" {
				first = m.Text
			}
		}
	}
	return why(fmt.Sprintf("%d errors, such as %q", n, clip(first)), n > 0)
}

func rateLimited(r *result.Result) (string, bool) {
	const limited = 2 // the outcome of a rate limit
	sends, items := uint64(0), uint64(0)
	if r.Tally != nil {
		sends = r.Tally.Counts[result.AnswerOf(429)]
	}
	for _, k := range r.Kinds {
		for _, o := range k.Outcomes {
			if o.Outcome == limited {
				items += o.Quantity
			}
		}
	}
	return why(fmt.Sprintf("%d sends answered 429, %d items in outcomes", sends, items), sends > 0 || items > 0)
}

func notUnderstood(r *result.Result) (string, bool) {
	var whys []string
	u := &r.Upstream
	if u.Malformed > 0 {
		whys = append(whys, fmt.Sprintf("%d malformed, such as %q", u.Malformed, clip(u.MalformedFirst)))
	}
	if u.Unstamped > 0 {
		whys = append(whys, fmt.Sprintf("%d envelopes without a stamp", u.Unstamped))
	}
	if routes := slices.Sorted(maps.Keys(u.UnknownRoutes)); len(routes) > 0 {
		whys = append(whys, fmt.Sprintf("%d unknown routes, such as %q", len(routes), clip(routes[0])))
	}
	return why(strings.Join(whys, ", "), len(whys) > 0)
}

// figure is a number above 0 in about three digits, without an exponent.
func figure(v float64) string {
	unit := 100.0
	for left := v; left >= 10 && unit > 1; left /= 10 {
		unit /= 10
	}
	return strconv.FormatFloat(math.Round(v*unit)/unit, 'f', -1, 64)
}

// clip cuts a text from outside for a line.
func clip(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}

// short is a revision as people write it.
func short(revision string) string {
	if revision == "" {
		return "an unknown revision"
	}
	return revision[:min(len(revision), 10)]
}

// Marked is a mark that a report has.
type Marked struct {
	*Mark
	Why string
}

// MarksOf are the marks of a report, in the table's order.
func MarksOf(r *Report) []Marked {
	var ms []Marked
	for i := range Marks {
		if by, ok := Marks[i].Of(r); ok {
			ms = append(ms, Marked{&Marks[i], by})
		}
	}
	return ms
}

// Unfit says whether marks make the metric unfit, and which one does first.
func Unfit(marks []Marked, metric string) (by string, ok bool) {
	for _, m := range marks {
		if m.unfits(metric) {
			return m.Name, true
		}
	}
	return "", false
}

// unfits says whether the mark makes the metric unfit. What makes the relay's CPU
// time unfit does so with its own timers.
func (m *Mark) unfits(metric string) bool {
	if strings.HasPrefix(metric, result.Timer+":") {
		metric = "cpu-per-envelope"
	}
	return slices.ContainsFunc(m.Unfit, func(name string) bool { return name == "*" || name == metric })
}
