package commands

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// stage makes up runs, so that a comparison takes no time. Each run has the
// metrics of storetest's report, but for its CPU: that of the plan or relay, with a spread of about 1%.
type stage struct {
	mu     sync.Mutex
	runs   int
	cost   func(p plan.Plan, r relay.Program) float64              // 1: as it is
	beyond func(p plan.Plan) bool                                  // sends are refused; may be nil
	spoil  func(run int, r *result.Result) (*result.Result, error) // may be nil; run is from 1
}

func (g *stage) run(_ context.Context, p plan.Plan, r relay.Program, _ harness.Options) (*result.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs++
	res := storetest.Report(10).Result
	spread := 1 + 0.003*float64(g.runs*7%5-2)
	n := float64(res.Tally.Sent)
	res.Relay.CPULoad = res.Relay.CPUStart + int64(n*3e6*spread*g.cost(p, r))
	res.Relay.CPUDrain = res.Relay.CPULoad
	res.Started = res.Started.Add(time.Duration(g.runs) * time.Minute)
	res.Ended = res.Ended.Add(time.Duration(g.runs) * time.Minute)
	if g.beyond != nil && g.beyond(p) {
		res.Kinds[0].Answers[result.AnswerOf(503).String()] = &result.Cell{Sends: 7, Items: 7}
	}
	if g.spoil != nil {
		return g.spoil(g.runs, res)
	}
	return res, nil
}

// byFrames makes CPU dear by the knob frames: 10 is 1.
func byFrames(p plan.Plan, _ relay.Program) float64 { return float64(p.Frames) / 10 }

// staged is a session whose runs are made up.
func staged(t *testing.T, g *stage, out *strings.Builder) (*Session, *store.DB) {
	t.Helper()
	db := storetest.Open(t)
	s := session(db, out)
	s.bench.run = g.run
	started(t, s)
	do(t, s, out, "relay use none")
	return s, db
}

func TestABVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		code       Code
		says       []string
	}{
		{"worse", "ab frames=10 frames=13 test 10s", Worse, []string{"\nworse: cpu-per-envelope +30% [29, 3", "metric", "A frames=10", "B frames=13"}},
		{"a little worse", "ab frames=10 frames=11 test 10s", Worse, []string{"\nworse: cpu-per-envelope +10"}},
		{"better", "ab frames=13 frames=10 test 10s", Fine, []string{"\nbetter: cpu-per-envelope −23", "better *"}},
		{"within a wide margin", "ab frames=10 frames=11 --margin 20% test 10s", Fine, []string{"\nno difference beyond 20%: cpu-per-envelope +10"}},
		{"the same", "ab frames=10 frames=10 test 10s", Fine, []string{"A and B are the same in all conditions: an A/A", "\nA/A: no difference beyond 5%: cpu-per-envelope ", "\nthe same again: collate series-side series="}},
		{"another metric", "ab frames=10 frames=13 --primary through-p50 test 10s", Fine, []string{"\nno difference beyond 5%: through-p50 0", "cpu-per-envelope  2.99 ms", "inconclusive: p="}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			g := &stage{cost: byFrames}
			s, db := staged(t, g, &out)
			code, said := do(t, s, &out, strings.Replace(tt.line, " test", " -n 4 test", 1))
			if code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			wants(t, said, append(tt.says, "warm-up run of A, not saved\nwarm-up run of B, not saved\nrun 1 of 8, A: ", "run 8 of 8, A: ", "; medians A ", "reports series=")...)
			if strings.Contains(said, "ledger") {
				t.Errorf("whole reports are printed:\n%s", said)
			}
			entries, _, err := db.Entries(nil, store.Newest{})
			if err != nil || len(entries) != 8 || g.runs != 10 {
				t.Fatalf("%d reports of %d runs, %v; want 8 of 10", len(entries), g.runs, err)
			}
			var sides, positions []string
			for i := range entries {
				side, _ := entries[i].Var("series-side")
				at, _ := entries[i].Var("series-position")
				sides, positions = append(sides, side), append(positions, at)
			}
			if got := strings.Join(sides, ""); got != "ABBAABBA" || strings.Join(positions, "") != "12345678" {
				t.Errorf("sides %s, positions %s", got, positions)
			}
			// The line that it ends with says the same.
			_, again, _ := strings.Cut(said, "\nthe same again: ")
			code, said = do(t, s, &out, strings.TrimSpace(again))
			if code != Fine || !strings.Contains(said, "n=4+4") {
				t.Errorf("%q: code %d:\n%s", again, code, said)
			}
		})
	}
}

func TestABForPrograms(t *testing.T) {
	var out strings.Builder
	s, _ := staged(t, &stage{cost: byFrames}, &out)
	code, said := do(t, s, &out, "ab frames=10 frames=13 -n 4 test 10s --json")
	var v struct {
		Series, Primary, Answer string
		Code                    int
		Sides                   map[string]struct {
			Text      string
			Reports   []string
			Variables map[string]string
		}
		Metrics []map[string]any
	}
	if err := json.Unmarshal([]byte(said), &v); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if code != Worse || v.Code != 1 || v.Answer != "worse" || v.Primary != "cpu-per-envelope" || len(v.Sides["A"].Reports) != 4 ||
		v.Sides["B"].Text != "frames=13" || v.Sides["B"].Variables["frames"] != "13" || v.Metrics[0]["metric"] != "cpu-per-envelope" || v.Metrics[0]["value_n"] != 4.0 {
		t.Errorf("code %d: %+v", code, v)
	}
	code, said = do(t, s, &out, "ab frames=10 frames=13 -n 4 --csv test 10s")
	rows, err := csv.NewReader(strings.NewReader(said)).ReadAll()
	if err != nil || code != Worse || len(rows) != 1+len(store.DefaultMetrics) {
		t.Fatalf("code %d, %v:\n%s", code, err, said)
	}
	at := func(key string) string { return rows[1][slices.Index(rows[0], key)] }
	if at("primary") != "true" || at("answer") != "worse" || at("margin") != "0.05" || len(strings.Fields(at("value_reports"))) != 4 {
		t.Errorf("%q", rows[:2])
	}
}

// What marks make unfit is left out, counted, and too little of it is no verdict.
func TestABUnfit(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames, spoil: func(run int, r *result.Result) (*result.Result, error) {
		if run > 2 && run < 8 {
			r.Harness.Others = 1e12
		}
		return r, nil
	}}
	s, _ := staged(t, g, &out)
	code, said := do(t, s, &out, "ab frames=10 frames=13 -n 4 test 10s")
	wants(t, said, "which mark host-busy makes unfit", "\nno verdict: needs 4 runs a side, has 1", "left out by mark host-busy")
	if code != Inconclusive {
		t.Errorf("code %d", code)
	}
	g.runs = 0
	if code, said = do(t, s, &out, "ab frames=10 frames=13 -n 4 --marked test 10s"); code != Worse {
		t.Errorf("code %d with what is marked:\n%s", code, said)
	}
}

// A metric that has no value is no verdict, before all runs are made for nothing.
func TestABWithoutAValue(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames, spoil: func(_ int, r *result.Result) (*result.Result, error) {
		r.Relay.CPUKnown = false
		return r, nil
	}}
	s, db := staged(t, g, &out)
	code, said := do(t, s, &out, "ab frames=10 frames=13 test 10s")
	wants(t, said, "no verdict: warm-up run of A: cpu-per-envelope has no value\n", "no run was saved; --primary METRIC")
	if entries, _, err := db.Entries(nil, store.Newest{}); code != Inconclusive || len(entries) != 0 || err != nil || g.runs != 1 {
		t.Errorf("code %d, %d reports, %v, %d runs", code, len(entries), err, g.runs)
	}
	if code, said = do(t, s, &out, "ab frames=10 frames=13 --json test 10s"); code != Inconclusive || !strings.Contains(said, `"answer": "no verdict"`) || !strings.Contains(said, `"metrics": null`) {
		t.Errorf("code %d:\n%s", code, said)
	}
	if code, said = do(t, s, &out, "ab frames=10 frames=13 -n 4 --force test 10s"); code != Inconclusive || !strings.Contains(said, "no value on either side") {
		t.Errorf("code %d:\n%s", code, said)
	}
}

// A run that fails ends it: what is saved is said, and what can be made of it.
func TestABFails(t *testing.T) {
	var out strings.Builder
	died := errors.New("no port is free")
	fails := 9
	g := &stage{cost: byFrames, spoil: func(run int, r *result.Result) (*result.Result, error) {
		if run == fails {
			return nil, died
		}
		return r, nil
	}}
	s, _ := staged(t, g, &out)
	code, said := do(t, s, &out, "ab frames=10 frames=13 -n 6 test 10s; status")
	wants(t, said, "ab: no port is free", "6 of 12 runs were made, and are saved: reports series=", "what they say: collate frames series=")
	if code != CouldNot {
		t.Errorf("code %d", code)
	}
	_, line, _ := strings.Cut(said, "what they say: ")
	line, _, _ = strings.Cut(line, "\n")
	if code, said = do(t, s, &out, line); code != Fine || !strings.Contains(said, "n=3+3") {
		t.Errorf("%q: code %d:\n%s", line, code, said)
	}
	g.runs, fails = 0, 2
	if code, said = do(t, s, &out, "ab frames=10 frames=13 test 10s"); code != CouldNot || !strings.Contains(said, "ab: warm-up run of B: no port is free") || !strings.Contains(said, "no run was saved") {
		t.Errorf("code %d:\n%s", code, said)
	}
}

func TestABInterrupted(t *testing.T) {
	var out strings.Builder
	ctx, cancel := context.WithCancelCause(t.Context())
	g := &stage{cost: byFrames, spoil: func(run int, r *result.Result) (*result.Result, error) {
		if run < 5 {
			return r, nil
		}
		cancel(fmt.Errorf("%w by a test", ErrInterrupted))
		r.Cancelled = "by a test"
		return r, fmt.Errorf("%w by a test", ErrInterrupted)
	}}
	s, db := staged(t, g, &out)
	out.Reset()
	code, _ := s.Do(ctx, "ab frames=10 frames=13 test 10s", func(f *Failure) bool {
		wants(t, f.Hint, "3 of 12 runs were made, and are saved: reports series=", "collate frames series=")
		return true
	})
	entries, _, err := db.Entries(nil, store.Newest{})
	if code != Interrupted || len(entries) != 3 || err != nil || !marked(&entries[2], "cancelled") {
		t.Errorf("code %d, %d reports, %v", code, len(entries), err)
	}
}

// fakeRelay is a program that says which version of Relay it is, and the rest of the file is its own.
func fakeRelay(t *testing.T, path, version string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho relay "+version+"\n# "+filepath.Base(path)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestABBuilds(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	base, head, copied := filepath.Join(dir, "base"), filepath.Join(dir, "head"), filepath.Join(dir, "copy")
	fakeRelay(t, base, "26.4.0")
	fakeRelay(t, head, "26.5.0")
	if text, err := os.ReadFile(base); err != nil || os.WriteFile(copied, text, 0o755) != nil {
		t.Fatal(err)
	}
	changed := 0
	g := &stage{cost: func(_ plan.Plan, r relay.Program) float64 {
		if r.Version == "26.5.0" {
			return 1.2
		}
		return 1
	}, spoil: func(run int, r *result.Result) (*result.Result, error) {
		if run == changed {
			fakeRelay(t, head, "26.6.0")
		}
		return r, nil
	}}
	s, _ := staged(t, g, &out)
	code, said := do(t, s, &out, "ab "+base+" "+head+" -n 4 test 10s")
	wants(t, said, "A: relay 26.4.0, sha256 ", "B: relay 26.5.0, sha256 ", "\nworse: cpu-per-envelope +20", "\nthe same again: collate relay-sha256 series=")
	if code != Worse {
		t.Errorf("code %d", code)
	}
	// A copy of a binary is the same build, whatever its path.
	code, said = do(t, s, &out, "ab "+base+" "+copied+" -n 4 test 10s")
	wants(t, said, "an A/A", "\nA/A: no difference beyond 5%")
	if code != Fine {
		t.Errorf("code %d", code)
	}
	// One that is built anew in the middle is not taken for what it was.
	g.runs, changed = 0, 5
	code, said = do(t, s, &out, "ab "+base+" "+head+" -n 4 test 10s")
	wants(t, said, "26.6.0", "is not the relay any more that the line began with", "of 8 runs were made, and are saved")
	if code != CouldNot {
		t.Errorf("code %d", code)
	}
}

func TestABRefused(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames}
	s, _ := staged(t, g, &out)
	for _, tt := range []struct{ line, says string }{
		{"ab frames=10", "B is missing"},
		{"ab frames=10 frames=11", "test is missing"},
		{"ab frames=10 frames=11 explain", "no test: the line ends with one"},
		{"ab frames=10 frames=11 test", "test: DURATION is missing"},
		{"ab frames=10 rate=11 test 10s", "frames and rate are two knobs: the sides are two values of one"},
		{"ab frames=10 ./relay test 10s", `"frames=10" and "./relay": the sides are two relays, or two values of one knob`},
		{"ab stand-in ./relay test 10s", "stand-in and ./relay are never compared"},
		{"ab http://127.0.0.1:3000 http://127.0.0.1:3001 test 10s", "somebody else's"},
		{"ab raet=10 raet=20 test 10s", `unknown knob "raet"`},
		{"ab raet=10 raet=20 test 10s", "did you mean rate?"},
		{"ab rate=fast rate=200 test 10s", `A: rate: "fast" is not a rate`},
		{"ab rate=100,200 rate=200 test 10s", "rate has a list"},
		{"ab frames=10 frames=11 test 10s --rate 100,200", "test: runs under one load are compared, and here are 2: rate has a list"},
		{"ab frames=10 frames=11 test 10s --frames 12", "frames is given for the sides, and in the test too"},
		{"ab http.encoding=zstd http.encoding=gzip test 10s -E http.encoding=br", "http.encoding is given for the sides, and in the test too"},
		{"ab duration=10s duration=20s test 10s", "duration is given in the test"},
		{"ab label=a label=b test 10s", "label tells no runs apart"},
		{"ab relay.port=1 relay.port=2 test 10s", "relay.port"},
		{"ab frames=10 frames=11 test 10s --repeat 2", "test: --repeat is not for this"},
		{"ab frames=10 frames=11 test 10s --resume", "test: --resume is not for this"},
		{"ab frames=10 frames=11 test 10s --fail-if 'unaccounted>0'", "test: --fail-if is not for this"},
		{"ab frames=10 frames=11 -n 3 test 10s", "-n 3 is not between 4 and 1000"},
		{"ab frames=10 frames=11 --margin 5 test 10s", `--margin: "5" is not a percentage`},
		{"ab frames=10 frames=11 --primary cpu-per-envelop test 10s", "did you mean"},
		{"ab frames=10 frames=11 --primary all test 10s", "is not one metric"},
		{"ab frames=10 frames=11 test 1s", "1s of load are too short for cpu-per-envelope"},
		{"ab frames=10 frames=11 -m 5 test 10s", "unknown flag"},
	} {
		code, said := do(t, s, &out, tt.line)
		if code != Usage || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d: %q, want %q", tt.line, code, said, tt.says)
		}
	}
	if g.runs != 0 {
		t.Errorf("%d runs were made", g.runs)
	}
	if code, said := do(t, s, &out, "ab frames=10 frames=11 --primary through-p50 -n 4 test 1s"); code == Usage {
		t.Errorf("a metric that a short load leaves fit is refused:\n%s", said)
	}
}

// A client elsewhere names no path of this host, as a side or in the test.
func TestABGate(t *testing.T) {
	var out strings.Builder
	s, _ := staged(t, &stage{cost: byFrames}, &out)
	s.client.Remote = true
	for _, line := range []string{
		"ab ./base ./head test 10s", "ab none ./head test 10s", "ab config=default config=/etc/passwd test 10s",
		"ab logging.file=/tmp/x logging.file=y test 10s", "ab frames=10 frames=11 test 10s --config relay.yml", "noise test 10s --config relay.yml", "cost --config relay.yml",
	} {
		if code, said := do(t, s, &out, line); code != Usage || !strings.Contains(said, "this client is a remote one") {
			t.Errorf("%s: code %d: %s", line, code, said)
		}
	}
	if code, said := do(t, s, &out, "ab frames=10 frames=10 -n 4 test 10s"); code != Fine {
		t.Errorf("code %d: %s", code, said)
	}
}

func TestABExplained(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames}
	s, _ := staged(t, g, &out)
	code, said := do(t, s, &out, "explain ab frames=10 frames=20 -n 4 --margin 3% test 10s --rate 100")
	wants(t, said, "A is frames=10, B is frames=20; against none", "then 8 runs: A B B A A B B A", "about 2m30s in all", "cpu-per-envelope decides, by 3%", "sends/s    200")
	if code != Fine || g.runs != 0 || strings.Contains(said, "\nframes ") {
		t.Errorf("code %d, %d runs:\n%s", code, g.runs, said)
	}
	if code, said = do(t, s, &out, "explain ab frames=10 frames=20 -n 4 test 10s --csv"); code != Fine || strings.Count(said, "\n") != 11 {
		t.Errorf("code %d:\n%s", code, said)
	}
}

func TestABComplete(t *testing.T) {
	var out strings.Builder
	s, _ := staged(t, &stage{cost: byFrames}, &out)
	for _, tt := range []struct{ typed, want string }{
		{"ab http.encoding=z", "http.encoding=zstd"},
		{"ab sta", "stand-in"},
		{"ab fra", "frames="},
		{"ab frames=10 frames=11 te", "test"},
		{"ab frames=10 frames=11 --pri", "--primary"},
		{"ab frames=10 frames=11 --primary cpu", "cpu-per-envelope"},
		{"ab frames=10 frames=11 -n 4 test 10s --ra", "--rate"},
		{"noise te", "test"},
		{"noise test 10s --mix err", "errors"},
		{"cost --rep", "--repeat"},
	} {
		if _, got := s.Complete(tt.typed, len(tt.typed)); !slices.Contains(got, tt.want) {
			t.Errorf("%q: %q, want %q among them", tt.typed, got, tt.want)
		}
	}
}

// Each turn may be a search for what a side keeps up with.
func TestABSearch(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames, beyond: func(p plan.Plan) bool { return p.Rate > 12_000/float64(p.Frames) }}
	s, db := staged(t, g, &out)
	code, said := do(t, s, &out, "ab frames=10 frames=12 -n 4 --search test 10s")
	wants(t, said, "mixed for 10s, 4 searches a side", "search 1 of 8, A: keeps up with 1,200/s, not with 1,220/s", "search 8 of 8, A: ", "; medians A 1,", "\nworse: capacity −1", "n=4+4", "the runs: reports series=")
	if code != Worse || strings.Contains(said, "the same again") {
		t.Errorf("code %d:\n%s", code, said)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != g.runs-2 {
		t.Fatalf("%d reports of %d runs, %v", len(entries), g.runs, err)
	}
	for i := range entries {
		if at, _ := entries[i].Var("series-position"); at != fmt.Sprint(i+1) {
			t.Errorf("report %d has position %s", i, at)
		}
	}
	if code, said = do(t, s, &out, "ab frames=12 frames=10 -n 4 --search test 10s --json"); code != Fine || !strings.Contains(said, `"answer": "better"`) || !strings.Contains(said, `"metric": "capacity"`) {
		t.Errorf("code %d:\n%s", code, said)
	}
	if code, said = do(t, s, &out, "explain ab frames=12 frames=10 -n 4 --search test 10s"); code != Fine || !strings.Contains(said, "8 searches of about 13 runs") {
		t.Errorf("code %d:\n%s", code, said)
	}
	for _, tt := range []struct{ line, says string }{
		{"ab frames=12 frames=10 --search test 10s --rate 300", "the rate is what a search looks for"},
		{"ab rate=12 rate=10 --search test 10s", "the rate is what a search looks for"},
		{"ab frames=12 frames=10 --search test 5s", "too short for a search"},
		{"ab frames=12 frames=10 --search --primary rss-peak test 10s", "--search compares capacities"},
	} {
		if code, said := do(t, s, &out, tt.line); code != Usage || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d: %q, want %q", tt.line, code, said, tt.says)
		}
	}
}

// Real runs of the stand-in, some minutes of them; the machine should have nothing else to do.
func TestABForReal(t *testing.T) {
	if os.Getenv("RELAYBENCH_SLOW") == "" {
		t.Skip("takes minutes: RELAYBENCH_SLOW=1 runs it")
	}
	for _, tt := range []struct {
		sides string
		code  Code
		says  string
	}{
		{"standin.cpu=1ms standin.cpu=1.3ms", Worse, "\nworse: cpu-per-envelope +"},
		{"standin.cpu=1ms standin.cpu=1.1ms", Worse, "\nworse: cpu-per-envelope +"},
		{"standin.cpu=1.3ms standin.cpu=1ms", Fine, "\nbetter: cpu-per-envelope −"},
		{"standin.cpu=1ms standin.cpu=1ms", Fine, "\nA/A: no difference beyond 5%"},
	} {
		var out strings.Builder
		s := session(storetest.Open(t), &out)
		started(t, s)
		if code, said := do(t, s, &out, "ab "+tt.sides+" --marked test 5s --rate 100 --mix sessions"); code != tt.code || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d, want %d, %q:\n%s", tt.sides, code, tt.code, tt.says, said)
		}
	}
}
