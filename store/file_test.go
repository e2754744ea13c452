package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/store"
	"relaybench/store/storetest"
)

// reportFile saves a report to a file of its own.
func reportFile(t *testing.T, r *store.Report) (path string) {
	t.Helper()
	path, err := storetest.Open(t).SaveFile(r, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSaveFileAndImport(t *testing.T) {
	r := storetest.Report(10)
	r.Plan["label"] = "a comma, a \"quote\", a\nnewline and an Umlaut: ä"
	r.Result.Upstream.WireBytes = 9007199254740993
	path := reportFile(t, r)
	if r.ID == "" || !r.Own || !strings.Contains(filepath.Base(path), r.ID) {
		t.Errorf("id %q, own %v, file %s", r.ID, r.Own, path)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("in the folder: %v, %v", files, err)
	}
	for _, c := range []struct {
		host string
		own  bool
	}{{"bench1", true}, {"bench2", false}, {"", false}} {
		db := storetest.Open(t)
		for round := range 3 {
			got, err := db.Import(t.Context(), path, c.host, false)
			if err != nil || (got.New == 1) != (round == 0) || got.New+got.Known != 1 {
				t.Errorf("host %q, round %d: got %+v, %v", c.host, round, got, err)
			}
		}
		got, err := db.Get(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(asJSON(t, r), asJSON(t, got)); d != "" || got.Own != c.own {
			t.Errorf("host %q: own %v (-saved +imported):\n%s", c.host, got.Own, d)
		}
		if _, err := db.Get("last"); (err == nil) != c.own {
			t.Errorf("host %q: last: %v", c.host, err)
		}
		if entries, _, err := db.Entries(nil, store.Newest{}); err != nil || len(entries) != 1 || entries[0].Own != c.own {
			t.Errorf("host %q: entries %v, %v", c.host, entries, err)
		}
	}
}

// A report that is there with other content keeps its place, and so does the file.
func TestImportConflict(t *testing.T) {
	db := storetest.Open(t)
	r := storetest.Report(2)
	path := reportFile(t, r)
	if _, err := db.Import(t.Context(), path, "bench1", false); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := *r
	other.Plan = map[string]string{"label": "another"}
	record, err := db.Encode(&other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, record, 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := db.Import(t.Context(), path, "bench1", false)
	var left *store.LeftOut
	if !errors.As(err, &left) || left.Conflicts != 1 || done.New > 0 || !strings.Contains(err.Error(), r.ID) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %+v, %v, want a conflict over %s", done, err, r.ID)
	}
	if got, err := db.Get(r.ID); err != nil || got.Plan["label"] == "another" {
		t.Errorf("the store has %v, %v", got.Plan, err)
	}
	if after, err := os.ReadFile(path); err != nil || bytes.Equal(before, after) || !bytes.Equal(after, record) {
		t.Error("the file was changed")
	}
}

func TestImportBad(t *testing.T) {
	db := storetest.Open(t)
	good, err := os.ReadFile(reportFile(t, storetest.Report(2)))
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(r *store.Report) []byte {
		record, err := db.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	noID, badID := storetest.Report(1), storetest.Report(1)
	badID.ID = "../../x"
	dir := t.TempDir()
	for i, c := range []struct {
		record []byte
		want   string
	}{
		{[]byte("relaybench report "), "is no record of a report"},
		{[]byte("{}\n"), "line 1: is no report of an export: nothing was imported"},
		{good[:len(good)/2], "record is damaged"},
		{append(bytes.Clone(good), 'x'), "record is damaged"},
		{bytes.Replace(good, []byte("report 2 v0.1.0"), []byte("report 99 v9.9.9"), 1), "was written by relaybench v9.9.9, and this one reads up to"},
		{encoded(noID), `is no whole report: its id is ""`},
		{encoded(badID), `is no whole report: its id is "../../x"`},
		{encoded(&store.Report{ID: "20261130-164502-3f9a1c"}), "is no whole report"},
	} {
		path := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(path, c.record, 0o600); err != nil {
			t.Fatal(err)
		}
		if done, err := db.Import(t.Context(), path, "bench1", false); err == nil || done.New > 0 || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.30q: got %+v, %v, want %q", c.record, done, err, c.want)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "is no regular file", pipe: "is no regular file", filepath.Join(dir, "none"): "no such file"} {
		if _, err := db.Import(t.Context(), path, "", true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if entries, _, err := db.Entries(nil, store.Newest{}); err != nil || len(entries) != 0 {
		t.Errorf("got %d reports, %v, want none", len(entries), err)
	}
}

// Where a report cannot be saved to a file either, it has no id, and nothing is left over.
func TestSaveFileThatCannot(t *testing.T) {
	db := storetest.Open(t)
	r := storetest.Report(1)
	if path, err := db.SaveFile(r, filepath.Join(t.TempDir(), "none")); err == nil || path != "" || r.ID != "" || r.Own {
		t.Errorf("got %q, %v, id %q", path, err, r.ID)
	}
}

// A store that cannot be read or written any more does not keep a report from being saved to a file.
func TestSaveFileOfBrokenStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.db")
	if err := os.WriteFile(path, wholeStore(t), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Truncate(path, 2*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	r := storetest.Report(1)
	if err := db.Save(r); err == nil {
		t.Fatal("saved")
	}
	file, err := db.SaveFile(r, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := storetest.Open(t).Import(t.Context(), file, "bench1", false); err != nil || done.New != 1 {
		t.Errorf("import: got %+v, %v", done, err)
	}
}
