package commands

import (
	"math/rand/v2"
	"strings"
	"testing"

	"relaybench/harness/result"
)

// What a run says of its rate, and what makes it say nothing.
func TestJudgeStep(t *testing.T) {
	// busy is a host of which others took a share, and a relay that used so many CPUs.
	busy := func(share, used float64) func(r *result.Result) {
		return func(r *result.Result) {
			r.Harness.Others = int64(share * 2 * float64(r.DrainEnd-r.LoadStart))
			r.Relay.CPULoad = r.Relay.CPUStart + int64(used*float64(r.LoadEnd-r.LoadStart))
		}
	}
	answered := func(answer result.Answer, arrived uint64) func(r *result.Result) {
		return func(r *result.Result) {
			k := &r.Kinds[0]
			ok := k.Answers[result.Accepted.String()]
			ok.Sends, ok.Items, ok.Arrived, ok.ArrivedItems = ok.Sends-5, ok.Items-5, ok.Arrived-5, ok.ArrivedItems-5
			k.Answers[answer.String()] = &result.Cell{Sends: 5, Items: 5, Arrived: arrived, ArrivedItems: arrived, Missing: 5 - arrived, MissingItems: 5 - arrived}
		}
	}
	for _, tt := range []struct {
		name     string
		capacity float64 // at 100/s
		change   func(r *result.Result)
		says     evidence
		why      string
	}{
		{"keeps up", 1000, nil, keepsUp, "keeps up: the backlog is steady"},
		{"at its capacity", 100, nil, keepsUp, "keeps up"},
		{"2% under what it takes", 98, nil, falls, "falls behind: the backlog grows by 2"},
		{"far behind", 30, nil, falls, "70"},
		{"host busy, and it keeps up", 1000, busy(0.5, 1), keepsUp, "keeps up"},
		{"host busy, which explains it", 80, busy(0.2, 1), barely, "which host-busy explains: others took 20% of the CPUs"},
		{"host busy, which does not explain it", 50, busy(0.2, 1), falls, "falls behind"},
		{"host busy, and the relay wants no more", 80, busy(0.2, 0.3), falls, "falls behind"},
		{"late, but all was sent", 1000, func(r *result.Result) {
			for range 1000 {
				r.Tally.Late.Add(20e6)
			}
		}, keepsUp, "keeps up"},
		{"refused", 1000, answered(result.AnswerOf(429), 5), falls, "5 of 1,000 sends refused: 5 429"},
		{"failed", 1000, answered(result.FailTimeout, 5), falls, "5 of 1,000 sends failed: 5 "},
		{"unaccounted", 1000, func(r *result.Result) {
			c := r.Kinds[0].Answers[result.Accepted.String()]
			c.Arrived, c.ArrivedItems, c.Missing, c.MissingItems = c.Arrived-2, c.ArrivedItems-2, 2, 2
			r.Drain = result.Settled
		}, falls, "2 of 1,000 sends unaccounted for"},
		{"not drained", 1000, func(r *result.Result) { r.Drain = result.NotDrained }, falls, "not drained"},
		{"memory", 1000, func(r *result.Result) { r.MemoryGuard = "none is left" }, barely, "memory-guard: none is left"},
		{"the upstream was full", 80, func(r *result.Result) {
			for i := range r.Samples {
				r.Samples[i].Open = 100
			}
		}, barely, "but upstream-limited: Relay's 100 upstream requests were open in 10 of 10 samples"},
		{"no samples", 1000, func(r *result.Result) { r.Samples = nil }, barely, "is not known"},
	} {
		m := &simulated{capacity: tt.capacity, draw: rand.New(rand.NewPCG(3, 4))}
		r := m.run(100)
		if tt.change != nil {
			tt.change(r.Result)
		}
		s := judgeStep(100, r)
		if s.says != tt.says || !strings.Contains(s.why, tt.why) {
			t.Errorf("%s: %d, %q; want %d, %q", tt.name, s.says, s.why, tt.says, tt.why)
		}
	}
}
