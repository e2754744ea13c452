package commands

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// inTurns saves n runs a side, A B B A …, each changed by its side and its number.
func inTurns(t testing.TB, db *store.DB, n int, change func(side, i int, r *store.Report)) {
	t.Helper()
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 2 * n {
		r := storetest.Report(10)
		r.Result.Started = began.Add(time.Duration(i) * time.Minute)
		r.Result.Ended = r.Result.Started.Add(15 * time.Second)
		change((i+1)/2%2, i, r)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
}

// varied makes the sides two branches, the second one by a part dearer.
func varied(dearer float64) func(side, i int, r *store.Report) {
	return func(side, i int, r *store.Report) {
		r.Provenance.Relay.Branch, r.Provenance.Relay.Revision = []string{"main", "perf/ua-prefilter"}[side], fmt.Sprintf("%040x", 0xabcdef+side)
		used := float64(r.Result.Relay.CPUDrain - r.Result.Relay.CPUStart)
		r.Result.Relay.CPUDrain += int64(used * (dearer*float64(side) + 0.002*float64(i%3)))
	}
}

// narrow fails the test for each line that is wider than the screen.
func narrow(t *testing.T, got string) {
	t.Helper()
	for l := range strings.Lines(got) {
		if w := text.StringWidth(strings.TrimSuffix(l, "\n")); w > 100 {
			t.Errorf("a line is %d wide: %q", w, l)
		}
	}
	if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Errorf("no number:\n%s", got)
	}
}

func TestCollate(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 5, varied(-0.3))
	var out strings.Builder
	s := session(db, &out)
	code, got := do(t, s, &out, "collate relay-branch mix=errors=3,logs=1")
	narrow(t, got)
	if code != Fine {
		t.Errorf("code %d", code)
	}
	if strings.Count(got, "CPU/env") != 1 {
		t.Errorf("the table is cut in two:\n%s", got)
	}
	flat := strings.Join(strings.Fields(got), " ")
	wants(t, flat, "all: duration 10s, rate 200, mix errors=3,logs=1, host bench1, http.encoding zstd",
		"main 5 3.00 ms 199.7/s", "perf/ua-prefilter 5 2.10 ms * 199.7/s", "perf/ua-prefilter against main:",
		"cpu-per-envelope −30.0% [−30.2, −29.7] p=0.008 n=5+5 better * forwarded-rate", "unaccounted 0 [0, 0] p=1 n=5+5 no difference",
		"* better (green): the difference may be claimed", "margin 5%; cpu-per-envelope is judged by itself")

	_, got = do(t, s, &out, "collate relay-branch --baseline perf/ua-prefilter")
	flat = strings.Join(strings.Fields(got), " ")
	wants(t, flat, "perf/ua-prefilter 5 2.10 ms *", "main against perf/ua-prefilter:", "p=0.008 n=5+5 worse forwarded-rate")
	if strings.Contains(flat, "main 5 3.00 ms *") {
		t.Errorf("the worse row is marked:\n%s", got)
	}

	s.client.Color = true
	_, got = do(t, s, &out, "collate relay-branch --metrics cpu-per-envelope")
	wants(t, got, "\x1b[32m2.10 ms *\x1b[")
	s.client.Color = false

	_, got = do(t, s, &out, "collate relay-branch --runs")
	narrow(t, got)
	if n := strings.Count(got, "2026-11-30 "); n != 10 {
		t.Errorf("%d runs, want 10:\n%s", n, got)
	}

	_, got = do(t, s, &out, "collate relay-branch -n 6")
	wants(t, strings.Join(strings.Fields(got), " "), "no verdict: needs 4 runs a side, has 3", "6 reports compared; 4 older left out by -n")
}

// Where one build drops what another one forwards, that is said beside what an
// envelope costs, and a reason that nobody has heard of has a line of its own.
func TestCollateSaysWhoForwardsLess(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 4, func(side, i int, r *store.Report) {
		r.Provenance.Relay.Version = []string{"26.4.0", "26.9.0"}[side]
		if side == 1 {
			k := &r.Result.Kinds[0]
			cell := k.Answers[result.Accepted.String()]
			dropped := cell.Sends / 10
			cell.Arrived, cell.ArrivedItems = cell.Arrived-dropped, cell.ArrivedItems-dropped
			cell.Missing, cell.MissingItems = dropped, dropped
			k.Elements -= dropped
			k.Outcomes = []result.Outcome{{Outcome: 3, Reason: "reason_of_tomorrow", Category: k.Category, Quantity: dropped}}
		}
	})
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "collate relay-version")
	wants(t, strings.Join(strings.Fields(got), " "), "CPU per envelope is of different work: 26.4.0 100%, 26.9.0 9")
	_, got = do(t, s, &out, "collate relay-branch --singles")
	if strings.Contains(got, "different work") {
		t.Errorf("said of one row:\n%s", got)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		v, _ := e.Var("relay-version")
		_, got = do(t, s, &out, "show "+e.ID+" ledger")
		if is := strings.Contains(got, "reason_of_tomorrow"); is != (v == "26.9.0") {
			t.Errorf("version %s: the ledger has the reason: %v\n%s", v, is, got)
		}
	}
}

// What programs read: all ids, no number that is none, each row as long as the head.
func TestCollateData(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 5, varied(0.2))
	var out strings.Builder
	s := session(db, &out)
	for _, flags := range []string{"", "--metrics all", "--runs", "--singles"} {
		_, got := do(t, s, &out, "collate relay-branch --json "+flags)
		var c struct {
			Groups []struct {
				Baseline *int `json:"baseline_row"`
				Rows     []struct {
					Value   string
					N       int
					Metrics map[string]struct {
						Median     *float64
						Comparison *struct {
							Answer string
							Shift  *float64
							P      *float64
						}
					}
					Reports []struct{ ID string }
				}
			}
		}
		if err := json.Unmarshal([]byte(got), &c); err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
		rows := c.Groups[0].Rows
		if len(rows) != 2 || len(rows[0].Reports) != 5 || len(rows[1].Reports) != 5 || rows[1].Reports[0].ID == "" || *c.Groups[0].Baseline != 0 {
			t.Fatalf("%s: rows %+v", flags, rows)
		}
		cpu := rows[1].Metrics["cpu-per-envelope"]
		if cpu.Comparison.Answer != "worse" || rows[0].Metrics["cpu-per-envelope"].Comparison != nil || *cpu.Comparison.Shift < 0.19 {
			t.Errorf("%s: cpu %+v", flags, cpu)
		}
		if flags == "--metrics all" {
			if m := rows[0].Metrics["rss-slope"]; m.Median != nil {
				t.Errorf("rss-slope of 10 s: %v", *m.Median)
			}
			if len(rows[0].Metrics) != len(store.Metrics) {
				t.Errorf("%d metrics, want %d", len(rows[0].Metrics), len(store.Metrics))
			}
		}
		_, got = do(t, s, &out, "collate relay-branch --csv "+flags)
		records, err := csv.NewReader(strings.NewReader(got)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
		if want := map[string]int{"--runs": 10, "--metrics all": 2 * len(store.Metrics)}[flags]; want > 0 && len(records)-1 != want {
			t.Errorf("%s: %d rows, want %d", flags, len(records)-1, want)
		}
		if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Error("no number in CSV")
		}
	}
}

func TestCollateMarkdown(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 5, func(side, i int, r *store.Report) {
		varied(0.2)(side, i, r)
		r.Provenance.Relay.Branch = []string{"main", "a|b_c*"}[side]
	})
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "collate relay-branch --markdown")
	wants(t, got, "| relay-branch | n | CPU/env |", "|---|---:|---:|", `| a\|b\_c\* | 5 | 3.60 ms ±0.3% |`, `| main | 5 | 3.00 ms ±0.2% \* |`, `| better \* |`, `main against a\|b\_c\*:`)
	_, same := do(t, s, &out, "set format markdown; collate relay-branch; set format text")
	if same != got {
		t.Errorf("set format markdown:\n%s", same)
	}
}

func TestCollateSaysWhatIsTypedWrongly(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 2, varied(0))
	var out strings.Builder
	s := session(db, &out)
	for _, tt := range []struct{ line, says string }{
		{"collate relay-brunch", `did you mean "relay-branch"?`},
		{"collate cpu-per-envelope", "is a metric: expected a variable"},
		{"collate http.encodng", `none of 4 reports has config key "http.encodng" set`},
		{"collate http.encodng", "http.encoding"},
		{"collate relay-branch rat=3", `did you mean "rate"?`},
		{"collate relay-branch rate=fast", "rate"},
		{"collate relay-branch --metrics cpu-per-envelop", `did you mean "cpu-per-envelope"?`},
		{"collate relay-branch --primary through-p9", `through-p9`},
		{"collate relay-branch --primary all", `"all" is not one metric`},
		{"collate relay-branch --sort relay-brunch", `did you mean "relay-branch"?`},
		{"collate relay-branch --sort ,", "expected variables or metrics"},
		{"collate relay-branch --baseline mian", `no report has relay-branch "mian": did you mean "main"?`},
		{"collate relay-branch --margin 5", `"5" is not a percentage such as 5%`},
		{"collate relay-branch --margin -5%", "is not a percentage"},
		{"collate relay-branch --margin NaN%", "is not a percentage"},
		{"collate relay-branch -n none", "is not a number of reports"},
		{"collate", "VARIABLE is missing"},
	} {
		code, got := do(t, s, &out, tt.line)
		if code != Usage || !strings.Contains(got, tt.says) {
			t.Errorf("%s: code %d, %q, want %q", tt.line, code, got, tt.says)
		}
	}
}

// Where there is nothing in common it is said what keeps the reports apart.
func TestCollateOfNothingInCommon(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 5, func(side, i int, r *store.Report) {
		varied(0)(side, i, r)
		r.Plan["rate"] = []string{"200", "300"}[side]
	})
	var out strings.Builder
	s := session(db, &out)
	code, got := do(t, s, &out, "collate relay-branch")
	narrow(t, got)
	wants(t, strings.Join(strings.Fields(got), " "), "rate 200 relay-branch", "main 5 3.00 ms", "rate 300 relay-branch", "perf/ua-prefilter 5 3.00 ms",
		"nothing to compare: no group has two values of relay-branch, because rate differs: 200 and 300")
	if code != Fine || strings.Contains(got, betterSign) {
		t.Errorf("code %d:\n%s", code, got)
	}
	_, got = do(t, s, &out, "collate relay-branch relay-branch=mian")
	wants(t, got, "no report: none has relay-branch mian; the nearest is main")
	_, got = do(t, s, &out, "collate relay-branch relay-branch=main")
	wants(t, got, "nothing to compare: all have relay-branch main")
	_, got = do(t, s, &out, "collate label")
	wants(t, got, "none of 10 reports has a value of label")
}

// In blocks the machine's drift is in the number: figures, and no verdict on CPU or time.
func TestCollateOfBlocks(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 5, func(_, i int, r *store.Report) {
		varied(0.5)(i/5, i, r)
		r.Result.CalibrationBefore += int64(i / 5 * 20e6)
		r.Result.CalibrationAfter += int64(i / 5 * 20e6)
		if i == 2 {
			r.Result.Harness.Others = 9e9
		}
	})
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "collate relay-branch")
	narrow(t, got)
	flat := strings.Join(strings.Fields(got), " ")
	wants(t, flat, "cpu-per-envelope +50.2%", "n=4+5 no verdict", "rss-peak 0.00%", "no difference beyond 5%",
		"no verdict: not interleaved: the machine's drift is in this number (5 runs of one side in a row)",
		"calibration differs by 6.6%: the machine was not as fast for both",
		"left out by mark host-busy: 1 value each of cpu-per-envelope, through-p50, through-p99, response-p99")
	if strings.Contains(got, betterSign+" better") {
		t.Errorf("a claim of blocks:\n%s", got)
	}
	_, got = do(t, s, &out, "collate relay-branch --marked")
	wants(t, got, "n=5+5")
	if strings.Contains(got, "left out by mark") {
		t.Errorf("--marked leaves out:\n%s", got)
	}
}

// A config key that is not set has a row: the relay's own default.
func TestCollateBySetting(t *testing.T) {
	db := storetest.Open(t)
	inTurns(t, db, 4, func(side, _ int, r *store.Report) {
		if delete(r.Plan, "http.encoding"); side == 1 {
			r.Plan["http.encoding"] = "gzip"
			r.Result.Relay.ConfigHash = "0123456789abcdef"
		}
	})
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "collate http.encoding")
	wants(t, strings.Join(strings.Fields(got), " "), "(not set) 4", "gzip 4", "gzip against (not set):")
}

func TestCollateWithoutAStore(t *testing.T) {
	var out strings.Builder
	s := NewBench(Config{DB: t.TempDir() + "/relaybench.db"}).NewSession(Client{Out: &out})
	defer s.bench.Close()
	for line, want := range map[string]string{"collate relay-branch": "no report\n", "collate rate --json": `"groups": []`, "collate rate --csv": "group,variable,value,runs,metric"} {
		if code, got := do(t, s, &out, line); code != Fine || !strings.Contains(got, want) {
			t.Errorf("%s: code %d, %q", line, code, got)
		}
	}
}
