package commands

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/store"
)

// summaryFigures are the metrics of a summary, line by line: {NAME} stands for the value of a metric.
var summaryFigures = []struct{ head, say string }{
	{"rates", "sent {sent-rate} of {due-rate} due · accepted {accepted-rate} · forwarded {forwarded-rate}"},
	{"bytes", "pushed {pushed-bytes-rate} · accepted {accepted-bytes-rate} · arrived {arrived-share} of expected items"},
	{"relay CPU", "{cpu-per-envelope} per handled send, {cpu-per-item} per item, at {sent-rate} · idle {idle-cores}"},
	{"memory", "{rss-start} at the start · peak {rss-peak} · {rss-drained} drained"},
	{"", "memory efficiency {memory-efficiency} (accepted bytes a minute / peak RSS), as hey-apm has it"},
	{"backlog", "{backlog-end} at the end of the load, {backlog-slope} · drained in {drain-time}"},
	{"harness", "{harness-cpu-per-send} of CPU a send, {harness-share} of the relay's · lateness p99 {late-p99} · calibration {calibration}"},
}

// figureWords say those metrics in a summary that are not said there as elsewhere.
var figureWords = map[string]func(v float64) string{
	"backlog-slope":     trend,
	"memory-efficiency": figures, // the text has its unit
}

// trend is how a number of sends grows.
func trend(perSecond float64) string {
	size := quantity(math.Abs(perSecond), "sends/s")
	switch {
	case size == quantity(0, "sends/s"):
		return "steady"
	case perSecond < 0:
		return "falling by " + size
	}
	return "growing by " + size
}

// metricName is a {NAME} in a line of summaryFigures.
var metricName = regexp.MustCompile(`\{[^}]+\}`)

// figuresTable is the metrics of a summary.
func figuresTable(r *store.Report) *table.Table {
	t := &table.Table{Columns: []table.Column{{}, {Wrap: true}}}
	for _, l := range summaryFigures {
		t.Add(table.Text(l.head), table.Text(metricName.ReplaceAllStringFunc(l.say, func(name string) string {
			m := store.FindMetric(strings.Trim(name, "{}"))
			if m == nil {
				return table.Dash
			}
			v, ok := m.Of(r)
			if word := figureWords[m.Name]; ok && word != nil {
				return word(v)
			}
			return metricCell(v, ok, m.Unit).String()
		})))
	}
	return t
}

// finePrint is what has to be known of how the figures were obtained: those lines that apply.
func finePrint(r *store.Report) []string {
	res := r.Result
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Plan["rate"] == "max" {
		add("closed loop: a connection sends when it is answered, so rates are of the scheduler, not a capacity")
	} else if b := r.Plan["burst"]; b != "" && b != "1" {
		add("open loop, in bursts of %s sends that are due at once", b)
	} else {
		add("open loop")
	}
	if n := r.Plan["reconnect-every"]; n != "" && n != "0" && res.Tally != nil {
		add("a connection for each %s answered sends: %s were made; service time is without making them", n, count(res.Tally.Connects))
	}
	if d := r.Plan["upstream-latency"]; d != "" && d != "0s" {
		add("the upstream answered envelopes after %s", d)
	}
	if res.Harness.CPUs > 0 {
		who := "relay, senders and upstream"
		switch r.Provenance.Relay.Form {
		case relay.FormNone:
			who = "senders and upstream"
		case relay.FormURL:
			who = "senders and upstream (and the relay, if it is on this host)"
		}
		cpus := "CPUs"
		if res.Harness.CPUs <= 1 {
			cpus = "CPU"
		}
		if relays, own, cores, ok := pins(r); ok {
			add("pinned: %s", pinsText(relays, own, cores))
		} else {
			add("%s shared %s %s, not pinned", who, strconv.FormatFloat(res.Harness.CPUs, 'f', -1, 64), cpus)
		}
	}
	if l := res.Relay.MemoryLimit; l != nil {
		add("%s", table.Clean(memoryText(l, res)))
	}
	if res.Pool.Files > 0 {
		add("own envelopes of %s files: times moved to the run's start, event ids new in each send", count(res.Pool.Files))
	} else {
		add("synthetic payloads (version %d), %s envelopes in turn", res.Pool.Payload, count(res.Pool.Envelopes))
	}
	if res.Pool.AgentsSent > 0 {
		add("%s different user agents were sent", count(res.Pool.AgentsSent))
	}
	if e := r.Plan["encoding"]; e != "" && e != envelope.Identity && res.Pool.Files == 0 {
		add("bodies in %s: ids in payloads come again after %s sends, stamps and event ids never", e, count(res.Pool.Envelopes))
	}
	if hasKind(r, "sessions") {
		add("sessions are forwarded as they are, not turned into metrics")
	}
	if f := r.Provenance.Relay.Form; f == relay.FormPath || f == relay.FormStandIn || f == relay.FormImage {
		add("outcomes of every sort are on, at a small cost to the relay")
	}
	if b := r.Provenance.Relay; b.Form == relay.FormImage {
		add("the relay ran in a container of %s, on this host's network; what %s itself used is not the relay's", table.Clean(b.Engine), table.Clean(b.Engine))
	}
	switch to := r.Plan["statsd"]; {
	case res.Statsd != nil:
		add("statsd was on, at a small cost to the relay: show %s timers", cmp.Or(r.ID, "last"))
	case to != "" && to != plan.StatsdOff && to != plan.StatsdOn:
		add("the relay sent its metrics to %s, at a small cost to it", to)
	}
	if ignored := res.Relay.Ignored; len(ignored) > 0 {
		add("keys of the config file that this relay does not know: %s", table.Clean(strings.Join(firstOf(ignored, 5, "more"), ", ")))
	}
	if res.Profile != nil {
		for _, l := range profileNotes(r) {
			add("%s", table.Clean(l))
		}
	}
	if res.Pool.WarmUps > 0 {
		add("%s warm-up sends before", count(res.Pool.WarmUps))
	}
	return lines
}

// hasKind says whether a report's load had a kind.
func hasKind(r *store.Report, name string) bool {
	for i := range r.Result.Kinds {
		if strings.EqualFold(r.Result.Kinds[i].Name, name) && r.Result.Kinds[i].Due > 0 {
			return true
		}
	}
	return false
}
