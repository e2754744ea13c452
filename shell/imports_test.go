package shell_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "relaybench"

// imports says which packages of this module a package may import: all else is against the house.
var imports = map[string][]string{
	".":              {"shell", "harness/standin", "harness/blaster", "harness/relay"},
	"shell":          {"commands", "shell/profiles"},
	"shell/profiles": {},
	"commands": {"commands/line", "commands/table", "store", "store/stats", "envelope", "upstream",
		"harness", "harness/relay", "harness/builds", "harness/host", "harness/perf", "harness/plan", "harness/result", "harness/variable"},
	"commands/line":    {},
	"commands/table":   {},
	"store":            {"store/stats", "harness/plan", "harness/result", "harness/variable"},
	"store/stats":      {},
	"store/storetest":  {"store", "harness/plan", "harness/result"},
	"harness":          {"harness/variable", "harness/blaster", "harness/relay", "harness/host", "harness/perf", "harness/statsd", "harness/plan", "harness/result", "upstream", "envelope"},
	"harness/variable": {},
	"harness/plan":     {"harness/variable", "envelope"},
	"harness/result":   {"envelope"},
	"harness/blaster":  {"harness/host", "harness/result", "envelope", "reactor"},
	"harness/relay":    {"harness/host", "harness/result", "harness/variable"},
	"harness/builds":   {"harness/result"},
	"harness/host":     {"harness/result", "harness/variable"},
	"harness/perf":     {"harness/result"},
	"harness/statsd":   {"harness/result"},
	"harness/standin":  {"envelope"},
	"upstream":         {"envelope", "reactor"},
	"envelope":         {},
	"reactor":          {},
}

// outside are libraries that only some may know.
var outside = map[string][]string{
	"go.etcd.io/bbolt":            {"store", "store/storetest"},
	"github.com/valyala/fasthttp": {"upstream", "harness/standin"},
	"net/http": {"upstream", "harness", "harness/relay", "harness/blaster", "harness/standin", "harness/result",
		"harness/perf", // where a page of pprof's is asked of its handler
		"shell/profiles"},
	"golang.org/x/term":          {"shell"},
	"github.com/chzyer/readline": {"shell"},
	"os/signal":                  {"shell", "harness/standin", "harness/relay"},
}

// TestWhoImportsWhom holds the house's table of imports, for all files but tests.
func TestWhoImportsWhom(t *testing.T) {
	root := ".."
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && file != root) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(rel)
		seen[from] = true
		may, ok := imports[from]
		if !ok {
			t.Errorf("package %s is not in the table of imports", from)
			return filepath.SkipDir
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if local, ok := strings.CutPrefix(to, module+"/"); ok {
				if !slices.Contains(may, local) {
					t.Errorf("%s: %s must not import %s", file, from, local)
				}
			} else if knows, ok := outside[to]; ok && !slices.Contains(knows, from) {
				t.Errorf("%s: %s must not import %s", file, from, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".", "shell", "commands", "store", "harness", "upstream", "envelope"} {
		if !seen[p] {
			t.Errorf("no file of package %s was looked at", p)
		}
	}
}

// TestTableOfImports holds the table itself: what it allows is no way around it.
func TestTableOfImports(t *testing.T) {
	for _, no := range []struct{ from, to string }{
		{"shell", "store"}, {"shell", "harness/standin"}, {"commands", "shell"}, {"commands", "harness/blaster"}, {"commands", "harness/standin"}, {"store", "harness"}, {"store", "commands"},
		{"harness", "store"}, {"harness", "commands"}, {"upstream", "harness"}, {"envelope", "upstream"}, {"harness/result", "harness"},
	} {
		if slices.Contains(imports[no.from], no.to) {
			t.Errorf("%s may import %s", no.from, no.to)
		}
	}
}
