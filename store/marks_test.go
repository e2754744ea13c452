package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// marked is, for each mark, reports that have it and reports that nearly have it.
var marked = []struct {
	mark string
	with map[string]func(*store.Report) // by what Why says
	near map[string]func(*store.Report) // by what it is
}{
	{"cancelled", reports{"interrupted": func(r *store.Report) { r.Result.Cancelled = "interrupted" }}, nil},
	{"failed", reports{"start relay: no": func(r *store.Report) { r.Result.Failed = "start relay: no" }}, nil},
	{"relay-died", reports{"signal: killed": func(r *store.Report) { r.Result.Relay.Died = "signal: killed" }},
		reports{"killed by us": func(r *store.Report) { r.Result.Relay.Exit.Killed = true }}},
	{"no-load", reports{
		"nothing was sent":  func(r *store.Report) { r.Result.Tally = nil },
		"nothing was sent ": func(r *store.Report) { r.Result.Tally.Sent = 0 },
	}, reports{"one send": func(r *store.Report) { r.Result.Tally.Sent = 1 }}},
	{"short", reports{
		"4.9 s of load": func(r *store.Report) { r.Result.LoadEnd = r.Result.LoadStart + 4.9e9 },
	}, reports{
		"5 s":     func(r *store.Report) { r.Result.LoadEnd = r.Result.LoadStart + 5e9 },
		"no load": func(r *store.Report) { r.Result.LoadStart, r.Result.LoadEnd = 0, 0 },
	}},
	{"harness-limited", reports{
		"p99 lateness 14ms":                              func(r *store.Report) { r.Result.Tally.Late = late(14 * time.Millisecond) },
		"41% of due sends sent":                          func(r *store.Report) { r.Result.Tally.Due, r.Result.Tally.Sent = 1000, 410 },
		"1 threads of relaybench waited for a CPU":       func(r *store.Report) { r.Result.Harness.WaitLoad, r.Result.Harness.CPUs = 10e9, 0.5 },
		"2 threads of relaybench waited for a CPU":       func(r *store.Report) { r.Result.Harness.WaitLoad = 20e9 },
		"p99 lateness 14ms, 98.9% of due sends sent, 2.": limited,
	}, reports{
		"late, but not by over 10 ms": func(r *store.Report) { r.Result.Tally.Late = late(9800 * time.Microsecond) },
		"99% sent":                    func(r *store.Report) { r.Result.Tally.Due, r.Result.Tally.Sent = 1000, 990 },
		"a closed loop":               func(r *store.Report) { limited(r); r.Plan["rate"] = "max" },
		"half a CPU, and less than one thread waits": func(r *store.Report) { r.Result.Harness.WaitLoad, r.Result.Harness.CPUs = 9e9, 0.5 },
		"half a busy host's wait":                    func(r *store.Report) { r.Result.Harness.WaitLoad = 10e9 },
		"unknown wait, and CPUs":                     func(r *store.Report) { r.Result.Harness.WaitLoad, r.Result.Harness.CPUs = -1, 0 },
		"one send late among a hundred":              func(r *store.Report) { r.Result.Tally.Late.Add(1e10) },
		"nothing was due, and no lateness":           func(r *store.Report) { r.Result.Tally = result.NewTally(0, 1) },
	}},
	{"upstream-limited", reports{
		"Relay's 100 upstream requests were open in 1 of 10 samples":  func(r *store.Report) { r.Result.Samples[4].Open = 95 },
		"Relay's 100 upstream requests were open in 10 of 10 samples": func(r *store.Report) { open(r, 100, 10) },
		"2.5 threads of relaybench waited for a CPU":                  func(r *store.Report) { r.Result.Harness.WaitLoad = 25e9; r.Plan["rate"] = "max" },
	}, reports{
		"94 open": func(r *store.Report) { open(r, 94, 10) },
		"1 of 11 samples": func(r *store.Report) {
			r.Result.Samples = append(r.Result.Samples, result.Sample{At: 11e9})
			r.Result.Samples[4].Open = 100
		},
		"in the drain alone": func(r *store.Report) { r.Result.Samples[9].Open, r.Result.Samples[9].Draining = 100, true },
		"unknown limit":      func(r *store.Report) { open(r, 1000, 10); r.Result.Relay.Limit = 0 },
		"no samples":         func(r *store.Report) { r.Result.Samples = nil },
	}},
	{"behind", reports{
		"backlog grew by 3 sends/s at 200/s":  func(r *store.Report) { backlog(r, func(s int) int64 { return int64(3 * s) }) },
		"backlog grew by 45 sends/s at 200/s": func(r *store.Report) { backlog(r, func(s int) int64 { return int64(45 * s) }) },
	}, reports{
		"by 1%":          func(r *store.Report) { backlog(r, func(s int) int64 { return int64(2 * s) }) },
		"shrinking":      func(r *store.Report) { backlog(r, func(s int) int64 { return int64(1000 - 50*s) }) },
		"large and even": func(r *store.Report) { backlog(r, func(int) int64 { return 5000 }) },
		"ragged": func(r *store.Report) {
			backlog(r, func(s int) int64 { return []int64{0, 60, 5, 0, 40, 10, 70, 0, 90, 30}[s] })
		},
		"four samples": func(r *store.Report) {
			backlog(r, func(s int) int64 { return int64(45 * s) })
			r.Result.Samples = r.Result.Samples[:4]
		},
		"no samples": func(r *store.Report) { r.Result.Samples = nil },
	}},
	{"not-drained", reports{
		"5 sends in flight": func(r *store.Report) { missing(r, 5); r.Result.Drain = result.NotDrained },
		"5 sends in flight: the upstream turned 5 away": func(r *store.Report) {
			missing(r, 5)
			r.Result.Drain, r.Result.DrainWhy = result.NotDrained, "the upstream turned 5 away"
		},
	},
		reports{"exited": func(r *store.Report) { r.Result.Drain = result.DrainExited }, "cannot be seen": func(r *store.Report) { r.Result.Drain = result.DrainUnknown }}},
	{"memory-guard", reports{"700 MiB of 8192 MiB of memory left": func(r *store.Report) { r.Result.MemoryGuard = "700 MiB of 8192 MiB of memory left" }}, nil},
	{"host-busy", reports{
		"others took 5.88% of the CPUs":                    func(r *store.Report) { r.Result.Harness.Others = 1.2e9 },
		"others took 1.47 CPUs, and the run could use 0.5": func(r *store.Report) { r.Result.Harness.Others, r.Result.Harness.CPUs = 1.5e10, 0.5 },
		"others took 8.82% of the CPUs":                    func(r *store.Report) { r.Result.Harness.Others, r.Result.Harness.CPUs = 4.5e8, 0.5 },
	},
		reports{"4.9%": func(r *store.Report) { r.Result.Harness.Others = 1e9 }, "unknown": func(r *store.Report) { r.Result.Harness.Others = -1 }}},
	{"unaccounted", reports{
		"7 sends, 7 items": func(r *store.Report) { missing(r, 7) },
		"0 sends, 3 items": func(r *store.Report) { r.Result.Kinds[1].Elements -= 3 },
	}, reports{"in flight": func(r *store.Report) { missing(r, 7); r.Result.Drain = result.NotDrained }}},
	{"stand-in", reports{"not Sentry's Relay": func(r *store.Report) { r.Provenance.Relay.Form = "stand-in" }},
		reports{"none": func(r *store.Report) { r.Provenance.Relay.Form = "none" }}},
	{"dirty-tree", reports{
		"changes on ae5a27cb9c":          func(r *store.Report) { r.Provenance.Relay.Dirty = true },
		"changes on an unknown revision": func(r *store.Report) { r.Provenance.Relay.Dirty, r.Provenance.Relay.Revision = true, "" },
	}, nil},
	{"debug-build", reports{"built by the profile debug": func(r *store.Report) { r.Provenance.Relay.Profile = "debug" }},
		reports{"unknown": func(r *store.Report) { r.Provenance.Relay.Profile = "" }}},
	{"profiled", reports{
		"fp@499, without a profile": func(r *store.Report) { r.Plan["profiled"] = "fp@499" },
		"call graph fp, 499 samples a second of cpu-clock": func(r *store.Report) {
			r.Plan["profiled"], r.Result.Profile = "fp@499", &result.Profile{CallGraph: "fp", Freq: 499, Event: "cpu-clock"}
		},
		"not all of it: perf script: killed": func(r *store.Report) {
			r.Plan["profiled"], r.Result.Profile = "fp@499", &result.Profile{CallGraph: "fp", Freq: 499, Event: "cpu-clock", Failed: "perf script: killed"}
		},
	}, reports{"not": func(r *store.Report) { r.Plan["profiled"] = "no" }}},
	{"relay-errors", reports{
		`5 errors, such as "upstream is gone"`: func(r *store.Report) {
			r.Result.Relay.Messages = []result.Message{{Level: "WARN", Text: "slow", Count: 9}, {Level: "ERROR", Text: "upstream is gone\nat line 1", Count: 4}, {Level: "ERROR", Text: "x", Count: 1}}
		},
		"such as \"" + strings.Repeat("é", 79) + "…\"": func(r *store.Report) {
			r.Result.Relay.Messages = []result.Message{{Level: "ERROR", Text: strings.Repeat("é", 500), Count: 1}}
		},
	}, reports{"warnings": func(r *store.Report) {
		r.Result.Relay.Messages = []result.Message{{Level: "WARN", Text: "slow", Count: 9}}
	}}},
	{"rate-limited", reports{
		"3 sends answered 429, 0 items": func(r *store.Report) { r.Result.Tally.Counts[result.AnswerOf(429)] = 3 },
		"0 sends answered 429, 8 items": func(r *store.Report) {
			r.Result.Kinds[0].Outcomes = []result.Outcome{{Outcome: 2, Category: 1, Reason: "quota", Quantity: 8}}
		},
	}, reports{
		"filtered": func(r *store.Report) {
			r.Result.Kinds[0].Outcomes = []result.Outcome{{Outcome: 1, Category: 1, Reason: "localhost", Quantity: 8}}
		},
		"refused otherwise": func(r *store.Report) { r.Result.Tally.Counts[result.AnswerOf(503)] = 3 },
	}},
	{"not-understood", reports{
		`2 malformed, such as "envelope: byte 5: no"`: func(r *store.Report) {
			r.Result.Upstream.Malformed, r.Result.Upstream.MalformedFirst = 2, "envelope: byte 5: no"
		},
		"3 envelopes without a stamp":        func(r *store.Report) { r.Result.Upstream.Unstamped = 3 },
		`2 unknown routes, such as "GET /a"`: func(r *store.Report) { r.Result.Upstream.UnknownRoutes = map[string]uint64{"GET /b": 1, "GET /a": 2} },
	}, nil},
	{"flat-out", reports{"rate max": func(r *store.Report) { r.Plan["rate"] = "max" }}, nil},
}

type reports = map[string]func(*store.Report)

func limited(r *store.Report) {
	r.Result.Tally.Late = late(14 * time.Millisecond)
	r.Result.Tally.Due, r.Result.Tally.Sent = 1000, 989
	r.Result.Harness.WaitLoad = 25e9
}

// late is a distribution of which 5% are as late as that.
func late(by time.Duration) *result.Sketch {
	s := result.NewSketch()
	for i := range 100 {
		if s.Add(50_000); i < 5 {
			s.Add(int64(by))
		}
	}
	return s
}

func open(r *store.Report, requests, samples int) {
	for i := range samples {
		r.Result.Samples[i].Open = requests
	}
}

func backlog(r *store.Report, at func(second int) int64) {
	for i := range r.Result.Samples {
		r.Result.Samples[i].Backlog = at(i)
	}
}

// missing takes sends of the first kind, one item each, from what arrived.
func missing(r *store.Report, n uint64) {
	k := &r.Result.Kinds[0]
	k.Elements -= n
	c := k.Answers["accepted"]
	c.Arrived, c.ArrivedItems, c.Missing, c.MissingItems = c.Arrived-n, c.ArrivedItems-n, n, n
	r.Result.Drain = result.Settled
}

// Each mark stands with its cause, says why, and does not stand where the cause falls just short.
func TestMarks(t *testing.T) {
	if ms := store.MarksOf(storetest.Report(10)); len(ms) != 0 {
		t.Errorf("a run that went well is marked %s: %s", ms[0].Name, ms[0].Why)
	}
	proved := map[string]bool{}
	for _, c := range marked {
		proved[c.mark] = true
		for want, change := range c.with {
			r := storetest.Report(10)
			change(r)
			if by, ok := find(store.MarksOf(r), c.mark); !ok || !strings.Contains(by, strings.TrimSpace(want)) {
				t.Errorf("%s: got %q, %v, want %q", c.mark, by, ok, want)
			}
		}
		for what, change := range c.near {
			r := storetest.Report(10)
			change(r)
			if by, ok := find(store.MarksOf(r), c.mark); ok {
				t.Errorf("%s: %s: got %q, want none", c.mark, what, by)
			}
		}
	}
	for _, m := range store.Marks {
		if !proved[m.Name] {
			t.Errorf("%s: has no proof", m.Name)
		}
	}
}

func find(ms []store.Marked, name string) (why string, ok bool) {
	for _, m := range ms {
		if m.Name == name {
			return m.Why, true
		}
	}
	return "", false
}

func TestMarksTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range store.Marks {
		if seen[m.Name] {
			t.Errorf("%s: twice", m.Name)
		}
		seen[m.Name] = true
		if m.Help == "" || strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: help %q", m.Name, m.Help)
		}
		for _, name := range m.Unfit {
			if name != "*" && store.FindMetric(name) == nil {
				t.Errorf("%s: makes %q unfit, which is no metric", m.Name, name)
			}
		}
	}
	for _, r := range []*store.Report{nil, {}} {
		if ms := store.MarksOf(r); len(ms) != 0 {
			t.Errorf("%v: marked %s", r, ms[0].Name)
		}
	}
}

func TestUnfit(t *testing.T) {
	latency := []string{"through-p50", "through-p99.9", "response-p99", "service-max", "refused-response-p99"}
	rates := []string{"due-rate", "sent-rate", "accepted-rate", "forwarded-rate", "pushed-bytes-rate", "accepted-bytes-rate"}
	cpu := []string{"cpu-per-envelope", "cpu-per-item", "idle-cores"}
	memory := []string{"rss-start", "rss-peak", "rss-drained", "rss-slope", "memory-efficiency"}
	everything := slices.Concat(latency, rates, cpu, memory, []string{"unaccounted", "drain-time"})
	for _, c := range []struct {
		mark       string
		unfit, fit []string
	}{
		{"cancelled", everything, nil},
		{"failed", everything, nil},
		{"relay-died", everything, nil},
		{"no-load", everything, nil},
		{"short", slices.Concat(rates, cpu, memory), append(latency, "unaccounted")},
		{"harness-limited", slices.Concat(latency, rates), append(append(cpu, memory...), "late-p99")},
		{"upstream-limited", []string{"through-p50", "through-max", "forwarded-rate"}, append(cpu, "response-p99", "accepted-rate")},
		{"behind", []string{"through-p50", "response-p99"}, append(cpu, "service-p99", "forwarded-rate")},
		{"not-drained", []string{"cpu-per-envelope", "cpu-per-item", "unaccounted", "unaccounted-items"}, append(latency, rates...)},
		{"memory-guard", slices.Concat(rates, cpu), append(latency, memory...)},
		{"host-busy", slices.Concat(latency, cpu), append(rates, memory...)},
		{"unaccounted", nil, everything},
		{"stand-in", nil, everything},
		{"dirty-tree", nil, everything},
		{"debug-build", nil, everything},
		{"profiled", nil, everything},
		{"relay-errors", nil, everything},
		{"rate-limited", nil, everything},
		{"not-understood", nil, everything},
		{"flat-out", nil, everything},
	} {
		i := slices.IndexFunc(store.Marks, func(m store.Mark) bool { return m.Name == c.mark })
		if i < 0 {
			t.Errorf("no mark %s", c.mark)
			continue
		}
		marks := []store.Marked{{Mark: &store.Marks[i]}}
		for _, name := range c.unfit {
			if by, ok := store.Unfit(marks, name); !ok || by != c.mark {
				t.Errorf("%s: %s is fit", c.mark, name)
			}
		}
		for _, name := range c.fit {
			if _, ok := store.Unfit(marks, name); ok {
				t.Errorf("%s: %s is unfit", c.mark, name)
			}
		}
	}
	if by, ok := store.Unfit(nil, "through-p50"); ok {
		t.Errorf("without marks unfit by %s", by)
	}
}
