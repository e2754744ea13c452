package envelope

import "slices"

// Kind is one entry of the table of kinds: all that the pool, the upstream and
// the ledger need to know of what an envelope carries.
type Kind struct {
	// Name is the kind's name in mixes, stamps and reports: [a-z0-9_-]+.
	Name string
	// Help is one line for help.
	Help string
	// Weight is its share in the mix "mixed"; 0 leaves it out of it.
	Weight float64
	// Features are the feature flags that a project needs for it, or it vanishes in silence.
	Features []string
	// Items are the wire types of its items, as they arrive upstream; the first is the one its elements are in.
	Items []string
	// Category is the number of the one data category by which its outcomes are counted.
	// Source: relay-base-schema/src/data_category.rs of Relay 26.4.0.
	Category int
	// Unit names an element in a report: "item", "log".
	Unit string
	// Elements counts what an item holds: 1, or the entries of a container.
	Elements func(Item) int
	// Silent are the statuses that Relay answers at ingest to this kind without
	// making an outcome, beside those that never make one (see [Kind.Outcome]).
	Silent []int
	// Make builds one envelope of the kind.
	Make func(*Maker) error
}

// Outcome says whether Relay makes an outcome for a send of this kind that it
// answered with status at ingest.
// Source: seen on Relay 26.4: 403, 413 and 503 for every kind, 429 for all but sessions.
func (k *Kind) Outcome(status int) bool {
	switch status {
	case 403, 413, 429, 503:
		return !slices.Contains(k.Silent, status)
	}
	return false
}

// One is [Kind.Elements] of an item that is one element.
func One(Item) int { return 1 }

// Contained is [Kind.Elements] of a container: its item_count.
func Contained(it Item) int { return it.Count }

// Kinds is the table of kinds, in the order in which they are listed everywhere.
//
// The weights are of envelopes, in a sum of 20. They are a judgement of what an
// organisation with web and phone clients sends, not a measurement: each page
// load or start of an app sends a session, every few requests a sampled
// transaction, most of the rest an error now and then; logs come often, but ten in an
// envelope; a cron job checks in twice a run.
var Kinds = []Kind{
	{Name: "errors", Help: "events with chained exceptions, about 20 KB", Weight: 4,
		Items: []string{"event"}, Category: 1, Unit: "item", Elements: One, Make: makeError},
	{Name: "transactions", Help: "transactions with SQL and HTTP spans", Weight: 5,
		Items: []string{"transaction"}, Category: 2, Unit: "item", Elements: One, Make: makeTransaction},
	{Name: "sessions", Help: "single session updates, as browsers and phones send them", Weight: 7,
		Items: []string{"session"}, Category: 5, Unit: "item", Elements: One, Silent: []int{429}, Make: makeSession},
	{Name: "checkins", Help: "check-ins of cron monitors, one an envelope", Weight: 1,
		Items: []string{"check_in"}, Category: 10, Unit: "item", Elements: One, Make: makeCheckin},
	{Name: "logs", Help: "containers of ten logs", Weight: 3,
		Features: []string{"organizations:ourlogs-ingestion"},
		Items:    []string{"log"}, Category: 23, Unit: "log", Elements: Contained, Make: makeLogs},
}

// Find is the kind of that name in the table kinds, or nil.
func Find(kinds []Kind, name string) *Kind {
	for i := range kinds {
		if kinds[i].Name == name {
			return &kinds[i]
		}
	}
	return nil
}
