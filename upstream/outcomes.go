package upstream

import (
	"cmp"
	"slices"
	"sync"
)

// Outcome is a count of outcomes that Relay reported.
type Outcome struct {
	Outcome  int    `json:"outcome"`  // 1 filtered, 2 rate limited, 3 invalid, 4 abuse, 5 client discard, 6 cardinality
	Category int    `json:"category"` // data category, or -1 where Relay named none
	Reason   string `json:"reason"`   // free text; "other" once there were a thousand different outcomes
	Quantity uint64 `json:"quantity"`
}

// outcomes counts outcomes by all of their fields.
type outcomes struct {
	limit int // distinct outcomes; beyond it, reasons are not kept
	mu    sync.Mutex
	of    map[Outcome]uint64 // keys have no quantity
}

func newOutcomes(limit int) outcomes {
	return outcomes{limit: limit, of: map[Outcome]uint64{}}
}

// report is one outcome as Relay sends it. Fields that do not matter here are left out.
// Source: relay-server/src/services/outcome.rs of Relay 26.4.0.
type report struct {
	Outcome  uint8   `json:"outcome"`
	Category *uint8  `json:"category"`
	Reason   string  `json:"reason"`
	Quantity *uint32 `json:"quantity"` // 1 where absent
}

func (o *outcomes) add(reports []report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range reports {
		key := Outcome{Outcome: int(r.Outcome), Category: -1, Reason: cut(r.Reason)}
		if r.Category != nil {
			key.Category = int(*r.Category)
		}
		if _, known := o.of[key]; !known && len(o.of) >= o.limit {
			key.Reason = otherName
		}
		quantity := uint64(1)
		if r.Quantity != nil {
			quantity = uint64(*r.Quantity)
		}
		o.of[key] += quantity
	}
}

// list is the counts so far, sorted.
func (o *outcomes) list() []Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]Outcome, 0, len(o.of))
	for key, quantity := range o.of {
		key.Quantity = quantity
		list = append(list, key)
	}
	slices.SortFunc(list, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
