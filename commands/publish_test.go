package commands

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// pageReports are a store of runs at a rate, flat out and of a search, on two
// hosts. Their ids are always the same.
func pageReports(t *testing.T) *store.DB {
	t.Helper()
	from, to := storetest.Open(t), storetest.Open(t)
	var lines strings.Builder
	for i := range 14 {
		r := storetest.Report(6 + i%2*2)
		r.Plan["duration"] = "8s"
		r.Result.Started = r.Result.Started.Add(time.Duration(i) * time.Minute)
		r.Result.Ended = r.Result.Ended.Add(time.Duration(i) * time.Minute)
		r.Result.Relay.CPUDrain += int64(i%3) * 1e7
		r.Result.Pool.WarmUps = 2 + i%4
		switch {
		case i < 4:
			r.Plan["rate"] = []string{"200", "400"}[i%2]
		case i < 10:
			r.Plan["rate"], r.Plan["connections"] = "max", []string{"1", "4x32"}[i%2]
			if i == 8 {
				r.Result.Harness.Others = 5e9
			}
			if i == 9 {
				r.Result.Cancelled = "by ann"
			}
		default:
			r.Plan["rate"] = []string{"100", "800"}[i%2]
			r.Provenance.Series = result.Series{ID: "20261130-170000-abcd", Position: i - 9, Round: 1}
			if i%2 == 1 {
				for j := range r.Result.Samples {
					r.Result.Samples[j].Backlog = int64(j) * 100
					r.Result.Samples[j].Arrived -= min(r.Result.Samples[j].Arrived, uint64(j)*100)
				}
			}
		}
		if i%2 == 1 && i < 10 {
			r.Provenance.Host.Name, r.Provenance.Host.Turbo, r.Provenance.Host.Load1 = "bench/2", "off", float64(i)
		}
		if err := from.Save(r); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("20261130-17%02d00-%06x", i, i)
		err := from.ReadLines([]string{r.ID}, func(line []byte) error {
			_, err := lines.WriteString(strings.ReplaceAll(string(line), r.ID, id))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "all.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Import(t.Context(), file, "x", false); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestPublish(t *testing.T) {
	db := pageReports(t)
	var out strings.Builder
	s := session(db, &out)
	dir := t.TempDir()
	at := filepath.Join(dir, "page")
	code, got := do(t, s, &out, "publish "+at)
	wants(t, got, "summary.md", "host-bench-2.json", "config-9f86d081884c7d65.yml", "in "+at+": 14 runs in 6 cells", "left out by mark cancelled")
	if code != Fine {
		t.Errorf("code %d", code)
	}
	page := read(t, at, "summary.md")
	golden := filepath.Join("testdata", "page.md")
	if *update {
		if err := os.WriteFile(golden, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("the page (-want +got; go test -update writes it):\n%s", diff)
	}
	// No figure of a closed loop or a search is above its fine print.
	flat := page[strings.Index(page, "## Flat out"):]
	if fine, table := strings.Index(flat, "not a capacity"), strings.Index(flat, "| cell |"); fine < 0 || table < fine {
		t.Errorf("fine print at %d, figures at %d", fine, table)
	}
	wants(t, page, "keeps up with 100/s, not with 800/s", "mark host-busy, 1 of 14 runs", "2 to 5 warm-up sends before", "mark cancelled, 1 of 14 runs")

	// Rows of both tables, each with what has to be known of it.
	rows := rowsOf(t, at, "runs.csv")
	if len(rows) != 14 {
		t.Errorf("%d runs", len(rows))
	}
	for _, row := range rows {
		if flat := row["rate"] == "max"; flat != strings.Contains(row["fine_print"], "closed loop") || row["cell"] == "" {
			t.Errorf("%s: rate %s, cell %q, fine print %q", row["report-id"], row["rate"], row["cell"], row["fine_print"])
		}
		if bad := strings.Contains(row["marks"], "cancelled") || strings.Contains(row["marks"], "host-busy"); bad && !strings.Contains(row["unfit"], "cpu-per-envelope") {
			t.Errorf("%s: marks %q, unfit %q", row["report-id"], row["marks"], row["unfit"])
		}
	}
	cells := map[string]int{}
	for _, row := range rowsOf(t, at, "cells.csv") {
		cells[row["cell"]]++
		if row["rate"] == "max" && !strings.Contains(row["fine_print"], "closed loop") {
			t.Errorf("cell %s without its fine print", row["cell"])
		}
		if row["metric"] == "cpu-per-envelope" && row["rate"] == "max" && row["connections"] == "1" && (row["runs"] != "3" || row["n"] != "2" || row["left_out_by"] != "host-busy 1") {
			t.Errorf("cell %s: %s of %s runs, left out by %q", row["cell"], row["n"], row["runs"], row["left_out_by"])
		}
	}
	if len(cells) != 6 || cells["1"] != len(store.Metrics) {
		t.Errorf("cells %v", cells)
	}
	var host map[string]any
	if err := json.Unmarshal([]byte(read(t, at, "host-bench-2.json")), &host); err != nil || host["turbo"] != "off" || host["load1_least"] != 1.0 || host["load1_most"] != 9.0 || host["governor"] != nil {
		t.Errorf("%v, %v", err, host)
	}

	// The same bytes again; never over it unasked, nor over what somebody changed.
	do(t, s, &out, "publish "+at+"2")
	if diff := cmp.Diff(all(t, at), all(t, at+"2")); diff != "" {
		t.Error(diff)
	}
	before := all(t, at)
	_, got = do(t, s, &out, "publish "+at)
	wants(t, got, "wrote to it before: nothing is written over", "--replace")
	if diff := cmp.Diff(before, all(t, at)); diff != "" {
		t.Error(diff)
	}
	if code, got = do(t, s, &out, "publish "+at+" --replace rate=max --json"); code != Fine {
		t.Errorf("code %d, %s", code, got)
	}
	var j publishedJSON
	if err := json.Unmarshal([]byte(got), &j); err != nil || j.Folder != at || j.Runs != 6 || j.Cells != 2 || len(j.Files) != len(all(t, at))-1 {
		t.Errorf("%v, %+v", err, j)
	}
	if page := read(t, at, "summary.md"); strings.Contains(page, "(open loop)") || strings.Contains(page, "search") {
		t.Errorf("left of the page before:\n%s", page)
	}
	if err := os.WriteFile(filepath.Join(at, "summary.md"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, got = do(t, s, &out, "publish --replace "+at)
	wants(t, got, `"summary.md" in it was changed since`)

	_, got = do(t, s, &out, "publish "+at+"3 mix=logs")
	wants(t, got, "no report that could be published", "none has mix logs")
	_, got = do(t, s, &out, "publish "+filepath.Join(dir, "none", "page"))
	wants(t, got, "no such file or directory")
	if found := all(t, dir); len(found) != 2 {
		t.Errorf("left %v", sorted(found))
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// all is what is in a folder, of folders in it their names.
func all(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if found[e.Name()] = "folder"; !e.IsDir() {
			found[e.Name()] = read(t, dir, e.Name())
		}
	}
	return found
}

// rowsOf are the rows of CSV, by column.
func rowsOf(t *testing.T, dir, name string) (rows []map[string]string) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(read(t, dir, name))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		row := map[string]string{}
		for i, key := range lines[0] {
			row[key] = l[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// Lines of fine print that differ in their numbers are one.
func TestFinePrints(t *testing.T) {
	var f finePrints
	f.add([]string{"open loop", "1,000 envelopes in turn, version 2.5", "a 1"})
	f.add([]string{"open loop", "20 envelopes in turn, version 2.5"})
	f.add([]string{"open loop", "999 envelopes in turn, version 2.5", "a 1"})
	want := []string{"open loop", "20 to 1,000 envelopes in turn, version 2.5", "a 1 (2 of 3 runs)"}
	if diff := cmp.Diff(want, f.lines()); diff != "" {
		t.Error(diff)
	}
}
