package commands

import (
	"fmt"
	"strings"

	"relaybench/harness/relay"
	"relaybench/store"
)

// figure is a metric in a summary, and how it is said.
type figure struct{ metric, say string }

// summaryFigures are the metrics of a summary, line by line.
var summaryFigures = []struct {
	head    string
	figures []figure
}{}

// finePrint is what has to be known of how the figures were obtained: those lines that apply.
func finePrint(r *store.Report) []string {
	res := r.Result
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Plan["rate"] == "max" {
		add("closed loop: a connection sends when it is answered, so rates are of the scheduler, not a capacity")
	} else {
		add("open loop")
	}
	if res.Harness.CPUs > 0 {
		who := "relay, senders and upstream"
		switch r.Provenance.Relay.Form {
		case relay.FormNone:
			who = "senders and upstream"
		case relay.FormURL:
			who = "senders and upstream (and the relay, if it is on this host)"
		}
		add("%s shared %d CPUs, not pinned", who, res.Harness.CPUs)
	}
	add("synthetic payloads (version %d), %s envelopes in turn", res.Pool.Payload, count(res.Pool.Envelopes))
	if hasKind(r, "sessions") {
		add("sessions are forwarded as they are, not turned into metrics")
	}
	if r.Provenance.Relay.Form != relay.FormNone {
		add("outcomes of every sort are on, at a small cost to the relay")
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
