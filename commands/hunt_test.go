package commands

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// simulated is a relay of a known capacity, on a host of a known ceiling.
type simulated struct {
	capacity float64
	noise    float64 // of what it processes in a second, a part of it
	ceiling  float64 // sends a second that the senders can send; 0: no limit
	refuses  float64 // from this rate on it refuses; 0: never
	lies     float64 // how often a run goes wrong: a second without work in mid-run, or one that hides that it falls behind
	draw     *rand.Rand
}

// run is the report of ten seconds at a rate.
func (m *simulated) run(rate float64) *store.Report {
	const seconds = 10
	r := storetest.Report(1)
	r.Result.LoadEnd = r.Result.LoadStart + seconds*1e9
	r.Result.DrainEnd = r.Result.LoadEnd + 1e8
	sent, queue, arrived := 0.0, 0.0, 0.0
	hiccup := -1
	if m.draw.Float64() < m.lies {
		hiccup = 7 + m.draw.IntN(2)
	}
	offered := rate
	if m.ceiling > 0 {
		offered = min(rate, m.ceiling)
	}
	r.Result.Samples = nil
	for i := range seconds {
		can := m.capacity * (1 + m.noise*m.draw.NormFloat64())
		if i == hiccup {
			can = 0
		}
		done := min(queue+offered, can)
		sent, queue, arrived = sent+offered, queue+offered-done, arrived+done
		inside := rate * 0.004 * m.draw.ExpFloat64() // some milliseconds' worth of sends are always in it
		r.Result.Samples = append(r.Result.Samples, result.Sample{At: int64(i+1) * 1e9, Sent: uint64(sent), Arrived: uint64(arrived), Backlog: int64(queue + inside)})
	}
	all := uint64(math.Round(sent))
	due := uint64(math.Round(rate * seconds))
	cell := &result.Cell{Sends: all, Items: all, Arrived: all, ArrivedItems: all}
	k := result.Kind{Name: "sessions", Unit: "session", Due: due, DueItems: due, Answers: map[string]*result.Cell{result.Accepted.String(): cell}}
	if m.refuses > 0 && rate >= m.refuses {
		cell.Sends, cell.Items, cell.Arrived, cell.ArrivedItems = all-1, all-1, all-1, all-1
		k.Answers[result.AnswerOf(503).String()] = &result.Cell{Sends: 1, Items: 1, Missing: 1, MissingItems: 1}
		k.Silent = []string{result.AnswerOf(503).String()}
	}
	r.Result.Kinds = []result.Kind{k}
	r.Result.Tally.Due, r.Result.Tally.Sent = due, all
	return r
}

// hunted searches a simulated relay.
func hunted(h hunt, m *simulated) (hunt, ending) {
	for {
		rate, end := h.next()
		if end != "" {
			return h, end
		}
		h.steps = append(h.steps, judgeStep(rate, m.run(rate)))
	}
}

// said is a hunt in one line.
func said(h *hunt) string {
	var b strings.Builder
	for _, s := range h.steps {
		fmt.Fprintf(&b, "%g%s ", s.rate, map[evidence]string{keepsUp: "+", falls: "-", barely: "?"}[s.says])
	}
	return b.String()
}

// A relay of known capacity is found within 5%, whatever it is, with noise and with runs that go wrong.
func TestSearchFinds(t *testing.T) {
	for _, tt := range []struct {
		noise, lies float64
		right       float64 // of the searches that must be
	}{
		{0, 0, 1},
		{0.01, 0, 1},
		{0.05, 0, 1},
		{0.02, 0.1, 0.93},
	} {
		right, all, most := 0, 0, 0
		for _, capacity := range []float64{23, 100, 101.5, 150, 300, 777, 1000, 5123, 40_000} {
			for seed := range uint64(8) {
				m := &simulated{capacity: capacity, noise: tt.noise, lies: tt.lies, draw: rand.New(rand.NewPCG(seed, uint64(capacity)))}
				h, end := hunted(hunt{from: 100}, m)
				low, high := h.bracket()
				all++
				most = max(most, len(h.steps))
				if end == endFound && math.Abs(low.rate/capacity-1) <= 0.05 && high.rate <= low.rate*(1+bracketWidth) {
					right++
				} else if tt.right == 1 {
					t.Errorf("capacity %g, noise %g, seed %d: %s, %g to %g: %s", capacity, tt.noise, seed, end, low.rate, high.rate, said(&h))
				}
			}
		}
		if float64(right) < tt.right*float64(all) || most > mostSteps {
			t.Errorf("noise %g, lies %g: %d of %d searches were right, with up to %d steps", tt.noise, tt.lies, right, all, most)
		}
	}
}

// How a search ends where there is no bracket to find.
func TestSearchEnds(t *testing.T) {
	calm := func(m simulated) *simulated { m.draw = rand.New(rand.NewPCG(1, 2)); return &m }
	for _, tt := range []struct {
		name      string
		h         hunt
		m         *simulated
		end       ending
		low, high float64
		code      Code
		says      string
	}{
		{"the highest rate is kept up with", hunt{from: 100, to: 350}, calm(simulated{capacity: 1e6}), endTo, 350, 0, Fine,
			"keeps up with at least 350/s, the highest rate that was to be tried"},
		{"one rate", hunt{from: 100, to: 100}, calm(simulated{capacity: 1e6}), endTo, 100, 0, Fine, "at least 100/s"},
		{"one rate that is too much", hunt{from: 1, to: 1}, calm(simulated{capacity: 0.5}), endLeast, 0, 1, Inconclusive,
			"does not keep up with 1/s, the lowest rate that is tried"},
		{"the senders cannot", hunt{from: 100}, calm(simulated{capacity: 1e6, ceiling: 700}), endHarness, 400, 0, Unfit,
			"keeps up with at least 400/s; at 800/s something else than the relay was the limit, so this harness says no more: harness-limited"},
		{"the first rate is too much for the senders", hunt{from: 1000}, calm(simulated{capacity: 1e6, ceiling: 700}), endHarness, 0, 0, Unfit,
			"nothing is known of which rate it keeps up with; at 1,000/s"},
		{"the first rate is too much", hunt{from: 1000}, calm(simulated{capacity: 90}), endFound, 90, 91, Fine, "keeps up with 90.8/s, not with 91.8/s"},
		{"it refuses before it falls behind", hunt{from: 100}, calm(simulated{capacity: 1e6, refuses: 250}), endFound, 247, 250, Fine, "not with 250/s"},
	} {
		h, end := hunted(tt.h, tt.m)
		c := capacity{hunt: h, End: end}
		if end != tt.end || math.Abs(c.Low()-tt.low) > 0.02*tt.low || math.Abs(c.High()-tt.high) > 0.02*tt.high || c.code() != tt.code || !strings.Contains(c.String(), tt.says) {
			t.Errorf("%s: %s, %g to %g, code %d, %q; want %s, %g to %g, code %d, %q\n%s", tt.name, end, c.Low(), c.High(), c.code(), &c, tt.end, tt.low, tt.high, tt.code, tt.says, said(&h))
		}
	}
}

// The steps of a search, one after another, and what contradictions do to it.
func TestSearchSteps(t *testing.T) {
	for _, tt := range []struct{ name, tells, steps, end string }{
		{"doubled, halved, both ends again", "++-+-++--+", "100+ 200+ 400- 300+ 350- 325+ 338+ 344- 344- 338+", "found"},
		{"the high end is refuted, and is the low one from then on", "++-+-++-++-", "100+ 200+ 400- 300+ 350- 325+ 338+ 344- 344+ 344+ 350-", "found"},
		{"the low end is refuted", "++-+-++----", "100+ 200+ 400- 300+ 350- 325+ 338+ 344- 344- 338- 338- 332", ""},
		{"a run that says nothing is made again, once", "+??", "100+ 200? 200?", "harness"},
		{"one in doubt is run again before anything else", "+d-", "100+ 200- 200- 150", ""},
	} {
		h := hunt{from: 100}
		var end ending
		for i := 0; ; i++ {
			var rate float64
			rate, end = h.next()
			if end != "" {
				break
			}
			if i == len(tt.tells) {
				if got := said(&h) + fmt.Sprint(rate); got != tt.steps {
					t.Errorf("%s: %s, want %s", tt.name, got, tt.steps)
				}
				break
			}
			s := step{rate: rate}
			switch tt.tells[i] {
			case '+':
				s.says = keepsUp
			case '-', 'd':
				s.says, s.doubt = falls, tt.tells[i] == 'd'
			}
			h.steps = append(h.steps, s)
		}
		if string(end) != tt.end || end != "" && strings.TrimSpace(said(&h)) != tt.steps {
			t.Errorf("%s: %s %q, want %s %q", tt.name, said(&h), end, tt.steps, tt.end)
		}
	}
}

// Whatever runs say, a search ends, and each rate is one that can be run.
func FuzzSearch(f *testing.F) {
	f.Add(100.0, 0.0, "++-+-++-")
	f.Add(1.0, 1.0, "???")
	f.Add(5000.0, 0.0, "----------------")
	f.Add(9e6, 1e7, "++++")
	f.Fuzz(func(t *testing.T, from, to float64, tells string) {
		if !(from >= leastRate && from <= mostRate) || to != 0 && !(to >= from && to <= mostRate) {
			return
		}
		h := hunt{from: from, to: to}
		for i := 0; ; i++ {
			rate, end := h.next()
			if end != "" {
				break
			}
			if !(rate >= leastRate && rate <= mostRate) || to > 0 && rate > to || len(h.steps) >= mostSteps {
				t.Fatalf("step %d at %g: %s", len(h.steps)+1, rate, said(&h))
			}
			if left := h.left(); left < 1 || len(h.steps)+left > mostSteps {
				t.Fatalf("%d steps left after %d", left, len(h.steps))
			}
			s := step{rate: rate}
			if len(tells) > 0 {
				s.says = evidence(tells[i%len(tells)] % 3)
			}
			h.steps = append(h.steps, s)
		}
		low, high := h.bracket()
		if high.rate > 0 && low.rate >= high.rate {
			t.Fatalf("bracket %g to %g: %s", low.rate, high.rate, said(&h))
		}
	})
}
