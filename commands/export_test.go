package commands

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// archive is a store of runs of two builds and two rates, one of them with a label that is hard to write.
func archive(t *testing.T) *store.DB {
	db := storetest.Open(t)
	for i := range 16 {
		r := storetest.Report(6)
		r.Result.Relay.CPUDrain += int64(i%3) * 1e6
		if i%4 < 2 {
			r.Provenance.Relay.Branch, r.Provenance.Relay.Revision, r.Provenance.Relay.SHA256 = "perf/x", strings.Repeat("ab", 20), strings.Repeat("cd", 32)
			r.Result.Relay.CPUDrain += int64(r.Result.Tally.Sent) * 1e6
		}
		if i%2 == 0 {
			r.Plan["rate"] = "400"
		}
		if i == 0 {
			r.Plan["label"] = "a comma, a \"quote\", a\nnewline and an Umlaut: ä"
			r.Plan["relay.x"] = "two\nlines"
			r.Result.Upstream.WireBytes = 9007199254740993
		}
		if i == 14 {
			r.Result.Tally.AcceptedSpans.Service = result.NewSketch()
			for _, ms := range []int64{137, 210, 288, 389} {
				r.Result.Tally.AcceptedSpans.Service.Add(ms * 1e6)
			}
		}
		if i == 15 {
			r.Result.Failed = "load: no"
		}
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestExportCSV(t *testing.T) {
	db := archive(t)
	var out strings.Builder
	s := session(db, &out)
	_, got := do(t, s, &out, "export --format csv")
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != 17 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := map[string]int{}
	for i, key := range rows[0] {
		if _, twice := at[key]; twice {
			t.Errorf("column %s is there twice", key)
		}
		at[key] = i
	}
	for _, n := range append(store.VariableNames(), "relay.x", "http.encoding") {
		if _, ok := at[n]; !ok {
			t.Errorf("no column %s", n)
		}
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows[1:] {
		r, err := db.Get(entries[n].ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := row[at["report-id"]]; got != r.ID {
			t.Errorf("row %d is of %s, want %s", n, got, r.ID)
		}
		for i := range store.Metrics {
			m := &store.Metrics[i]
			v, ok := m.Of(r)
			text := row[at[metricKey(m)]]
			if got, err := strconv.ParseFloat(text, 64); ok && (err != nil || got != v) || !ok && text != "" {
				t.Errorf("%s %s: %q, want %v, %v", r.ID, m.Name, text, v, ok)
			}
		}
		for _, of := range []string{"through", "response", "service"} {
			last := 0.0
			for _, q := range []string{"min", "p50", "p90", "p99", "p99.9", "max"} {
				v, err := strconv.ParseFloat(row[at[of+"-"+q+"_ns"]], 64)
				if err != nil || v < last || v == 0 {
					t.Errorf("%s-%s: %v after %v, %v", of, q, v, last, err)
				}
				last = v
			}
			count, most := row[at[of+"-count"]], row[at[of+"-max_ns"]]
			if few := of == "service" && n == 14; few && (count != "4" || most != "389000000") || !few && count != "1200" {
				t.Errorf("%s of %s sends, %s at most", of, count, most)
			}
		}
		if got := row[at["refused-service-min_ns"]] + row[at["refused-service-p50_ns"]]; got != "" {
			t.Errorf("of no refused send: %q", got)
		}
	}
	if got, want := rows[1][at["label"]], "a comma, a \"quote\", a\nnewline and an Umlaut: ä"; got != want {
		t.Errorf("label %q, want %q", got, want)
	}
	if got := rows[16][at["marks"]]; got != "failed" {
		t.Errorf("marks %q", got)
	}
}

// benchstat is the version whose tables the test below knows.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// What is exported is read by benchstat as it is.
func TestExportBenchfmt(t *testing.T) {
	t.Parallel()
	db := archive(t)
	var out, notes strings.Builder
	s := session(db, &out)
	s.client.Notes = &notes
	_, got := do(t, s, &out, "export --format benchfmt")
	if n := strings.Count(got, "\n"+benchName+" 1200 "); n != 15 {
		t.Errorf("%d benchmarks, want 15: one has no value that is fit:\n%.2000s", n, got)
	}
	wants(t, got, "Unit cpu-per-envelope-ns better=lower\n", "Unit forwarded-rate-sends/s better=higher\n", "\nrelay-branch: perf/x\n", "\nrelay.x: \"two\\nlines\"\n", "\nrelay.x:\n", " rss-peak-B ", " memory-efficiency/min ")
	for _, no := range []string{"label", "report-id", "NaN", "Inf", "Unit due-rate"} {
		if strings.Contains(got, "\n"+no) || strings.Contains(got, no+" ") {
			t.Errorf("%q is in it", no)
		}
	}
	const flags = "-col relay-branch -ignore relay-revision,relay-sha256"
	wants(t, notes.String(), "values left out that marks make unfit (failed ", "1 report left out for having no other value", "benchstat "+flags+" FILE compares them by that")

	path := filepath.Join(t.TempDir(), "bench.txt")
	if _, got := do(t, s, &out, "export relay.x= --format benchfmt --to "+path); got == "" {
		t.Error("nothing was said of the file")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("benchstat cannot be run here: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"run", benchstat}, strings.Fields(flags), []string{path})...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	table, err := cmd.Output()
	if err != nil {
		for _, why := range []string{"dial tcp", "lookup ", "module lookup disabled", "connection refused", "i/o timeout"} {
			if strings.Contains(stderr.String(), why) {
				t.Skipf("benchstat cannot be fetched here: %s", stderr.String())
			}
		}
		t.Fatalf("benchstat: %v: %s", err, stderr.String())
	}
	text := string(table)
	wants(t, text, "rate: 200\n", "rate: 400\n", "│        perf/x        │", "│ cpu-per-envelope-sec │", "3.999m", "2.999m", "n=4+3)", "n=3+4)")
	if n := strings.Count(text, "│ cpu-per-envelope-sec │"); n != 2 || stderr.Len() > 0 {
		t.Errorf("%d groups, want one for each rate; %s\n%s", n, stderr.String(), text)
	}
}

// An export is stopped, and leaves no file.
func TestExportThatIsStopped(t *testing.T) {
	db := archive(t)
	var out strings.Builder
	s := session(db, &out)
	for _, format := range exportFormats {
		ctx, cancel := context.WithCancelCause(t.Context())
		x := &export{s: s, ctx: ctx, db: db, format: format}
		var err error
		if x.entries, _, err = db.Entries(nil, store.Newest{}); err != nil {
			t.Fatal(err)
		}
		cancel(fmt.Errorf("%w by a test", ErrInterrupted))
		dir := t.TempDir()
		if err := x.do(filepath.Join(dir, "x"), true); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: %v", format, err)
		}
		if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
			t.Errorf("%s: left over: %v, %v", format, found, err)
		}
	}
}

// A report that cannot be read is named, and the rest exported.
func TestExportOfWhatCannotBeRead(t *testing.T) {
	db := archive(t)
	var out strings.Builder
	s := session(db, &out)
	entries, _, err := db.Entries(nil, store.Newest{N: 2})
	if err != nil {
		t.Fatal(err)
	}
	entries = append(entries, store.Entry{ID: "20991130-164502-3f9a1c", Problem: "record version 9 was written by relaybench v9: use that one"})
	err = (&export{s: s, ctx: t.Context(), db: db, format: jsonLines, entries: entries}).do("", false)
	if f := failure(nil, err); err == nil || f.Code != CouldNot || len(f.Detail) != 1 || !strings.Contains(f.Detail[0], "20991130-164502-3f9a1c cannot be read: record version 9") {
		t.Errorf("got %+v", f)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
}

// What is compared by is what was set, not what follows from it.
func TestBenchstatFlags(t *testing.T) {
	for _, test := range []struct{ varied, want string }{
		{"", ""},
		{"rate", "-col rate"},
		{"config-hash http.encoding", "-col http.encoding -ignore config-hash"},
		{"relay-sha256 relay-branch", "-col relay-branch -ignore relay-sha256"},
		{"config-hash", "-col config-hash"},
	} {
		c := benchConfig{varied: map[string]bool{}}
		for _, name := range strings.Fields(test.varied) {
			c.varied[name] = true
		}
		if got := c.flags(); got != test.want {
			t.Errorf("%q: %q, want %q", test.varied, got, test.want)
		}
	}
}
