package builds

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCargo does what the file behave in its folder says.
const fakeCargo = `#!/bin/sh
echo "$PWD: $*" >>"$CALLS"
cat >>"$CALLS.stdin"
printf '   Compiling a v0.1.0\n    Building [=>   ] 1/3: a   \r'
case $(cat behave) in
builds)
	mkdir -p "$CARGO_TARGET_DIR/release"
	printf '#!/bin/sh\necho relay %s # %s\n' 26.4.0 "$(cat source sub/file 2>/dev/null)" >"$CARGO_TARGET_DIR/release/relay"
	chmod 755 "$CARGO_TARGET_DIR/release/relay"
	printf '    Building [==>  ] 2/3: relay   \r    Finished release\n' ;;
fails)
	printf 'warning: unused\n --> b.rs\n\nerror[E0308]: mismatched types\r\n --> src/main.rs:1:2\n  |\n\nwarning: late\n\n'
	printf 'error: could not compile %s\n' relay
	exit 101 ;;
much) # 20,000 lines, then nothing
	i=0; while [ $i -lt 200 ]; do printf '%s\n' "$MANY"; i=$((i+1)); done ;;
hangs)
	trap '' TERM
	sh -c 'trap "" TERM; echo $$ >child.pid; while :; do sleep 60; done' &
	echo $$ >own.pid
	wait; wait; sleep 60 ;;
esac
`

// bench is a repository with a checkout, and where its builds are kept.
type bench struct {
	t     *testing.T
	dir   string
	repo  *Repo
	kept  *Kept
	calls string
}

func newBench(t *testing.T) *bench {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: filepath.Join(dir, "relay"), kept: At(filepath.Join(dir, "kept")), calls: filepath.Join(dir, "calls")}
	bin := filepath.Join(dir, "bin")
	write(t, filepath.Join(bin, "cargo"), fakeCargo, 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", b.calls)
	t.Setenv("MANY", strings.TrimSuffix(strings.Repeat("a line that the build prints\n", 100), "\n"))
	t.Setenv("HOME", dir) // nobody's git config
	t.Setenv("XDG_CONFIG_HOME", dir)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "ann")
		t.Setenv("GIT_"+who+"_EMAIL", "ann@example.com")
		t.Setenv("GIT_"+who+"_DATE", "2026-04-15T09:00:00Z")
	}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, b.dir, "init", "--quiet", "--initial-branch=main")
	b.commit("main", "builds")
	b.repo = open(t, b.dir)
	return b
}

func open(t *testing.T, dir string) *Repo {
	t.Helper()
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// commit commits a source and how its build behaves, and gives the revision.
func (b *bench) commit(source, behave string) string {
	b.t.Helper()
	write(b.t, filepath.Join(b.dir, "source"), source, 0o644)
	write(b.t, filepath.Join(b.dir, "behave"), behave, 0o644)
	git(b.t, b.dir, "add", ".")
	git(b.t, b.dir, "commit", "--quiet", "-m", source)
	return git(b.t, b.dir, "rev-parse", "HEAD")
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// git runs git as a person would.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "GIT_DIR=") && !strings.HasPrefix(pair, "GIT_WORK_TREE=") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// state is all of a checkout that is the user's own.
func state(t *testing.T, dir string) string {
	s := git(t, dir, "status", "--porcelain=v2", "--branch") + "\n" + git(t, dir, "branch", "--list") + "\n" + git(t, dir, "config", "--local", "--list") + "\n" + git(t, dir, "ls-files", "--stage")
	for _, name := range []string{"source", "behave"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			s += fmt.Sprintln(name, info.ModTime())
		}
	}
	return s
}

// gitState is a state without the times of files.
func gitState(state string) string {
	before, _, _ := strings.Cut(state, "source 20")
	return before
}

func (b *bench) resolve(r *Repo, name string) Source {
	b.t.Helper()
	found, err := r.Resolve(b.t.Context(), name, false)
	if err != nil {
		b.t.Fatal(err)
	}
	return found[0]
}

func (b *bench) make(r *Repo, s Source, command string) Build {
	b.t.Helper()
	built, err := b.kept.Make(b.t.Context(), r, s, Order{Command: command})
	if err != nil {
		b.t.Fatal(err)
	}
	return built
}

// called is how often cargo was run.
func (b *bench) called() int {
	text, err := os.ReadFile(b.calls)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

func TestMake(t *testing.T) {
	b := newBench(t)
	first := git(t, b.dir, "rev-parse", "HEAD")
	git(t, b.dir, "tag", "v1")
	second := b.commit("second", "builds")
	before := state(t, b.dir)
	for _, c := range []struct{ name, revision, branch, source string }{
		{"main", second, "main", "second"}, {"v1", first, "v1", "main"}, {first[:9], first, "", "main"}, {second, second, "", "second"}, {"main~1", first, "", "main"},
	} {
		s := b.resolve(b.repo, c.name)
		if s.Revision != c.revision || s.Branch != c.branch || s.Date.Format(time.DateOnly) != "2026-04-15" {
			t.Errorf("%s: %+v", c.name, s)
		}
		built := b.make(b.repo, s, "")
		if text := read(t, built.Binary); !strings.Contains(text, "# "+c.source+"\n") {
			t.Errorf("%s: built %q", c.name, text)
		}
		if built.Profile != "release" || built.Size == 0 || len(built.SHA256) != 64 || built.Command != "cargo build --release -p relay" {
			t.Errorf("%s: %+v", c.name, built)
		}
		if found, ok := b.kept.At(built.Binary); !ok || found.SHA256 != built.SHA256 {
			t.Errorf("%s: at its path: %+v", c.name, found)
		}
	}
	if n := b.called(); n != 2 {
		t.Errorf("cargo was run %d times, want once for each revision", n)
	}
	if text := read(t, b.calls+".stdin"); text != "" {
		t.Errorf("cargo was given %q to read", text)
	}
	if after := state(t, b.dir); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
	t.Chdir(filepath.Dir(b.kept.dir))
	if got := At(filepath.Base(b.kept.dir)).dir; got != b.kept.dir {
		t.Errorf("the folder is %s by its name alone, want %s", got, b.kept.dir)
	}
	// Another command, or another setting of cargo, is another build.
	s := b.resolve(b.repo, "main")
	b.make(b.repo, s, "cargo build --release -p relay --locked")
	t.Setenv("RUSTFLAGS", "-C target-cpu=native")
	if _, ok := b.kept.Find(s, DefaultCommand); ok {
		t.Error("the build with other RUSTFLAGS was found")
	}
	b.make(b.repo, s, "")
	if got := len(b.kept.List()); got != 4 {
		t.Errorf("%d builds are kept, want 4", got)
	}
}

// Case 39: the branch is taken, the work tree's folder is gone, and GIT_DIR names another repository.
func TestTreeThatIsGone(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	other.commit("other", "builds")
	home := b.kept.home(b.repo.common)
	dead := filepath.Join(t.TempDir(), "mine") // somebody else's dead registration
	git(t, b.dir, "worktree", "add", "--quiet", "--detach", dead)
	if err := os.RemoveAll(dead); err != nil {
		t.Fatal(err)
	}
	before := state(t, b.dir)
	for i, env := range []string{"", filepath.Join(other.dir, ".git")} {
		if env != "" {
			t.Setenv("GIT_DIR", env)
			t.Setenv("GIT_WORK_TREE", other.dir)
		}
		s := b.resolve(b.repo, "main")
		for _, command := range []string{fmt.Sprint("cargo ", i), fmt.Sprint("cargo again ", i)} {
			if built := b.make(b.repo, s, command); !strings.Contains(read(t, built.Binary), "# main\n") {
				t.Errorf("%s built another repository", command)
			}
			if err := os.RemoveAll(filepath.Join(home, treesDir)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.make(b.repo, b.resolve(b.repo, "main"), "cargo last")
	if after := state(t, b.dir); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
	trees := strings.Split(git(t, b.dir, "worktree", "list"), "\n")
	slices.Sort(trees)
	if len(trees) != 3 || strings.Count(strings.Join(trees, "\n"), "prunable") != 1 || !strings.Contains(strings.Join(trees, "\n"), dead) {
		t.Errorf("work trees %q", trees)
	}
	gone, freed, err := b.kept.Prune(t.Context(), func(Build) bool { return false })
	if err != nil || len(gone) != 5 || freed == 0 {
		t.Errorf("pruned %d builds, %d bytes, %v", len(gone), freed, err)
	}
	if trees := strings.Split(git(t, b.dir, "worktree", "list"), "\n"); len(trees) != 2 {
		t.Errorf("after prune: work trees %q", trees)
	}
	if u := b.kept.Usage(); u != (Usage{}) {
		t.Errorf("after prune: %+v", u)
	}
}

func TestBuildThatFails(t *testing.T) {
	b := newBench(t)
	b.make(b.repo, b.resolve(b.repo, "main"), "") // its binary is not taken for the next one's
	for _, c := range []struct {
		behave, command, says string
		lines                 []string
	}{
		{"fails", "", "cargo build --release -p relay: exit status 101", []string{"error[E0308]: mismatched types", " --> src/main.rs:1:2", "  |", "error: could not compile relay"}},
		{"much", "", "cargo build --release -p relay: it made no target/PROFILE/relay", slices.Repeat([]string{"a line that the build prints"}, lastLines)},
		{"none", "", "it made no target/PROFILE/relay", nil},
		{"none", "cat >eaten.txt", "cat >eaten.txt: it made no", nil},
		{"none", "no-such-program", "no-such-program: exit status 127", []string{"/bin/sh: 1: no-such-program: not found"}},
	} {
		b.commit(c.behave+c.command, c.behave)
		s := b.resolve(b.repo, "main")
		_, err := b.kept.Make(t.Context(), b.repo, s, Order{Command: c.command})
		var failed *FailedError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
			t.Fatalf("%s: %v", c.behave, err)
		}
		if c.command != "no-such-program" && !slices.Equal(failed.Lines, c.lines) {
			t.Errorf("%s: lines\n%q, want\n%q", c.behave, failed.Lines, c.lines)
		}
		if c.behave == "much" && strings.Count(read(t, failed.Log), "\n") != 20001 {
			t.Error("the log has not all that was printed")
		}
		if _, ok := b.kept.Find(s, ""); ok {
			t.Errorf("%s: a build is kept", c.behave)
		}
		if c.command == "cat >eaten.txt" && read(t, filepath.Join(b.kept.home(b.repo.common), treesDir, s.Revision[:12], "eaten.txt")) != "" {
			t.Error("the build was given something to read")
		}
	}
	s := b.resolve(b.repo, "main~5")
	_, err := b.kept.Make(t.Context(), b.repo, s, Order{Command: "cargo it", Check: func(context.Context, string) error { return errNoBinary }})
	if _, ok := b.kept.Find(s, "cargo it"); ok || !errors.Is(err, errNoBinary) {
		t.Errorf("not fit to be kept: %v", err)
	}
}

// A build that hangs, and does not heed SIGTERM, is ended with all that it started.
func TestBuildThatHangs(t *testing.T) {
	b := newBench(t)
	b.commit("hang", "hangs")
	s := b.resolve(b.repo, "main")
	dir := filepath.Join(b.kept.home(b.repo.common), treesDir, s.Revision[:12])
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := errors.New("cancelled")
	told := 0
	_, err := b.kept.Make(ctx, b.repo, s, Order{Tell: func(p Progress) {
		told++
		if _, err := os.Stat(filepath.Join(dir, "child.pid")); err == nil && p.Of == 3 {
			cancel(cause)
		}
	}})
	if !errors.Is(err, cause) || told == 0 {
		t.Errorf("%v, told %d times", err, told)
	}
	for _, name := range []string{"own.pid", "child.pid"} {
		pid := strings.TrimSpace(read(t, filepath.Join(dir, name)))
		if text, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(text), ") Z ") {
			t.Errorf("%s: process %s is still there: %s", name, pid, text)
		}
	}
	if _, ok := b.kept.Find(s, ""); ok {
		t.Error("a build is kept")
	}
}

// A tree with changes is built with them, new files too, and is another build than its revision.
func TestChanges(t *testing.T) {
	b := newBench(t)
	write(t, filepath.Join(b.dir, ".gitignore"), "*.o\n", 0o644)
	b.commit("second", "builds")
	clean, err := b.repo.Here(t.Context(), b.kept.Objects(b.repo))
	if err != nil || clean.Changes != "" || clean.Branch != "main" || b.repo.Changed(t.Context()) {
		t.Fatalf("%+v, %v", clean, err)
	}
	write(t, filepath.Join(b.dir, "source"), "changed", 0o644)
	write(t, filepath.Join(b.dir, "sub", "file"), "and new", 0o644)
	write(t, filepath.Join(b.dir, "x.o"), "ignored", 0o644)
	before := state(t, b.dir)
	objects := git(t, b.dir, "count-objects", "-v")
	here := func() Source {
		t.Helper()
		s, err := b.repo.Here(t.Context(), b.kept.Objects(b.repo))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := here()
	if s.Changes == "" || s.Revision != clean.Revision || !b.repo.Changed(t.Context()) || s != here() {
		t.Fatalf("%+v", s)
	}
	if text := read(t, b.make(b.repo, s, "").Binary); !strings.Contains(text, "# changedand new\n") {
		t.Errorf("built %q", text)
	}
	write(t, filepath.Join(b.dir, "source"), "changed more", 0o644)
	if err := os.Remove(filepath.Join(b.dir, "sub", "file")); err != nil {
		t.Fatal(err)
	}
	if more := here(); more.Changes == s.Changes {
		t.Error("other changes have the same hash")
	} else if text := read(t, b.make(b.repo, more, "").Binary); !strings.Contains(text, "# changed more\n") {
		t.Errorf("built %q", text)
	}
	write(t, filepath.Join(b.dir, "source"), "changed", 0o644)
	write(t, filepath.Join(b.dir, "sub", "file"), "and new", 0o644)
	if text := read(t, b.make(b.repo, clean, "").Binary); !strings.Contains(text, "# second\n") {
		t.Errorf("built of the revision %q", text)
	}
	if n := b.called(); n != 3 {
		t.Errorf("cargo was run %d times", n)
	}
	if after := state(t, b.dir); gitState(after) != gitState(before) || objects != git(t, b.dir, "count-objects", "-v") {
		t.Errorf("the checkout was\n%s%s\nand is\n%s", before, objects, after)
	}
}

// Submodules come from the checkout's own copies, and its config stays as it is.
func TestSubmodules(t *testing.T) {
	b := newBench(t)
	sub := filepath.Join(filepath.Dir(b.dir), "sub.git")
	git(t, filepath.Dir(b.dir), "init", "--quiet", "--initial-branch=main", sub)
	write(t, filepath.Join(sub, "file"), " of sub", 0o644)
	git(t, sub, "add", ".")
	git(t, sub, "commit", "--quiet", "-m", "sub")
	git(t, b.dir, "submodule", "--quiet", "add", "--name", "a/sub", sub, "sub")
	b.commit("with", "builds")
	if err := os.Rename(sub, sub+".gone"); err != nil {
		t.Fatal(err)
	}
	before := state(t, b.dir)
	if text := read(t, b.make(b.repo, b.resolve(b.repo, "main"), "").Binary); !strings.Contains(text, "# with of sub\n") {
		t.Errorf("built %q", text)
	}
	if after := state(t, b.dir); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
	write(t, filepath.Join(b.dir, "sub", "file"), "changed", 0o644)
	if _, err := b.repo.Here(t.Context(), b.kept.Objects(b.repo)); err == nil || !strings.Contains(err.Error(), `submodule "sub" has changes`) {
		t.Errorf("changes within a submodule: %v", err)
	}
	// A clone that has none of them: what cannot be had is said, and the build goes on.
	clone := filepath.Join(filepath.Dir(b.dir), "clone.git")
	git(t, b.dir, "clone", "--quiet", "--bare", b.dir, clone)
	r := open(t, clone)
	var notes []string
	if _, err := b.kept.Make(t.Context(), r, b.resolve(r, "main"), Order{Note: func(n string) { notes = append(notes, n) }}); err != nil || len(notes) != 1 || !strings.Contains(notes[0], `submodule "sub" could not be had`) {
		t.Errorf("notes %q, %v", notes, err)
	}
}

func TestClones(t *testing.T) {
	b := newBench(t)
	first := git(t, b.dir, "rev-parse", "HEAD")
	second := b.commit("second", "builds")
	at := filepath.Dir(b.dir)
	git(t, at, "clone", "--quiet", "--bare", b.dir, "bare.git")
	git(t, at, "clone", "--quiet", "--depth=1", "file://"+b.dir, "shallow")
	bare, shallow := open(t, filepath.Join(at, "bare.git")), open(t, filepath.Join(at, "shallow"))
	third := b.commit("third", "builds")
	git(t, b.dir, "branch", "perf/x", first)
	git(t, b.dir, "tag", "-a", "-m", "tag", "v1", first)

	for _, r := range []*Repo{bare, shallow} {
		if s := b.resolve(r, "main"); s.Revision != second {
			t.Errorf("%s: before fetch %+v", r.path, s)
		}
		for name, want := range map[string]string{"main": third, "perf/x": first, "v1": first, third: third} {
			if err := r.Fetch(t.Context(), name); err != nil {
				t.Errorf("%s: fetch %s: %v", r.path, name, err)
				continue
			}
			found, err := r.Resolve(t.Context(), name, true)
			if err != nil || found[0].Revision != want {
				t.Errorf("%s: %s: %+v, %v", r.path, name, found, err)
			}
		}
		if got := git(t, r.path, "rev-parse", "refs/heads/main"); got != second {
			t.Errorf("%s: its own main was moved to %s", r.path, got)
		}
		if s := b.resolve(r, "main"); s.Revision != second {
			t.Errorf("%s: without fetch %+v", r.path, s)
		}
		if text := read(t, b.make(r, b.resolve(r, "perf/x"), "").Binary); !strings.Contains(text, "# main\n") {
			t.Errorf("%s: built %q", r.path, text)
		}
		names, err := r.Names(t.Context())
		if slices.Sort(names); err != nil || !slices.Equal(names, []string{"main", "perf/x", "v1"}) {
			t.Errorf("%s: names %q, %v", r.path, names, err)
		}
	}
	if _, err := bare.Here(t.Context(), b.kept.Objects(bare)); err == nil {
		t.Error("a bare repository has a tree")
	}
	// One's own branch that has all of the remote's counts.
	git(t, shallow.path, "reset", "--quiet", "--hard", third)
	git(t, shallow.path, "commit", "--quiet", "--allow-empty", "-m", "own")
	if found, err := shallow.Resolve(t.Context(), "main", true); err != nil || found[0].Revision != git(t, shallow.path, "rev-parse", "HEAD") || len(found) != 2 {
		t.Errorf("own and ahead: %+v, %v", found, err)
	}

	if s, err := b.repo.ResolveAt(t.Context(), "main", first[:10], false); err != nil || s.Revision != first || s.Branch != "main" {
		t.Errorf("a revision of main: %+v, %v", s, err)
	}
	if _, err := b.repo.ResolveAt(t.Context(), "perf/x", third, false); err == nil || !strings.Contains(err.Error(), `is not on "perf/x"`) {
		t.Errorf("a revision that a branch has not: %v", err)
	}
	for name, says := range map[string]string{"mian": `no branch, tag or revision "mian"`, "-x": `"-x"`, "": `""`} {
		var none *NoRevisionError
		if _, err := b.repo.Resolve(t.Context(), name, false); !errors.As(err, &none) || err.Error() != strings.TrimSpace("no branch, tag or revision "+says[strings.IndexByte(says, '"'):]) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := shallow.Resolve(t.Context(), "deadbeef", false); err == nil || !strings.Contains(err.Error(), "shallow clone") {
		t.Errorf("shallow: %v", err)
	}
	for _, dir := range []string{at, filepath.Join(b.dir, ".git", "refs"), filepath.Join(b.dir, ".git", "hooks")} {
		if _, err := Open(t.Context(), dir); !errors.Is(err, ErrNoCheckout) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A remote that asks for a password: git fails at once, with its own message.
func TestRemoteThatAsks(t *testing.T) {
	b := newBench(t)
	helper := filepath.Join(filepath.Dir(b.dir), "bin", "git-remote-asks") // as git's own for HTTP does
	write(t, helper, "#!/bin/sh\nexec git credential fill <<E >&2\nprotocol=https\nhost=example.com\nE\n", 0o755)
	git(t, b.dir, "remote", "add", "origin", "asks://example.com/relay")
	t.Setenv("SSH_ASKPASS", "/bin/false")
	err := b.repo.Fetch(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "terminal prompts disabled") {
		t.Errorf("got %v", err)
	}
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		line     string
		done, of int
		ok       bool
	}{
		{"    Building [========>                    ] 12/340: a, b(build)", 12, 340, true},
		{"    Building [>  ] 0/3", 0, 3, true}, {"   Compiling a v0.1.0", 0, 0, false}, {"Building [", 0, 0, false}, {"Building [x] a/b: ", 0, 0, false},
	} {
		if done, of, ok := crates(c.line); ok != c.ok || ok && (done != c.done || of != c.of) {
			t.Errorf("%q: %d/%d %t", c.line, done, of, ok)
		}
	}
	for line, want := range map[string]bool{"   Compiling a v0.1.0": true, "    Finished `dev`": true, "note: x": false, "": false, "                        x": false, "Compiling a": false} {
		if got := status(line); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
	for p, want := range map[Progress]string{{}: "0s", {Done: 2, Of: 3, Elapsed: 61 * time.Second}: "2 of 3 crates, 1m1s", {Step: "fetching", Elapsed: time.Second}: "fetching, 1s"} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
