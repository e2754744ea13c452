package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"relaybench/commands/line"
	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/store"
	"relaybench/store/storetest"
)

// completed are the candidates at the bar in a line, and the line with the first of them in place.
func completed(s *Session, typed string) (whole string, all []string) {
	pos := strings.Index(typed, "|")
	text := typed[:pos] + typed[pos+1:]
	start, all := s.Complete(text, pos)
	if len(all) > 0 {
		whole = text[:start] + all[0] + text[pos:]
	}
	return whole, all
}

func TestComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"sub/inner.yml", "some file.yml", ".hidden", "x"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db := storetest.Open(t)
	var ids []string
	for i, rate := range []string{"200", "700", "max"} {
		r := storetest.Report(1)
		r.Plan["rate"], r.Plan["label"] = rate, fmt.Sprint("try ", i)
		r.Plan["limits.max_thread_count"] = "4"
		r.Plan["http.encoding"] = "br"
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	b := desk(t, db)
	ann := arrives(t, b, "ann", true)
	ann.says("define ones test 30s --rate 100; define co relay switch -fb $")
	ann.says("define ones test 30s --rate 100")
	ann.says("define both status ; test 10s")
	ann.says("work 1h; work 2h; work 3h")
	defer ann.says("cancel j3; cancel j2; cancel j1")
	for _, tt := range []struct {
		typed string
		want  string // the line with the first candidate; "" where there is none
		among string // a few of the candidates, separated by spaces; - before one that is none
	}{
		{"|", "test", "test explain relay db status define ones both quit -use -info"},
		{"te|", "test", "-show"},
		{"on|", "ones", ""},
		{"nothing|", "", ""},
		{"status; te|", "status; test", ""},
		{"sh| last", "show last", ""},
		{"relay |", "relay use", ""},
		{"db i|", "db info", "info -import -check"},
		{"status |", "", ""},
		{"# te|", "", ""},
		{"zzz |", "", ""},

		// Flags and knobs.
		{"test 10s --ra|", "test 10s --rate", ""},
		{"test 10s -ra|", "test 10s -rate", ""},
		{"test 10s -|", "test 10s --rate", "--mix --config --repeat --fail-if -E --json"},
		{"test --|", "test --rate", "--mix"},
		{"test 10s --mix |", "test 10s --mix mixed", "each errors transactions sessions checkins logs errors=3,logs=1"},
		{"test 10s --mix er|", "test 10s --mix errors", ""},
		{"test 10s --mix=se|", "test 10s --mix=sessions", ""},
		{"test 10s --mix errors=3,lo|", "test 10s --mix errors=3,logs", "errors=3,logs"},
		{"test 10s --rate |", "test 10s --rate 200", "700 max"},
		{"test 10s --rate 200,7|", "test 10s --rate 200,700", ""},
		{"test 10s --connections |", "test 10s --connections 32", ""},
		{"test 10s --label 'try |", "test 10s --label 'try 0'", "'try 2'"},
		{"test 10s --label t|", "test 10s --label 'try 0'", ""},
		{"test 10s --config |", "test 10s --config default", "sub/ 'some file.yml' -.hidden"},
		{"test 10s --config sub/|", "test 10s --config sub/inner.yml", ""},
		{"test 10s --config .|", "test 10s --config .hidden", ""},
		{"test 10s -E http|", "test 10s -E http.encoding=", ""},
		{"test 10s -E |", "test 10s -E http.encoding=", "limits.max_thread_count="},
		{"test 10s -E http.encoding=|", "test 10s -E http.encoding=identity", "http.encoding=gzip http.encoding=br http.encoding=zstd"},
		{"test 10s -E limits.max_thread_count=|", "test 10s -E limits.max_thread_count=4", ""},
		{"test 10s --fail-if through-p|", "test 10s --fail-if through-p50>", "through-p99>"},
		{"test 10s --repeat |", "", ""},
		{"test |", "", ""},
		{"test 10s --resume |", "", ""},

		// Reports, filters, jobs.
		{"show |", "show last", "last-1 " + ids[2] + " " + ids[0]},
		{"show " + ids[1] + "|", "show " + ids[1], ""},
		{"show 2|", "show " + ids[2], ids[0]},
		{"show last l|", "show last ledger", "latency log -samples"},
		{"show last ledger |", "", ""},
		{"delete last |", "delete last last", "last-1"},
		{"diff last |", "diff last last", ""},
		{"reports |", "reports duration=", "mix= relay-branch= through-p99= limits.max_thread_count= report-id="},
		{"reports mix=errors relay-b|", "reports mix=errors relay-branch=", ""},
		{"reports relay-branch=|", "reports relay-branch=main", ""},
		{"reports rate>=|", "reports rate>=200", "rate>=700 rate>=max"},
		{"reports label~|", "reports 'label~try 0'", ""},
		{"reports through-p99>|", "", ""},
		{"cancel |", "cancel j3", "j1 j2"},
		{"wait j2|", "wait j2", ""},

		// Lines within lines.
		{"explain te|", "explain test", ""},
		{"explain test 10s --mi|", "explain test 10s --mix", ""},
		{"explain |", "explain test", "ones"},
		{"explain -|", "explain --json", "--csv"},
		{"ones --mi|", "ones --mix", ""},
		{"both --mix se|", "both --mix sessions", ""},
		{"explain both --mix se|", "explain both --mix sessions", ""},
		{"define o|", "define ones", ""},
		{"define x te|", "define x test", ""},
		{"define x status; test 10s --mi|", "define x status; test 10s --mix", ""},
		{"define rm o|", "define rm ones", ""},
		{"define --|", "define --json", "--csv"},

		// The rest.
		{"help |", "help test", "relay ones marks variables"},
		{"export --format |", "export --format jsonl", "csv benchfmt -text"},
		{"export mix=errors --fo|", "export mix=errors --format", ""},
		{"help db |", "help db info", ""},
		{"help ma|", "help marks", ""},
		{"help host-b|", "help host-busy", ""},
		{"help through-p9|", "help through-p90", "through-p99"},
		{"set |", "set format", "color width"},
		{"set format |", "set format text", "json csv"},
		{"set x |", "", ""},
		{"relay use |", "relay use stand-in", "none last sub/"},
		{"relay use su|", "relay use sub/", ""},
		{"relay use http://127.0.0.1:1 --up|", "relay use http://127.0.0.1:1 --upstream", ""},
		{"import so|", "import 'some file.yml'", ""},
		{"import 'some f|", "import 'some file.yml'", ""},
		{"dump x --mix tr|", "dump x --mix transactions", ""},
	} {
		whole, all := completed(ann.Session, tt.typed)
		if whole != tt.want {
			t.Errorf("%s: completed %q, want %q of %q", tt.typed, whole, tt.want, all)
		}
		words, err := line.Split(tt.among)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range slices.Concat(words...) {
			if no, not := strings.CutPrefix(w, "-"); not && !strings.HasPrefix(tt.typed[max(0, strings.LastIndex(tt.typed, " ")):], " -") && no != "E" {
				if slices.Contains(all, line.Quote(no)) {
					t.Errorf("%s: %q is offered", tt.typed, no)
				}
			} else if !slices.Contains(all, line.Quote(w)) {
				t.Errorf("%s: without %q: %q", tt.typed, w, all)
			}
		}
	}
	if _, all := completed(ann.Session, "test 10s --mix |"); len(all) < len(envelope.Kinds)+2 {
		t.Errorf("kinds %q", all)
	}
	for _, k := range plan.Knobs {
		if !k.Positional && k.By == nil {
			if _, all := completed(ann.Session, "test 10s --"+k.Name+" |"); k.Default != "" && !slices.Contains(all, k.Default) {
				t.Errorf("%s: without its default: %q", k.Name, all)
			}
		}
	}
	for _, pos := range []int{-1, 100} {
		if start, all := ann.Complete("te", pos); start < 0 || start > 2 || len(all) == 0 {
			t.Errorf("at %d: %d, %q", pos, start, all)
		}
	}
}

// Before there is a store, and while it is held, there are commands and flags.
func TestCompleteWithoutAStore(t *testing.T) {
	s := NewBench(Config{DB: os.DevNull}).NewSession(Client{Background: true, Out: &strings.Builder{}})
	for typed, want := range map[string]string{"te|": "test", "show |": "show last", "test 1s --mi|": "test 1s --mix", "reports mi|": "reports mix=", "test 1s --rate |": "test 1s --rate 200", "define x|": ""} {
		if whole, all := completed(s, typed); whole != want {
			t.Errorf("%s: %q of %q, want %q", typed, whole, all, want)
		}
	}
}

func FuzzComplete(f *testing.F) {
	for _, text := range []string{"", "test 10s --mix errors=3,", "define x; y $", "show 'a b", "explain explain explain x -", "a b c d", "--", "test -", "test 1s -E =", "reports =", "dump /nothing/"} {
		f.Add(text, len(text))
	}
	s := NewBench(Config{DB: os.DevNull}).NewSession(Client{Background: true, Remote: true, Out: &strings.Builder{}})
	f.Fuzz(func(t *testing.T, text string, pos int) {
		start, all := s.Complete(text, pos)
		at := max(0, min(pos, len(text)))
		if start < 0 || start > at {
			t.Fatalf("%q at %d: begins at %d", text, pos, start)
		}
		for _, c := range all {
			if words, err := line.Split(text[:start] + c); err != nil || len(words) == 0 {
				t.Errorf("%q at %d: %q makes a line that is none: %v", text, pos, c, err)
			}
		}
	})
}

// large is a store of n reports, of 8 branches by 24 rates by 5 mixes.
func large(b *testing.B, n int) *store.DB {
	path := filepath.Join(b.TempDir(), "relaybench.db")
	db, err := store.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	var ids []string
	for i := range 8 * 24 * 5 {
		r := storetest.Report(1)
		r.Provenance.Relay.Branch = fmt.Sprint("branch-", i%8)
		r.Plan["rate"], r.Plan["mix"], r.Plan["label"] = fmt.Sprint(100*(1+i/8%24)), envelope.Kinds[i/8/24].Name, fmt.Sprint("label ", i)
		if err := db.Save(r); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	// The others are copies of these under other ids: a save for each would take minutes.
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < n-len(ids); {
		err := bolt.Update(func(tx *bbolt.Tx) error {
			for range 5000 {
				id := []byte(fmt.Sprintf("%s-%06x", at.Add(time.Duration(i)*time.Minute).Format("20060102-150405"), i))
				for _, name := range []string{"reports", "own", "index"} {
					bucket := tx.Bucket([]byte(name))
					if err := bucket.Put(id, bucket.Get([]byte(ids[i%len(ids)]))); err != nil {
						return err
					}
				}
				if i++; i == n-len(ids) {
					break
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := bolt.Close(); err != nil {
		b.Fatal(err)
	}
	if db, err = store.Open(path); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// The goal for a keystroke's completion is 50 ms with 100,000 reports.
func BenchmarkComplete(b *testing.B) {
	const n = 100_000
	bench := NewBench(Config{})
	bench.db = large(b, n)
	s := bench.NewSession(Client{Background: true, Out: &strings.Builder{}})
	for _, text := range []string{"", "te", "test 10s --", "test 10s --rate ", "test 10s --label ", "test 10s -E ", "show 2026", "show ", "reports ", "reports relay-branch=", "reports label=", "reports host-load="} {
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if _, all := s.Complete(text, len(text)); len(all) == 0 && !strings.Contains(text, "load") {
					b.Fatal("nothing")
				}
			}
		})
	}
	b.Run("banner", func(b *testing.B) {
		for b.Loop() {
			if len(bench.Banner()) != 3 {
				b.Fatal("no banner")
			}
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			s.Do(b.Context(), "status", func(f *Failure) bool { b.Error(f.Text()); return true })
		}
	})
}

// From a line to its command, with what is defined, and to its end.
func BenchmarkLine(b *testing.B) {
	bench := NewBench(Config{})
	var err error
	if bench.db, err = store.Open(filepath.Join(b.TempDir(), "relaybench.db")); err != nil {
		b.Fatal(err)
	}
	defer bench.db.Close()
	s := bench.NewSession(Client{Out: &strings.Builder{}})
	fail := func(f *Failure) bool { b.Error(f.Text()); return true }
	s.Do(b.Context(), "define three name $1; name $2; name $*", fail)
	for _, text := range []string{"name x", "three a b", "history -n 1", "explain test 10s --rate 200,500 --mix each"} {
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Do(b.Context(), text, fail)
			}
		})
	}
}
