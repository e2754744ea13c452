package result

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// one is a cell of sends of one element each.
func one(sends, arrived, lost uint64) *Cell { return of(1, sends, arrived, lost) }

// of is a cell of sends of so many elements each.
func of(elements, sends, arrived, lost uint64) *Cell {
	missing := sends - arrived - lost
	return &Cell{Sends: sends, Items: elements * sends, Arrived: arrived, ArrivedItems: elements * arrived,
		Lost: lost, LostItems: elements * lost, Missing: missing, MissingItems: elements * missing}
}

func outcomes(quantity uint64) []Outcome {
	return []Outcome{{Outcome: 1, Category: 1, Reason: "localhost", Quantity: quantity}}
}

// known are the lines of a kind whose drain ended.
func known(l Lines) Lines { l.UnaccountedKnown, l.OutcomesKnown = true, true; return l }

func TestLedgerOfOneElementEach(t *testing.T) {
	forbidden, limited, timeout := "403 Forbidden", "429 Too Many Requests", FailTimeout.String()
	for _, c := range []struct {
		name  string
		kind  Kind
		drain Drain
		want  Lines
	}{
		{"nothing sent", Kind{}, Drained, known(Lines{})},
		{"all arrived", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 9, 0)}, Elements: 9}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 9})},
		{"not all sent", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(7, 7, 0)}, Elements: 7}, Drained,
			known(Lines{Due: 9, NotSent: 2, Sent: 7, Accepted: 7, Arrived: 7})},
		{"swallowed", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 2, 0)}, Elements: 2}, Settled,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 2, Unaccounted: 7})},
		{"the relay died", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(5, 2, 0), "closed": one(1, 0, 0), "connect": one(3, 0, 0)}, Elements: 2}, DrainExited,
			known(Lines{Due: 9, NotSent: 3, Sent: 6, Accepted: 5, Failed: 1, Arrived: 2, Unaccounted: 4})},
		{"not drained", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 2, 0)}, Elements: 2}, NotDrained,
			Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 2, InFlight: 7, OutcomesKnown: true}},
		{"no drain", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 2, 0)}, Elements: 2}, DrainNone,
			Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 2, InFlight: 7, OutcomesKnown: true}},
		{"cannot be seen", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 2, 0)}, Elements: 2}, DrainUnknown,
			Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 2, InFlight: 7, OutcomesKnown: true}},
		{"lost upstream", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 8, 1)}, Elements: 8}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 8, Lost: 1})},
		{"filtered", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 4, 0)}, Elements: 4, Outcomes: outcomes(5)}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 4, Outcomes: 5})},
		{"refused with an outcome each", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(4, 4, 0), forbidden: one(5, 0, 0)}, Elements: 4, Outcomes: outcomes(5)}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 4, Refused: 5, Arrived: 4, Outcomes: 5})},
		{"quota of 0", Kind{Due: 300, Answers: map[string]*Cell{"accepted": one(5, 0, 0), limited: one(295, 0, 0)}, Outcomes: outcomes(300)}, Drained,
			known(Lines{Due: 300, Sent: 300, Accepted: 5, Refused: 295, Outcomes: 300})},
		{"refused in silence", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(4, 4, 0), limited: one(5, 0, 0)}, Silent: []string{limited}, Elements: 4}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 4, Refused: 5, Arrived: 4, RefusedSilent: 5})},
		{"refused in silence, and arrived", Kind{Due: 9, Answers: map[string]*Cell{limited: one(9, 6, 1)}, Silent: []string{limited}, Elements: 6}, Drained,
			known(Lines{Due: 9, Sent: 9, Refused: 9, Arrived: 6, RefusedSilent: 2, Lost: 1})},
		{"timed out, and arrived", Kind{Due: 9, Answers: map[string]*Cell{timeout: one(9, 8, 0)}, Elements: 8}, Settled,
			known(Lines{Due: 9, Sent: 9, Failed: 9, Arrived: 8, Unaccounted: 1})},
		{"outcomes beyond what was sent", Kind{Due: 9, Answers: map[string]*Cell{"accepted": one(9, 7, 0)}, Elements: 7, Outcomes: outcomes(5)}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 7, Outcomes: 5, Surplus: 3})},
		{"sent without being due", Kind{Due: 3, Answers: map[string]*Cell{"accepted": one(9, 9, 0)}, Elements: 9}, Drained,
			known(Lines{Due: 9, Sent: 9, Accepted: 9, Arrived: 9})},
		{"a log's own not sent", Kind{Due: 9, Answers: map[string]*Cell{"not sent": one(2, 0, 0), "accepted": one(7, 7, 0), "closed": nil}, Elements: 7}, Drained,
			known(Lines{Due: 9, NotSent: 2, Sent: 7, Accepted: 7, Arrived: 7})},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.kind.DueItems = c.kind.Due
			l := LedgerOf(&Result{Kinds: []Kind{c.kind}, Drain: c.drain})
			for _, p := range []struct {
				what string
				got  Lines
			}{{"sends", l.Kinds[0].Sends}, {"items", l.Kinds[0].Items}, {"total sends", l.Total.Sends}, {"total items", l.Total.Items}} {
				if d := cmp.Diff(c.want, p.got); d != "" {
					t.Errorf("%s (-want +got):\n%s", p.what, d)
				}
			}
		})
	}
}

func TestLedgerOfContainers(t *testing.T) {
	for _, c := range []struct {
		name         string
		kind         Kind
		sends, items Lines
	}{
		{"no outcomes: what is missing is unaccounted",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 9, 7, 1)}, Elements: 70},
			known(Lines{Due: 10, NotSent: 1, Sent: 9, Accepted: 9, Arrived: 7, Lost: 1, Unaccounted: 1}),
			known(Lines{Due: 100, NotSent: 10, Sent: 90, Accepted: 90, Arrived: 70, Lost: 10, Unaccounted: 10})},
		{"single elements lost to outcomes: every send arrived",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 10, 10, 0)}, Elements: 94, Outcomes: outcomes(6)},
			known(Lines{Due: 10, Sent: 10, Accepted: 10, Arrived: 10}),
			known(Lines{Due: 100, Sent: 100, Accepted: 100, Arrived: 94, Outcomes: 6})},
		{"outcomes for whole containers and for single elements: each missing send has one",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 10, 7, 0)}, Elements: 66, Outcomes: outcomes(34)},
			known(Lines{Due: 10, Sent: 10, Accepted: 10, Arrived: 7, Outcomes: 3}),
			known(Lines{Due: 100, Sent: 100, Accepted: 100, Arrived: 66, Outcomes: 34})},
		{"outcomes for some of what is missing: an estimate in sends",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 10, 7, 0)}, Elements: 70, Outcomes: outcomes(20)},
			Lines{Due: 10, Sent: 10, Accepted: 10, Arrived: 7, Outcomes: 2, Unaccounted: 1, UnaccountedKnown: true},
			known(Lines{Due: 100, Sent: 100, Accepted: 100, Arrived: 70, Outcomes: 20, Unaccounted: 10})},
		{"more outcomes than elements are missing: a surplus in items",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 10, 7, 0)}, Elements: 70, Outcomes: outcomes(40)},
			Lines{Due: 10, Sent: 10, Accepted: 10, Arrived: 7, Outcomes: 3, UnaccountedKnown: true},
			known(Lines{Due: 100, Sent: 100, Accepted: 100, Arrived: 70, Outcomes: 40, Surplus: 10})},
		{"refused, with outcomes and in silence",
			Kind{Due: 10, DueItems: 100, Answers: map[string]*Cell{"accepted": of(10, 4, 4, 0), "400 Bad Request": of(10, 1, 0, 0), "403 Forbidden": of(10, 5, 0, 0)},
				Silent: []string{"400 Bad Request"}, Elements: 40, Outcomes: outcomes(50)},
			known(Lines{Due: 10, Sent: 10, Accepted: 4, Refused: 6, Arrived: 4, Outcomes: 5, RefusedSilent: 1}),
			known(Lines{Due: 100, Sent: 100, Accepted: 40, Refused: 60, Arrived: 40, Outcomes: 50, RefusedSilent: 10})},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := LedgerOf(&Result{Kinds: []Kind{c.kind}, Drain: Settled}).Kinds[0]
			if d := cmp.Diff(c.sends, row.Sends); d != "" {
				t.Errorf("sends (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.items, row.Items); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestLedgerTotal(t *testing.T) {
	r := &Result{Drain: Settled, Kinds: []Kind{
		{Name: "errors", Unit: "item", Due: 10, DueItems: 10, Elements: 6, Repeats: 2, Outcomes: outcomes(2),
			Answers: map[string]*Cell{"accepted": one(5, 4, 0), "413 Request Entity Too Large": one(2, 1, 0), "timeout": one(3, 1, 0)}},
		{Name: "logs", Unit: "log", Due: 4, DueItems: 40, Elements: 20, Repeats: 1,
			Outcomes: []Outcome{{3, 1, "no_data", 7}, {1, 1, "localhost", 3}},
			Answers:  map[string]*Cell{"accepted": of(10, 1, 1, 0), "timeout": of(10, 1, 1, 0), "connect": of(10, 2, 0, 0)}},
	}}
	got := LedgerOf(r)
	want := Row{
		Sends:   known(Lines{Due: 14, NotSent: 2, Sent: 12, Accepted: 6, Refused: 2, Failed: 4, Arrived: 8, Outcomes: 2, Unaccounted: 2}),
		Items:   known(Lines{Due: 50, NotSent: 20, Sent: 30, Accepted: 15, Refused: 2, Failed: 13, Arrived: 26, Outcomes: 12, Unaccounted: 2, Surplus: 10}),
		Refused: map[string]uint64{"413 Request Entity Too Large": 2}, Failed: map[string]uint64{"timeout": 4},
		Outcomes: []Outcome{{1, 1, "localhost", 5}, {3, 1, "no_data", 7}},
		Repeats:  3, ArrivedRefused: 1, ArrivedFailed: 2, MissingFailed: 2, NotConnected: 2,
	}
	if d := cmp.Diff(want, got.Total); d != "" {
		t.Errorf("total (-want +got):\n%s", d)
	}
	if got := LedgerOf(&Result{Kinds: r.Kinds[1:]}).Total.Unit; got != "log" {
		t.Errorf("unit of the total of one kind: got %q, want %q", got, "log")
	}
}

func TestLedgerOfNothing(t *testing.T) {
	for _, r := range []*Result{nil, {}} {
		got := LedgerOf(r)
		if len(got.Kinds) != 0 || got.Total.Sends != (Lines{OutcomesKnown: true}) {
			t.Errorf("got %+v, want no kinds, zeros, and unaccounted unknown", got)
		}
	}
}

// Whatever is observed, the sums of Lines hold, and so no line can be negative.
func TestLedgerHolds(t *testing.T) {
	for seed := range uint64(5000) {
		r := randomResult(rand.New(rand.NewPCG(seed, 0)))
		l := LedgerOf(r)
		for _, row := range append(l.Kinds, l.Total) {
			for what, lines := range map[string]Lines{"sends": row.Sends, "items": row.Items} {
				if err := holds(lines); err != nil {
					t.Fatalf("seed %d: %q in %s: %v\n%+v", seed, row.Kind, what, err, lines)
				}
			}
			if got := sum(row.Refused); got != row.Sends.Refused {
				t.Fatalf("seed %d: %q: refused by answer: got %d, want %d", seed, row.Kind, got, row.Sends.Refused)
			}
			if got := sum(row.Failed); got != row.Sends.Failed {
				t.Fatalf("seed %d: %q: failed by answer: got %d, want %d", seed, row.Kind, got, row.Sends.Failed)
			}
		}
	}
}

func holds(l Lines) error {
	switch {
	case l.Due != l.Sent+l.NotSent:
		return fmt.Errorf("due %d is not sent %d + not sent %d", l.Due, l.Sent, l.NotSent)
	case l.Sent != l.Accepted+l.Refused+l.Failed:
		return fmt.Errorf("sent %d is not accepted %d + refused %d + failed %d", l.Sent, l.Accepted, l.Refused, l.Failed)
	case l.Sent+l.Surplus != l.Arrived+l.Outcomes+l.RefusedSilent+l.Lost+l.InFlight+l.Unaccounted:
		return fmt.Errorf("what became of sent %d does not add up", l.Sent)
	case l.UnaccountedKnown && l.InFlight > 0, !l.UnaccountedKnown && l.Unaccounted > 0:
		return fmt.Errorf("in flight %d and unaccounted %d, known: %v", l.InFlight, l.Unaccounted, l.UnaccountedKnown)
	}
	for _, n := range []uint64{l.NotSent, l.InFlight, l.Unaccounted, l.Surplus, l.Outcomes, l.RefusedSilent} {
		if n > 1<<40 {
			return fmt.Errorf("a line of %d: below 0", n)
		}
	}
	return nil
}

func sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// randomResult holds numbers that need not fit together.
func randomResult(rnd *rand.Rand) *Result {
	number := func() uint64 { return rnd.Uint64N(1 << rnd.UintN(20)) }
	r := &Result{Drain: []Drain{DrainNone, Drained, Settled, NotDrained, DrainExited, DrainUnknown}[rnd.IntN(6)]}
	for range rnd.IntN(4) {
		k := Kind{Due: number(), DueItems: number(), Elements: number(), Answers: map[string]*Cell{}}
		for range rnd.IntN(5) {
			name := Answer(rnd.IntN(Answers)).String()
			k.Answers[name] = &Cell{Sends: number(), Items: number(), Arrived: number(), ArrivedItems: number(),
				Lost: number(), LostItems: number(), Missing: number(), MissingItems: number()}
			if rnd.IntN(2) == 0 {
				k.Silent = append(k.Silent, name)
			}
		}
		for range rnd.IntN(3) {
			k.Outcomes = append(k.Outcomes, Outcome{Outcome: 1 + rnd.IntN(3), Quantity: number()})
		}
		r.Kinds = append(r.Kinds, k)
	}
	return r
}
