package builds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sparse clone may be without the objects of files that its tree leaves out:
// it is built as it is, with its changes, and without those files.
func TestSparseCloneWithoutObjects(t *testing.T) {
	b := newBench(t)
	write(t, filepath.Join(b.dir, "large.gz"), "large", 0o644)
	b.commit("second", "builds")
	git(t, b.dir, "config", "core.sparseCheckout", "true")
	if err := os.MkdirAll(filepath.Join(b.dir, ".git", "info"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.dir, ".git", "info", "sparse-checkout"), "/*\n!/large.gz\n", 0o644)
	git(t, b.dir, "read-tree", "-mu", "HEAD")
	large := strings.TrimSpace(git(t, b.dir, "rev-parse", "HEAD:large.gz"))
	if err := os.Remove(filepath.Join(b.dir, ".git", "objects", large[:2], large[2:])); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.dir, "source"), "changed", 0o644)
	s, err := b.repo.Here(t.Context(), b.kept.Objects(b.repo))
	if err != nil || s.Changes == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	if text := read(t, b.make(b.repo, s, "").Binary); !strings.Contains(text, "# changed") {
		t.Errorf("built %q", text)
	}
}
