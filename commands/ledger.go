package commands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"relaybench/commands/table"
	"relaybench/harness/result"
)

// ledgerLines are the lines of a ledger, in the order in which they add up.
var ledgerLines = []struct {
	key, say string
	of       func(*result.Lines) table.Cell
}{
	{"due", "due", func(l *result.Lines) table.Cell { return counted(l.Due) }},
	{"not_sent", "  not sent", func(l *result.Lines) table.Cell { return counted(l.NotSent) }},
	{"sent", "  sent", func(l *result.Lines) table.Cell { return counted(l.Sent) }},
	{"accepted", "    accepted", func(l *result.Lines) table.Cell { return counted(l.Accepted) }},
	{"refused", "    refused", func(l *result.Lines) table.Cell { return counted(l.Refused) }},
	{"failed", "    failed", func(l *result.Lines) table.Cell { return counted(l.Failed) }},
	{"arrived", "    arrived", func(l *result.Lines) table.Cell { return counted(l.Arrived) }},
	{"outcomes", "    outcomes", func(l *result.Lines) table.Cell { return known(l.Outcomes, l.OutcomesKnown) }},
	{"refused_silent", "    refused without outcome", func(l *result.Lines) table.Cell { return counted(l.RefusedSilent) }},
	{"lost", "    lost upstream", func(l *result.Lines) table.Cell { return counted(l.Lost) }},
	{"in_flight", "    in flight", func(l *result.Lines) table.Cell { return known(l.InFlight, l.OutcomesKnown) }},
	{"unaccounted", "    unaccounted", func(l *result.Lines) table.Cell {
		return known(l.Unaccounted, l.UnaccountedKnown && l.OutcomesKnown)
	}},
	{"surplus", "beyond what was sent", func(l *result.Lines) table.Cell { return counted(l.Surplus) }},
}

// lineOf is one line of a ledger by its key.
func lineOf(key string, l *result.Lines) table.Cell {
	for _, line := range ledgerLines {
		if line.key == key {
			return line.of(l)
		}
	}
	return table.Cell{}
}

func counted(n uint64) table.Cell { return table.Uint(n).As(count(n)) }

func known(n uint64, ok bool) table.Cell {
	if !ok {
		return table.Cell{}
	}
	return counted(n)
}

// holds says whether the sends of a row hold several elements each.
func holds(r *result.Row) bool { return r.Items.Due != r.Sends.Due || r.Items.Sent != r.Sends.Sent }

// summaryLedger is the ledger for a summary: the lines that are looked at
// first; what the others say, ledgerNotes does.
func summaryLedger(l result.Ledger) *table.Table {
	keys := []string{"due", "sent", "accepted", "refused", "failed", "arrived", "outcomes", "unaccounted"}
	t := &table.Table{Columns: []table.Column{{Key: "kind", Head: "ledger"}}}
	for _, k := range keys {
		t.Columns = append(t.Columns, table.Column{Key: k, Right: true})
	}
	add := func(name string, lines *result.Lines) {
		row := []table.Cell{table.Text(name)}
		for _, k := range keys {
			row = append(row, lineOf(k, lines))
		}
		t.Add(row...)
	}
	for i := range l.Kinds {
		k := &l.Kinds[i]
		add(k.Kind, &k.Sends)
		if holds(k) {
			add("  in "+k.Unit+"s", &k.Items)
		}
	}
	if len(l.Kinds) != 1 {
		add("all sends", &l.Total.Sends)
	}
	return t
}

// ledgerNotes are what a ledger has beside the columns of a summary, where it is not zero.
func ledgerNotes(l result.Ledger) []string {
	var notes []string
	t := &l.Total
	add := func(n uint64, what string) {
		if n > 0 {
			notes = append(notes, count(n)+" "+what)
		}
	}
	reasons := map[string]uint64{}
	for _, o := range t.Outcomes {
		reasons[outcomeText(o)] += o.Quantity
	}
	if s := tallied(reasons, " "); s != "" {
		notes = append(notes, "outcomes, in items: "+s)
	}
	if s := tallied(t.Refused, " × "); s != "" {
		notes = append(notes, "refused: "+s)
	}
	if s := tallied(t.Failed, " × "); s != "" {
		notes = append(notes, "failed: "+s)
	}
	add(t.Sends.Lost, "lost upstream: answered there with 4xx or 500")
	add(t.Sends.RefusedSilent, "refused with an answer that makes no outcome")
	add(t.Sends.InFlight, "in flight when the drain was cut off")
	add(t.ArrivedRefused, "arrived though they were refused")
	add(t.ArrivedFailed, "arrived though their sender got no answer")
	add(t.MissingFailed, "failed and did not arrive: the relay may never have had them whole")
	add(t.NotConnected, "not sent for want of a connection")
	add(t.Repeats, "came again (repeats)")
	add(t.Sends.Surplus, "arrived or were reported beyond what was sent")
	return notes
}

// outcomeName is an outcome's name by its number.
// Source: relay-server/src/services/outcome.rs of Relay 26.4.
func outcomeName(outcome int) string {
	names := []string{"accepted", "filtered", "rate limited", "invalid", "abuse", "client discard", "cardinality limited"}
	if outcome >= 0 && outcome < len(names) {
		return names[outcome]
	}
	return fmt.Sprintf("outcome %d", outcome)
}

func outcomeText(o result.Outcome) string {
	if o.Reason == "" {
		return outcomeName(o.Outcome)
	}
	return outcomeName(o.Outcome) + " (" + table.Clean(o.Reason) + ")"
}

// tallied are counts by name, as text.
func tallied(counts map[string]uint64, by string) string {
	var parts []string
	for _, name := range sorted(counts) {
		if counts[name] > 0 {
			parts = append(parts, count(counts[name])+by+name)
		}
	}
	return strings.Join(firstOf(parts, 4, "more"), ", ")
}

// firstOf is at most n of the texts, and how many more there are.
func firstOf(texts []string, n int, more string) []string {
	if len(texts) <= n {
		return texts
	}
	return append(slices.Clone(texts[:n]), fmt.Sprintf("%d %s", len(texts)-n, more))
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ledgerText is the whole ledger for a person: lines down, kinds across, in
// sends, and in items where a send holds several.
func ledgerText(l result.Ledger) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "line", Head: "ledger"}}}
	var cells []*result.Lines
	add := func(head string, lines *result.Lines) {
		t.Columns = append(t.Columns, table.Column{Key: head, Right: true})
		cells = append(cells, lines)
	}
	several := false
	for i := range l.Kinds {
		k := &l.Kinds[i]
		add(k.Kind, &k.Sends)
		if holds(k) {
			add("in "+k.Unit+"s", &k.Items)
			several = true
		}
	}
	if len(l.Kinds) != 1 {
		add("all sends", &l.Total.Sends)
		if several {
			add("all items", &l.Total.Items)
		}
	}
	for _, line := range ledgerLines {
		row := []table.Cell{table.Text(line.say)}
		for _, c := range cells {
			row = append(row, line.of(c))
		}
		t.Add(row...)
	}
	return t
}

// ledgerRows is the ledger with a row for each kind in sends and in items, for CSV.
func ledgerRows(l result.Ledger) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "kind"}, {Key: "in"}}}
	for _, line := range ledgerLines {
		t.Columns = append(t.Columns, table.Column{Key: line.key, Right: true})
	}
	add := func(kind, in string, lines *result.Lines) {
		row := []table.Cell{table.Text(kind), table.Text(in)}
		for _, line := range ledgerLines {
			row = append(row, line.of(lines))
		}
		t.Add(row...)
	}
	for i := range l.Kinds {
		add(l.Kinds[i].Kind, "sends", &l.Kinds[i].Sends)
		add(l.Kinds[i].Kind, "items", &l.Kinds[i].Items)
	}
	add("total", "sends", &l.Total.Sends)
	add("total", "items", &l.Total.Items)
	return t
}

// ledgerJSON is a ledger as programs read it. Its keys are stable.
type ledgerJSON struct {
	Kinds []rowJSON `json:"kinds"`
	Total rowJSON   `json:"total"`
}

type rowJSON struct {
	Kind           string            `json:"kind"`
	Unit           string            `json:"unit"`
	Sends          *table.Table      `json:"sends"`
	Items          *table.Table      `json:"items"`
	RefusedBy      map[string]uint64 `json:"refused_by"`
	FailedBy       map[string]uint64 `json:"failed_by"`
	OutcomesBy     []outcomeJSON     `json:"outcomes_by"`
	Repeats        uint64            `json:"repeats"`
	ArrivedRefused uint64            `json:"arrived_refused"`
	ArrivedFailed  uint64            `json:"arrived_failed"`
	MissingFailed  uint64            `json:"missing_failed"`
	NotConnected   uint64            `json:"not_connected"`
}

type outcomeJSON struct {
	Outcome  string `json:"outcome"`
	Category int    `json:"category"`
	Reason   string `json:"reason"`
	Quantity uint64 `json:"quantity"`
}

func newLedgerJSON(l result.Ledger) ledgerJSON {
	j := ledgerJSON{Kinds: []rowJSON{}, Total: newRowJSON(&l.Total)}
	j.Total.Kind = "total"
	for i := range l.Kinds {
		j.Kinds = append(j.Kinds, newRowJSON(&l.Kinds[i]))
	}
	return j
}

func newRowJSON(r *result.Row) rowJSON {
	lines := func(l *result.Lines) *table.Table {
		t := table.Record()
		for _, line := range ledgerLines {
			t.Field(line.key, line.say, line.of(l))
		}
		return t
	}
	j := rowJSON{Kind: r.Kind, Unit: r.Unit, Sends: lines(&r.Sends), Items: lines(&r.Items),
		RefusedBy: r.Refused, FailedBy: r.Failed, OutcomesBy: []outcomeJSON{}, Repeats: r.Repeats,
		ArrivedRefused: r.ArrivedRefused, ArrivedFailed: r.ArrivedFailed, MissingFailed: r.MissingFailed, NotConnected: r.NotConnected}
	for _, o := range r.Outcomes {
		j.OutcomesBy = append(j.OutcomesBy, outcomeJSON{outcomeName(o.Outcome), o.Category, o.Reason, o.Quantity})
	}
	return j
}
