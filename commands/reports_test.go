package commands

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"relaybench/harness/relay"
	"relaybench/store"
	"relaybench/store/storetest"
)

// stored is a store of several reports, as different as they get.
func stored(t *testing.T) *store.DB {
	db := storetest.Open(t)
	standIn, none, elsewhere, unknown := storetest.Report(10), storetest.Report(10), storetest.Report(10), loaded()
	standIn.Provenance.Relay.Form = relay.FormStandIn
	none.Provenance.Relay.Form = relay.FormNone
	none.Plan["rate"], none.Plan["duration"] = "max", "1h23m45s"
	elsewhere.Provenance.Relay.Form, elsewhere.Provenance.Relay.URL = relay.FormURL, "http://relay.example.org:3000"
	unknown.Provenance.Relay.Form, unknown.Provenance.Relay.Revision = relay.FormPath, ""
	for _, r := range []*store.Report{storetest.Report(10), standIn, none, elsewhere, unknown} {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestReports(t *testing.T) {
	db := stored(t)
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "reports -n all")
	for l := range strings.Lines(got) {
		if w := text.StringWidth(strings.TrimSuffix(l, "\n")); w > 100 {
			t.Errorf("a line is %d wide: %q", w, l)
		}
	}
	if strings.Count(got, "report (UTC)") != 1 {
		t.Errorf("the table is cut in two:\n%s", got)
	}
	wants(t, got, "main", "ae5a27cb9c", "stand-in", "none", "1h23m45s", "max", "199.7", "2.99 ms", "cancelled")

	// A short id names its report.
	lines := strings.Split(strings.TrimSpace(got), "\n")
	short, _, _ := strings.Cut(lines[1], " ")
	if id, err := db.Find(short); err != nil || !strings.HasPrefix(id, short) {
		t.Errorf("%q names %q, %v", short, id, err)
	}

	_, got = do(t, s, &out, "reports -n 2")
	wants(t, got, "2 of 5 reports: 3 older left out, -n all shows all\n")
	_, got = do(t, s, &out, "reports relay-form=none -n 1")
	if strings.Contains(got, "left out") || !strings.Contains(got, "max") {
		t.Errorf("reports of one match:\n%s", got)
	}

	// The columns are the same whatever is listed, and each row has all.
	_, some := do(t, s, &out, "reports --csv")
	_, nothing := do(t, s, &out, "reports rate=7 --csv")
	rows, err := csv.NewReader(strings.NewReader(some)).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if head := strings.ReplaceAll(strings.Join(rows[0], ","), ",http.encoding", ""); head != strings.TrimSpace(nothing) {
		t.Errorf("columns %q and %q", head, nothing)
	}
	_, got = do(t, s, &out, "reports --json")
	var all []map[string]any
	if err := json.Unmarshal([]byte(got), &all); err != nil {
		t.Fatal(err)
	}
	for _, n := range store.VariableNames() {
		if _, ok := all[0][n]; !ok {
			t.Errorf("JSON is without variable %s", n)
		}
	}
	for i := range store.Metrics {
		if m := &store.Metrics[i]; m.Headline {
			if _, ok := all[0][metricKey(m)]; !ok {
				t.Errorf("JSON is without metric %s", metricKey(m))
			}
		}
	}
	if v := all[2]["cpu-per-envelope_ns"]; v == nil {
		t.Errorf("cpu-per-envelope is %v", v)
	}
}

// An entry that cannot be read is a row that says so, in each form.
func TestReportThatCannotBeRead(t *testing.T) {
	db := stored(t)
	entries, _, err := db.Entries(nil, store.Newest{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	entries = append(entries, store.Entry{ID: "20991130-164502-3f9a1c", Problem: "record version 9 was written by relaybench v9: use that one"})
	for format, want := range map[Format]string{Text: "cannot be read\nreport 20991130-164502-3f9a1c cannot be read: record version 9 was written by",
		JSON: `"problem": "record version 9 was written`, CSV: ",record version 9 was written"} {
		var out strings.Builder
		s := session(db, &out)
		s.format = format
		if err := s.printEntries(db, entries, 0); err != nil {
			t.Fatal(err)
		}
		wants(t, out.String(), want)
	}
}

func TestNewest(t *testing.T) {
	for typed, want := range map[string]store.Newest{"all": {}, "1": {N: 1}, "500": {N: 500}, "168h": {Within: 168 * time.Hour}} {
		if got, err := parseNewest(typed); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", typed, got, err, want)
		}
	}
	for _, typed := range []string{"", "0", "-1", "-1h", "0s", "1.5", "alle"} {
		if got, err := parseNewest(typed); err == nil || failure(nil, err).Code != Usage {
			t.Errorf("%q is taken for %v, %v", typed, got, err)
		}
	}
}

func TestDiff(t *testing.T) {
	a, b := storetest.Report(10), storetest.Report(10)
	b.Plan["label"] = "again"
	d := newDifference(a, b)
	if !d.conditionsAlike || len(d.variables) != 1 || d.variables[0].name != "label" || len(d.metrics) != 0 {
		t.Errorf("of two runs of one plan: %+v", d)
	}
	if got, want := d.sameMetrics, len(store.Metrics); got != want {
		t.Errorf("%d metrics are alike, want %d", got, want)
	}
	b.Plan["rate"] = "400"
	b.Result.Relay.CPUDrain *= 2
	b.Result.Relay.RSSPeak = 0
	b.Result.Failed = "load: no"
	d = newDifference(a, b)
	if d.conditionsAlike {
		t.Error("of two rates: alike in conditions")
	}
	db := storetest.Open(t)
	for _, r := range []*store.Report{a, b} {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "diff last-1 last")
	wants(t, strings.Join(strings.Fields(got), " "), "label - again occasion", "rate 200 400 ", "rss-peak 94.4 MB - - failed (second)", "failed (second)", "the two differ in conditions; this is no verdict", "other variables are alike", "other metrics are alike")
	for l := range strings.Lines(got) {
		if strings.HasPrefix(l, "cpu-per-envelope ") && !strings.Contains(l, "+10") { // twice as much, less idle
			t.Errorf("change of the CPU: %q", l)
		}
		if strings.HasPrefix(l, "rss-peak ") && strings.Contains(l, "%") {
			t.Errorf("a change to what is unknown: %q", l)
		}
	}
	_, got = do(t, s, &out, "diff last-1 last --json")
	if !json.Valid([]byte(got)) {
		t.Errorf("no JSON: %s", got)
	}
}

// delete asks where there is somebody to ask, and only a typed yes is one.
func TestDeleteAsks(t *testing.T) {
	for answer, gone := range map[string]bool{"y": true, "Yes ": true, "": false, "n": false, "yess": false, "EOF": false} {
		db := stored(t)
		var out strings.Builder
		s := session(db, &out)
		asked := ""
		s.client.Ask = answering(&asked, answer)
		code, said := do(t, s, &out, "delete last last-1")
		entries, _, err := db.Entries(nil, store.Newest{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(entries) == 3; got != gone || code != Fine || !gone && said != "nothing was deleted\n" {
			t.Errorf("%q: %d reports are left, code %d, %q", answer, len(entries), code, said)
		}
		wants(t, asked, "delete 2 reports (", ")? y/N ")
	}
}

// slow is a writer that stops at its first write until it may go on.
type slow struct {
	at   chan struct{}
	once sync.Once
	may  chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.at) })
	<-s.may
	return len(p), nil
}

// While one client does not read what it asked for, others read and save: no
// transaction is open while something is written to a client.
func TestReaderThatStalls(t *testing.T) {
	t.Parallel()
	db := stored(t)
	b := NewBench(Config{})
	b.db = db
	for _, line := range []string{"reports -n all", "reports --json", "show last", "show last samples --csv", "diff last-1 last", "db info", "status", "export", "export --format csv", "export --format benchfmt"} {
		w := &slow{at: make(chan struct{}), may: make(chan struct{})}
		var joined sync.WaitGroup
		joined.Go(func() {
			b.NewSession(Client{Out: w}).Do(t.Context(), line, func(f *Failure) bool { t.Errorf("%s: %s", line, f.Text()); return true })
		})
		<-w.at
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 5 {
				r := storetest.Report(10)
				r.Result.Relay.Log = []string{strings.Repeat("what makes the file grow ", 10_000)}
				if err := db.Reserve(1 << 20); err != nil { // enlarges the file
					t.Error(err)
				}
				if err := db.Save(r); err != nil {
					t.Error(err)
				}
			}
			b.NewSession(Client{Out: io.Discard}).Do(t.Context(), "status; reports mix~errors; show last", func(f *Failure) bool { t.Error(f.Text()); return true })
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s: its reader stalls all others", line)
		}
		close(w.may)
		joined.Wait()
		<-done
	}
}

// answering is one who is asked, and gives that answer; EOF is the end of the input.
func answering(asked *string, answer string) func(context.Context, string) (string, error) {
	return func(_ context.Context, question string) (string, error) {
		*asked = question
		if answer == "EOF" {
			return "y", io.EOF // cut off before the line's end
		}
		return answer, nil
	}
}

// Looking for reports makes no store; there are none.
func TestNoStoreYet(t *testing.T) {
	path := t.TempDir() + "/relaybench.db"
	var out strings.Builder
	s := NewBench(Config{DB: path}).NewSession(Client{Out: &out})
	defer s.bench.Close()
	for _, tt := range []struct {
		line string
		code Code
		says string
	}{
		{"reports", Fine, "no report\n"},
		{"reports rate=200 --json", Fine, "[]\n"},
		{"reports --csv", Fine, "report-id,"},
		{"reports rate", Usage, ""},
		{"show last", CouldNot, `show: no report "last": no run was made here yet`},
		{"show 2026 ledger", CouldNot, `show: no report "2026": no run was made here yet`},
	} {
		code, said := do(t, s, &out, tt.line)
		if code != tt.code {
			t.Errorf("%s: code %d, want %d", tt.line, code, tt.code)
		}
		wants(t, said, tt.says)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s made a store: %v", tt.line, err)
		}
	}
}
