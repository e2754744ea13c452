package harness

import (
	"slices"

	"relaybench/envelope"
	"relaybench/harness/result"
	"relaybench/upstream"
)

// outcomeClient is the outcome of what clients themselves report as lost.
// Source: relay-server/src/services/outcome.rs of Relay 26.4.
const outcomeClient = 5

// poolFacts is what was sent from.
func (x *run) poolFacts() result.Pool {
	f := result.Pool{Payload: envelope.PayloadVersion, Envelopes: x.pool.Len(), WarmUps: x.res.Pool.WarmUps}
	agents, sent := map[string]bool{}, map[string]bool{}
	for i := range uint64(f.Envelopes) {
		f.Bytes += uint64(x.pool.Size(i))
		agent := string(x.pool.UserAgent(i))
		agents[agent] = true
		if x.sent(i) {
			sent[agent] = true
		}
	}
	if x.plan.Folder != nil {
		for _, n := range x.plan.Folder.Files {
			f.Files += n
		}
	}
	f.Agents, f.AgentsSent = len(agents), len(sent)
	return f
}

// sent says that envelope i of the pool was sent, at least once.
func (x *run) sent(i uint64) bool {
	if x.tally == nil {
		return false
	}
	for seq := i; seq < x.tally.Log.End(); seq += uint64(x.pool.Len()) {
		if x.tally.Log.Answer(seq).Sent() {
			return true
		}
	}
	return false
}

// upstreamFacts is what the upstream counted, the warm-up's share taken off.
func (x *run) upstreamFacts() result.Upstream {
	st := x.up.Stats()
	u := result.Upstream{Envelopes: st.Envelopes, Repeats: st.Repeats, WireBytes: st.WireBytes, PlainBytes: st.PlainBytes,
		Items: st.Items, Answers: st.Answers, Unstamped: st.Unstamped, Malformed: st.Malformed, MalformedFirst: st.MalformedFirst,
		UnknownRoutes: st.UnknownRoutes, OpenMax: st.OpenMax, WarmUps: st.WarmUps}
	for _, o := range x.outcomes(st) {
		switch {
		case o.Outcome == outcomeClient:
			u.ClientReported = append(u.ClientReported, o)
		case !slices.ContainsFunc(x.index, func(i int) bool { return x.kinds[i].Category == o.Category }):
			u.OtherOutcomes = append(u.OtherOutcomes, o)
		}
	}
	return u
}

// outcomes are those of the load: what the warm-up had made is taken off.
func (x *run) outcomes(st upstream.Stats) []result.Outcome {
	type key struct {
		outcome, category int
		reason            string
	}
	before := map[key]uint64{}
	for _, o := range x.base.Outcomes {
		before[key{o.Outcome, o.Category, o.Reason}] = o.Quantity
	}
	var out []result.Outcome
	for _, o := range st.Outcomes {
		if n := o.Quantity - before[key{o.Outcome, o.Category, o.Reason}]; n > 0 {
			out = append(out, result.Outcome{Outcome: o.Outcome, Category: o.Category, Reason: o.Reason, Quantity: n})
		}
	}
	return out
}
