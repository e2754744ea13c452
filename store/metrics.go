package store

import (
	"math"
	"slices"

	"relaybench/harness/result"
)

// Metric is one entry of the table of metrics: a dependent value, derived from a report when it is read.
type Metric struct {
	Name   string
	Unit   string // "ns" for durations, "s/send" …: what a value is in; how it is shown is the printer's
	Help   string
	Better int     // +1: more is better, -1: less is, 0: neither
	Floor  float64 // a difference at most this is none, in Unit
	// Group is what a mark makes unfit together.
	Group Group
	// Headline metrics are in the index, the summary and default tables.
	Headline bool
	// Of derives it; ok is false where it is unknown, which is not zero.
	Of func(*Report) (value float64, ok bool)

	statsd *statsdMetric // nil of those in the table
}

// Group is a group of metrics.
type Group string

// The groups of metrics.
const (
	CPU      Group = "CPU"
	Rates    Group = "rates"
	Through  Group = "through"
	Response Group = "response"
	Service  Group = "service"
	Memory   Group = "memory"
	Other    Group = "other"
)

// Metrics is the table of metrics, in the order in which they are listed.
var Metrics = slices.Concat([]Metric{
	{Name: "cpu-per-envelope", Unit: "ns", Better: -1, Floor: 1_000, Group: CPU, Headline: true,
		Help: "Relay's CPU from the first send to the end of the drain, less what it uses idle, by handled sends (arrived, or an outcome); falls as the rate rises",
		Of:   observed(func(r *result.Result) (float64, bool) { return cpuPer(r, handledSends(r)) })},
	{Name: "cpu-per-item", Unit: "ns", Better: -1, Floor: 1_000, Group: CPU,
		Help: "the same by handled items: of a container, its elements",
		Of:   observed(func(r *result.Result) (float64, bool) { return cpuPer(r, handledItems(r)) })},
	{Name: "due-rate", Unit: "sends/s", Group: Rates,
		Help: "sends that were due, a second of load",
		Of:   tallied(func(r *result.Result, t *result.Tally) (float64, bool) { return perLoad(r, t.Due) })},
	{Name: "sent-rate", Unit: "sends/s", Better: +1, Group: Rates,
		Help: "sends of which a byte went out, a second of load",
		Of:   tallied(func(r *result.Result, t *result.Tally) (float64, bool) { return perLoad(r, t.Sent) })},
	{Name: "accepted-rate", Unit: "sends/s", Better: +1, Group: Rates,
		Help: "sends that Relay answered with 2xx, a second of load; no measure of work done: it answers before it processes",
		Of: tallied(func(r *result.Result, t *result.Tally) (float64, bool) {
			return perLoad(r, t.Counts[result.Accepted])
		})},
	{Name: "forwarded-rate", Unit: "sends/s", Better: +1, Group: Rates, Headline: true,
		Help: "sends that had arrived upstream by the end of the load, a second of load",
		Of:   observed(forwardedRate)},
	{Name: "pushed-bytes-rate", Unit: "B/s", Better: +1, Group: Rates,
		Help: "bytes written to Relay, heads and bodies, a second of load",
		Of:   tallied(func(r *result.Result, t *result.Tally) (float64, bool) { return perLoad(r, t.Pushed) })},
	{Name: "accepted-bytes-rate", Unit: "B/s", Better: +1, Group: Rates,
		Help: "body bytes of accepted sends, a second of load",
		Of:   tallied(func(r *result.Result, t *result.Tally) (float64, bool) { return perLoad(r, t.Accepted) })},
	{Name: "arrived-share", Unit: "%", Better: +1, Floor: 0.01, Group: Other, Headline: true,
		Help: "items that arrived upstream, of those in accepted sends; over 100 where sends arrived that were refused or got no answer",
		Of: observed(func(r *result.Result) (float64, bool) {
			items := result.LedgerOf(r).Total.Items
			return ratio(100*float64(items.Arrived), float64(items.Accepted))
		})},
},
	latencies("through", Through, "from when a send was due to its arrival upstream", []string{"p50", "p99"}, through),
	latencies("response", Response, "from when an accepted send was due to its answer", []string{"p99"},
		spans(func(t *result.Tally) *result.Sketch { return t.AcceptedSpans.Response })),
	latencies("service", Service, "from the write of an accepted send to its answer", nil,
		spans(func(t *result.Tally) *result.Sketch { return t.AcceptedSpans.Service })),
	latencies("refused-response", Response, "from when a refused send was due to its answer", nil,
		spans(func(t *result.Tally) *result.Sketch { return t.RefusedSpans.Response })),
	latencies("refused-service", Service, "from the write of a refused send to its answer", nil,
		spans(func(t *result.Tally) *result.Sketch { return t.RefusedSpans.Service })),
	[]Metric{
		{Name: "late-p99", Unit: "ns", Better: -1, Floor: 100_000, Group: Other,
			Help: "from when a send was due to its write, 99% at most: relaybench's own lateness",
			Of: tallied(func(_ *result.Result, t *result.Tally) (float64, bool) {
				return t.Late.Quantile(0.99)
			})},
		{Name: "backlog-end", Unit: "sends", Better: -1, Floor: 1, Group: Other,
			Help: "sends that Relay still had at the end of the load: sent, less arrived, outcomes and refused",
			Of:   observed(backlogEnd)},
		{Name: "backlog-slope", Unit: "sends/s", Better: -1, Floor: 0.1, Group: Other,
			Help: "growth of that over the load, by least squares",
			Of: observed(func(r *result.Result) (float64, bool) {
				f, ok := backlogFit(r)
				return f.slope, ok
			})},
		{Name: "drain-time", Unit: "ns", Better: -1, Floor: 50_000_000, Group: Other,
			Help: "from the end of the load until every send was accounted for",
			Of: observed(func(r *result.Result) (float64, bool) {
				return float64(r.DrainEnd) - float64(r.LoadEnd), r.Drain == result.Drained && r.DrainEnd >= r.LoadEnd && loadSeconds(r) > 0
			})},
		{Name: "in-flight", Unit: "sends", Better: -1, Group: Other,
			Help: "sends that were missing when the drain was cut off while Relay still worked",
			Of: observed(func(r *result.Result) (float64, bool) {
				sends := result.LedgerOf(r).Total.Sends
				return float64(sends.InFlight), sends.UnaccountedKnown || r.Drain == result.NotDrained
			})},
		{Name: "unaccounted", Unit: "sends", Better: -1, Group: Other, Headline: true,
			Help: "sends that were missing after Relay had settled or exited; of a container whose outcomes cover some, an estimate",
			Of: observed(func(r *result.Result) (float64, bool) {
				sends := result.LedgerOf(r).Total.Sends
				return float64(sends.Unaccounted), sends.UnaccountedKnown
			})},
		{Name: "unaccounted-items", Unit: "items", Better: -1, Group: Other,
			Help: "the same in items: of a container, its elements; exact",
			Of: observed(func(r *result.Result) (float64, bool) {
				items := result.LedgerOf(r).Total.Items
				return float64(items.Unaccounted), items.UnaccountedKnown
			})},
		{Name: "repeats", Unit: "sends", Better: -1, Group: Other,
			Help: "sends that came upstream again",
			Of: tallied(func(r *result.Result, _ *result.Tally) (float64, bool) {
				return float64(result.LedgerOf(r).Total.Repeats), true
			})},
		{Name: "lost", Unit: "sends", Better: -1, Group: Other,
			Help: "sends that the upstream answered with 4xx or 500: Relay drops them",
			Of: tallied(func(r *result.Result, _ *result.Tally) (float64, bool) {
				return float64(result.LedgerOf(r).Total.Sends.Lost), true
			})},
		{Name: "rss-start", Unit: "B", Better: -1, Floor: 1 << 20, Group: Memory,
			Help: "Relay's resident memory when the load began",
			Of:   memory(func(r *result.RelayRun) int64 { return r.RSSStart })},
		{Name: "rss-peak", Unit: "B", Better: -1, Floor: 1 << 20, Group: Memory, Headline: true,
			Help: "the most resident memory that Relay had from then on",
			Of:   memory(func(r *result.RelayRun) int64 { return r.RSSPeak })},
		{Name: "rss-drained", Unit: "B", Better: -1, Floor: 1 << 20, Group: Memory,
			Help: "Relay's resident memory after the drain",
			Of:   memory(func(r *result.RelayRun) int64 { return r.RSSDrained })},
		{Name: "rss-slope", Unit: "B/s", Better: -1, Floor: 10 << 10, Group: Memory,
			Help: "growth of Relay's resident memory over the second half of a load of 60 s or more, by least squares",
			Of:   observed(rssSlope)},
		{Name: "memory-efficiency", Unit: "/min", Better: +1, Floor: 0.001, Group: Memory,
			Help: "hey-apm's: body bytes accepted in a minute, by Relay's peak resident memory",
			Of: tallied(func(r *result.Result, t *result.Tally) (float64, bool) {
				rate, ok := perLoad(r, t.Accepted)
				if !ok || !r.Relay.MemoryKnown {
					return 0, false
				}
				return ratio(60*rate, float64(r.Relay.RSSPeak))
			})},
		{Name: "idle-cores", Unit: "cores", Better: -1, Floor: 0.005, Group: CPU,
			Help: "cores that Relay used before the load",
			Of:   observed(idleCores)},
		{Name: "harness-cpu-per-send", Unit: "ns", Better: -1, Floor: 1_000, Group: CPU,
			Help: "relaybench's own CPU during the load, senders and upstream, by sends",
			Of: tallied(func(r *result.Result, t *result.Tally) (float64, bool) {
				v, ok := ratio(float64(r.Harness.CPULoad), float64(t.Sent))
				return v, ok && v > 0
			})},
		{Name: "harness-share", Unit: "%", Better: -1, Floor: 0.1, Group: CPU,
			Help: "relaybench's own CPU during the load, in % of Relay's",
			Of: observed(func(r *result.Result) (float64, bool) {
				v, ok := ratio(100*float64(r.Harness.CPULoad), float64(r.Relay.CPULoad)-float64(r.Relay.CPUStart))
				return v, ok && v > 0 && r.Relay.CPUKnown
			})},
		{Name: calibrationName, Unit: "ns", Group: Other, Headline: true,
			Help: "what a fixed loop took before and after the run, on average: how fast the machine was",
			Of:   observed(calibration)},
	})

// FindMetric is the metric of that name, or nil: one of the table, or one of the
// relay's own, as [StatsdHelp] says it.
func FindMetric(name string) *Metric {
	for i := range Metrics {
		if Metrics[i].Name == name {
			return &Metrics[i]
		}
	}
	return findStatsd(name)
}

// observed derives a metric from a result; what is no finite number is unknown.
func observed(of func(*result.Result) (float64, bool)) func(*Report) (float64, bool) {
	return func(r *Report) (float64, bool) {
		if r == nil || r.Result == nil {
			return 0, false
		}
		v, ok := of(r.Result)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, false
		}
		return v, true
	}
}

// tallied derives a metric from a result with a tally, which is one whose load began.
func tallied(of func(*result.Result, *result.Tally) (float64, bool)) func(*Report) (float64, bool) {
	return observed(func(r *result.Result) (float64, bool) {
		if r.Tally == nil {
			return 0, false
		}
		return of(r, r.Tally)
	})
}

// memory derives a metric from a reading of Relay's memory, which is never 0.
func memory(of func(*result.RelayRun) int64) func(*Report) (float64, bool) {
	return observed(func(r *result.Result) (float64, bool) {
		v := of(&r.Relay)
		return float64(v), r.Relay.MemoryKnown && v > 0
	})
}

// latencies are the metrics of one distribution.
func latencies(name string, group Group, help string, headlines []string, of func(*result.Result) *result.Sketch) []Metric {
	var ms []Metric
	for _, l := range []struct {
		name  string
		q     float64
		help  string
		floor float64
	}{
		{"p50", 0.5, "half of them at most", 100_000},
		{"p90", 0.9, "90% at most", 100_000},
		{"p99", 0.99, "99% at most", 500_000},
		{"p99.9", 0.999, "99.9% at most", 500_000},
		{"max", 1, "the longest, exactly", 500_000},
	} {
		ms = append(ms, Metric{Name: name + "-" + l.name, Unit: "ns", Better: -1, Floor: l.floor, Group: group,
			Help:     help + ", " + l.help,
			Headline: slices.Contains(headlines, l.name),
			Of:       observed(func(r *result.Result) (float64, bool) { return of(r).Quantile(l.q) })})
	}
	return ms
}

// through is the distribution over all kinds; nil where they do not merge.
func through(r *result.Result) *result.Sketch {
	sum := result.NewSketch()
	for i := range r.Kinds {
		if sum.Merge(r.Kinds[i].Through) != nil {
			return nil
		}
	}
	return sum
}

func spans(of func(*result.Tally) *result.Sketch) func(*result.Result) *result.Sketch {
	return func(r *result.Result) *result.Sketch {
		if r.Tally == nil {
			return nil
		}
		return of(r.Tally)
	}
}

// ratio is a / b, unknown where b is not above 0.
func ratio(a, b float64) (float64, bool) {
	if !(b > 0) {
		return 0, false
	}
	return a / b, true
}

// loadSeconds is how long the load lasted; 0 where there was none.
func loadSeconds(r *result.Result) float64 {
	return max(0, float64(r.LoadEnd)-float64(r.LoadStart)) / 1e9
}

func perLoad(r *result.Result, n uint64) (float64, bool) { return ratio(float64(n), loadSeconds(r)) }

func calibration(r *result.Result) (float64, bool) {
	sum, n := 0.0, 0.0
	for _, took := range []int64{r.CalibrationBefore, r.CalibrationAfter} {
		if took > 0 {
			sum, n = sum+float64(took), n+1
		}
	}
	return ratio(sum, n)
}

func idleCores(r *result.Result) (float64, bool) {
	v, ok := ratio(float64(r.Relay.IdleCPU), float64(r.Relay.IdleTook))
	return v, ok && r.Relay.CPUKnown && v >= 0
}

func handledSends(r *result.Result) uint64 {
	sends := result.LedgerOf(r).Total.Sends
	return sends.Arrived + sends.Outcomes
}

func handledItems(r *result.Result) uint64 {
	items := result.LedgerOf(r).Total.Items
	return items.Arrived + items.Outcomes
}

// cpuPer is Relay's CPU over load and drain above its idle CPU, by n. It is
// unknown where the drain did not come to its end, as then Relay had still to
// work on what it had, and where the load was too small to see above idle.
func cpuPer(r *result.Result, n uint64) (float64, bool) {
	idle, ok := idleCores(r)
	if !ok || r.Relay.Died != "" || r.Drain != result.Drained && r.Drain != result.Settled {
		return 0, false
	}
	used := float64(r.Relay.CPUDrain) - float64(r.Relay.CPUStart) - idle*(float64(r.DrainEnd)-float64(r.LoadStart))
	v, ok := ratio(used, float64(n))
	return v, ok && v > 0
}

// forwardedRate is what had arrived by the end of the load, by its length: read
// off the samples around it, as a line between them. Where the samples end
// well before it, or there are none, it is all that arrived by the length of
// load and drain.
func forwardedRate(r *result.Result) (float64, bool) {
	end := loadSeconds(r) * 1e9
	if end == 0 || r.Tally == nil {
		return 0, false
	}
	at, arrived := 0.0, 0.0 // of the sample before
	for _, s := range r.Samples {
		sAt, sArrived := float64(s.At), float64(s.Arrived)
		if sAt >= end {
			if sAt > at {
				arrived += (sArrived - arrived) * (end - at) / (sAt - at)
			}
			return max(0, arrived) / end * 1e9, true
		}
		at, arrived = max(at, sAt), max(arrived, sArrived)
	}
	if at > 0.9*end {
		return arrived / at * 1e9, true
	}
	return ratio(float64(result.LedgerOf(r).Total.Sends.Arrived), (float64(max(r.DrainEnd, r.LoadEnd))-float64(r.LoadStart))/1e9)
}

func backlogEnd(r *result.Result) (float64, bool) {
	for _, s := range slices.Backward(r.Samples) {
		if !s.Draining {
			return float64(s.Backlog), true
		}
	}
	return 0, false
}

// fit is a line through samples, by least squares.
type fit struct {
	slope  float64 // a second
	spread float64 // the standard error of slope
}

// fitLine fits a line to values at nanoseconds; ok is false under five points or where all are of one time.
func fitLine(at, value []float64) (f fit, ok bool) {
	n := float64(len(at))
	if len(at) < 5 {
		return f, false
	}
	var meanAt, mean float64
	for i := range at {
		meanAt += (at[i] - at[0]) / 1e9 / n
		mean += value[i] / n
	}
	var tt, tv, vv float64
	for i := range at {
		t, v := (at[i]-at[0])/1e9-meanAt, value[i]-mean
		tt += t * t
		tv += t * v
		vv += v * v
	}
	if !(tt > 0) {
		return f, false
	}
	f.slope = tv / tt
	f.spread = math.Sqrt(max(0, vv-f.slope*tv) / (n - 2) / tt)
	return f, true
}

func backlogFit(r *result.Result) (fit, bool) {
	at, backlog := make([]float64, 0, len(r.Samples)), make([]float64, 0, len(r.Samples))
	for i := range r.Samples {
		if s := &r.Samples[i]; !s.Draining {
			at, backlog = append(at, float64(s.At)), append(backlog, float64(s.Backlog))
		}
	}
	return fitLine(at, backlog)
}

func rssSlope(r *result.Result) (float64, bool) {
	load := loadSeconds(r)
	if load < 60 {
		return 0, false
	}
	at, rss := make([]float64, 0, len(r.Samples)), make([]float64, 0, len(r.Samples))
	for i := range r.Samples {
		if s := &r.Samples[i]; !s.Draining && s.RelayRSS > 0 && float64(s.At) >= load/2*1e9 {
			at, rss = append(at, float64(s.At)), append(rss, float64(s.RelayRSS))
		}
	}
	f, ok := fitLine(at, rss)
	return f.slope, ok
}
