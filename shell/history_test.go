package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "history")
	h, err := openHistory(path)
	if err != nil || len(h.lines) > 0 {
		t.Fatalf("%v, %v", h.lines, err)
	}
	other, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"a", "b", " c", "", "\td", "a", "é  ", "e\nf"} {
		if err := h.add(l); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"b", "a", "é", "e"}; !slices.Equal(h.lines, want) {
		t.Errorf("%q, want %q", h.lines, want)
	}
	if err := other.add("b"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "é", "e", "b"}; !slices.Equal(other.lines, want) {
		t.Errorf("another terminal has %q, want %q", other.lines, want)
	}
	h, err = openHistory(path)
	if err != nil || !slices.Equal(h.lines, other.lines) {
		t.Errorf("%q, %v, want %q", h.lines, err, other.lines)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("left beside it: %v, %v", names, err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxHistory + 10 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	got := historyLines(b.String() + "line 12\n")
	if len(got) != maxHistory || got[0] != "line 10" || got[1] != "line 11" || got[2] != "line 13" || got[maxHistory-1] != "line 12" {
		t.Errorf("%d lines, %q … %q", len(got), got[:3], got[len(got)-1])
	}
}

// Terminals that write at once lose no line.
func TestHistoryOfSeveral(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var joined sync.WaitGroup
	for i := range 8 {
		joined.Go(func() {
			h := &history{path: path}
			for j := range 10 {
				if err := h.add(fmt.Sprintf("line %d of %d", j, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	joined.Wait()
	if h, err := openHistory(path); err != nil || len(h.lines) != 80 {
		t.Errorf("%d lines, %v; want 80", len(h.lines), err)
	}
}

// A history that cannot be kept is said so once, and is one all the same.
func TestHistoryThatIsNotKept(t *testing.T) {
	h, err := openHistory(t.TempDir()) // a folder
	if err == nil {
		t.Error("no error")
	}
	h.path = filepath.Join(t.TempDir(), "x\x00")
	if err := h.add("a"); err == nil {
		t.Error("no error")
	}
	if err := h.add("b"); err != nil || !slices.Equal(h.lines, []string{"a", "b"}) {
		t.Errorf("%q, %v", h.lines, err)
	}
}
