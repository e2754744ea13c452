package upstream

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"relaybench/envelope"
)

// maxSlots bounds the wire types of one kind: each has a slot, its index in Kind.Items.
const maxSlots = 8

// counts is all that has been counted. Its fields are atomic, each by itself.
type counts struct {
	requests, envelopes, warmUps, unstamped, repeats atomic.Uint64
	wireBytes, plainBytes                            atomic.Uint64
	elements, repeatsOf                              []atomic.Uint64 // by kind
	items, answers                                   *tally

	stamped atomic.Uint64 // envelope requests with a stamp of the run
	changed atomic.Int64
	open    gauge

	outcomes      outcomes
	metricBuckets atomic.Uint64

	relays                                   *tally // handshakes by relay
	globalQueries, configQueries, configKeys atomic.Uint64

	malformed      atomic.Uint64
	malformedFirst atomic.Pointer[string]
	routes         *tally // unknown ones

	sends sends
}

// sends is what became of each send: a bit per slot and state. It has no
// bitmaps by kind, as the number of a send belongs to one kind.
type sends struct {
	seen, acked, lost [maxSlots]bitmap
	warm              bitmap
}

func newCounts(kinds int) *counts {
	return &counts{
		elements:  make([]atomic.Uint64, kinds),
		repeatsOf: make([]atomic.Uint64, kinds),
		items:     newTally(200),
		answers:   newTally(200),
		relays:    newTally(1000),
		routes:    newTally(100),
		outcomes:  newOutcomes(1000),
	}
}

// change notes that something that counts arrived at at.
func (c *counts) change(at int64) {
	for {
		last := c.changed.Load()
		if last >= at || c.changed.CompareAndSwap(last, at) {
			return
		}
	}
}

// count counts a parsed envelope and says how to answer it. An error is a
// stamp that is not of this run, of which nothing is counted.
func (s *Server) count(e *envelope.Envelope, wire, plain int, at int64) (Treatment, error) {
	if !e.Stamped {
		s.counts.change(at)
		s.counts.unstamped.Add(1)
		s.acknowledge(wire, plain)
		for i := range e.Items {
			s.counts.items.add(e.Items[i].Type, 1)
		}
		return Treatment{Delay: s.latency}, nil
	}
	if e.Stamp.Seq >= maxSeq {
		return Treatment{}, fmt.Errorf("stamp: number %d is out of range", e.Stamp.Seq)
	}
	if e.Stamp.Warm {
		s.counts.sends.warm.set(e.Stamp.Seq)
		s.counts.warmUps.Add(1)
		return Treatment{}, nil
	}
	kind := s.kind(e.Stamp.Kind)
	if kind < 0 {
		return Treatment{}, fmt.Errorf("stamp: unknown kind %q", cut(string(e.Stamp.Kind)))
	}
	return s.countSend(kind, e, wire, plain, at), nil
}

// kind is the index of the kind of that name, or -1.
func (s *Server) kind(name []byte) int {
	for i := range s.kinds {
		if s.kinds[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// acknowledge counts an acknowledged envelope.
func (s *Server) acknowledge(wire, plain int) {
	s.counts.envelopes.Add(1)
	s.counts.wireBytes.Add(uint64(wire))
	s.counts.plainBytes.Add(uint64(plain))
}

// countSend counts an envelope of the run. It holds one part of a send or all
// of it: the slots of its items' types, each of which it marks once, however
// many items have that type.
func (s *Server) countSend(kind int, e *envelope.Envelope, wire, plain int, at int64) Treatment {
	c, seq := s.counts, e.Stamp.Seq
	c.change(at)
	request := Request{N: c.stamped.Add(1) - 1, Seq: seq, At: at}
	part := s.slots(kind, e)
	if again := uint64(bits.OnesCount8(part &^ mark(&c.sends.seen, part, seq))); again > 0 {
		request.Attempt = 1
		c.repeats.Add(again)
		c.repeatsOf[kind].Add(again)
	}
	var t Treatment
	if s.fault != nil {
		t = s.fault(request)
	}
	t.Delay += s.latency
	switch {
	case t.acknowledges():
		first := mark(&c.sends.acked, part, seq)
		s.acknowledge(wire, plain)
		s.countItems(kind, e, part, first)
		if first&1 != 0 && s.arrived != nil {
			s.arrived(kind, e.Stamp.Due, at)
		}
	case t.loses():
		mark(&c.sends.lost, part, seq)
	}
	return t
}

// slots is the set of slots that an envelope's items are in.
func (s *Server) slots(kind int, e *envelope.Envelope) (set uint8) {
	for i := range e.Items {
		if slot := s.slot(kind, e.Items[i].Type); slot >= 0 {
			set |= 1 << slot
		} else {
			s.sayOnce("item", "item of type %q in an envelope of %s", cut(string(e.Items[i].Type)), s.kinds[kind].Name)
		}
	}
	return set
}

// slot is the slot of an item type in a kind, or -1.
func (s *Server) slot(kind int, typ []byte) int {
	for i, t := range s.kinds[kind].Items {
		if t == string(typ) {
			return i
		}
	}
	return -1
}

// mark sets a send's bit in each slot of a set, and is the set of those that were clear.
func mark(maps *[maxSlots]bitmap, set uint8, seq uint64) (clear uint8) {
	for left := set; left != 0; left &= left - 1 {
		if slot := bits.TrailingZeros8(left); !maps[slot].set(seq) {
			clear |= 1 << slot
		}
	}
	return clear
}

// countItems counts the items of an acknowledged envelope in the slots that
// are acknowledged for the first time. Those of a type that the kind does not
// have go with the envelope: they count unless all else in it is a repeat.
func (s *Server) countItems(kind int, e *envelope.Envelope, part, first uint8) {
	if part != 0 && first == 0 {
		return
	}
	for i := range e.Items {
		slot := s.slot(kind, e.Items[i].Type)
		if slot >= 0 && first>>slot&1 == 0 {
			continue
		}
		s.counts.items.add(e.Items[i].Type, 1)
		if n := 0; slot == 0 {
			if n = s.kinds[kind].Elements(e.Items[i]); n > 0 {
				s.counts.elements[kind].Add(uint64(n))
			}
		}
	}
}

// gauge is a level and the highest that it reached.
type gauge struct{ now, max atomic.Int64 }

func (g *gauge) up() {
	now := g.now.Add(1)
	for {
		top := g.max.Load()
		if now <= top || g.max.CompareAndSwap(top, now) {
			return
		}
	}
}

func (g *gauge) down() { g.now.Add(-1) }
