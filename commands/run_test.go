package commands

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/store"
	"relaybench/store/storetest"
)

// session is one of a bench with that store; what it prints goes to out.
func session(db *store.DB, out *strings.Builder) *Session {
	b := NewBench(Config{Host: "bench1"})
	b.db = db
	return b.NewSession(Client{Out: out, Width: 100})
}

// started starts the queue of a session's bench, for a test.
func started(t *testing.T, s *Session) {
	s.bench.Start(context.Background())
	t.Cleanup(s.bench.end)
}

// do runs a line and gives the code, and all that it says: what is printed, then failures.
func do(t *testing.T, s *Session, out *strings.Builder, text string) (Code, string) {
	t.Helper()
	out.Reset()
	code, _ := s.Do(t.Context(), text, func(f *Failure) bool {
		fmt.Fprintf(out, "%s\n%s\nhint: %s\n", f.Text(), strings.Join(f.Detail, "\n"), f.Hint)
		return true
	})
	return code, out.String()
}

// full is a store that takes no report, nor a file in some folders.
type full struct {
	*store.DB
	no string
}

func (full) Save(*store.Report) error { return errors.New("save report: no room") }

func (f full) SaveFile(r *store.Report, folder string) (string, error) {
	if folder == f.no {
		return "", errors.New("no room there either")
	}
	return f.DB.SaveFile(r, folder)
}

// A report that the store does not take is in a file that is named, and comes back from it.
func TestKeep(t *testing.T) {
	db := storetest.Open(t)
	other, no := t.TempDir(), t.TempDir()
	r := storetest.Report(6)
	err := keep(full{db, no}, r, no, other)
	if err == nil {
		t.Fatal("no error")
	}
	f := failure(&testCommand, err)
	path := filepath.Join(other, "relaybench-"+r.ID+".report")
	wants(t, f.Text(), "test: save report: no room; no room there either: it is in the file", path)
	wants(t, f.Hint, "import "+path)
	if f.Code != CouldNot {
		t.Errorf("code %d, want %d", f.Code, CouldNot)
	}

	var out strings.Builder
	s := session(db, &out)
	for _, tt := range []struct{ line, says string }{
		{"show last", "no run was made here yet"},
		{"import " + path, "1 new, 0 known\n"},
		{"import " + path, "0 new, 1 known\n"},
		{"show last", "report " + r.ID}, // it is one of this host
		{"reports", "1 report"},
	} {
		if _, said := do(t, s, &out, tt.line); tt.line != "reports" && !strings.Contains(said, tt.says) {
			t.Errorf("%s: %q, want %q in it", tt.line, said, tt.says)
		}
	}

	if err := keep(full{db, no}, storetest.Report(6), no); err == nil || strings.Contains(err.Error(), "it is in the file") {
		t.Errorf("nowhere to keep it: %v", err)
	}
	if err := keep(db, storetest.Report(6), no); err != nil {
		t.Errorf("a store that works: %v", err)
	}
}

// What has a fit report is left out, what has none is run, by the conditions of today.
func TestResumeRuns(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	var out strings.Builder
	s := session(db, &out)
	started(t, s)
	do(t, s, &out, "relay use none")
	const line = "test 300ms --rate 20,40 --mix sessions --pool 10 --connections 1 --resume"
	save := func(rate string) {
		p := plan.Default()
		for knob, text := range map[string]string{"duration": "300ms", "rate": rate, "mix": "sessions", "pool": "10", "connections": "1"} {
			if err := plan.Find(knob).Set(&p, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Save(made(p, s.provenance(t.Context(), relay.Program{Form: relay.FormNone}))); err != nil {
			t.Fatal(err)
		}
	}
	save("20")
	code, said := do(t, s, &out, line)
	wants(t, said, "1 of 2 runs are left out, for fit reports are of them\nrun 1 of 1\nno relay: straight into the upstream: sessions at 40/s for 300ms", "mark short")
	if code != Unfit || strings.Contains(said, "20/s for 300ms") {
		t.Errorf("code %d:\n%s", code, said)
	}
	r, err := db.Get("last")
	if err != nil {
		t.Fatal(err)
	}
	if in := r.Provenance.Series; in.ID == "" || in.Position != 1 || in.Of != 1 || in.Round != 1 {
		t.Errorf("series %+v", in)
	}

	_, said = do(t, s, &out, "explain "+line)
	wants(t, said, "1 run", "against none: 300ms of load", "1 of 2 runs are left out", "  1  ") // the short one is not fit
	save("40")
	code, said = do(t, s, &out, line)
	if want := "fit reports are of all 2 runs: nothing is left to do\n"; code != Fine || !strings.HasPrefix(said, want) || strings.Contains(said, "run 1") {
		t.Errorf("code %d: %q, want %q", code, said, want)
	}
	code, said = do(t, s, &out, strings.Replace(line, "20,40", "40", 1))
	if want := "a fit report is of this run: nothing is left to do\n"; code != Fine || said != want {
		t.Errorf("code %d: %q, want %q", code, said, want)
	}
	_, said = do(t, s, &out, "explain "+line+" --repeat 2")
	wants(t, said, "2 of 4 runs are left out")
}

// What a list has to run after an end in its middle is said.
func TestListThatIsStopped(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	var out strings.Builder
	s := session(db, &out)
	started(t, s)
	do(t, s, &out, "relay use none")
	ctx, cancel := context.WithCancelCause(t.Context())
	runs := 0
	s.client.Out = onLine(func(line string) {
		if runs += strings.Count(line, "\nreport "); runs > 0 { // the first one is shown
			cancel(fmt.Errorf("%w by a test", ErrInterrupted))
		}
	})
	var failures []*Failure
	code, more := s.Do(ctx, "test 200ms --rate 20,40 --mix sessions --pool 10 --repeat 2; status", func(f *Failure) bool {
		failures = append(failures, f)
		return true
	})
	if code != Interrupted || more || len(failures) != 1 {
		t.Fatalf("code %d, more %t, failures %v", code, more, failures)
	}
	wants(t, failures[0].Text(), "test: interrupted by a test")
	wants(t, failures[0].Hint, "1 of 4 runs were done: the same line with --resume makes those that have no fit report")
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != 1 {
		t.Errorf("%d reports, %v; want 1", len(entries), err)
	}
}

// onLine is a writer that hands over what is written.
type onLine func(string)

func (f onLine) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

// A clock that is set back in mid-run moves no metric: only Started and Ended
// are of the wall clock, and nothing is derived from them.
func TestClockSetBack(t *testing.T) {
	as, back := storetest.Report(10), storetest.Report(10)
	back.Result.Ended = back.Result.Started.Add(-time.Hour)
	for i := range store.Metrics {
		m := &store.Metrics[i]
		v, ok := m.Of(as)
		w, okw := m.Of(back)
		if v != w || ok != okw {
			t.Errorf("%s: %v, %t instead of %v, %t", m.Name, w, okw, v, ok)
		}
	}
	if got := store.MarksOf(back); len(got) != len(store.MarksOf(as)) {
		t.Errorf("marks %v", got)
	}
	got := shown(t, back, 100, "show last; reports; show last latency")
	if want := shown(t, as, 100, "show last latency"); !strings.HasSuffix(got, want) {
		t.Errorf("latencies moved:\n%s", got)
	}
}
