package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/store"
	"relaybench/store/storetest"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSaveAndGet(t *testing.T) {
	db := storetest.Open(t)
	want := storetest.Report(10)
	want.Plan["label"] = "a comma, a \"quote\", a\nnewline and an Umlaut: ä"
	want.Result.Upstream.WireBytes = 9007199254740993
	if err := db.Save(want); err != nil {
		t.Fatal(err)
	}
	if want.ID == "" {
		t.Fatal("no id")
	}
	got, err := db.Get(want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSaveThatCannotBeEncoded(t *testing.T) {
	db := storetest.Open(t)
	r := storetest.Report(1)
	r.ID = "left over"
	r.Provenance.Host.Load1 = math.NaN()
	if err := db.Save(r); err == nil || r.ID != "" {
		t.Errorf("got id %q, error %v, want none and one", r.ID, err)
	}
	if r, err := db.Get("last"); err == nil {
		t.Errorf("got report %s, want none", r.ID)
	}
	if err := db.Save(storetest.Report(1)); err != nil {
		t.Errorf("save after it: %v", err)
	}
}

func TestGetByReference(t *testing.T) {
	db := storetest.Open(t)
	for _, ref := range []string{"last", "last-1", "2026"} {
		if _, err := db.Get(ref); err == nil || !strings.Contains(err.Error(), "no report") {
			t.Errorf("%s of an empty store: got %v, want no report", ref, err)
		}
	}
	at := time.Date(2026, 11, 30, 16, 45, 2, 0, time.UTC)
	db.SetClock(func() time.Time { return at })
	var ids []string
	for range 5 {
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
		at = at.Add(time.Minute)
	}
	imported := storetest.Report(1)
	imported.ID = "20991231-235959-abcdef"
	if err := db.PutImported(imported); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ref, want, err string }{
		{"last", ids[4], ""},
		{"last-0", ids[4], ""},
		{"last-1", ids[3], ""},
		{"last-4", ids[0], ""},
		{"last-5", "", `no report "last-5": of runs made here there are 5`},
		{"last-", "", "expected last"},
		{"last1", "", "expected last"},
		{"last--1", "", "expected last"},
		{"last-99999999999", "", "expected last"},
		{"latest", "", `no report "latest"`},
		{ids[2], ids[2], ""},
		{ids[2][:13], ids[2], ""},
		{"2099", imported.ID, ""},
		{imported.ID, imported.ID, ""},
		{ids[2] + "0", "", "no report"},
		{"2026", "", fmt.Sprintf(`report "2026": 5 reports begin so: %s, %s, %s, …`, ids[0], ids[1], ids[2])},
		{"", "", "expected an id"},
		{"x", "", `no report "x"`},
	} {
		got, err := db.Get(c.ref)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: got error %v, want %q", c.ref, err, c.err)
			}
		case err != nil:
			t.Errorf("%q: %v", c.ref, err)
		case got.ID != c.want:
			t.Errorf("%q: got %s, want %s", c.ref, got.ID, c.want)
		}
	}
}

// Ids go up in a store whatever its clock does, and a report that another host had saved never keeps one from being saved.
func TestIDs(t *testing.T) {
	db := storetest.Open(t)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var ids []string
	for _, at := range []time.Duration{0, 0, time.Second, -time.Hour, -time.Hour, 2 * time.Second, 999 * time.Millisecond, time.Hour} {
		db.SetClock(func() time.Time { return noon.Add(at).In(time.FixedZone("", 3600)) })
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("not in order, or twice: %q", ids)
	}
	if got, want := ids[0][:16], "20261130-120000-"; got != want {
		t.Errorf("first id: got %s…, want %s…", got, want)
	}
	if got, want := ids[7][:16], "20261130-130000-"; got != want {
		t.Errorf("an hour later: got %s…, want %s…", got, want)
	}
}

func TestNextID(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	full := fmt.Sprintf("20261130-120000-%06x", store.MaxSuffix)
	if got := store.NextID(full, now); got <= full || got[:16] != "20261130-120001-" {
		t.Errorf("after the last number of a second: got %s", got)
	}
	for _, last := range []string{"", "20261130-115959-ffffff", "rubbish", "zzz-1", "20261130-120000-x"} {
		if got := store.NextID(last, now); got[:16] != "20261130-120000-" || len(got) != 22 {
			t.Errorf("after %q: got %s", last, got)
		}
	}
	seen := map[string]bool{}
	for range 100 {
		seen[store.NextID("", now)] = true
	}
	if len(seen) < 99 {
		t.Errorf("of 100 ids of different hosts %d differ", len(seen))
	}
}

func TestDelete(t *testing.T) {
	db := storetest.Open(t)
	var ids []string
	for range 5 {
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	left := func() (left []string) {
		t.Helper()
		entries, _, err := db.Entries(nil, store.Newest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.ID)
		}
		return left
	}
	for _, c := range []struct {
		ids []string
		err string
		out []string
	}{
		{[]string{ids[0], "x", ids[1], "y"}, `no report "x", "y": nothing was deleted`, ids},
		{[]string{ids[0][:10]}, "no report", ids},
		{nil, "", ids},
		{[]string{ids[4], ids[1], ids[4]}, "", []string{ids[0], ids[2], ids[3]}},
		{[]string{ids[4]}, "no report", []string{ids[0], ids[2], ids[3]}},
	} {
		err := db.Delete(c.ids...)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %v, want %q", c.ids, err, c.err)
		}
		if d := cmp.Diff(c.out, left()); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.ids, d)
		}
	}
	if id, err := db.Find("last"); err != nil || id != ids[3] {
		t.Errorf("last: got %s, %v, want %s", id, err, ids[3])
	}
	// A new one sorts after those that are there, whatever was deleted.
	r := storetest.Report(1)
	if err := db.Save(r); err != nil || r.ID <= ids[3] {
		t.Errorf("got %s, %v, want one after %s", r.ID, err, ids[3])
	}
}

// What is done with a report, such as printing it to a client that does not read, holds nothing up.
func TestReadReports(t *testing.T) {
	db := storetest.Open(t)
	var ids []string
	for range 3 {
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids)
	var got []string
	err := db.ReadReports(ids, func(r *store.Report) error {
		got = append(got, r.ID)
		if _, _, err := db.Compact(); err != nil || !r.Own { // it waits for every transaction
			t.Errorf("own %v, %v", r.Own, err)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("got %q, %v, want %q", got, err, ids)
	}
	enough := errors.New("enough")
	n := 0
	if err := db.ReadReports(ids, func(*store.Report) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("got %v after %d reports, want its own error after 1", err, n)
	}
	if err := db.ReadReports([]string{ids[0], "x"}, func(*store.Report) error { return nil }); err == nil || !strings.Contains(err.Error(), `no report "x"`) {
		t.Errorf("got %v, want no report", err)
	}
	unique := func(n int) bool {
		return !slices.ContainsFunc(ids[1:], func(id string) bool { return strings.HasPrefix(id, ids[0][:n]) })
	}
	n = 1
	for !unique(n) {
		n++
	}
	if id, err := db.Find(ids[0][:n]); err != nil || id != ids[0] {
		t.Errorf("find: got %s, %v, want %s", id, err, ids[0])
	}
}
