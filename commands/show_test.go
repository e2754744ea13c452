package commands

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"relaybench/envelope"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

var update = flag.Bool("update", false, "write golden files anew")

// shown is what a line prints in a store that holds one report.
func shown(t *testing.T, r *store.Report, width int, text string) string {
	t.Helper()
	db := storetest.Open(t)
	if err := db.Save(r); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	b := NewBench(Config{})
	b.db = db
	b.NewSession(Client{Out: &out, Width: width}).Do(t.Context(), text, func(f *Failure) bool {
		t.Errorf("%s: %s %s", text, f.Text(), strings.Join(f.Detail, "\n"))
		return true
	})
	return out.String()
}

// wants fails the test for each part that is not in a text.
func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("without %q:\n%s", p, got)
		}
	}
}

func TestSummary(t *testing.T) {
	got := shown(t, storetest.Report(10), 100, "show last")
	first, _, _ := strings.Cut(got, "\n")
	if want := "relay 26.4.0 release, main ae5a27cb9c75, sha256 2c26b46b68ff: errors=3,logs=1 at 200/s for 10s"; first != want {
		t.Errorf("first line %q, want %q", first, want)
	}
	wants(t, got,
		"http.encoding zstd", "2.99 ms per handled send", "at 200/s", "sent 200/s of 200/s due", "forwarded 199.7/s", "arrived 100% of expected items",
		"idle 0.002 cores", "at the end of the load, steady · drained in",
		"memory efficiency 2.03", "(accepted bytes a minute / peak RSS), as hey-apm has it\n", "open loop", "shared 2 CPUs, not pinned", "synthetic payloads", "outcomes of every sort")
	if strings.Contains(got, "mark ") {
		t.Errorf("a mark on a good run:\n%s", got)
	}
}

// loaded is a report with all that a summary may have to say.
func loaded() *store.Report {
	r := storetest.Report(10)
	r.Provenance.Relay = result.Relay{Form: "stand-in", Version: "stand-in-1"}
	r.Plan["label"] = strings.Repeat("a long label ", 8)
	r.Plan["mix"] = "mixed"
	r.Result.Kinds = nil
	for _, k := range envelope.Kinds {
		x := result.Kind{Name: k.Name, Unit: k.Unit, Category: k.Category, Due: 1_000_000, DueItems: 1_000_000, Elements: 900_000,
			Repeats: 7, Through: result.NewSketch(), Outcomes: []result.Outcome{{Outcome: 1, Category: k.Category, Reason: "web-crawlers", Quantity: 50_000}},
			Answers: map[string]*result.Cell{
				"accepted":                {Sends: 950_000, Items: 950_000, Arrived: 890_000, ArrivedItems: 890_000},
				"503 Service Unavailable": {Sends: 20_000, Items: 20_000, Missing: 20_000, MissingItems: 20_000},
				"429 Too Many Requests":   {Sends: 10_000, Items: 10_000, Arrived: 10_000, ArrivedItems: 10_000},
				"timeout":                 {Sends: 5_000, Items: 5_000, Missing: 5_000, MissingItems: 5_000},
			}}
		if k.Unit != "item" {
			x.DueItems *= 10
			for _, c := range x.Answers {
				c.Items *= 10
			}
		}
		r.Result.Kinds = append(r.Result.Kinds, x)
	}
	for range 40 {
		r.Result.Tally.RefusedSpans.Response.Add(682_000_000)
		r.Result.Tally.RefusedSpans.Service.Add(682_000_000)
	}
	r.Result.Cancelled, r.Result.FailedStep = "interrupted by SIGINT", "load"
	r.Result.Relay.Messages = []result.Message{{Level: "ERROR", Text: "a \x1b[31mbad\x1b[0m thing " + strings.Repeat("x", 200), Count: 12}}
	return r
}

func TestTrend(t *testing.T) {
	for v, want := range map[float64]string{-0.26: "falling by 0.26/s", 0: "steady", -0.0001: "steady", 1500: "growing by 1,500/s"} {
		if got := trend(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestSummaryFits(t *testing.T) {
	for name, r := range map[string]*store.Report{"good": storetest.Report(10), "loaded": loaded()} {
		got := shown(t, r, 100, "show last")
		if n := strings.Count(got, "\n"); n > 50 || name == "good" && n > 36 {
			t.Errorf("%s: a summary of %d lines:\n%s", name, n, got)
		}
		for l := range strings.Lines(got) {
			if w := text.StringWidth(strings.TrimSuffix(l, "\n")); w > 100 {
				t.Errorf("%s: a line is %d wide: %q", name, w, l)
			}
			if strings.ContainsRune(l, '\x1b') {
				t.Errorf("%s: an escape from outside came through: %q", name, l)
			}
		}
	}
	got := shown(t, loaded(), 100, "show last")
	wants(t, got, "stand-in", `cancelled in step "load": interrupted by SIGINT`, "mark cancelled", "makes every metric unfit",
		"1.5% of the sends that were due were never sent", "250,000 filtered (web-crawlers)", "503 Service Unavailable", "timeout",
		"* p99, p99.9 rest on 40 sends", "sessions are forwarded as they are")
}

func TestSummaryWithoutLoad(t *testing.T) {
	r := storetest.Report(10)
	r.Result = &result.Result{Started: r.Result.Started, Ended: r.Result.Ended, Failed: "start relay: no", FailedStep: "start relay"}
	wants(t, shown(t, r, 100, "show last"), "failed: start relay: no", "there was no load", "mark no-load")
	for _, v := range views {
		if v.show == nil { // a report without a profile: TestShowProfileRefuses
			continue
		}
		shown(t, r, 100, "show last "+v.name)
		shown(t, r, 100, "show last --json "+v.name)
		shown(t, r, 100, "show last --csv "+v.name)
	}
	var j map[string]any
	if err := json.Unmarshal([]byte(shown(t, r, 100, "show last --json")), &j); err != nil {
		t.Fatal(err)
	}
}

// Quantiles rise, end at the exact maximum, and say when they rest on few sends.
func TestFewSends(t *testing.T) {
	for _, values := range [][]int64{{137e6, 210e6, 288e6, 389e6}, {682e6}} {
		r := storetest.Report(4)
		spans := result.Spans{Response: result.NewSketch(), Service: result.NewSketch()}
		for _, v := range values {
			spans.Response.Add(v)
			spans.Service.Add(v)
		}
		r.Result.Tally.AcceptedSpans = spans
		most := float64(slices.Max(values))
		got := shown(t, r, 100, "show last")
		wants(t, got, fmt.Sprintf("%.0f ms ", most/1e6))
		if len(values) == 4 {
			wants(t, got, "* p90, p99, p99.9 rest on 4 sends")
		} else {
			wants(t, got, "* p50, p90, p99, p99.9 rest on 1 send:")
		}
		var rows []struct {
			Span, Of string
			N        uint64
			Min      float64 `json:"min_ns"`
			P50      float64 `json:"p50_ns"`
			P90      float64 `json:"p90_ns"`
			P99      float64 `json:"p99_ns"`
			P999     float64 `json:"p999_ns"`
			Max      float64 `json:"max_ns"`
		}
		if err := json.Unmarshal([]byte(shown(t, r, 100, "show last latency --json")), &rows); err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, row := range rows {
			if row.Span != "response" || row.Of != "accepted" {
				continue
			}
			seen = true
			if q := []float64{row.Min, row.P50, row.P90, row.P99, row.P999, row.Max}; !slices.IsSorted(q) || row.Max != most || row.Min != float64(values[0]) {
				t.Errorf("of %v: %v", values, q)
			}
		}
		if !seen {
			t.Errorf("no row of response: %v", rows)
		}
	}
}

// Nothing accepted: unknown is a dash and null, and what is truly nothing is 0.
func TestNothingAccepted(t *testing.T) {
	r := storetest.Report(6)
	tally := r.Result.Tally
	tally.RefusedSpans, tally.AcceptedSpans = tally.AcceptedSpans, result.Spans{Response: result.NewSketch(), Service: result.NewSketch()}
	tally.Counts = [result.Answers]uint64{}
	tally.Counts[result.AnswerOf(503)] = tally.Sent
	for i := range r.Result.Kinds {
		k := &r.Result.Kinds[i]
		k.Answers = map[string]*result.Cell{"503 Service Unavailable": {Sends: k.Due, Items: k.DueItems, Missing: k.Due, MissingItems: k.DueItems}}
		k.Elements, k.Through = 0, result.NewSketch()
	}
	for i := range r.Result.Samples {
		r.Result.Samples[i].Arrived = 0
	}
	got := shown(t, r, 100, "show last")
	wants(t, got, "response: due to answer   refused", "forwarded 0/s")
	for l := range strings.Lines(got) {
		if strings.HasPrefix(l, "response: due to answer   accepted") && strings.Count(l, " -") != 5 {
			t.Errorf("percentiles of none: %q", l)
		}
	}
	var j struct {
		Metrics map[string]struct{ Value *float64 }
	}
	if err := json.Unmarshal([]byte(shown(t, r, 100, "show last --json")), &j); err != nil {
		t.Fatal(err)
	}
	if v := j.Metrics["response-p99"].Value; v != nil {
		t.Errorf("response-p99 of none is %v, want null", *v)
	}
	if v := j.Metrics["forwarded-rate"].Value; v == nil || *v != 0 {
		t.Errorf("forwarded-rate is %v, want 0", v)
	}
}

// keys lists the paths of keys in a JSON value; those of maps by free names are {}.
func keys(at string, v any, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if at == ".plan" || strings.HasSuffix(at, "_by") {
				k = "{}"
			}
			keys(at+"."+k, x, out)
		}
	case []any:
		for _, x := range v {
			keys(at+"[]", x, out)
		}
	default:
		out[at] = true
	}
}

// The keys of JSON are stable: programs read them.
func TestKeysOfJSON(t *testing.T) {
	var j any
	if err := json.Unmarshal([]byte(shown(t, loaded(), 100, "show last --json")), &j); err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	keys("", j, paths)
	got := strings.Join(sorted(paths), "\n") + "\n"
	const golden = "testdata/show.keys"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("keys of show --json (-want +got); -update writes them anew\n%s", d)
	}
}

func TestViews(t *testing.T) {
	r := loaded()
	for view, parts := range map[string][]string{
		"summary": {"report ", "mark cancelled"},
		"ledger":  {"due", "  not sent", "    unaccounted", "in logs", "all sends", "all items", "beyond what was sent"},
		"latency": {"through", "lateness", "errors"},
		"timers":  {"no timers: statsd was off"},
		"samples": {"10.0 s", "load"},
		"config":  {"# hash, without what the run owns: 9f86d081884c7d65", "  mode: managed"},
		"host":    {"bench1", "go1.26.8"},
		"log":     {"12 × ERROR", "relay shutdown complete"},
	} {
		wants(t, shown(t, r, 100, "show last "+view), parts...)
		if out := shown(t, r, 100, "show last --json "+view); !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON:\n%s", view, out)
		}
		if _, err := csv.NewReader(strings.NewReader(shown(t, r, 100, "show last --csv "+view))).ReadAll(); err != nil {
			t.Errorf("%s: no CSV: %v", view, err)
		}
	}
	if len(views) != 9 { // with profile: TestShowProfile
		t.Error("a view is not tested")
	}
}

func TestMetricsAsCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(shown(t, loaded(), 0, "show last --csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"report", "metric", "value", "unit", "unfit"}; !slices.Equal(rows[0], want) {
		t.Errorf("head %q, want %q", rows[0], want)
	}
	if got, want := len(rows)-1, len(store.Metrics); got != want {
		t.Errorf("%d rows, want one for each of %d metrics", got, want)
	}
	for _, row := range rows[1:] {
		if row[4] != "cancelled" {
			t.Errorf("%s of a cancelled run is unfit by %q", row[1], row[4])
		}
	}
}

// Each line of the summary names metrics that there are.
func TestSummaryFigures(t *testing.T) {
	for _, l := range summaryFigures {
		names := metricName.FindAllString(l.say, -1)
		if len(names) == 0 {
			t.Errorf("%s says nothing", l.head)
		}
		for _, n := range names {
			if store.FindMetric(strings.Trim(n, "{}")) == nil {
				t.Errorf("%s: no metric %s", l.head, n)
			}
		}
	}
}

// Each headline metric is in the summary: in its figures, its ledger or its latencies.
func TestHeadlinesAreInTheSummary(t *testing.T) {
	var said strings.Builder
	for _, l := range summaryFigures {
		said.WriteString(l.say)
	}
	for _, m := range store.Metrics {
		if !m.Headline || strings.Contains(said.String(), "{"+m.Name+"}") {
			continue
		}
		span, _, _ := strings.Cut(m.Name, "-")
		if spanSays[span] == "" && m.Name != "unaccounted" {
			t.Errorf("headline metric %s is not in the summary", m.Name)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "ns", "0"}, {999, "ns", "999 ns"}, {1500, "ns", "1.50 µs"}, {2_994_800, "ns", "2.99 ms"}, {389e6, "ns", "389 ms"},
		{5_000_000_000, "ns", "5,000 ms"}, {12_345_678_901, "ns", "12.3 s"}, {-1500, "ns", "-1.50 µs"},
		{0, "B", "0 B"}, {999_400, "B", "999 kB"}, {999_600, "B", "1.00 MB"}, {94_371_840, "B", "94.4 MB"}, {3_280_000, "B/s", "3.28 MB/s"},
		{100, "%", "100%"}, {99.999, "%", "99.99%"}, {99.2, "%", "99.20%"}, {2, "%", "2.0%"}, {0, "%", "0.0%"}, {150, "%", "150.0%"},
		{199.7, "sends/s", "199.7/s"}, {200, "sends/s", "200/s"}, {0.5, "sends/s", "0.5/s"}, {-4e-05, "sends/s", "0/s"}, {12_345.6, "sends/s", "12,346/s"},
		{0.0123, "cores", "0.012 cores"}, {3, "sends", "3"}, {1_234_567, "items", "1,234,567"}, {2.034, "/min", "2.03/min"},
	} {
		if got := quantity(tt.v, tt.unit); got != tt.want {
			t.Errorf("quantity(%v, %q) = %q, want %q", tt.v, tt.unit, got, tt.want)
		}
	}
}
