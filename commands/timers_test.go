package commands

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// heard is a report with what its relay said by statsd.
func heard() *store.Report {
	r := storetest.Report(10)
	r.Plan["statsd"] = plan.StatsdOn
	timer := func(name string, standsFor float64, tags []string, values ...float64) result.StatsdSeries {
		d := result.NewDistribution()
		for _, v := range values {
			d.Add(v, standsFor)
		}
		return result.StatsdSeries{Type: result.Timer, Name: "sentry.relay." + name, Tags: tags, Timer: d}
	}
	r.Result.Statsd = &result.Statsd{Flushes: 2, From: r.Result.LoadStart - 20e6, Series: []result.StatsdSeries{
		{Type: result.Counter, Name: "sentry.relay.event.items", Tags: []string{"item_type:event", "sdk:\x1b[31mred"}, Counter: 1234},
		{Type: result.Gauge, Name: "sentry.relay.service.back_pressure", Tags: []string{"service:Store"}, Gauge: &result.GaugeRange{Last: 2, Min: -1, Max: 3}},
		timer("event_processing.normalization", 1, nil, 2, 2, 2, 2),
		timer("requests.duration", 100, []string{"method:POST", "route:/api/{project_id}/envelope/"}, 50),
	}}
	return r
}

func TestTimers(t *testing.T) {
	r := heard()
	got := shown(t, r, 100, "show last timers")
	wants(t, got, "event_processing.normalization", "method:POST,", "1,234", "back_pressure",
		"times in ms", "the relay sent a sample", "2 flushes of the relay's: from 20 ms before the load")
	if strings.Contains(got, "sentry.relay.") || strings.ContainsRune(got, '\x1b') || strings.Contains(got, "malformed") {
		t.Errorf("a prefix, an escape or a count of nothing:\n%s", got)
	}
	for l := range strings.Lines(got) {
		if fields := strings.Fields(l); len(fields) > 0 && fields[0] == "requests.duration" {
			if want := "100 50.0 50.0 50.0 50 50 5,000"; !strings.Contains(strings.Join(fields, " "), strings.ReplaceAll(want, ".0", "")) {
				t.Errorf("got %q, want %q", fields, want)
			}
		}
	}
	for pattern, want := range map[string][2]string{"NORMAL": {"normalization", "requests.duration"}, "service:store": {"back_pressure", "normalization"}, "{project_id}": {"requests.duration", "back_pressure"}} {
		got := shown(t, r, 100, "show last timers "+pattern)
		if !strings.Contains(got, want[0]) || strings.Contains(got, want[1]) {
			t.Errorf("%s: want %s without %s:\n%s", pattern, want[0], want[1], got)
		}
	}
	if got := shown(t, r, 100, "show last timers --markdown"); !strings.Contains(got, "| requests.duration |") {
		t.Errorf("markdown:\n%s", got)
	}
}

func TestTimersNotes(t *testing.T) {
	r := heard()
	s := r.Result.Statsd
	s.Flushes, s.Cut, s.Dropped, s.Over, s.OverFirst, s.Malformed, s.MalformedFirst, s.Ignored = 0, "the relay ended by itself", 3, 1, "a.b", 2, "no value: f|c", 4
	wants(t, shown(t, r, 0, "show last timers"), "each value was sent as it was made", "not all of it: the relay ended by itself", "the kernel dropped 3 datagrams",
		"1 line of too many series left out, the first of a.b", "2 lines malformed, the first: no value: f|c", "4 lines of sets")
}

func TestTimersData(t *testing.T) {
	var j struct {
		Timers, Counters, Gauges []map[string]any
		Flushes                  int
		Cut                      *string
	}
	if err := json.Unmarshal([]byte(shown(t, heard(), 0, "show last timers --json")), &j); err != nil {
		t.Fatal(err)
	}
	if len(j.Timers) != 2 || len(j.Counters) != 1 || len(j.Gauges) != 1 || j.Flushes != 2 || j.Cut != nil {
		t.Errorf("got %+v", j)
	}
	if x := j.Timers[1]; x["n"] != 100.0 || x["sum"] != 5000.0 || x["max"] != 50.0 || x["tags"] != "method:POST,route:/api/{project_id}/envelope/" {
		t.Errorf("got %v", x)
	}
	rows, err := csv.NewReader(strings.NewReader(shown(t, heard(), 0, "show last timers --csv"))).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v, want 5", len(rows), err)
	}
	if got, want := strings.Join(rows[2], "|"), "gauge|service.back_pressure|service:Store|||||3|||2|-1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Each way in which there are none is told apart.
func TestTimersNone(t *testing.T) {
	for to, want := range map[string]string{"off": "statsd was off", "": "statsd was off", "on": "the run did not get as far", "bench1:8125": "the relay sent them to bench1:8125"} {
		r := heard()
		r.Result.Statsd = nil
		r.Plan["statsd"] = to
		wants(t, shown(t, r, 0, "show last timers"), "no timers: "+want)
		wants(t, shown(t, r, 0, "show last timers --json"), `"timers":`)
	}
	for line, want := range map[string]string{
		"show last timers event_processing.normalisation":                           "did you mean event_processing.normalization?",
		"show last ledger x":                                                        "view ledger takes no pattern",
		"collate rate --singles --metrics timer:event_processing.normalisation:p99": `did you mean "timer:event_processing.normalization:p99"?`,
		"collate rate --metrics timer:event_processing.normalization":               "expected timer:event_processing.normalization:p99",
		"collate rate --metrics times:x:p99":                                        `unknown metric "times:x:p99"`,
	} {
		if got := failed(t, heard(), line); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := failed(t, storetest.Report(10), "collate rate --singles --metrics timer:a:p99"); !strings.Contains(got, "no report was made with statsd on") || !strings.Contains(got, "--statsd on keeps") {
		t.Errorf("got %q", got)
	}
}

// failed is the error and hint of a line in a store that holds one report.
func failed(t *testing.T, r *store.Report, text string) (got string) {
	t.Helper()
	db := storetest.Open(t)
	if err := db.Save(r); err != nil {
		t.Fatal(err)
	}
	b := NewBench(Config{})
	b.db = db
	var out strings.Builder
	b.NewSession(Client{Out: &out}).Do(t.Context(), text, func(f *Failure) bool {
		got = f.Text() + "\n" + f.Hint + strings.Join(f.Detail, "\n")
		return true
	})
	if got == "" {
		t.Errorf("%s: no error:\n%s", text, out.String())
	}
	return got
}

func TestCollateTimers(t *testing.T) {
	r := heard()
	got := shown(t, r, 0, "collate rate --singles --metrics 'timer:event_processing.normalization:p50,counter:event.items[item_type:event],gauge:service.back_pressure:max'")
	wants(t, got, "timer:event_processing.normalization:p50", "counter:event.items[item_type:event]", "1,234")
	r.Result.Harness.Others = 1e12
	wants(t, shown(t, r, 0, "collate rate --singles --metrics timer:event_processing.normalization:p50"), "timer:event_processing.normalization:p50")
	wants(t, shown(t, r, 0, "collate rate --singles --runs --csv --metrics timer:event_processing.normalization:p50"), "timer:event_processing.normalization:p50_unfit", "host-busy")
}

func TestStatsdFinePrint(t *testing.T) {
	wants(t, shown(t, heard(), 0, "show last"), "statsd was on, at a small cost to the relay: show 20")
	r := heard()
	r.Result.Statsd, r.Plan["statsd"] = nil, "bench1:8125"
	wants(t, shown(t, r, 0, "show last"), "the relay sent its metrics to bench1:8125")
}

func TestStatsdLasts(t *testing.T) {
	for to, want := range map[string]time.Duration{"off": 10 * time.Second, "": 10 * time.Second, "on": 30 * time.Second, "bench1:8125": 31 * time.Second} {
		if got := lasts(plan.Plan{Duration: 10 * time.Second, Statsd: to}); got != want {
			t.Errorf("%q: got %v, want %v", to, got, want)
		}
	}
}

func TestCompleteTimers(t *testing.T) {
	db := storetest.Open(t)
	if err := db.Save(heard()); err != nil {
		t.Fatal(err)
	}
	s := desk(t, db)
	ann := s.NewSession(Client{Out: &strings.Builder{}})
	for typed, want := range map[string]string{
		"show last tim|":         "timers",
		"show last timers requ|": "requests.duration",
		"test 6s --statsd |":     "on",
		"collate rate --metrics cpu-per-envelope,timer:req|": "cpu-per-envelope,timer:requests.duration:p99",
	} {
		if _, all := completed(ann, typed); len(all) == 0 || !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%s: got %q, want %q", typed, all, want)
		}
	}
}
