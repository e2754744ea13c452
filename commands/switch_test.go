package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relaybench/store/storetest"
)

// aCheckout is a git checkout, with two branches, whose cargo hangs.
func aCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "ann")
		t.Setenv("GIT_"+who+"_EMAIL", "ann@example.com")
	}
	for name, text := range map[string]string{"bin/cargo": "#!/bin/sh\nprintf 'it begins\\n'\nexec sleep 60\n", "relay/Cargo.toml": "[workspace]\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	relay := filepath.Join(dir, "relay")
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "-m", "first"}, {"branch", "perf/x"}} {
		if out, err := exec.Command("git", append([]string{"-C", relay}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	return relay
}

// What is queued behind a build takes it, or fails with it: another relay is never measured instead.
func TestWhatIsBehindABuild(t *testing.T) {
	checkout := aCheckout(t)
	b := desk(t, storetest.Open(t))
	ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", false)
	wants(t, bob.says("relay switch main"), "error: relay switch: no checkout is in use, but stand-in\n")
	wants(t, ann.says("relay use "+checkout), "on main", "0 builds are kept of it")
	if _, found := ann.Complete("relay switch -b p", 17); !slices.Equal(found, []string{"perf/x"}) {
		t.Errorf("completed %q", found)
	}
	if _, found := ann.Complete("ab ma", 5); !slices.Contains(found, "main") {
		t.Errorf("completed %q", found)
	}
	var said [3]string // what j1 says may come in any of them
	for i, line := range []string{"relay switch -bv main; test 1s --rate 10; relay switch -b perf/x; test 1s --rate 20", "relay use", "status"} {
		said[i] = ann.says(line)
	}
	wants(t, said[0], "j1 queued", "j2 queued", "j3 queued", "j4 queued")
	wants(t, said[1], "relay switch -b perf/x, job j3, has not made its build")
	wants(t, said[2], "perf/x of ")
	wants(t, bob.says("relay use"), "stand-in") // what another client switches to is its own
	if !strings.Contains(strings.Join(said[:], ""), "it begins") {
		ann.until("it begins")
	}
	wants(t, bob.says("relay prune"), "a build is being made")
	ann.says("cancel j3")
	ann.says("cancel j1; wait j1")
	ann.says("wait j2; wait j4")
	for _, v := range b.queue.views() {
		want := map[string]State{"j1": Cancelled, "j2": Failed, "j3": Cancelled, "j4": Failed}[v.ID]
		if v.State != want {
			t.Errorf("%s is %s, want %s", v.ID, v.State, want)
		}
	}
	wants(t, bob.says("wait j2"), "relay switch -bv main, job j1, made no build")
	wants(t, bob.says("wait j4"), "relay switch -b perf/x, job j3, has not made its build")
	if said := bob.says("reports"); !strings.HasPrefix(said, "no report") {
		t.Errorf("reports: %q", said)
	}
	wants(t, ann.says("ab main mian test 10s"), `error: ab: no branch, tag or revision "mian"`)
}
