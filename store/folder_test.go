package store_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/store"
)

// puts adds files of some texts.
func puts(texts map[string]string) func(store.AddFile) error {
	return func(add store.AddFile) error {
		for name, text := range texts {
			if err := add(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				return err
			}
		}
		return nil
	}
}

// tree is what is in a folder, the manifest and the names of what is written aside left out.
func tree(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(path, e.Name()))
		if err != nil {
			text = []byte("not a file")
		}
		if e.Name() != store.Manifest {
			found[e.Name()] = string(text)
		}
	}
	return found
}

func TestNewFolder(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "page")
	first := map[string]string{"a.csv": "1\n", "b.md": "two\n"}
	files, err := store.NewFolder(at, "test", false, puts(first))
	want := []store.FolderFile{{"a.csv", 2, "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"},
		{"b.md", 4, "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"}}
	if diff := cmp.Diff(want, files); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	if diff := cmp.Diff(first, tree(t, at)); diff != "" {
		t.Error(diff)
	}

	// Never over it, unless it is said, it is of the same writer, and as it was written.
	again := map[string]string{"b.md": "three\n", "c": ""}
	refused := func(what, writer string, replace bool, want string) {
		t.Helper()
		before := tree(t, at)
		_, err := store.NewFolder(at, writer, replace, puts(again))
		if !errors.Is(err, store.ErrInFolder) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
		if diff := cmp.Diff(before, tree(t, at)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	refused("unsaid", "test", false, "wrote to it before")
	refused("another writer", "other", true, `"a.csv" is in it`)
	own := filepath.Join(at, "own.txt")
	put(t, own, "mine")
	put(t, filepath.Join(at, "a.csv"), "changed")
	refused("changed", "test", true, `"a.csv" in it was changed since`)
	put(t, filepath.Join(at, "a.csv"), "1\n")
	put(t, filepath.Join(at, "c"), "mine too")
	refused("somebody's file", "test", true, `"c" that is of somebody else`)
	if err := os.Remove(filepath.Join(at, "c")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewFolder(at, "test", true, puts(again)); err != nil {
		t.Fatal(err)
	}
	want2 := maps.Clone(again)
	want2["own.txt"] = "mine"
	if diff := cmp.Diff(want2, tree(t, at)); diff != "" {
		t.Error(diff)
	}

	// A manifest leads nowhere else.
	put(t, filepath.Join(at, store.Manifest), `{"written_by":"test","files":[{"name":"../secret"}]}`)
	refused("a way out", "test", true, `names "../secret"`)
	put(t, filepath.Join(at, store.Manifest), `{`)
	refused("no manifest", "test", true, "not empty")
}

func TestNewFolderIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	no := errors.New("no")
	breaks := func(add store.AddFile) error {
		return errors.Join(puts(map[string]string{"a": "x"})(add), add("b", func(io.Writer) error { return no }))
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{filepath.Join(dir, "new"), empty} {
		if _, err := store.NewFolder(at, "test", false, breaks); !errors.Is(err, no) || !strings.Contains(err.Error(), "b: no") {
			t.Errorf("error %v", err)
		}
	}
	if diff := cmp.Diff(map[string]string{"empty": "not a file"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if left := tree(t, empty); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	// Twice the same name, a name that leads out, a file, no folder above, a link.
	for what, files := range map[string]func(store.AddFile) error{
		"twice": func(add store.AddFile) error {
			return errors.Join(puts(map[string]string{"a": ""})(add), puts(map[string]string{"a": ""})(add))
		},
	} {
		if _, err := store.NewFolder(empty, "test", false, files); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	put(t, filepath.Join(dir, "file"), "")
	for _, at := range []string{"file", "none/page"} {
		if _, err := store.NewFolder(filepath.Join(dir, at), "test", true, puts(nil)); err == nil {
			t.Errorf("%s: no error", at)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewFolder(link, "test", false, puts(map[string]string{"a": "x"})); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "x"}, tree(t, empty)); diff != "" {
		t.Error(diff)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
