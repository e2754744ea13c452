package commands

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"relaybench/store/storetest"
)

// aPath is a text for which each rule of the gate says that it is a path.
const aPath = "spool.path=/etc/passwd"

// TestRemoteClientNamesNoPath walks the table: each argument or flag that is
// declared a path is refused to a remote client, and to no other.
func TestRemoteClientNamesNoPath(t *testing.T) {
	b := NewBench(Config{})
	remote, local := b.NewSession(Client{Remote: true}), b.NewSession(Client{})
	var declared []string
	refused := func(what string, s *Session, c *command, flags *pflag.FlagSet, args []string) bool {
		err := s.gate(c, flags, args)
		if err != nil && !strings.Contains(err.Error(), strconv.Quote(aPath)+" is refused") {
			t.Errorf("%s: %v", what, err)
		}
		return err != nil
	}
	for i := range remote.commands {
		c := &remote.commands[i]
		for n, a := range c.args {
			what := c.name + " " + a.name
			if a.path != nil {
				declared = append(declared, what)
			}
			if slices.ContainsFunc(c.args[:n], func(a arg) bool { return a.path != nil && a.path("none") }) {
				continue // what stands before it is refused whatever it is
			}
			args := slices.Repeat([]string{"none"}, len(c.args))
			args[n] = aPath
			for other := range c.args {
				if other != n && c.args[other].path != nil {
					args = args[:n+1]
				}
			}
			if got, want := refused(what, remote, c, c.flags(remote), args), a.path != nil; got != want {
				t.Errorf("%s: refused %t, want %t", what, got, want)
			}
			if refused(what, local, c, c.flags(local), args) {
				t.Errorf("%s is refused to a client of this host", what)
			}
		}
		c.flags(nil).VisitAll(func(f *pflag.Flag) {
			what := c.name + " " + dashed(f)
			v, ok := f.Value.(*flagValue)
			want := ok && v.path != nil
			if want {
				declared = append(declared, what)
			}
			for s, want := range map[*Session]bool{remote: want, local: false} {
				flags := c.flags(s)
				_ = flags.Set(f.Name, aPath) // a flag that takes no such value names no path
				if got := refused(what, s, c, flags, nil); got != want {
					t.Errorf("%s: refused %t, want %t", what, got, want)
				}
			}
		})
	}
	equal(t, "declared", declared, []string{"test --mix", "test --statsd", "test --config", "test -E", "test --perf", "ab A", "ab B", "search --mix", "search --statsd", "search --config", "search -E", "cost --statsd", "cost --config", "cost -E", "relay use WHAT", "relay switch --build-command", "relay config NAME|FILE", "show --to", "publish FOLDER", "export --to", "import FILE", "db backup FILE", "dump FOLDER", "dump --mix"})
	b.config.AllowPaths = true
	if err := remote.gate(&dumpCommand, dumpCommand.flags(remote), []string{aPath}); err != nil {
		t.Errorf("with -allow-paths: %v", err)
	}
}

// What is typed for a path is refused, whatever way it is typed, and the words say what and why.
func TestPathsThatAreRefused(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	b := desk(t, storetest.Open(t))
	client := func(remote bool) *person {
		p := &person{t: t}
		p.Session = b.NewSession(Client{Name: "it", Out: p, Notes: p, Remote: remote, Background: remote})
		return p
	}
	remote, local := client(true), client(false)
	local.says("define saved db backup $; define")
	local.says("define saving db backup x.db")
	for _, line := range []string{
		"db backup x.db", "db backup -- x.db", "import x.db", "import x.db --skip-bad", "export --to x", "export mix=errors --to=x --format csv", "dump x", "dump x --mix errors -n 1", "dump . -n 1",
		"relay config x.yml", "ab config=x.yml config=tuned test 10s", "relay use ./relay", "relay use ~/relay", "relay use relay", "relay use docker:relay", "ab docker:a docker:b test 1s", "relay use ''",
		"test 1s --statsd 192.0.2.1:8125", "ab statsd=off statsd=192.0.2.1:8125 test 10s", "ab mix=errors mix=./x test 10s", "test 1s --config x.yml", "test --config=x.yml 1s", "test 1s -config x.yml --config default", "explain test 1s --config x.yml",
		"explain 'status; test 1s --config x.yml'",
		"test 1s -E spool.envelopes.path=x", "test 1s -Espool.envelopes.path=x", "test 1s -E=spool.envelopes.path=x", "test 1s --E spool.envelopes.path=x",
		"test 1s -E a.b=1 -E processing.geoip_path=x -E a.c=1", "explain test 1s -E 'relay.host=${HOME}'", "test 1s -E 'relay.host=${file:/etc/passwd}'",
		`test 1s -E 'relay.host="\x24{HOME}"'`, "test 1s -E relay.host=/etc/passwd", "test 1s -E 'relay.host=[1, \"/etc\"]'", "test 1s -E metrics.statsd=unix:///tmp/x",
		"test 1s -E metrics.statsd=1,UNIX:/tmp/x", "test 1s -E 'relay.host=!!str /etc'", "test 1s -E relay.host=../x", "test 1s -E relay.host=~",
		"saving", "explain saving",
	} {
		code, said := remote.does(t.Context(), line)
		if code != Usage || !strings.Contains(said, "is refused") || !strings.Contains(said, "this client is a remote one") || !strings.Contains(said, "relaybench -allow-paths lets all clients do so") {
			t.Errorf("%s: code %d, %q", line, code, said)
		}
	}
	for _, line := range []string{"relay switch -b main", "relay switch -f main", "relay switch -fb main", "relay switch main -b --build-command 'rm x'", "relay prune", "relay prune --keep 0"} {
		code, said := remote.does(t.Context(), line)
		if code != Usage || !strings.Contains(said, "is refused") || !strings.Contains(said, "this client is a remote one") {
			t.Errorf("%s: code %d, %q", line, code, said)
		}
	}
	if found, err := os.ReadDir(here); err != nil || len(found) > 0 {
		t.Errorf("files were made: %v, %v", found, err)
	}
	for _, line := range []string{
		"explain test 1s --config default", "explain test 1s --config tuned", "explain test 1s -E http.encoding=gzip,zstd", "explain test 1s -E aggregator.file_interval=10",
		"explain test 1s -E health.x=https://x@sentry.io/1", "explain test 1s --label /etc/passwd", "relay use none", "relay use last", "name ./x", "define x db backup $", "reports label~/",
	} {
		if code, said := remote.does(t.Context(), line); code == Usage || strings.Contains(said, "is refused") {
			t.Errorf("%s: code %d, %q", line, code, said)
		}
	}
	// Of its own host's files it hears nothing either.
	if err := os.WriteFile("secret.yml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, found := remote.Complete("import s", 8); len(found) != 0 {
		t.Errorf("completed %q", found)
	}
	if _, found := local.Complete("import s", 8); !slices.Equal(found, []string{"secret.yml"}) {
		t.Errorf("at the host itself: completed %q", found)
	}
	// What was not declared is refused where it would be opened.
	if _, err := remote.readFile("secret.yml"); err == nil || !strings.Contains(err.Error(), "is refused") {
		t.Errorf("read: %v", err)
	}
	if _, err := remote.newFolder("x"); err == nil || !strings.Contains(err.Error(), "is refused") {
		t.Errorf("folder: %v", err)
	}

	b.config.AllowPaths = true
	if code, said := remote.does(t.Context(), "db backup x.db; dump y -n 1 --mix sessions"); code != Fine {
		t.Errorf("with -allow-paths: code %d, %q", code, said)
	}
}

// What a client names is relative to its own folder.
func TestPathsOfAClientElsewhere(t *testing.T) {
	there := t.TempDir()
	if err := os.WriteFile(filepath.Join(there, "x.yml"), []byte("limits: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := desk(t, storetest.Open(t))
	ann := &person{t: t}
	ann.Session = b.NewSession(Client{Out: ann, Dir: there})
	wants(t, ann.says("explain test 1s --config x.yml"), "1 run, ")
	wants(t, ann.says("relay use ./none"), filepath.Join(there, "none"))
	ann.says("db backup sub.db")
	if _, err := os.Stat(filepath.Join(there, "sub.db")); err != nil {
		t.Error(err)
	}
	if _, found := ann.Complete("import ", 7); !slices.Equal(found, []string{"sub.db", "x.yml"}) {
		t.Errorf("completed %q", found)
	}
}

// opening are the ways to a file that only the gate knows; others give a name to what is opened elsewhere.
var opening = map[string][]string{
	"os": {"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "DirFS", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename",
		"Link", "Symlink", "Truncate", "Chmod", "Chown", "Chtimes", "Stat", "Lstat", "Readlink", "StartProcess", "CopyFS", "Chdir"},
	"filepath": {"Glob", "Walk", "WalkDir", "EvalSymlinks"},
	"ioutil":   nil,
	"exec":     nil,
	"syscall":  nil,
	"unix":     nil,
	"net":      {"Dial", "DialTimeout", "DialUnix", "Dialer", "Listen", "ListenPacket", "ListenUnix", "ListenUnixgram", "ListenConfig"},
}

// TestOnlyTheGateOpensFiles holds that no command opens a file but through the gate.
func TestOnlyTheGateOpensFiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, inner...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		imported := map[string]string{} // name in the file to the path's last part
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			last := path[strings.LastIndexByte(path, '/')+1:]
			name := last
			if i.Name != nil {
				name = i.Name.Name
			}
			imported[name] = last
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := call.X.(*ast.Ident)
			if !ok {
				return true
			}
			if names, ok := opening[imported[of.Name]]; ok && (names == nil || slices.Contains(names, call.Sel.Name)) {
				if seen++; file != "gate.go" {
					t.Errorf("%s: %s.%s: only gate.go goes to files", set.Position(call.Pos()), of.Name, call.Sel.Name)
				}
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("the gate was not seen")
	}
}
