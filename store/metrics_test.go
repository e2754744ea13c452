package store_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

func TestMetricsTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range store.Metrics {
		if seen[m.Name] {
			t.Errorf("%s: twice", m.Name)
		}
		seen[m.Name] = true
		if m.Help == "" || strings.HasSuffix(m.Help, ".") || m.Unit == "" || m.Group == "" {
			t.Errorf("%s: help %q, unit %q, group %q", m.Name, m.Help, m.Unit, m.Group)
		}
		if m.Better < -1 || m.Better > 1 || m.Floor < 0 {
			t.Errorf("%s: better %d, floor %v", m.Name, m.Better, m.Floor)
		}
		if got := store.FindMetric(m.Name); got == nil || got.Name != m.Name {
			t.Errorf("%s is not found", m.Name)
		}
	}
	if m := store.FindMetric("no-such"); m != nil {
		t.Errorf("found %s", m.Name)
	}
}

// Which way is better is stated once, and a comparison's verdict depends on it.
func TestMetricsDirection(t *testing.T) {
	want := map[string]int{"due-rate": 0, "calibration": 0}
	for _, n := range []string{"sent-rate", "accepted-rate", "forwarded-rate", "pushed-bytes-rate", "accepted-bytes-rate", "arrived-share", "memory-efficiency"} {
		want[n] = +1
	}
	for _, m := range store.Metrics {
		w, ok := want[m.Name]
		if !ok {
			w = -1 // CPU, latency, memory, backlog, losses
		}
		if m.Better != w {
			t.Errorf("%s: got %+d, want %+d", m.Name, m.Better, w)
		}
	}
}

// A run that went well has a value for each metric, and these are known.
func TestMetricsOfAKnownRun(t *testing.T) {
	r := storetest.Report(60)
	r.Result.Tally.RefusedSpans = r.Result.Tally.AcceptedSpans
	for _, m := range store.Metrics {
		if _, ok := m.Of(r); !ok {
			t.Errorf("%s is unknown", m.Name)
		}
	}
	const sends, load, drained = 200 * 60, 60.0, 60.2
	for name, want := range map[string]float64{
		"cpu-per-envelope":     (sends*3e6 + 1e7 - 0.002*drained*1e9) / sends,
		"cpu-per-item":         (sends*3e6 + 1e7 - 0.002*drained*1e9) / (sends*3/4 + sends/4*10),
		"due-rate":             200,
		"sent-rate":            200,
		"accepted-rate":        200,
		"forwarded-rate":       (sends - 3) / load,
		"pushed-bytes-rate":    16_400 * 200,
		"accepted-bytes-rate":  16_000 * 200,
		"arrived-share":        100,
		"backlog-end":          3,
		"backlog-slope":        0,
		"drain-time":           0.2e9,
		"in-flight":            0,
		"unaccounted":          0,
		"unaccounted-items":    0,
		"repeats":              0,
		"lost":                 0,
		"rss-start":            60 << 20,
		"rss-peak":             90 << 20,
		"rss-drained":          85 << 20,
		"rss-slope":            1024,
		"memory-efficiency":    60 * 16_000 * 200 / float64(90<<20),
		"idle-cores":           0.002,
		"harness-cpu-per-send": 100_000,
		"harness-share":        100_000 / 3e6 * 100,
	} {
		if got, ok := value(r, name); !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, d := range []string{"through", "response", "service", "refused-response", "refused-service"} {
		last := 0.0
		for _, q := range []string{"p50", "p90", "p99", "p99.9", "max"} {
			got, ok := value(r, d+"-"+q)
			if !ok || got < last {
				t.Errorf("%s-%s: got %v, %v, want at least %v", d, q, got, ok, last)
			}
			last = got
		}
	}
}

func value(r *store.Report, name string) (float64, bool) { return store.FindMetric(name).Of(r) }

func TestMetricsUnknown(t *testing.T) {
	cpu := []string{"cpu-per-envelope", "cpu-per-item"}
	refused := []string{"refused-response-p50", "refused-response-max", "refused-service-p99"}
	for _, c := range []struct {
		what    string
		change  func(*result.Result)
		unknown []string
	}{
		{"nothing refused", func(*result.Result) {}, refused},
		{"cut off", func(r *result.Result) { r.Drain = result.NotDrained }, append([]string{"unaccounted", "unaccounted-items", "drain-time"}, cpu...)},
		{"no drain", func(r *result.Result) { r.Drain = result.DrainNone }, append([]string{"unaccounted", "in-flight", "drain-time"}, cpu...)},
		{"cannot be seen", func(r *result.Result) { r.Drain = result.DrainUnknown }, append([]string{"unaccounted", "in-flight", "drain-time"}, cpu...)},
		{"exited", func(r *result.Result) { r.Drain = result.DrainExited }, append([]string{"drain-time"}, cpu...)},
		{"settled", func(r *result.Result) { r.Drain = result.Settled }, []string{"drain-time"}},
		{"died", func(r *result.Result) { r.Relay.Died = "signal: killed" }, cpu},
		{"CPU unknown", func(r *result.Result) { r.Relay.CPUKnown = false }, append([]string{"idle-cores", "harness-share"}, cpu...)},
		{"no idle window", func(r *result.Result) { r.Relay.IdleTook = 0 }, append([]string{"idle-cores"}, cpu...)},
		{"less CPU than idle", func(r *result.Result) { r.Relay.IdleCPU = 1e9 }, cpu},
		{"nothing handled", func(r *result.Result) { r.Kinds = nil }, append([]string{"through-p50", "through-max", "arrived-share"}, cpu...)},
		{"memory unknown", func(r *result.Result) { r.Relay.MemoryKnown = false }, []string{"rss-start", "rss-peak", "rss-drained", "memory-efficiency"}},
		{"not read", func(r *result.Result) { r.Relay.RSSStart = 0 }, []string{"rss-start"}},
		{"a load under 60 s", func(r *result.Result) { r.LoadEnd = r.LoadStart + 59e9 }, []string{"rss-slope"}},
		{"no samples", func(r *result.Result) { r.Samples = nil }, []string{"backlog-end", "backlog-slope", "rss-slope"}},
		{"samples at once", func(r *result.Result) {
			for i := range r.Samples {
				r.Samples[i].At = 50e9
			}
		}, []string{"backlog-slope", "rss-slope"}},
		{"no load", func(r *result.Result) { r.Tally = nil }, []string{"due-rate", "sent-rate", "forwarded-rate", "response-p50", "late-p99", "repeats", "lost", "harness-cpu-per-send"}},
		{"all refused", func(r *result.Result) { r.Tally.AcceptedSpans = result.Spans{} }, []string{"response-p50", "response-p99.9", "service-max"}},
	} {
		r := storetest.Report(60)
		c.change(r.Result)
		for _, name := range c.unknown {
			if got, ok := value(r, name); ok || got != 0 {
				t.Errorf("%s: %s: got %v, %v, want 0, unknown", c.what, name, got, ok)
			}
		}
	}
}

func TestHandledCountsOutcomes(t *testing.T) {
	r := storetest.Report(10)
	before, _ := value(r, "cpu-per-envelope")
	k := &r.Result.Kinds[0]
	c := k.Answers["accepted"]
	n := c.Sends / 2
	k.Elements -= n
	k.Outcomes = []result.Outcome{{Outcome: 1, Category: 1, Reason: "localhost", Quantity: n}}
	c.Arrived, c.ArrivedItems, c.Missing, c.MissingItems = c.Arrived-n, c.ArrivedItems-n, n, n
	if after, ok := value(r, "cpu-per-envelope"); !ok || after != before {
		t.Errorf("half of them filtered: got %v, %v, want %v", after, ok, before)
	}
}

func TestForwardedRate(t *testing.T) {
	for _, c := range []struct {
		what    string
		samples []result.Sample
		want    float64 // of a load of 10 s, after which 2000 had arrived 0.2 s later
	}{
		{"a sample at the end", []result.Sample{{At: 5e9, Arrived: 800}, {At: 10e9, Arrived: 1900}, {At: 10.2e9, Arrived: 2000}}, 190},
		{"samples around the end", []result.Sample{{At: 9.5e9, Arrived: 1850}, {At: 10.5e9, Arrived: 1950}}, 190},
		{"the last shortly before", []result.Sample{{At: 9.5e9, Arrived: 1900}}, 200},
		{"the last long before", []result.Sample{{At: 5e9, Arrived: 800}}, 2000 / 10.2},
		{"one after the end", []result.Sample{{At: 20e9, Arrived: 2000}}, 100},
		{"none", nil, 2000 / 10.2},
	} {
		r := storetest.Report(10)
		r.Result.Samples = c.samples
		if got, ok := value(r, "forwarded-rate"); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %v, %v, want %v", c.what, got, ok, c.want)
		}
	}
}

func TestMetricsOfNothing(t *testing.T) {
	for _, r := range []*store.Report{nil, {}, {Result: &result.Result{}}, {Result: &result.Result{Tally: &result.Tally{}}}} {
		for _, m := range store.Metrics {
			if got, ok := m.Of(r); got != 0 || ok && m.Name != "repeats" && m.Name != "lost" {
				t.Errorf("%s: got %v, %v, want 0, unknown", m.Name, got, ok)
			}
		}
	}
}

// Whatever is observed, a value is a finite number or unknown, and nothing panics.
func TestDerivedOfAnything(t *testing.T) {
	for seed := range uint64(1500) {
		derive(t, randomReport(rand.New(rand.NewPCG(seed, 0))))
	}
}

func derive(t *testing.T, r *store.Report) {
	t.Helper()
	for _, m := range store.Metrics {
		if v, ok := m.Of(r); math.IsNaN(v) || math.IsInf(v, 0) || !ok && v != 0 {
			t.Errorf("%s: got %v, %v", m.Name, v, ok)
		}
	}
	for _, m := range store.MarksOf(r) {
		if m.Why == "" || strings.Contains(m.Why, "NaN") || strings.Contains(m.Why, "Inf") {
			t.Errorf("%s: why %q", m.Name, m.Why)
		}
	}
}

// randomReport has numbers that need not fit together.
func randomReport(rnd *rand.Rand) *store.Report {
	number := func() int64 {
		n := rnd.Int64() >> rnd.UintN(64)
		if rnd.IntN(8) == 0 {
			n = -n
		}
		return n
	}
	count := func() uint64 { return uint64(rnd.Int64() >> rnd.UintN(64)) }
	sketch := func() *result.Sketch {
		if rnd.IntN(3) == 0 {
			return nil
		}
		s := result.NewSketch()
		for range rnd.IntN(4) {
			s.Add(number())
		}
		return s
	}
	r := storetest.Report(1 + rnd.IntN(8))
	res := r.Result
	res.Drain = []result.Drain{result.DrainNone, result.Drained, result.Settled, result.NotDrained, result.DrainExited, result.DrainUnknown, "new"}[rnd.IntN(7)]
	for _, p := range []*int64{&res.LoadStart, &res.LoadEnd, &res.DrainEnd, &res.Relay.IdleCPU, &res.Relay.IdleTook, &res.Relay.CPUStart, &res.Relay.CPULoad,
		&res.Relay.CPUDrain, &res.Relay.RSSPeak, &res.Harness.CPULoad, &res.Harness.WaitLoad, &res.Harness.Others} {
		if rnd.IntN(3) == 0 {
			*p = number()
		}
	}
	res.Harness.CPUs = float64(rnd.IntN(4) - 1)
	res.Relay.Limit = rnd.IntN(3)
	for i := range res.Samples {
		s := &res.Samples[i]
		s.At, s.Backlog, s.RelayRSS, s.Arrived, s.Open, s.Draining = number(), number(), number(), count(), int(number()), rnd.IntN(3) == 0
	}
	for i := range res.Kinds {
		k := &res.Kinds[i]
		k.Through, k.Elements = sketch(), count()
		k.Answers["403 Forbidden"] = &result.Cell{Sends: count(), Arrived: count(), Missing: count(), MissingItems: count()}
		if rnd.IntN(2) == 0 {
			k.Outcomes = []result.Outcome{{Outcome: rnd.IntN(4), Quantity: count()}}
		}
	}
	if rnd.IntN(4) == 0 {
		res.Tally = nil
	} else {
		res.Tally.Due, res.Tally.Sent, res.Tally.Accepted, res.Tally.Late = count(), count(), count(), sketch()
	}
	return r
}

func TestHeadlines(t *testing.T) {
	var got []string
	for _, m := range store.Metrics {
		if m.Headline {
			got = append(got, m.Name)
		}
	}
	want := []string{"cpu-per-envelope", "forwarded-rate", "arrived-share", "through-p50", "through-p99", "response-p99", "unaccounted", "rss-peak", "calibration"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
