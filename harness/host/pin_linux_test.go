package host

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"relaybench/harness/variable"
)

// some are the first and the last CPU that there are here: the same where there is one.
func some(t *testing.T) (first, last, all variable.CPUs) {
	t.Helper()
	all, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	return all[:1], all[len(all)-1:], all
}

// All threads are pinned, also those that are made later, and free again afterwards.
func TestPin(t *testing.T) {
	first, _, all := some(t)
	procs := runtime.GOMAXPROCS(0)
	own := os.Getpid()
	undo, err := Pin(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(first); err == nil || err.Error() != "another run has pinned this process" {
		t.Errorf("pinned twice: got %v", err)
	}
	if got := CPUsOf(own).List(); got != first.List() {
		t.Errorf("pinned: threads may run on %s, want %s", got, first.List())
	}
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("pinned to one CPU: GOMAXPROCS %d", got)
	}
	var threads sync.WaitGroup
	ready, leave := make(chan struct{}), make(chan struct{})
	for range 20 {
		threads.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends
			ready <- struct{}{}
			<-leave
		})
	}
	for range 20 {
		<-ready
	}
	if got := CPUsOf(own).List(); got != first.List() {
		t.Errorf("with new threads: they may run on %s, want %s", got, first.List())
	}
	if got, _ := Allowed(); got.List() != all.List() {
		t.Errorf("while pinned %s are allowed, want %s", got.List(), all.List())
	}
	err = undo()
	if got := CPUsOf(own).List(); err != nil || got != all.List() {
		t.Errorf("undone: threads may run on %s, %v, want %s", got, err, all.List())
	}
	close(leave)
	threads.Wait()
	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("undone: GOMAXPROCS %d, want %d", got, procs)
	}
	if undo, err := Pin(nil); err != nil || undo() != nil {
		t.Errorf("no CPUs: %v", err)
	}
	if _, err := Pin(variable.CPUs{1023}); err == nil || CPUsOf(own).List() != all.List() {
		t.Errorf("a CPU that there is not: got %v, threads on %s", err, CPUsOf(own).List())
	}
}

// What is started runs where it is to, and this process where it did.
func TestOn(t *testing.T) {
	first, last, all := some(t)
	said := func(on variable.CPUs) string {
		t.Helper()
		var out strings.Builder
		cmd := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status")
		cmd.Stdout = &out
		if err := On(on, cmd.Start); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(strings.TrimSpace(out.String()), "\t")
		return list
	}
	for _, c := range []struct{ pin, on, want variable.CPUs }{{nil, last, last}, {nil, nil, all}, {first, last, last}, {first, nil, all}, {last, all, all}} {
		undo, err := Pin(c.pin)
		if err != nil {
			t.Fatal(err)
		}
		if got := said(c.on); got != c.want.List() {
			t.Errorf("pinned to %v, started on %v: runs on %s, want %s", c.pin, c.on, got, c.want.List())
		}
		here := all
		if c.pin != nil {
			here = c.pin
		}
		if got := CPUsOf(os.Getpid()).List(); got != here.List() {
			t.Errorf("pinned to %v, started on %v: this process runs on %s", c.pin, c.on, got)
		}
		if err := undo(); err != nil {
			t.Error(err)
		}
	}
	if err := On(variable.CPUs{1023}, func() error { t.Error("started"); return nil }); err == nil {
		t.Error("on a CPU that there is not: no error")
	}
}

// group makes a cgroup, or skips the test.
func group(t *testing.T, limit uint64) *Group {
	t.Helper()
	g, err := MakeGroup(limit)
	if err != nil {
		t.Skipf("no cgroup may be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// A process in a group is ended at the limit, and this one stays outside.
func TestGroup(t *testing.T) {
	g := group(t, 32<<20)
	own := read(os.DirFS("/"), "proc/self/cgroup")
	start := func(words ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		leave, err := g.Enter(cmd.SysProcAttr)
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Start()
		if back := leave(); err != nil || back != nil {
			t.Fatal(err, back)
		}
		return cmd
	}
	cmd := start("sleep", "60")
	in := read(os.DirFS("/"), fmt.Sprintf("proc/%d/cgroup", cmd.Process.Pid))
	if name := g.Dir[strings.LastIndex(g.Dir, "/"):]; !strings.Contains(in, name) {
		t.Errorf("the process is in %q, want %s", in, name)
	}
	if now := read(os.DirFS("/"), "proc/self/cgroup"); now != own {
		t.Errorf("this process is in %q, was in %q", now, own)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if u := g.Use(); u.Kills != 0 {
		t.Errorf("within the limit: %+v", u)
	}
	cmd = start("sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done")
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("beyond the limit: got %v", err)
	}
	if u := g.Use(); u.Kills == 0 {
		t.Errorf("beyond the limit: %+v, want that one was killed", u)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.Dir); !os.IsNotExist(err) {
		t.Errorf("closed: %v", err)
	}
}

// The files of both versions are read as they are.
func TestGroupUse(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  GroupUse
	}{
		"version 2":          {map[string]string{"memory.peak": "1000\n", "memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\n"}, GroupUse{1000, 12, 2}},
		"version 2, no peak": {map[string]string{"memory.events": "max 0\noom_kill 0\n"}, GroupUse{}},
		"version 1":          {map[string]string{"memory.limit_in_bytes": "2000", "memory.max_usage_in_bytes": "1000\n", "memory.failcnt": "3\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"}, GroupUse{1000, 3, 1}},
	} {
		g := &Group{t.TempDir()}
		for file, text := range c.files {
			if err := os.WriteFile(g.Dir+"/"+file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := g.Use(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// Of version 2 the process begins in the group by itself: its controllers do not matter for that.
func TestEnterVersion2(t *testing.T) {
	at := levels(os.DirFS("/"), "")
	if len(at) == 0 {
		t.Skip("no cgroup of version 2 is mounted here")
	}
	dir, err := os.MkdirTemp("/"+at[0], groupPrefix)
	if err != nil {
		t.Skipf("no cgroup of version 2 may be made here: %v", err)
	}
	g := &Group{dir}
	cmd := exec.Command("cat", "/proc/self/cgroup")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	leave, err := g.Enter(cmd.SysProcAttr)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if back := leave(); err != nil || back != nil {
		t.Fatal(err, back)
	}
	if name := dir[strings.LastIndex(dir, "/"):]; !strings.Contains(string(out), "0::") || !strings.Contains(string(out), name) {
		t.Errorf("the process was in %q, want %s", out, name)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestControls(t *testing.T) {
	root := files(map[string]string{"a/cgroup.subtree_control": "cpu memory pids\n", "b/cgroup.subtree_control": "cpu\n"})
	for at, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if got := controls(root, at); got != want {
			t.Errorf("%s: got %v", at, got)
		}
	}
}
