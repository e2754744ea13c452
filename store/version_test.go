package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

var update = flag.Bool("update", false, "write the golden file of the newest version of the record")

func golden(version int) string { return fmt.Sprintf("testdata/report-v%d.json", version) }

// The three that a version of the record consists of: its number, the
// migration to it, and a golden file.
func TestVersions(t *testing.T) {
	numbers, migrates := store.Versions()
	if *update {
		r := storetest.Report(3)
		r.ID = "20261130-164502-3f9a1c"
		if err := os.WriteFile(golden(numbers[len(numbers)-1]), []byte(asJSON(t, r)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, number := range numbers {
		if number != i+1 {
			t.Errorf("version %d stands at place %d of the table", number, i+1)
		}
		if newest := i == len(numbers)-1; migrates[i] == newest {
			t.Errorf("version %d: has a migration: %v, is the newest: %v", number, migrates[i], newest)
		}
		text, err := os.ReadFile(golden(number))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := store.DecodeJSON(number, text); err != nil {
			t.Errorf("%s: %v", golden(number), err)
		}
	}
	if _, err := os.Stat(golden(len(numbers) + 1)); err == nil {
		t.Errorf("%s is of no version of the table", golden(len(numbers)+1))
	}
}

// Nothing that the newest version's golden file holds may have changed its
// name or its meaning: that would be a new version. What is added need not be in it.
func TestNothingStoredIsLost(t *testing.T) {
	numbers, _ := store.Versions()
	newest := numbers[len(numbers)-1]
	text, err := os.ReadFile(golden(newest))
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.DecodeJSON(newest, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range lost("", parse(t, text), parse(t, []byte(asJSON(t, r)))) {
		t.Error(lost)
	}
}

func parse(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// lost is what was stored and is not in what is read.
func lost(path string, stored, read any) (all []string) {
	switch s := stored.(type) {
	case map[string]any:
		r, _ := read.(map[string]any)
		for name, v := range s {
			all = append(all, lost(path+"."+name, v, r[name])...)
		}
	case []any:
		r, _ := read.([]any)
		if len(r) != len(s) {
			return append(all, fmt.Sprintf("%s: %d of %d", path, len(r), len(s)))
		}
		for i, v := range s {
			all = append(all, lost(fmt.Sprintf("%s[%d]", path, i), v, r[i])...)
		}
	default:
		if !reflect.DeepEqual(stored, read) {
			all = append(all, fmt.Sprintf("%s: stored %v, read %v", path, stored, read))
		}
	}
	return all
}

func TestLostIsFound(t *testing.T) {
	for _, c := range []struct{ stored, read string }{
		{`{"a":1}`, `{"b":1}`}, {`{"a":1}`, `{"a":2}`}, {`[1,2]`, `[1]`}, {`{"a":[{"b":0}]}`, `{"a":[{}]}`},
	} {
		if len(lost("", parse(t, []byte(c.stored)), parse(t, []byte(c.read)))) == 0 {
			t.Errorf("%s read as %s: nothing lost", c.stored, c.read)
		}
	}
}

func TestDecodeOfOtherRecords(t *testing.T) {
	db := storetest.Open(t)
	record, err := db.Encode(storetest.Report(1))
	if err != nil {
		t.Fatal(err)
	}
	line, packed, _ := strings.Cut(string(record), "\n")
	if want := "relaybench report 2 v0.1.0"; line != want {
		t.Errorf("first line: got %q, want %q", line, want)
	}
	for _, c := range []struct{ record, want string }{
		{"relaybench report 3 v0.9.1\n" + packed, "record version 3 was written by relaybench v0.9.1, and this one reads up to 2: use that one"},
		{"relaybench report 99 \n" + packed, "record version 99 was written by relaybench of unknown version"},
		{"relaybench report x v1\n" + packed, `record version "x" is no number`},
		{"relaybench report 0 v1\n" + packed, `record version "0" is no number`},
		{"relaybench report 1 v1\n" + packed[:len(packed)/2], "record is damaged"},
		{"relaybench report 1 v1\n", "record is damaged"},
		{line, "is no record"},
		{"", "is no record"},
		{packed, "is no record"},
	} {
		if _, err := db.Decode([]byte(c.record)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %q", c.record, err, c.want)
		}
	}
}

// A program's version that holds what a first line cannot.
func TestEncodeOfAnyVersion(t *testing.T) {
	db := storetest.Open(t)
	for _, v := range []string{"", "(devel)", "a\nb\x00c", strings.Repeat("é", 500), "\xff"} {
		r := storetest.Report(1)
		r.Provenance.Bench.Version = v
		record, err := db.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Decode(record); err != nil {
			t.Errorf("version %q: %v", v, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	db := storetest.Open(f)
	record, err := db.Encode(&store.Report{Plan: map[string]string{"rate": "200"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(record[:len(record)-9])
	f.Add([]byte("relaybench report 1 \n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, record []byte) {
		r, err := db.Decode(record)
		if err != nil {
			return
		}
		again, err := db.Encode(r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		r2, err := db.Decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if d := cmp.Diff(asJSON(t, r), asJSON(t, r2)); d != "" {
			t.Errorf("(-first +second):\n%s", d)
		}
	})
}

// FuzzDecodeJSON reaches what zstd's checks keep from FuzzDecode.
func FuzzDecodeJSON(f *testing.F) {
	text, err := os.ReadFile(golden(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"result":{"kinds":[{"answers":{"accepted":null}}],"tally":{}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := store.DecodeJSON(1, text)
		if err != nil {
			return
		}
		derive(t, r)
	})
}

// A record of the version before is migrated when it is read, listed and
// checked; one of the version after is refused, and names the program to use.
func TestMigration(t *testing.T) {
	db := storetest.Open(t)
	old := storetest.Report(1)
	old.Plan["label"] = "old"
	if err := db.Save(old); err != nil {
		t.Fatal(err)
	}
	numbers, _ := store.Versions()
	now := numbers[len(numbers)-1]
	migrated := 0
	undo := store.NextVersion(func(text []byte) ([]byte, error) {
		migrated++
		return bytes.Replace(text, []byte(`"label":"old"`), []byte(`"label":"migrated"`), 1), nil
	})
	defer undo()
	newer := storetest.Report(1)
	newer.Provenance.Bench.Version = "v2.0.0"
	if err := db.Save(newer); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{old.ID: "migrated", newer.ID: ""} {
		if r, err := db.Get(id); err != nil || r.Plan["label"] != want {
			t.Errorf("label of %s: got %v, %v, want %q", id, r, err, want)
		}
	}
	if migrated != 1 {
		t.Errorf("migrated %d times, want once: the newer record needs none", migrated)
	}
	info, err := db.Info()
	if d := cmp.Diff(map[int]int{now: 1, now + 1: 1}, info.Versions); d != "" || err != nil {
		t.Errorf("versions, %v (-want +got):\n%s", err, d)
	}
	undo()
	_, err = db.Get(newer.ID)
	if want := fmt.Sprintf("record version %d was written by relaybench v2.0.0, and this one reads up to %d: use that one", now+1, now); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if r, err := db.Get(old.ID); err != nil || r.Plan["label"] != "old" {
		t.Errorf("got %v, %v, want the old one", r, err)
	}
	if err := db.Delete(newer.ID); err != nil { // for the check that ends the test
		t.Fatal(err)
	}

	undo = store.NextVersion(func([]byte) ([]byte, error) { return nil, errors.New("no way") })
	defer undo()
	if _, err := db.Get(old.ID); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migrate record version %d: no way", now)) {
		t.Errorf("got %v, want the migration's error", err)
	}
}

// A tally is stored with its counts by place: an answer that changes its place
// changes what old reports say. New ones go to the end, or need a new version.
func TestAnswersKeepTheirPlaces(t *testing.T) {
	want := []string{"not sent", "accepted", "timeout", "connect", "closed", "bad response", "other error", "other status",
		"400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "405 Method Not Allowed", "408 Request Timeout", "411 Length Required",
		"413 Request Entity Too Large", "414 Request URI Too Long", "415 Unsupported Media Type", "421 Misdirected Request", "422 Unprocessable Entity",
		"429 Too Many Requests", "431 Request Header Fields Too Large", "500 Internal Server Error", "501 Not Implemented", "502 Bad Gateway",
		"503 Service Unavailable", "504 Gateway Timeout"}
	var got []string
	for a := range result.Answers {
		got = append(got, result.Answer(a).String())
	}
	if d := cmp.Diff(want, got[:min(len(got), len(want))]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
