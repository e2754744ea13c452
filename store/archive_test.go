package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/store"
	"relaybench/store/storetest"
)

// exported is all that a store exports, and the ids.
func exported(t testing.TB, db *store.DB) (text []byte, ids []string) {
	t.Helper()
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	err = db.ReadLines(ids, func(line []byte) error { text = append(text, line...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return text, ids
}

// imports imports bytes as a file.
func imports(t testing.TB, db *store.DB, data []byte, rest bool) (store.Imported, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := db.Import(t.Context(), path, "bench1", rest)
	if err != nil && !strings.Contains(err.Error(), path) {
		t.Errorf("the file is not named: %v", err)
	}
	return done, err
}

// several is a store of three reports that are as different as they get.
func several(t testing.TB) *store.DB {
	t.Helper()
	db := storetest.Open(t)
	odd := storetest.Report(2)
	odd.Plan["label"] = "a comma, a \"quote\", a\nnewline, <a tag> and an Umlaut: ä"
	odd.Result.Upstream.WireBytes = 9007199254740993
	failed := storetest.Report(1)
	failed.Result.Tally, failed.Result.Failed = nil, "relay: no"
	for _, r := range []*store.Report{storetest.Report(10), odd, failed} {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestExportAndImport(t *testing.T) {
	from, to := several(t), storetest.Open(t)
	a, ids := exported(t, from)
	if n := bytes.Count(a, []byte("\n")); n != 3 || !bytes.Contains(a, []byte(":9007199254740993,")) {
		t.Errorf("%d lines of\n%s", n, a)
	}
	for i, c := range []struct {
		db         *store.DB
		new, known int
	}{{from, 0, 3}, {from, 0, 3}, {to, 3, 0}, {to, 0, 3}} {
		got, err := imports(t, c.db, a, false)
		if want := (store.Imported{New: c.new, Known: c.known}); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("import %d: got %+v, %v, want %+v", i, got, err, want)
		}
	}
	if b, _ := exported(t, to); !bytes.Equal(a, b) {
		t.Errorf("the second export differs: %s", cmp.Diff(string(a), string(b)))
	}
	for _, id := range ids {
		want, err := from.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := to.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" || got.Own {
			t.Errorf("%s: own %v (-saved +imported):\n%s", id, got.Own, d)
		}
	}
	if r, err := to.Get("last"); err == nil {
		t.Errorf("last is %s, which was imported", r.ID)
	}
	// What is saved after it is the last one.
	r := storetest.Report(1)
	if err := to.Save(r); err != nil {
		t.Fatal(err)
	}
	if id, err := to.Find("last"); err != nil || id != r.ID {
		t.Errorf("last: %s, %v, want %s", id, err, r.ID)
	}
}

// What this relaybench does not know of a report, and how it is written, survives; only the latter makes no other report.
func TestImportOfWhatIsNotKnown(t *testing.T) {
	db := storetest.Open(t)
	a, _ := exported(t, several(t))
	line, _, _ := bytes.Cut(a, []byte("\n"))
	more := bytes.Replace(line, []byte(`"plan":{`), []byte(`"of_tomorrow":[1.50,12345678901234567890],"plan":{`), 1)
	if _, err := imports(t, db, more, false); err != nil {
		t.Fatal(err)
	}
	if b, _ := exported(t, db); string(b) != string(more)+"\n" {
		t.Errorf("got %s", cmp.Diff(string(more), string(b)))
	}
	for what, c := range map[string]struct {
		line  string
		known int
	}{
		"white space": {strings.Replace(string(more), `"plan":{`, "\"plan\" :\t{ ", 1), 1},
		"CR LF":       {string(more) + "\r\n\r\n", 1},
		"order":       {strings.Replace(strings.Replace(string(more), `"of_tomorrow":[1.50,12345678901234567890],`, "", 1), `,"result":{`, `,"of_tomorrow":[1.50,12345678901234567890],"result":{`, 1), 1},
		"a number":    {strings.Replace(string(more), "12345678901234567890", "12345678901234567891", 1), 0},
		"without":     {string(line), 0},
	} {
		if got, err := imports(t, db, []byte(c.line), false); got.Known != c.known || got.New > 0 || (err == nil) != (c.known == 1) {
			t.Errorf("%s: got %+v, %v, want %d known", what, got, err, c.known)
		}
	}
}

// Nothing is imported where a line is bad or another report has its id, unless the rest is asked for.
func TestImportOfDamage(t *testing.T) {
	a, ids := exported(t, several(t))
	lines := strings.SplitAfter(strings.TrimSuffix(string(a), "\n"), "\n")
	other := strings.Replace(lines[1], "Umlaut", "umlaut", 1)
	newer := strings.Replace(lines[1], `{"relaybench_report":2,"by":"v0.1.0"`, `{"relaybench_report":99,"by":"v9.9.9"`, 1)
	for what, c := range map[string]struct {
		text           string
		bad, conflicts int
		new, known     int // with the rest
		want           []string
	}{
		"cut":        {string(a[:len(a)-len(lines[2])/2]), 1, 0, 2, 0, []string{"line 3: is cut off"}},
		"cut inside": {lines[0][:len(lines[0])/2] + "\n" + lines[1] + lines[2], 1, 0, 2, 0, []string{"line 1: is cut off"}},
		"rubbish":    {"\n# a comment\n" + lines[0] + "\x00\n" + lines[1] + "null\n{}\n[]\n7\n", 6, 0, 2, 0, []string{"line 2: is no report", "line 4: ", "line 6: ", "line 7: ", "line 8: ", "line 9: "}},
		"newer":      {lines[0] + newer + lines[2], 1, 0, 2, 0, []string{"line 2: record version 99 was written by relaybench v9.9.9, and this one reads up to 2: use that one"}},
		"encoding":   {lines[0] + strings.Replace(lines[1], "Umlaut", "\xff", 1), 1, 0, 1, 0, []string{"line 2: is no report: it is not UTF-8"}},
		"no id":      {strings.Replace(lines[0], ids[0], "", 1), 1, 0, 0, 0, []string{`line 1: is no whole report: its id is ""`}},
		"bad id":     {strings.Replace(lines[0], ids[0], "../../x", 1), 1, 0, 0, 0, []string{`its id is "../../x"`}},
		"short id":   {strings.Replace(lines[0], ids[0], ids[0][:20], 1), 1, 0, 0, 0, []string{`is no whole report`}},
		"long":       {lines[0] + strings.Repeat(" ", 1<<20) + "{\n" + lines[2], 1, 0, 2, 0, []string{"line 2: is too long to be a report"}},
		"twice":      {lines[0] + lines[1] + lines[0], 0, 0, 2, 1, nil},
		"two":        {lines[0] + lines[1] + other, 0, 1, 2, 0, []string{"line 3: report " + ids[1] + ": the store has another one under that id"}},
		"both":       {other + lines[2][:100] + "\n" + lines[1] + lines[0], 1, 1, 2, 0, []string{"line 3: report " + ids[1], "line 2: is cut off"}},
		"nothing":    {"\n\n", 0, 0, 0, 0, nil},
	} {
		t.Run(what, func(t *testing.T) {
			db := storetest.Open(t)
			got, err := db.ImportBytes(t.Context(), []byte(c.text), 1<<20, false)
			var left *store.LeftOut
			errors.As(err, &left)
			switch {
			case c.bad+c.conflicts == 0:
				if err != nil || got.New != c.new || got.Known != c.known {
					t.Errorf("got %+v, %v", got, err)
				}
			case left == nil || left.Bad != c.bad || left.Conflicts != c.conflicts || got.New > 0:
				t.Fatalf("got %+v, %v, want %d bad, %d conflicts", got, err, c.bad, c.conflicts)
			default:
				for _, want := range c.want {
					if !strings.Contains(strings.Join(left.Why, "\n"), want) {
						t.Errorf("%q is without %q", left.Why, want)
					}
				}
				if !strings.Contains(err.Error(), left.Why[0]) || !strings.HasSuffix(err.Error(), ": nothing was imported") {
					t.Errorf("it says %q", err)
				}
				if b, _ := exported(t, db); len(b) > 0 {
					t.Errorf("there is %s", b)
				}
			}
			got, err = db.ImportBytes(t.Context(), []byte(c.text), 1<<20, true)
			if c.bad+c.conflicts == 0 {
				c.new, c.known = 0, c.new+c.known
			}
			if err != nil || got.New != c.new || got.Known != c.known || got.Left.Bad != c.bad || got.Left.Conflicts != c.conflicts {
				t.Errorf("the rest: got %+v, %v", got, err)
			}
		})
	}
}

// A conflict with a report of the store names it, and leaves both as they are.
func TestImportOfAnotherReport(t *testing.T) {
	db := several(t)
	a, ids := exported(t, db)
	other := bytes.Replace(a, []byte("Umlaut"), []byte("umlaut"), 1)
	for _, rest := range []bool{false, true} {
		got, err := imports(t, db, other, rest)
		left := &got.Left
		if !rest && !errors.As(err, &left) || rest && err != nil || left.Conflicts != 1 || !strings.Contains(left.Why[0], "line 2: report "+ids[1]) {
			t.Errorf("rest %v: got %+v, %v", rest, got, err)
		}
	}
	if b, _ := exported(t, db); !bytes.Equal(a, b) {
		t.Error("the store has changed")
	}
}

// A line of an older version becomes one of today, as it does in the store.
func TestImportOfAnOldVersion(t *testing.T) {
	from := several(t)
	a, _ := exported(t, from)
	undo := store.NextVersion(func(text []byte) ([]byte, error) {
		return bytes.Replace(text, []byte(`"plan":{`), []byte(`"plan":{"migrated":"yes",`), 1), nil
	})
	t.Cleanup(undo) // after the check of to
	to := storetest.Open(t)
	if got, err := imports(t, to, a, false); err != nil || got.New != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	b, ids := exported(t, to)
	if c, _ := exported(t, from); !bytes.Equal(b, c) || bytes.Count(b, []byte(`{"relaybench_report":3,`)) != 3 {
		t.Errorf("of the old store: %s", cmp.Diff(string(b), string(c)))
	}
	for _, db := range []*store.DB{from, to} {
		for _, lines := range [][]byte{a, b} {
			if got, err := imports(t, db, lines, false); err != nil || got.Known != 3 {
				t.Errorf("again: got %+v, %v", got, err)
			}
		}
		if r, err := db.Get(ids[0]); err != nil || r.Plan["migrated"] != "yes" {
			t.Errorf("got %v, %v", r, err)
		}
	}
}

func TestImportThatIsStopped(t *testing.T) {
	a, _ := exported(t, several(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	db := storetest.Open(t)
	if got, err := db.ImportBytes(ctx, a, 1<<20, true); !errors.Is(err, enough) || got.New > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNewFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	no := errors.New("no")
	for _, c := range []struct {
		path string
		err  error
		want string
	}{
		{path, no, "no"},
		{path, nil, ""},
		{path, nil, "there is a file of that name"},
		{filepath.Join(dir, "none", "a"), nil, "no such file"},
	} {
		err := store.NewFile(c.path, func(w io.Writer) error {
			if _, err := fmt.Fprint(w, "text"); err != nil {
				return err
			}
			return c.err
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.path, err, c.want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("in the folder: %v, %v", files, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Whatever a file holds is read or refused, and what is read comes out as it went in.
func FuzzImport(f *testing.F) {
	db := storetest.Open(f)
	small := storetest.Report(1)
	small.Result.Samples, small.Result.Kinds, small.Result.Tally = nil, small.Result.Kinds[:1], nil
	if err := db.Save(small); err != nil {
		f.Fatal(err)
	}
	a, _ := exported(f, db)
	f.Add(a)
	f.Add(a[:len(a)/2])
	f.Add([]byte(`{"relaybench_report":1,"by":"x\xff\u0000","report":{"id":"20261130-164502-3f9a1c","result":{"kinds":[{"answers":{"200":null}}],"samples":[{}]}}}`))
	f.Add([]byte(`{"relaybench_report":1,"report":{"id":"20261130-164502-3f9a1c","ID":"20261130-164502-3f9a1d", "x":1e999,"result":{}}}` + "\r\n{}"))
	f.Add([]byte("relaybench report 1 v0\n"))
	f.Add([]byte("{\"relaybench_report\":1,\"report\":null}\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := db.Exchange(data, 1<<20)
		if err != nil {
			return
		}
		c, left, err := db.Exchange(b, 1<<21)
		if err != nil || len(left.Why) > 0 || !bytes.Equal(b, c) {
			t.Fatalf("%q came out as %q, %v, %v", b, c, left.Why, err)
		}
	})
}
