package result

import (
	"cmp"
	"maps"
	"slices"
)

// Ledger is where every send and item went, derived from a result: one row a
// kind, and their sum. No number in it is negative: what came beyond what was
// sent stands in Surplus.
type Ledger struct {
	Kinds []Row
	Total Row
}

// Row is a ledger line by line, for one kind or for all.
type Row struct {
	Kind  string
	Unit  string // what an element is called; "" in the total of several
	Sends Lines
	Items Lines // elements: the same as Sends where an envelope holds one
	// Refused and Failed are sends by answer.
	Refused, Failed map[string]uint64
	Outcomes        []Outcome // of elements, by reason
	Repeats         uint64
	// ArrivedRefused and ArrivedFailed are sends that arrived though their sender was refused or got no answer.
	ArrivedRefused, ArrivedFailed uint64
	// MissingFailed are sends that failed and did not arrive: the relay may
	// never have had them whole. Outcomes may stand for some of them.
	MissingFailed uint64
	// NotConnected are sends of which no byte went out for want of a connection. They are part of NotSent.
	NotConnected uint64
}

// Lines are the lines of the ledger. They hold
//
//	Due  = Sent + NotSent
//	Sent = Accepted + Refused + Failed
//	Sent + Surplus = Arrived + Outcomes + RefusedSilent + Lost + InFlight + Unaccounted
//
// Sends of a container (a kind whose envelopes hold several elements) arrive
// or are missing as a whole, but its outcomes count elements. They tell of
// sends in two cases only: where there are none, and where they are as many as
// the elements that are missing, so that every missing send has one. Else
// OutcomesKnown is false, and Outcomes in sends is an estimate by the elements
// of a missing send, as is what it leaves to InFlight or Unaccounted; Items
// has the exact numbers.
type Lines struct {
	Due, NotSent, Sent        uint64
	Accepted, Refused, Failed uint64
	Arrived, Outcomes         uint64
	RefusedSilent             uint64 // refused, not arrived, by an answer that makes no outcome
	Lost                      uint64
	InFlight                  uint64 // missing, and the relay still lives: what became of it is not known
	Unaccounted               uint64 // missing, after the relay settled or exited
	Surplus                   uint64 // arrived or reported beyond what was sent
	UnaccountedKnown          bool   // false: the drain did not end, InFlight says what is missing
	OutcomesKnown             bool   // false in sends of a container whose outcomes do not tell of sends
}

// Missing is what neither arrived nor was lost, refused or reported.
func (l *Lines) Missing() uint64 { return l.InFlight + l.Unaccounted }

// LedgerOf derives the ledger of a result. A nil result has an empty one, of which nothing is known.
func LedgerOf(r *Result) Ledger {
	if r == nil {
		r = &Result{}
	}
	none := Lines{UnaccountedKnown: r.Drain.ended(), OutcomesKnown: true}
	ledger := Ledger{Total: Row{Sends: none, Items: none, Refused: map[string]uint64{}, Failed: map[string]uint64{}}}
	for i := range r.Kinds {
		row := rowOf(&r.Kinds[i], r.Drain)
		ledger.Kinds = append(ledger.Kinds, row)
		ledger.Total.add(&row)
	}
	if len(ledger.Kinds) == 1 {
		ledger.Total.Unit = ledger.Kinds[0].Unit
	}
	return ledger
}

// rowOf reconciles one kind.
func rowOf(k *Kind, drain Drain) Row {
	row := Row{Kind: k.Name, Unit: k.Unit, Repeats: k.Repeats,
		Refused: map[string]uint64{}, Failed: map[string]uint64{}, Outcomes: slices.Clone(k.Outcomes)}
	var gone missing
	for _, name := range slices.Sorted(maps.Keys(k.Answers)) {
		if c := k.Answers[name]; c != nil {
			gone.add(row.answer(name, c), slices.Contains(k.Silent, name), c)
		}
	}
	sends, items := &row.Sends, &row.Items
	sends.RefusedSilent, items.RefusedSilent = gone.silent, gone.silentItems
	sends.due(k.Due)
	items.due(k.DueItems)

	items.Arrived = k.Elements
	for _, o := range k.Outcomes {
		items.Outcomes += o.Quantity
	}
	items.OutcomesKnown = true
	items.settle(drain)

	switch missing := subtract(sends.Sent, sends.told()); {
	case sends.Due == items.Due && sends.Sent == items.Sent:
		sends.Outcomes, sends.OutcomesKnown = items.Outcomes, true
	case items.Outcomes == 0 || missing == 0:
		sends.OutcomesKnown = true
	case items.Missing() == 0 && items.Surplus == 0:
		sends.Outcomes, sends.OutcomesKnown = missing, true
	default:
		sends.Outcomes = min(missing, gone.sendsOf(items.Outcomes))
	}
	sends.settle(drain)
	return row
}

// missing is what neither arrived nor was lost of those that were answered
// alike: silently, so that no outcome stands for it, or not.
type missing struct {
	silent, silentItems, other, otherItems uint64
}

func (m *missing) add(sent, silent bool, c *Cell) {
	switch {
	case !sent:
	case silent:
		m.silent += c.Missing
		m.silentItems += c.MissingItems
	default:
		m.other += c.Missing
		m.otherItems += c.MissingItems
	}
}

// sendsOf is how many of the missing sends a number of elements makes up, rounded.
func (m *missing) sendsOf(elements uint64) uint64 {
	if m.otherItems == 0 {
		return 0
	}
	return uint64(float64(elements)*float64(m.other)/float64(m.otherItems) + 0.5)
}

// answer counts the sends that were answered alike, and says whether they were sent.
func (r *Row) answer(name string, c *Cell) (sent bool) {
	switch name {
	case NotSent.String():
		return false
	case FailConnect.String():
		r.NotConnected += c.Sends
		return false
	}
	r.Sends.Sent += c.Sends
	r.Items.Sent += c.Items
	r.Sends.Arrived += c.Arrived
	r.Sends.Lost += c.Lost
	r.Items.Lost += c.LostItems
	switch {
	case name == Accepted.String():
		r.Sends.Accepted += c.Sends
		r.Items.Accepted += c.Items
	case isFailure(name):
		r.Sends.Failed += c.Sends
		r.Items.Failed += c.Items
		r.Failed[name] += c.Sends
		r.ArrivedFailed += c.Arrived
		r.MissingFailed += c.Missing
	default:
		r.Sends.Refused += c.Sends
		r.Items.Refused += c.Items
		r.Refused[name] += c.Sends
		r.ArrivedRefused += c.Arrived
	}
	return true
}

// isFailure says whether the answer of that name is no status.
func isFailure(name string) bool {
	for a := range firstStatus {
		if a.Failed() && a.String() == name {
			return true
		}
	}
	return false
}

// due sets what was due; what was sent was due in any case.
func (l *Lines) due(due uint64) {
	l.Due = max(due, l.Sent)
	l.NotSent = l.Due - l.Sent
}

// told is what is known of sends without outcomes.
func (l *Lines) told() uint64 { return l.Arrived + l.RefusedSilent + l.Lost }

// settle names what is missing, or over, by how the drain ended.
func (l *Lines) settle(drain Drain) {
	told := l.told() + l.Outcomes
	l.Surplus = subtract(told, l.Sent)
	l.UnaccountedKnown = drain.ended()
	if missing := subtract(l.Sent, told); l.UnaccountedKnown {
		l.Unaccounted = missing
	} else {
		l.InFlight = missing
	}
}

// ended says whether the relay was done with all that it had: what is missing then does not come any more.
func (d Drain) ended() bool {
	switch d {
	case Drained, Settled, DrainExited:
		return true
	}
	return false
}

// subtract is a - b, or 0 where that is negative.
func subtract(a, b uint64) uint64 { return a - min(a, b) }

// add adds a kind's row to the total.
func (r *Row) add(o *Row) {
	r.Sends.add(&o.Sends)
	r.Items.add(&o.Items)
	for name, n := range o.Refused {
		r.Refused[name] += n
	}
	for name, n := range o.Failed {
		r.Failed[name] += n
	}
	r.Outcomes = mergeOutcomes(r.Outcomes, o.Outcomes)
	r.Repeats += o.Repeats
	r.ArrivedRefused += o.ArrivedRefused
	r.ArrivedFailed += o.ArrivedFailed
	r.MissingFailed += o.MissingFailed
	r.NotConnected += o.NotConnected
}

func (l *Lines) add(o *Lines) {
	l.Due += o.Due
	l.NotSent += o.NotSent
	l.Sent += o.Sent
	l.Accepted += o.Accepted
	l.Refused += o.Refused
	l.Failed += o.Failed
	l.Arrived += o.Arrived
	l.Outcomes += o.Outcomes
	l.RefusedSilent += o.RefusedSilent
	l.Lost += o.Lost
	l.InFlight += o.InFlight
	l.Unaccounted += o.Unaccounted
	l.Surplus += o.Surplus
	l.UnaccountedKnown = l.UnaccountedKnown && o.UnaccountedKnown
	l.OutcomesKnown = l.OutcomesKnown && o.OutcomesKnown
}

// mergeOutcomes adds quantities of outcomes that are alike in all else, sorted.
func mergeOutcomes(a, b []Outcome) []Outcome {
	sum := map[Outcome]uint64{}
	for _, o := range slices.Concat(a, b) {
		n := o.Quantity
		o.Quantity = 0
		sum[o] += n
	}
	var merged []Outcome
	for o, n := range sum {
		o.Quantity = n
		merged = append(merged, o)
	}
	slices.SortFunc(merged, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Reason, b.Reason))
	})
	return merged
}
