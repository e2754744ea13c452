package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/harness/variable"
	"relaybench/store"
)

// pins are the CPUs that the relay and relaybench had in a run, "" where that
// was not seen, and the cores that they shared; ok is false where none were chosen.
func pins(r *store.Report) (relays, own string, cores []string, ok bool) {
	p, err := plan.FromRecord(r.Plan)
	if err != nil || len(p.RelayCPUs) == 0 && len(p.HarnessCPUs) == 0 {
		return "", "", nil, false
	}
	res := r.Result
	return res.Relay.CPUs, res.Harness.Allowed, res.Harness.Cores, true
}

// pinsText says which CPUs were the relay's, "" where it had none that could be
// seen, and which relaybench's, and warns of what they shared.
func pinsText(relays, own string, cores []string) string {
	var parts []string
	if relays != "" {
		parts = append(parts, "the relay on "+cpusText(relays))
	}
	if own != "" {
		parts = append(parts, "senders and upstream on "+cpusText(own))
	}
	text := strings.Join(parts, ", ")
	r, _ := variable.ParseCPUs(relays)
	h, _ := variable.ParseCPUs(own)
	if both := r.And(h); len(both) > 0 {
		text += "; they share " + cpusText(both.List())
	}
	for _, core := range cores {
		text += fmt.Sprintf("; %s are threads of one core (SMT siblings): what one side does there slows the other", cpusText(core))
	}
	return cmp.Or(text, "which CPUs were whose was not seen")
}

func cpusText(list string) string {
	if strings.ContainsAny(list, ",-") {
		return "CPUs " + list
	}
	return "CPU " + list
}

// pinned says which CPUs would be whose in runs of plans, each once.
func pinned(plans []plan.Plan, form string) (says []string) {
	for _, p := range plans {
		relays, own, cores, ok := harness.Pins(p)
		if !ok {
			continue
		}
		text := pinsText(relays.List(), own.List(), cores)
		if form == relay.FormNone || form == relay.FormURL {
			text = pinsText("", own.List(), nil)
		}
		if text = "pinned: " + text; !slices.Contains(says, text) {
			says = append(says, text)
		}
	}
	return says
}

// memoryText says by what way a relay's memory was limited, what was counted, and what the relay did at it.
func memoryText(l *result.MemoryLimit, r *result.Result) string {
	text := "memory limit " + variable.FormatSize(l.Bytes)
	switch l.Way {
	case result.LimitContainer:
		text += " of the relay's container, whose memory counts, with the cache of files that it was the first to fill"
	case result.LimitGroup:
		text += " by a cgroup of the relay's own: its memory counts, with the cache of files that it was the first to fill; Relay does not look there itself, so it does not refuse before"
	case result.LimitRelay:
		whose := "the whole host counts"
		if l.Counted == "cgroup" {
			whose = "the whole topmost cgroup counts, without its cache of files"
		}
		text += fmt.Sprintf(" by Relay's own health.max_memory_bytes (%s): %s; %s that was in use there before the relay started is allowed on top",
			l.Why, whose, byteSize(float64(l.Before)))
	}
	var did []string
	if l.Peak > 0 {
		did = append(did, "peak "+byteSize(float64(l.Peak)))
	}
	if l.Hits > 0 {
		did = append(did, fmt.Sprintf("met %s times", count(l.Hits)))
	}
	refused := refusedFull(r)
	switch {
	case l.Kills > 0:
		did = append(did, "the kernel killed the relay")
	case r.Relay.Died != "":
		did = append(did, "the relay ended by itself: "+r.Relay.Died)
	case l.Way == result.LimitRelay && refused > 0: // by no other way does Relay know of the limit
		did = append(did, fmt.Sprintf("Relay refused %s sends with 503", count(refused)))
	default:
		did = append(did, "Relay kept all that came in it")
	}
	return text + "; " + strings.Join(did, ", ")
}

// refusedFull counts the sends that were answered 503.
func refusedFull(r *result.Result) (n uint64) {
	full := result.AnswerOf(503).String()
	for i := range r.Kinds {
		if c := r.Kinds[i].Answers[full]; c != nil {
			n += c.Sends
		}
	}
	return n
}
