package upstream

import (
	"sync/atomic"

	"relaybench/envelope"
)

// Stats is what an upstream has counted: the body of GET /stats, with stable
// keys. Names that come from outside are cut at 200 bytes, and once there are
// too many of them (200 item types, 100 routes) the rest is counted as "other".
type Stats struct {
	Registered     uint64            `json:"registered"`     // relays that completed the handshake, each once; at most 1001
	GlobalQueries  uint64            `json:"global_queries"` // answered global-config queries
	ConfigQueries  uint64            `json:"config_queries"` // answered project-config queries
	ConfigKeys     uint64            `json:"config_keys"`    // keys in them
	Requests       uint64            `json:"requests"`       // envelope requests, warm-ups included
	Envelopes      uint64            `json:"envelopes"`      // acknowledged envelopes of the run, repeats included, or unstamped
	WarmUps        uint64            `json:"warm_ups"`       // acknowledged warm-up envelopes
	Unstamped      uint64            `json:"unstamped"`      // of Envelopes, without a stamp of ours
	Repeats        uint64            `json:"repeats"`        // the same stamp and item type again, however the times before were answered
	WireBytes      uint64            `json:"wire_bytes"`     // bodies of Envelopes as received
	PlainBytes     uint64            `json:"plain_bytes"`    // and decoded
	Items          map[string]uint64 `json:"items"`          // acknowledged items by wire type, repeats excluded
	Elements       map[string]uint64 `json:"elements"`       // acknowledged elements by kind, repeats excluded; every kind is there
	RepeatsByKind  map[string]uint64 `json:"repeats_by_kind"`
	Outcomes       []Outcome         `json:"outcomes"`        // sorted
	MetricBuckets  uint64            `json:"metric_buckets"`  // received by the route of global metrics
	Answers        map[string]uint64 `json:"answers"`         // envelope requests by status, or "dropped"
	Malformed      uint64            `json:"malformed"`       // bodies that would not decode or parse, HTTP heads, stamps of another run
	MalformedFirst string            `json:"malformed_first"` // the first one's error, with its offset where it has one
	UnknownRoutes  map[string]uint64 `json:"unknown_routes"`  // method and path, a project's number as {project}
	OpenMax        int               `json:"open_max"`        // most envelope requests open at once
}

// Stats is a copy of the counts so far. Counts that change meanwhile are each
// of their own moment; once nothing arrives any more, they agree.
func (s *Server) Stats() Stats {
	c := s.counts
	st := Stats{
		Registered:    uint64(c.relays.len()),
		GlobalQueries: c.globalQueries.Load(),
		ConfigQueries: c.configQueries.Load(),
		ConfigKeys:    c.configKeys.Load(),
		Requests:      c.requests.Load(),
		Envelopes:     c.envelopes.Load(),
		WarmUps:       c.warmUps.Load(),
		Unstamped:     c.unstamped.Load(),
		Repeats:       c.repeats.Load(),
		WireBytes:     c.wireBytes.Load(),
		PlainBytes:    c.plainBytes.Load(),
		Items:         c.items.counts(),
		Elements:      byKind(s.kinds, c.elements),
		RepeatsByKind: byKind(s.kinds, c.repeatsOf),
		Outcomes:      c.outcomes.list(),
		MetricBuckets: c.metricBuckets.Load(),
		Answers:       c.answers.counts(),
		Malformed:     c.malformed.Load(),
		UnknownRoutes: c.routes.counts(),
		OpenMax:       int(c.open.max.Load()),
	}
	if first := c.malformedFirst.Load(); first != nil {
		st.MalformedFirst = *first
	}
	return st
}

func byKind(kinds []envelope.Kind, of []atomic.Uint64) map[string]uint64 {
	m := make(map[string]uint64, len(kinds))
	for i := range kinds {
		m[kinds[i].Name] = of[i].Load()
	}
	return m
}

// Open is how many envelope requests it has received and not yet answered.
func (s *Server) Open() int { return int(s.counts.open.now.Load()) }

// Changed is the time since Zero at which something last arrived that counts:
// an envelope that is not a warm-up, however it was answered, or an outcome. 0: nothing yet.
func (s *Server) Changed() int64 { return s.counts.changed.Load() }

// WarmArrived says whether warm-up send n has arrived.
func (s *Server) WarmArrived(n uint64) bool { return s.counts.sends.warm.has(n) }

// Fate is what became of a send of the run at the upstream.
type Fate uint8

// The fates of a send.
const (
	Missing Fate = iota // never came
	Kept                // came, and was answered so that Relay keeps it to send it again (502, 503, 504, a dropped connection)
	Arrived             // acknowledged with a 2xx at least once, in all of its kind's item types
	Partly              // acknowledged, but not in all of its kind's item types
	Lost                // answered 4xx, 429 or 500 and never acknowledged: Relay drops it without an outcome
)

// Fate is what became of send seq of a kind (its index in Config.Kinds).
//
// It costs up to two bits a send for each of the item types of a kind, and one
// more where sends were lost.
func (s *Server) Fate(kind int, seq uint64) Fate {
	acked, lost, seen := 0, false, false
	for slot := range s.kinds[kind].Items {
		if s.counts.sends.acked[slot].has(seq) {
			acked++
		}
		lost = lost || s.counts.sends.lost[slot].has(seq)
		seen = seen || s.counts.sends.seen[slot].has(seq)
	}
	switch {
	case acked == len(s.kinds[kind].Items):
		return Arrived
	case acked > 0:
		return Partly
	case lost:
		return Lost
	case seen:
		return Kept
	}
	return Missing
}
