package store_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

func timer(name string, standsFor float64, tags []string, values ...float64) result.StatsdSeries {
	d := result.NewDistribution()
	for _, v := range values {
		d.Add(v, standsFor)
	}
	return result.StatsdSeries{Type: result.Timer, Name: store.StatsdPrefix + name, Tags: tags, Timer: d}
}

// heard is a report with what its relay said by statsd.
func heard() *store.Report {
	r := storetest.Report(10)
	r.Plan["statsd"] = "on"
	r.Result.Statsd = &result.Statsd{Flushes: 2, Series: []result.StatsdSeries{
		{Type: result.Counter, Name: "sentry.relay.event.items", Tags: []string{"item_type:event"}, Counter: 30},
		{Type: result.Counter, Name: "sentry.relay.event.items", Tags: []string{"item_type:log"}, Counter: 12},
		{Type: result.Gauge, Name: "sentry.relay.service.back_pressure", Tags: []string{"service:a"}, Gauge: &result.GaugeRange{Last: 2, Min: -1, Max: 3}},
		{Type: result.Gauge, Name: "sentry.relay.service.back_pressure", Tags: []string{"service:b"}, Gauge: &result.GaugeRange{Last: 5, Min: 1, Max: 9}},
		timer("event_processing.normalization", 1, nil, 1, 2, 3, 4),
		timer("requests.duration", 10, []string{"method:POST", "route:/api/{project_id}/envelope/"}, 50),
		timer("requests.duration", 1, []string{"method:POST", "route:/api/0/x:y"}, 100),
	}}
	return r
}

func TestStatsdMetrics(t *testing.T) {
	r := heard()
	for name, want := range map[string]float64{
		"timer:event_processing.normalization:p50":                                      2,
		"timer:sentry.relay.event_processing.normalization:max":                         4,
		"timer:event_processing.normalization:n":                                        4,
		"timer:event_processing.normalization:sum":                                      10,
		"timer:event_processing.normalization:mean":                                     2.5,
		"timer:requests.duration:n":                                                     11,
		"timer:requests.duration:p50":                                                   50,
		"timer:requests.duration[route:/api/0/x:y]:min":                                 100,
		"timer:requests.duration[method:POST][route:/api/{project_id}/envelope/]:p99.9": 50,
		"counter:event.items":                                                           42,
		"counter:event.items[item_type:log]":                                            12,
		"gauge:service.back_pressure":                                                   7,
		"gauge:service.back_pressure:min":                                               -1,
		"gauge:service.back_pressure:max":                                               9,
		"gauge:service.back_pressure[service:a]:last":                                   2,
	} {
		m := store.FindMetric(name)
		if m == nil {
			t.Errorf("%s: no such metric", name)
			continue
		}
		if got, ok := m.Of(r); !ok || math.Abs(got-want) > result.Accuracy*math.Abs(want) {
			t.Errorf("%s: got %v, %t, want %v", name, got, ok, want)
		}
		if names, err := store.ParseMetrics("cpu-per-envelope," + name); err != nil || len(names) != 2 {
			t.Errorf("%s: parsed as %q, %v", name, names, err)
		}
	}
	for _, name := range []string{"timer:no.such:p99", "counter:event.items[item_type:x]", "gauge:event.items", "counter:requests.duration"} {
		if got, ok := store.FindMetric(name).Of(r); ok {
			t.Errorf("%s: got %v, want none", name, got)
		}
	}
	m := store.FindMetric("timer:requests.duration:n")
	if r.Result.Statsd.Cut = "the relay ended"; true {
		if got, ok := m.Of(r); ok {
			t.Errorf("of what is not whole: got %v, want none", got)
		}
	}
	if got, ok := m.Of(storetest.Report(1)); ok {
		t.Errorf("without statsd: got %v, want none", got)
	}
}

func TestStatsdMetricsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"timer:x": "expected timer:x:p99", "timer:x:p100": `"p100" is not a percentile`, "timer:x:pp": "not a percentile", "timer::p99": "expected a name",
		"timer:x[a:p99": "expected [tag:value]", "timer:x[]:p99": "expected [tag:value]", "timer:x[a]p99": "expected nothing but :",
		"counter:x:sum": "expected nothing after", "gauge:x:p99": "expected last, min or max", "times:x:p99": `unknown metric "times:x:p99"`,
	} {
		if _, err := store.ParseMetrics(name); err == nil || !strings.Contains(err.Error(), want) || store.FindMetric(name) != nil {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// A mark that makes the relay's CPU time unfit does so with its timers, and with nothing else that it says.
func TestStatsdUnfit(t *testing.T) {
	r := heard()
	r.Result.Harness.Others = 1e12
	marks := store.MarksOf(r)
	if by, ok := store.Unfit(marks, "timer:requests.duration:p99"); !ok || by != "host-busy" {
		t.Errorf("got %q, %t, want host-busy", by, ok)
	}
	if by, ok := store.Unfit(marks, "counter:event.items"); ok {
		t.Errorf("a counter is unfit by %s", by)
	}
}

func TestCollateStatsd(t *testing.T) {
	db := storetest.Open(t)
	for _, rate := range []string{"100", "200"} {
		r := heard()
		r.Plan["rate"] = rate
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	const p50 = "timer:event_processing.normalization:p50"
	q := store.Collation{Variable: "rate", Metrics: []string{p50, "counter:event.items", "rss-peak"}, Primary: p50, Sort: []store.Criterion{{Name: p50}}, Margin: 0.05}
	c, err := db.Collate(q)
	if err != nil {
		t.Fatal(err)
	}
	row := &c.Groups[0].Rows[1]
	if got := row.Cells[0].Summary.Median; math.Abs(got-2) > 0.02 || row.Cells[1].Summary.Median != 42 || row.Primary != &row.Cells[0] {
		t.Errorf("got %v and %v, want 2 and 42", got, row.Cells[1].Summary.Median)
	}
	for name, want := range map[string]string{
		"timer:event_processing.normalisation:p50":          `did you mean "timer:event_processing.normalization:p50"?`,
		"timer:requests.duraton[method:POTS]:p99":           `did you mean "timer:requests.duration[method:POST]:p99"?`,
		"gauge:service.backpressure":                        `did you mean "gauge:service.back_pressure"?`,
		"counter:zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz": "no report has it",
	} {
		q.Metrics = []string{name}
		_, err := db.Collate(q)
		var unknown *store.StatsdError
		if !errors.As(err, &unknown) || unknown.With != 2 || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	none := storetest.Open(t)
	if err := none.Save(storetest.Report(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := none.Collate(q); err == nil || !strings.Contains(err.Error(), "no report was made with statsd on, of 1 that were looked at") {
		t.Errorf("got %v", err)
	}
}
