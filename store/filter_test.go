package store_test

import (
	"strings"
	"testing"
	"time"

	"relaybench/harness/result"
	"relaybench/store"
)

// inZone makes the test's local time zone one that is an hour and a half ahead of UTC.
func inZone(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("", 90*60)
	t.Cleanup(func() { time.Local = was })
}

func TestFilter(t *testing.T) {
	inZone(t)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	full := known(t)
	full.Plan["mix"], full.Plan["relay.x"], full.Plan["label"] = "errors", "a=b", "a, \"b\"\nÄ"
	bare := &store.Report{ID: "20261201-113000-000001", Provenance: result.Provenance{Relay: result.Relay{Form: "url"}}}
	for _, c := range []struct {
		filter     string
		full, bare bool
	}{
		{"mix=errors=1", true, false}, {"mix=errors", true, false}, {"mix=errors=7", true, false}, {"mix!=errors=1", false, true}, {"mix~rror", true, false},
		{"mix=mixed", false, true},
		{"rate=200", true, true}, {"rate=2e2", true, true}, {"rate>199", true, true}, {"rate>200", false, false}, {"rate>=200.0", true, true},
		{"rate<1000", true, true}, {"rate<=100", false, false}, {"rate<max", true, true}, {"rate!=max", true, true},
		{"duration=10000ms", true, true}, {"duration<1m", true, true}, {"duration>9999ms", true, true},
		{"connections=32", true, true}, {"connections>4x7", true, true},
		{"spans=20-100", true, true}, {"filtered=0.0", true, true}, {"seed>=1", true, true},
		{"label~Ä", true, false}, {"label=a, \"b\"\nÄ", true, false}, {"label=", false, true}, {"label!=", true, false}, {"label~", true, false},
		{"relay.x=a=b", true, false}, {"relay.x!=a=b", false, true}, {"relay.x=", false, true}, {"relay.x!=", true, false}, {"relay.x~=", true, false},
		{"http.encoding=zstd", true, false}, {"http.encoding>y", true, false}, {"no.such.key=", true, true}, {"no.such.key=1", false, false}, {"no.such.key!=1", true, true},
		{"relay-branch=main", true, false}, {"relay-branch~main", true, false}, {"relay-branch!=main", false, true},
		{"relay-revision=ae5a", true, false}, {"relay-revision=AE5A27CB", true, false}, {"relay-revision=e5a", false, false}, {"relay-revision!=ae5a", false, true},
		{"relay-version>26.3.9", true, false}, {"relay-version<26.10", true, false}, {"relay-version>=26.4", true, false}, {"relay-version=26.4", true, false},
		{"relay-dirty=TRUE", true, false}, {"relay-dirty=no", false, false}, {"debug-build=no", true, true},
		{"relay-size>=80MiB", true, false}, {"relay-size=83886080", true, false}, {"host-memory>7.5G", true, false}, {"host-memory<9GB", true, false},
		{"host-cpus>=2", true, false}, {"host-load<1.1", true, false},
		{"report-id=20261130", true, false}, {"report-id=20261201-113000-000001", false, true}, {"report-id>20261130-2", false, true}, {"imported=no", true, false},
		// The report was saved on 2026-11-30 at 16:45:02 UTC, 18:15:02 here; the other one at 13:00.
		{"report-date=2026-11-30", true, false}, {"report-date!=2026-11-30", false, true}, {"report-date<2026-12-01", true, false}, {"report-date>2026-11-30", false, true},
		{"report-date>=2026-11-30", true, true}, {"report-date<=2026-11-30", true, false}, {"report-date<2026-11-30", false, false},
		{"report-date=2026-11-30T18:15", true, false}, {"report-date=2026-11-30T18:14", false, false}, {"report-date=2026-11-30 18:15:02", true, false},
		{"report-date=2026-11-30T16:45:02Z", true, false}, {"report-date>2026-11-30T16:45:02Z", false, true},
		{"report-date>2h", false, true}, {"report-date<2h", true, false}, {"report-date>20h", true, true}, {"report-date>=30m", false, true}, {"report-date>29m", false, false},
		{"started>20h", true, false}, {"ended=", false, true}, {"started!=", true, false}, {"started!=2020-01-01", true, true},
		{"revision-date<2026-12-01", true, false}, {"revision-date=2026-04-15", true, false}, {"revision-date!=2026-04-15", false, true},
		{"through-p99<1s", true, false}, {"through-p99>1ms", true, false}, {"through-p99>1s", false, false}, {"through-p99=", false, true}, {"through-p99!=", true, false},
		{"rss-peak=90MiB", true, false}, {"rss-peak!=90MiB", false, true}, {"rss-peak>=89.9MiB", true, false}, {"forwarded-rate>150", true, false}, {"arrived-share=100%", true, false},
	} {
		f, err := store.ParseFilter(c.filter, now)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		for _, r := range []struct {
			name   string
			report *store.Report
			want   bool
		}{{"full", full, c.full}, {"bare", bare, c.bare}} {
			if got := f.Match(store.EntryOf(r.report)); got != r.want {
				t.Errorf("%s of the %s report: got %v, want %v", c.filter, r.name, got, r.want)
			}
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for _, c := range []struct{ filter, want string }{
		{"", `filter "": expected NAME=VALUE`},
		{"rate", `filter "rate": expected NAME=VALUE, or with !=, <, <=, >, >= or ~ (contains)`},
		{"=200", "expected NAME=VALUE"},
		{"rate!200", "expected NAME=VALUE"},
		{"ratte=200", `unknown variable "ratte": did you mean "rate"?`},
		{"relay-brnch=main", `did you mean "relay-branch"?`},
		{"trough-p99>1ms", `did you mean "through-p99"?`},
		{"xyzzyx=1", `unknown variable "xyzzyx": expected a variable, a headline metric, or a config key with a dot`},
		{"rate=fast", `filter "rate=fast": "fast" is not a rate: a number of sends a second, or max`},
		{"duration>10", `"10" is not a duration such as 10s`},
		{"mix=errs", `unknown kind "errs"`},
		{"rate<", "expected a value (rate)"},
		{"relay-dirty=maybe", `"maybe" is not yes or no`},
		{"relay-size>big", `"big" is not a size such as 8GiB`},
		{"relay-revision=main", `"main" is not a hash`},
		{"report-id=last", `"last" is not an id`},
		{"report-date=30.11.2026", `"30.11.2026" is not a date such as 2026-11-30 or 2026-11-30T14:00, nor an age such as 2h`},
		{"report-date>-2h", "is not a date"},
		{"report-date=2h", "no report is exactly 2h old: expected < or >, as in report-date>2h"},
		{"label=\xff", "is not a text"},
		{"through-p99>50", `through-p99: "50" is not a duration such as 50ms`},
		{"through-p99~5", "expected =, !=, <, <=, > or >= with a metric"},
		{"through-p99>", "expected a value (ns)"},
		{"through-p99.9>1s", "through-p99.9 is not in the index of reports; metrics that are: cpu-per-envelope"},
		{"forwarded-rate>many", `"many" is not a number of sends/s`},
		{"rss-peak>much", `"much" is not a size`},
	} {
		if f, err := store.ParseFilter(c.filter, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.filter, f, err, c.want)
		}
	}
}

// A filter of a report that cannot be read matches by what is known of it, and by nothing else.
func TestFilterOfUnreadable(t *testing.T) {
	e := &store.Entry{ID: "20261130-164502-3f9a1c", Problem: "record is damaged"}
	for filter, want := range map[string]bool{
		"report-id=2026": true, "report-date=2026-11-30": true, "imported=yes": true,
		"rate=200": false, "rate!=200": false, "label=": false, "started!=2020-01-01": false, "through-p99!=1s": false, "through-p99=": false, "label~": false,
	} {
		f, err := store.ParseFilter(filter, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Match(e); got != want {
			t.Errorf("%s: got %v, want %v", filter, got, want)
		}
	}
	if e.Fit() || len(e.Marks()) > 0 || e.Group() != "" {
		t.Error("it has marks or a group, or is fit")
	}
}

func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		metric, text string
		want         float64
		err          string
	}{
		{"through-p99", "50ms", 5e7, ""}, {"through-p99", "1.5s", 1.5e9, ""}, {"cpu-per-envelope", "3100µs", 3.1e6, ""},
		{"rss-peak", "90MiB", 90 << 20, ""}, {"rss-peak", "1024", 1024, ""}, {"rss-slope", "-1KiB/s", -1024, ""}, {"pushed-bytes-rate", "2MB", 2e6, ""},
		{"forwarded-rate", "200", 200, ""}, {"forwarded-rate", "200sends/s", 200, ""}, {"arrived-share", "99.9%", 99.9, ""}, {"arrived-share", "99.9", 99.9, ""},
		{"unaccounted", "0", 0, ""}, {"backlog-slope", "-0.5", -0.5, ""}, {"memory-efficiency", "3", 3, ""},
		{"through-p99", "", 0, "is not a duration"}, {"through-p99", "--1s", 0, "is not a duration"}, {"rss-peak", "-", 0, "is not a size"},
		{"forwarded-rate", "NaN", 0, "is not a number"}, {"forwarded-rate", "inf", 0, "is not a number"}, {"forwarded-rate", "--1", 0, "is not a number"}, {"unaccounted", "1s", 0, "is not a number of sends"},
	} {
		got, err := store.FindMetric(c.metric).ParseValue(c.text)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %q: got %v, %v, want %v, %q", c.metric, c.text, got, err, c.want, c.err)
		}
	}
}

// What parses, typed again as it is written, is the same filter.
func FuzzParseFilter(f *testing.F) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, seed := range []string{"rate>=200", "mix=errors=1", "label~a=b", "report-date>2h", "started=2026-11-30T14:00", "http.encoding!=", "through-p99<=50ms",
		"relay-version<26.10", "relay-size=8GiB", "relay-dirty=yes", "relay-revision=AE5A", "spans=20-100", "connections=4x32", "x=", "=", "~", "rate!200"} {
		f.Add(seed)
	}
	entries := []*store.Entry{store.EntryOf(known(f)), store.EntryOf(&store.Report{}), {Problem: "x"}}
	f.Fuzz(func(t *testing.T, text string) {
		one, err := store.ParseFilter(text, now)
		if err != nil {
			return
		}
		two, err := store.ParseFilter(one.String(), now)
		if err != nil {
			t.Fatalf("%q was read as %q, which cannot be read: %v", text, one, err)
		}
		if one.String() != two.String() {
			t.Errorf("%q was read as %q, and that as %q", text, one, two)
		}
		for i, e := range entries {
			if one.Match(e) != two.Match(e) {
				t.Errorf("entry %d: %q and %q differ", i, one, two)
			}
		}
	})
}
