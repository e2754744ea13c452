package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"relaybench/store"
	"relaybench/store/storetest"
)

// described is all that an entry says.
func described(e *store.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id %s own %v start %v end %v problem %q fit %v\n", e.ID, e.Own, e.Start, e.End, e.Problem, e.Fit())
	values := e.Vars()
	for _, name := range store.InOrder(values) {
		fmt.Fprintf(&b, "%s %q\n", name, values[name])
	}
	for _, m := range store.Metrics {
		if v, ok := e.Metric(m.Name); ok {
			fmt.Fprintf(&b, "%s %.6g\n", m.Name, v)
		}
	}
	for _, m := range e.Marks() {
		fmt.Fprintf(&b, "mark %s\n", m.Name)
	}
	return b.String()
}

func TestEntriesSayWhatReportsSay(t *testing.T) {
	db := storetest.Open(t)
	died := known(t)
	died.Result.Relay.Died, died.Result.Tally.Sent = "signal: killed", 0
	died.Plan["http.timeout"] = ""
	empty := &store.Report{}
	for _, r := range []*store.Report{storetest.Report(10), known(t), died, empty} {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	foreign := storetest.Report(2)
	foreign.ID = "20200101-000000-abcdef"
	if err := db.PutImported(foreign); err != nil {
		t.Fatal(err)
	}
	entries, cut, err := db.Entries(nil, store.Newest{})
	if err != nil || cut != 0 || len(entries) != 5 || entries[0].ID != foreign.ID || entries[0].Own {
		t.Fatalf("got %d entries, %d cut, %v, want 5, the imported one first", len(entries), cut, err)
	}
	for i := range entries {
		e := &entries[i]
		r, err := db.Get(e.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(described(store.EntryOf(r)), described(e)); d != "" {
			t.Errorf("report %d (-derived +index):\n%s", i, d)
		}
		if d := cmp.Diff(store.VariablesOf(r), e.Vars()); d != "" {
			t.Errorf("report %d: variables (-report +index):\n%s", i, d)
		}
		marks := store.MarksOf(r)
		var want, got []string
		for _, m := range marks {
			want = append(want, m.Name)
		}
		for _, m := range e.Marks() {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("report %d: marks: got %q, want %q", i, got, want)
		}
		for _, m := range store.Metrics {
			want, wantOK := m.Of(r)
			if got, ok := e.Metric(m.Name); m.Headline && (ok != wantOK || got != want) || !m.Headline && ok {
				t.Errorf("report %d: %s: got %v, %v, want %v, %v", i, m.Name, got, ok, want, wantOK)
			}
			wantBy, wantUnfit := store.Unfit(marks, m.Name)
			if by, unfit := e.Unfit(m.Name); by != wantBy || unfit != wantUnfit {
				t.Errorf("report %d: %s is unfit by %q, %v, want %q, %v", i, m.Name, by, unfit, wantBy, wantUnfit)
			}
		}
		if got := e.Group("rate"); got != store.GroupKey(e.Vars(), "rate") {
			t.Errorf("report %d: group %q", i, got)
		}
	}
}

func TestEntriesLimit(t *testing.T) {
	db := storetest.Open(t)
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	db.SetClock(func() time.Time { return at })
	for i := range 10 {
		r := storetest.Report(1)
		r.Plan["rate"] = fmt.Sprint(100 * (1 + i%2))
		r.Plan["label"] = fmt.Sprint(i)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour)
	}
	at = at.Add(-time.Hour + time.Minute) // a minute after the last one
	for _, c := range []struct {
		filters []string
		limit   store.Newest
		want    string
		cut     int
	}{
		{nil, store.Newest{}, "0123456789", 0},
		{nil, store.Newest{N: 3}, "789", 7},
		{nil, store.Newest{N: 10}, "0123456789", 0},
		{nil, store.Newest{Within: 2*time.Hour + time.Minute}, "789", 7},
		{nil, store.Newest{Within: time.Second}, "", 10},
		{nil, store.Newest{N: 2, Within: 5*time.Hour + time.Minute}, "89", 8},
		{[]string{"rate=200"}, store.Newest{}, "13579", 0},
		{[]string{"rate=200"}, store.Newest{N: 2}, "79", 3},
		{[]string{"rate=200", "label>3"}, store.Newest{N: 2}, "79", 1},
		{[]string{"label<8"}, store.Newest{N: 1}, "7", 7},
		{[]string{"rate=300"}, store.Newest{N: 1}, "", 0},
		{[]string{"rate=100", "rate!=100"}, store.Newest{}, "", 0},
	} {
		entries, cut, err := db.Entries(filters(t, c.filters...), c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range entries {
			label, _ := entries[i].Var("label")
			got += label
		}
		if got != c.want || cut != c.cut {
			t.Errorf("%q, %+v: got %s, %d cut, want %s, %d", c.filters, c.limit, got, cut, c.want, c.cut)
		}
	}
}

// all is what the index says of all reports.
func all(t *testing.T, db *store.DB) string {
	t.Helper()
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range entries {
		b.WriteString(described(&entries[i]))
	}
	return b.String()
}

// An index of other tables, one that was not finished and one that is damaged are made anew, and say the same as before.
func TestIndexIsMadeAnew(t *testing.T) {
	db := storetest.Open(t)
	var ids []string
	for i := range 7 {
		r := storetest.Report(1 + i)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	foreign := storetest.Report(2)
	foreign.ID = "20200101-000000-abcdef"
	if err := db.PutImported(foreign); err != nil {
		t.Fatal(err)
	}
	want := all(t, db)
	raw := func(bucket, key string, value []byte) func() error {
		return func() error { return db.PutRaw(bucket, key, value) }
	}
	for _, c := range []struct {
		name  string
		spoil []func() error
	}{
		{"other tables", []func() error{raw("meta", "index", []byte("another")), raw("index", ids[0], []byte("r of other tables")), raw("index", ids[1], nil)}},
		{"no tables", []func() error{raw("meta", "index", nil), raw("index", "20190101-000000-000000", []byte("left over"))}},
		{"not finished", []func() error{func() error { return db.SetIndexState("making") }, raw("index", ids[3], nil), raw("index", ids[6], nil)}},
		{"damaged entry", []func() error{raw("index", ids[2], []byte("r1"))}},
		{"cut entry", []func() error{raw("index", ids[2], []byte("r"))}},
		{"entry without its cell", []func() error{raw("index", ids[2], append([]byte("r\x01"), bytes.Repeat([]byte("x"), 300)...))}},
	} {
		for _, spoil := range c.spoil {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, all(t, db)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if err := db.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// While the index is made, in several goes, reports are saved and deleted; all is right in the end.
func TestIndexWhileInUse(t *testing.T) {
	db := storetest.Open(t)
	r := storetest.Report(1)
	if err := db.Generate(240, func(i int) *store.Report {
		r.ID, r.Own = fmt.Sprintf("20261130-120000-%06x", i), true
		return r
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetIndexState("another"); err != nil {
		t.Fatal(err)
	}
	stale := storetest.Report(1)
	if err := db.Save(stale); err != nil {
		t.Fatal(err)
	}
	said := 0
	meanwhile := storetest.Report(1)
	err := db.Index(func(done, all int) {
		if said++; said > 1 {
			return
		}
		if done != 100 || all != 241 {
			t.Errorf("said %d of %d, want 100 of 241", done, all)
		}
		old := storetest.Report(1)
		old.ID = "20200101-000000-000000" // before what was read
		if err := db.PutImported(old); err != nil {
			t.Error(err)
		}
		if err := db.Save(meanwhile); err != nil {
			t.Error(err)
		}
		if err := db.Delete("20261130-120000-000001", "20261130-120000-0000c0"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if said != 3 {
		t.Errorf("said %d times how far it is, want 3", said)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if !slices.IsSorted(ids) || len(ids) != 241 || ids[0] != "20200101-000000-000000" || !slices.Contains(ids, stale.ID) || !slices.Contains(ids, meanwhile.ID) {
		t.Errorf("got %d entries, from %s", len(ids), ids[0])
	}
	if err := db.Index(func(done, all int) { t.Errorf("made again: %d of %d", done, all) }); err != nil {
		t.Error(err)
	}
}

// A report that cannot be read is listed with its reason, before and after the index is made anew.
func TestUnreadableIsListed(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "relaybench.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	good := storetest.Report(1)
	if err := db.Save(good); err != nil {
		t.Fatal(err)
	}
	for id, record := range map[string]string{"20990101-000000-000000": "relaybench report 99 v9.9.9\nx", "20990101-000000-000001": "rubbish"} {
		if err := db.PutRaw("reports", id, []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SetIndexState("another"); err != nil {
		t.Fatal(err)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != 3 {
		t.Fatalf("got %d entries, %v, want 3", len(entries), err)
	}
	for i, want := range []string{"", "record version 99 was written by relaybench v9.9.9, and this one reads up to", "is no record"} {
		if got := entries[i].Problem; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("entry %d: got %q, want %q", i, got, want)
		}
	}
	if err := db.Check(); err == nil || strings.Count(err.Error(), "report 2099") != 2 {
		t.Errorf("check: got %v, want both named", err)
	}
	info, err := db.Info()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]int{2: 1, 99: 1, 0: 1}, info.Versions); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"v0.1.0": 1, "v9.9.9": 1, "": 1}, info.Writers); d != "" {
		t.Errorf("writers (-want +got):\n%s", d)
	}
}

// Check finds an index that says something else than the reports.
func TestCheckOfIndex(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(db *store.DB, id string) error
		want  string
	}{
		{"missing", func(db *store.DB, id string) error { return db.PutRaw("index", id, nil) }, "is not in the index"},
		{"of nothing", func(db *store.DB, _ string) error {
			return db.PutRaw("index", "20990101-000000-000000", []byte("u\x00x"))
		}, "is listed and is not there"},
		{"not own", func(db *store.DB, id string) error { return db.PutRaw("own", id, nil) }, "says something else"},
		{"another", func(db *store.DB, id string) error { return db.PutRaw("index", id, []byte("u\x01x")) }, "says something else"},
	} {
		db, err := store.Open(filepath.Join(t.TempDir(), "relaybench.db"))
		if err != nil {
			t.Fatal(err)
		}
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(db, r.ID); err != nil {
			t.Fatal(err)
		}
		if err := db.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A store of layout 1, which has no index, is of this layout once it was opened, and lists its reports.
func TestLayout1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	if err := os.WriteFile(path, wholeStore(t), 0o600); err != nil {
		t.Fatal(err)
	}
	bolt, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = bolt.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"index", "cells"} {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte("meta"))
		if err := meta.Delete([]byte("index")); err != nil {
			return err
		}
		return meta.Put([]byte("relaybench-store"), []byte("1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := bolt.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		db, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := db.Info()
		if err != nil || info.Layout != store.Layout || info.IndexCurrent != (round > 0) {
			t.Errorf("round %d: got %+v, %v", round, info, err)
		}
		if entries, _, err := db.Entries(nil, store.Newest{}); err != nil || len(entries) != 12 {
			t.Errorf("got %d entries, %v, want 12", len(entries), err)
		}
		if err := db.Check(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is derived for the index of the golden report, by name, changes only
// with indexCode: else stores would go on with what the code of before had
// derived. A name that is new needs no update: it changes the fingerprint.
func TestIndexGolden(t *testing.T) {
	const path = "testdata/index.txt"
	text, err := os.ReadFile(golden(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.DecodeJSON(1, text)
	if err != nil {
		t.Fatal(err)
	}
	e := store.EntryOf(r)
	lines := []string{fmt.Sprintf("code %d", store.IndexCode)}
	for _, name := range store.VariableNames() {
		value, ok := e.Var(name)
		lines = append(lines, fmt.Sprintf("%s %v %q", name, ok, value))
	}
	for _, m := range store.Metrics {
		if m.Headline {
			v, ok := e.Metric(m.Name)
			lines = append(lines, fmt.Sprintf("metric:%s %v %.9g", m.Name, ok, v))
		}
	}
	for i := range store.Marks {
		m := &store.Marks[i]
		lines = append(lines, fmt.Sprintf("mark:%s %v", m.Name, slices.Contains(e.Marks(), m)))
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	then := map[string]string{}
	for line := range strings.Lines(string(was)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		then[name] = value
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		switch was, known := then[name]; {
		case !known || was == value:
		case name == "code":
			t.Fatalf("indexCode was %s and is %s: go test ./store -update", was, value)
		default:
			t.Errorf("%s was %s and is %s: raise indexCode", name, was, value)
		}
	}
}

// FuzzUnpack reads damaged entries and cells: an error, or an entry that can be asked anything.
func FuzzUnpack(f *testing.F) {
	entry, cell := store.EntryOf(known(f)).Pack()
	f.Add(entry, cell)
	f.Add(entry[:len(entry)-3], cell)
	f.Add(entry, cell[:len(cell)/2])
	f.Add([]byte("u\x00damaged"), []byte{})
	f.Fuzz(func(t *testing.T, entry, cell []byte) {
		e, err := store.UnpackEntry([]byte("20261130-164502-3f9a1c"), entry, cell)
		if err != nil {
			return
		}
		_ = described(e)
		_ = e.Group("rate", "http.encoding")
	})
}
