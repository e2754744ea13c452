package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"relaybench/harness"
	"relaybench/harness/perf"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// profiled is a profile of stacks, the innermost function first, with so many samples each.
func profiled(t *testing.T, stacks map[string]int64) *result.Profile {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, DefaultSampleType: "cpu"}
	known := map[string]*profile.Location{}
	total := int64(0)
	for stack, n := range stacks {
		s := &profile.Sample{Value: []int64{n, n * 1e7}, Label: map[string][]string{"thread": {"pool-processor-"}}}
		for _, name := range strings.Fields(stack) {
			if known[name] == nil {
				f := &profile.Function{ID: uint64(len(known) + 1), Name: name}
				known[name] = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
				p.Function, p.Location = append(p.Function, f), append(p.Location, known[name])
			}
			s.Location = append(s.Location, known[name])
		}
		p.Sample = append(p.Sample, s)
		total += n
	}
	var data bytes.Buffer
	if err := p.Write(&data); err != nil {
		t.Fatal(err)
	}
	return &result.Profile{CallGraph: "dwarf", Freq: 99, Event: "cpu-clock", Perf: "6.1", Took: 6e9, Samples: uint64(total), Whole: uint64(total) / 4, Lost: 3, Data: data.Bytes()}
}

// profiles is a session whose store has two profiled reports, and a newest one that is not.
func profiles(t *testing.T, out *strings.Builder) *Session {
	db := storetest.Open(t)
	for _, stacks := range []map[string]int64{
		{"find uaparser::parse main": 35, "uaparser::parse main": 5, "scrub main": 60},
		{"prefilter main": 3, "scrub main": 72},
		nil,
	} {
		r := storetest.Report(6)
		if stacks != nil {
			r.Plan["profiled"], r.Result.Profile = "dwarf@99", profiled(t, stacks)
		}
		if len(stacks) == 2 { // it has become cheaper by what was the parser's
			r.Provenance.Relay.SHA256 = strings.Repeat("ab", 32)
			r.Result.Relay.CPUDrain = r.Result.Relay.CPUStart + (r.Result.Relay.CPUDrain-r.Result.Relay.CPUStart)*3/4
		}
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	return session(db, out)
}

func TestShowProfile(t *testing.T) {
	var out strings.Builder
	s := profiles(t, &out)
	shows := func(line string, parts ...string) string {
		t.Helper()
		code, said := do(t, s, &out, line)
		if code != Fine {
			t.Errorf("%s: code %d: %s", line, code, said)
		}
		wants(t, said, parts...)
		return said
	}
	said := shows("show last-2 profile", "100 samples in 6.0 s", "by cpu-clock, call graph dwarf, 3 lost", "a share of 10% is uncertain by ±5.9 points", "no cycles to count", "complete stacks: 25.0% (25 of 100)",
		"a send costs the relay", "scrub", "uaparser::parse", "60.0%  60.0%", "35.0%  35.0%", " 5.0%  40.0%")
	if strings.Index(said, "scrub") > strings.Index(said, "find") {
		t.Errorf("not the greatest first:\n%s", said)
	}
	said = shows("show last-2 profile --focus uaparser -n 1", "40.0% of samples have a function in their stack that matches \"uaparser\"", "complete stacks: 25.0%", "35.0%  35.0%", "and 2 more functions: -n 0 lists all")
	if strings.Contains(said, "scrub") {
		t.Errorf("what is not in focus:\n%s", said)
	}
	said = shows("show last-1 profile --base last-2", "3.00 ms of CPU a send", "complete stacks 24.0%", "2.25 ms of CPU a send", "find", "prefilter")
	if find := lineWith(said, "find"); !strings.Contains(find, "-") || !strings.Contains(find, "35.0%   0.0%") {
		t.Errorf("what shrank: %q", find)
	}
	if pre := lineWith(said, "prefilter"); !strings.Contains(pre, "+") || !strings.Contains(pre, "0.0%   4.0%") {
		t.Errorf("what grew: %q", pre)
	}
	if strings.Contains(said, "differ in more") {
		t.Errorf("they differ in the build alone:\n%s", said)
	}
	shows("show last-1 profile --base last-2 --focus uaparser", "40.0% of samples match", "0.0% of samples match")

	var rows []map[string]any
	if err := json.Unmarshal([]byte(shows("show last-2 profile --json")), &rows); err != nil || len(rows) != 4 || rows[0]["function"] != "scrub" || rows[0]["self_percent"] != 60.0 || rows[0]["whole_stacks_percent"] != 25.0 || rows[0]["lost_samples"] != 3.0 {
		t.Errorf("JSON: %v, %v", rows, err)
	}
	shows("show last-2 profile --csv", "self_percent,total_percent,self_ns,total_ns,function,whole_stacks_percent,lost_samples\n60,60,")
	shows("show last-1 profile --base last-2 --csv", "self_change_ns,total_change_ns,")
	shows("show last-2", "mark profiled: call graph dwarf, 99 samples a second of cpu-clock", "complete stacks: 25.0%", "3 lost")
}

// Of a profile that failed, nothing is said but why.
func TestNoProfile(t *testing.T) {
	r := storetest.Report(6)
	r.Plan["profiled"], r.Result.Profile = "fp@99", &result.Profile{CallGraph: "fp", Freq: 99, Event: "cycles", Failed: "interrupted"}
	said := shown(t, r, 200, "show last")
	wants(t, said, "mark profiled: ", "no profile was made: interrupted")
	if strings.Contains(said, "0 samples") {
		t.Error(said)
	}
}

// lineWith is the line of a text that ends with a word.
func lineWith(text, word string) string {
	for l := range strings.Lines(text) {
		if strings.HasSuffix(strings.TrimSpace(l), " "+word) {
			return l
		}
	}
	return ""
}

// What is worked off in the drain is in no profile.
func TestProfileOfTheLoadAlone(t *testing.T) {
	r := storetest.Report(6)
	r.Result.Profile = profiled(t, map[string]int64{"a main": 1})
	run := &r.Result.Relay
	run.CPULoad = run.CPUStart + (run.CPUDrain-run.CPUStart)/4
	wants(t, shown(t, r, 200, "show last profile"), "75.0% of the relay's CPU was used in the drain, which is not in the profile")
	wants(t, shown(t, r, 200, "show last profile --base last"), "75.0% of the CPU was used in the drain and is not in it")
}

// What it costs is compared by shares where what a send costs is not known.
func TestProfileWithoutCPU(t *testing.T) {
	db := storetest.Open(t)
	for range 2 {
		r := storetest.Report(6)
		r.Result.Relay.CPUKnown = false // nor then whether the drain took much
		r.Result.Profile = profiled(t, map[string]int64{"a main": 1, "b main": 3})
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	s := session(db, &out)
	_, said := do(t, s, &out, "show last profile")
	wants(t, said, "75.0%")
	if strings.Contains(said, "a send costs") {
		t.Error(said)
	}
	_, said = do(t, s, &out, "show last profile --base last-1")
	wants(t, said, "shares of each profile")
}

func TestShowProfileRefuses(t *testing.T) {
	var out strings.Builder
	s := profiles(t, &out)
	for line, want := range map[string]string{
		"show last profile":                        "no profile was made in this run",
		"show last-1 profile --base last":          "no profile was made in this run",
		"show last-1 profile --base nothing":       `no report "nothing"`,
		"show last-1 profile --focus (":            "--focus: error parsing regexp",
		"show last-1 profile -n -1":                "-n -1 is no number of rows",
		"show last-1 profile --base last-2 --to x": "exclude each other",
		"show last --focus x":                      "--focus is of the view profile",
		"show last-1 ledger -n 3":                  "--number is of the view profile",
		"show last-1 profile --to /nowhere/at/all": "no such file",
		"show last-1 profile --to .html":           "names no file",
	} {
		if code, said := do(t, s, &out, line); code == Fine || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, %q, want %q", line, code, said, want)
		}
	}
}

func TestProfileFiles(t *testing.T) {
	var out strings.Builder
	s := profiles(t, &out)
	to := filepath.Join(t.TempDir(), "relay")
	if code, said := do(t, s, &out, "show last-1 profile --to "+to+".html"); code != Fine || !strings.Contains(said, to+".pb.gz") {
		t.Fatalf("code %d: %s", code, said)
	}
	isProfile(t, to, "prefilter")
	if code, said := do(t, s, &out, "show last-1 profile --to "+to); code == Fine || !strings.Contains(said, "nothing is written over") {
		t.Errorf("again: code %d: %s", code, said)
	}
}

// isProfile checks the two files of a profile.
func isProfile(t *testing.T, path, function string) {
	t.Helper()
	data, err := os.ReadFile(path + ".pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := profile.ParseData(data); err != nil || !strings.Contains(p.String(), function) {
		t.Errorf("%s: %v", path, err)
	}
	if page, err := os.ReadFile(path + ".html"); err != nil || !bytes.Contains(page, []byte(function)) {
		t.Errorf("%s: %d bytes, %v", path, len(page), err)
	}
}

// tester is a session whose test makes no runs, but reports with a profile of what was to be profiled.
func tester(t *testing.T, out *strings.Builder) *Session {
	s := session(storetest.Open(t), out)
	started(t, s)
	s.bench.findPerf = func(_ context.Context, graphs ...string) (perf.Means, error) {
		if graphs[0] == perf.LBR {
			graphs = graphs[1:]
		}
		if len(graphs) == 0 {
			return perf.Means{}, errors.New("call graph lbr needs an Intel CPU")
		}
		return perf.Means{CallGraph: graphs[0]}, nil
	}
	s.bench.run = func(_ context.Context, p plan.Plan, _ relay.Program, _ harness.Options) (*result.Result, error) {
		r := storetest.Report(6).Result
		if p.Profiled.On() {
			r.Profile = profiled(t, map[string]int64{p.Profiled.String() + " main": 1})
		}
		return r, nil
	}
	do(t, s, out, "relay use stand-in")
	return s
}

func TestPerf(t *testing.T) {
	var out strings.Builder
	s := tester(t, &out)
	dir := t.TempDir()
	reports := func() (profiled []string) {
		if err := s.bench.db.ReadReports(ids(t, s.bench.db), func(r *store.Report) error {
			profiled = append(profiled, r.Plan["profiled"])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return profiled
	}
	one := filepath.Join(dir, "one")
	code, said := do(t, s, &out, "test 6s --perf "+one)
	wants(t, said, "profile: "+one+".pb.gz", "a flame graph")
	if code != Fine {
		t.Errorf("code %d: %s", code, said)
	}
	isProfile(t, one, "fp@499") // it is the stand-in
	do(t, s, &out, "test 6s --perf "+filepath.Join(dir, "many.pb.gz")+" --call-graph lbr,fp --perf-freq 250 --rate 100,200")
	many, err := filepath.Glob(filepath.Join(dir, "many-2*"))
	if err != nil || len(many) != 4 {
		t.Errorf("got %q, %v", many, err)
	} else {
		isProfile(t, strings.TrimSuffix(many[0], ".html"), "fp@250")
	}
	equal(t, "reports", reports(), []string{"fp@499", "fp@250", "fp@250"})
	_, said = do(t, s, &out, "explain test 6s --perf "+filepath.Join(dir, "x")+" --rate 1,2 --call-graph lbr,dwarf")
	wants(t, said, "the relay is profiled: ", "x-REPORT.pb.gz, and .html", "dwarf@99")
}

// ids are those of all reports.
func ids(t *testing.T, db *store.DB) (all []string) {
	t.Helper()
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		all = append(all, entries[i].ID)
	}
	return all
}

func TestPerfRefuses(t *testing.T) {
	var out strings.Builder
	s := tester(t, &out)
	dir := t.TempDir()
	t.Chdir(dir)
	for _, tt := range []struct {
		line string
		code Code
		says string
	}{
		{"test 6s --call-graph fp", Usage, "--perf FILE profiles the relay"},
		{"test 6s --perf-freq 99", Usage, "--perf FILE profiles the relay"},
		{"test 6s --perf x --call-graph elf", Usage, `--call-graph "elf": expected`},
		{"test 6s --perf x --perf-freq 100000", Usage, "not between 1 and 10000"},
		{"test 6s --perf x --call-graph lbr", CouldNot, "--perf: call graph lbr needs an Intel CPU"},
		{"test 6s --perf no/x", CouldNot, "no such file"},
		{"test 6s --perf x/", Usage, "names no file"},
		{"ab rate=1 rate=2 test 6s --perf x", Usage, "--perf is not for this"},
		{"relay use none; test 6s --perf x", Usage, "no process that is started here"},
	} {
		if code, said := do(t, s, &out, tt.line); code != tt.code || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d, %q", tt.line, code, said)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files: %v, %v", left, err)
	}
}

// A profile that failed is no reason to lose the report, and is an error all the same.
func TestPerfFails(t *testing.T) {
	var out strings.Builder
	s := tester(t, &out)
	s.bench.run = func(context.Context, plan.Plan, relay.Program, harness.Options) (*result.Result, error) {
		r := storetest.Report(6).Result
		r.Profile = &result.Profile{CallGraph: "fp", Freq: 99, Event: "cycles", Failed: "perf script: killed"}
		return r, nil
	}
	code, said := do(t, s, &out, "test 6s --perf "+filepath.Join(t.TempDir(), "x"))
	if code != CouldNot || !strings.Contains(said, "its profile failed: perf script: killed") || len(ids(t, s.bench.db)) != 1 {
		t.Errorf("code %d: %s", code, said)
	}
}
