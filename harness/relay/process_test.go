package relay_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"relaybench/harness/relay"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct{ run, want string }{
		{"exit 0", ""},
		{"exit 101", "exit status 101"},
		{"kill -9 $$", "signal: killed"},
		{"exec /no/such/program", "exit status 127"},
	} {
		r := start(t, find(t, script(t, c.run)), relay.Setup{})
		got := ended(t, r)
		if !got.Ended || got.Status != c.want || got.Killed || got.Took != 0 {
			t.Errorf("%s: got %+v, want status %q, by itself", c.run, got, c.want)
		}
		if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%s: Ready: got %v, want that it has ended", c.run, err)
		}
		if stopped := r.Stop(time.Second); stopped != got {
			t.Errorf("%s: Stop: got %+v, want %+v", c.run, stopped, got)
		}
	}
}

func TestStop(t *testing.T) {
	const (
		obedient = "trap 'echo bye; exit 7' TERM; echo up >&2; while :; do sleep 0.02; done"
		deaf     = "trap '' TERM; echo up >&2; while :; do sleep 0.02; done"
	)
	for _, c := range []struct {
		name, run string
		grace     time.Duration
		status    string
		killed    bool
	}{
		{"in time", obedient, 20 * time.Second, "exit status 7", false},
		{"too late", deaf, 50 * time.Millisecond, "signal: killed", true},
		{"at once", obedient, 0, "signal: killed", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, find(t, script(t, c.run)), relay.Setup{Dir: dir})
			wait(t, "its first line", func() bool { return len(r.Tail(1)) == 1 })
			if e := r.Exit(); e.Ended {
				t.Fatalf("before Stop: got %+v", e)
			}
			got := r.Stop(c.grace)
			if !got.Ended || got.Status != c.status || got.Killed != c.killed || got.Took <= 0 {
				t.Errorf("got %+v, want status %q, killed %v, and a time", got, c.status, c.killed)
			}
			if again := r.Stop(time.Hour); again != got {
				t.Errorf("again: got %+v, want %+v", again, got)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left in its folder: %v, %v", left, err)
			}
		})
	}
}

// A second Stop without grace cuts the first one short.
func TestStopCutShort(t *testing.T) {
	r := start(t, find(t, script(t, "trap '' TERM; echo up; while :; do sleep 0.02; done")), relay.Setup{})
	wait(t, "its first line", func() bool { return len(r.Tail(1)) == 1 })
	first := make(chan relay.Exit)
	go func() { first <- r.Stop(time.Hour) }()
	second := r.Stop(0)
	if got := <-first; got != second || !got.Killed {
		t.Errorf("got %+v and %+v, want the same, killed", got, second)
	}
}

func TestEnvironmentAndInput(t *testing.T) {
	t.Setenv("RELAY_PORT", "1")
	t.Setenv("RUST_LOG", "trace")
	t.Setenv("HTTPS_PROXY", "http://x")
	t.Setenv("KEPT", "yes")
	// The keeper's pipes, 3 and 4, must not be held open by what it keeps.
	r := start(t, find(t, script(t, `env | grep -c -e RELAY -e RUST_LOG -e PROXY; echo $KEPT; cat; test -e /proc/$$/fd/3 || test -e /proc/$$/fd/4; echo $?; pwd; echo $2`)), relay.Setup{})
	ended(t, r)
	tail := r.Tail(10)
	if len(tail) != 5 || tail[0] != "0" || tail[1] != "yes" || tail[2] != "1" || tail[3] != tail[4] {
		t.Errorf("got %q, want no variable of Relay's, KEPT, no descriptor 3 or 4, its folder twice", tail)
	}
}

// descendants below a wrapper that forks twice, into a session of its own.
const forking = `(setsid sh -c 'echo $$ >>"$PIDS"; sleep 1000 & echo $! >>"$PIDS"; wait' &) &
sleep 1000 &
echo $! >>"$PIDS"
echo $$ >>"$PIDS"
`

func pids(t *testing.T, file string, n int) []int {
	t.Helper()
	var found []int
	wait(t, fmt.Sprintf("%d processes", n), func() bool {
		text, _ := os.ReadFile(file)
		found = nil
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
		return len(found) >= n
	})
	return found
}

// gone says whether a process has ended. What is a zombie has.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}

func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc: what leaves the process group gets away on other systems")
	}
}

func TestNothingIsLeftBelow(t *testing.T) {
	needProc(t)
	for _, c := range []struct {
		name, run string
		end       func(r *relay.Process)
	}{
		{"stopped", forking + "wait", func(r *relay.Process) { r.Stop(0) }},
		{"stopped with grace", forking + "trap 'exit 0' TERM; while :; do sleep 0.02; done", func(r *relay.Process) { r.Stop(20 * time.Second) }},
		{"ended by itself", forking + "sleep 0.1", func(r *relay.Process) { ended(t, r) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			t.Setenv("PIDS", file)
			r := start(t, find(t, script(t, c.run)), relay.Setup{})
			all := pids(t, file, 4)
			c.end(r)
			for _, pid := range all {
				if !gone(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
		})
	}
}

// startVictim starts a process that starts a relay, in a folder below dir, and
// can be killed; it is given once that runs.
func startVictim(t *testing.T, what, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	victim := exec.Command(self, what, dir)
	victim.Env = append(append(os.Environ(), relay.RoleVar+"=victim"), env...)
	victim.Stdout, victim.Stderr = in, os.Stderr
	err = victim.Start()
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, out); got != "started <nil>\n" {
		t.Fatalf("victim: %s", got)
	}
	return victim
}

// When relaybench is killed, nothing is left 2 s later, also behind a wrapper.
func TestKilledParent(t *testing.T) {
	needProc(t)
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		run    string
	}{
		{"wrapper", syscall.SIGKILL, forking + "wait"},
		{"deaf wrapper", syscall.SIGKILL, "trap '' TERM HUP INT\n" + forking + "while :; do wait; done"},
		{"parent that ends", syscall.SIGTERM, forking + "wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, dir := filepath.Join(t.TempDir(), "pids"), t.TempDir()
			victim := startVictim(t, script(t, c.run), dir, "PIDS="+file)
			all := pids(t, file, 4)
			if err := victim.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_ = victim.Wait() // its status is its signal
			for _, pid := range all {
				wait(t, fmt.Sprintf("end of process %d", pid), func() bool { return gone(pid) })
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("all ended after %v, want 2s at most", took)
			}
			wait(t, "end of its folder", func() bool {
				left, err := os.ReadDir(dir)
				return err == nil && len(left) == 0
			})
		})
	}
}

// A keeper that is killed takes the program's process group with it.
func TestKilledKeeper(t *testing.T) {
	needProc(t)
	file := filepath.Join(t.TempDir(), "pids")
	t.Setenv("PIDS", file)
	r := start(t, find(t, script(t, "sleep 1000 &\necho $! $$ $PPID >>\"$PIDS\"; wait")), relay.Setup{})
	all := pids(t, file, 3)
	if err := syscall.Kill(all[2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, r); !strings.Contains(got.Status, "keeper") || got.Killed {
		t.Errorf("got %+v, want a status that names the keeper", got)
	}
	for _, pid := range all {
		wait(t, fmt.Sprintf("end of process %d", pid), func() bool { return gone(pid) })
	}
}

// 40 MB of errors neither hold the program up nor stay in memory.
func TestFlood(t *testing.T) {
	r := start(t, find(t, script(t, `line='{"level":"ERROR","message":"dropped '$(printf '%02000d' 0)'"}'
yes "$line" | head -n 20000`)), relay.Setup{})
	ended(t, r)
	messages := r.Messages()
	if len(messages) != 1 || messages[0].Count != 20000 || messages[0].Level != "ERROR" {
		t.Errorf("got %d messages, want one, 20000 times", len(messages))
	}
	r.ResetMessages()
	if got := r.Messages(); len(got) != 0 {
		t.Errorf("after reset: got %v", got)
	}
}

func TestClosedOutput(t *testing.T) {
	r := start(t, find(t, script(t, "echo last; exec >&- 2>&-; sleep 0.1; exit 3")), relay.Setup{})
	if got := ended(t, r); got.Status != "exit status 3" {
		t.Errorf("got %+v, want exit status 3", got)
	}
	if got := r.Tail(5); len(got) != 1 || got[0] != "last" {
		t.Errorf("got %q, want its last line", got)
	}
}

func TestStartErrors(t *testing.T) {
	broken := script(t, "")
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	noShow := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, noShow, "#!/bin/sh\necho error: bad config >&2\necho '  caused by: x' >&2\nexit 1\n")
	notYAML := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, notYAML, "#!/bin/sh\necho '*a'\n")
	good := script(t, "exit 0")
	for _, c := range []struct {
		name string
		p    relay.Program
		s    relay.Setup
		want string
	}{
		{"gone", relay.Program{Form: relay.FormPath, Path: broken}, relay.Setup{}, "no such file"},
		{"refuses its config", relay.Program{Form: relay.FormPath, Path: noShow}, relay.Setup{}, "relay config show: exit status 1: error: bad config; caused by: x"},
		{"shows no config", relay.Program{Form: relay.FormPath, Path: notYAML}, relay.Setup{}, "relay config show: not YAML"},
		{"owned key", relay.Program{Form: relay.FormPath, Path: good}, relay.Setup{Set: []relay.Setting{{Key: "relay.port", Value: "1"}}}, "chooses a free port"},
		{"bad base", relay.Program{Form: relay.FormPath, Path: good}, relay.Setup{Base: "- a"}, "config: not YAML"},
		{"no folder", relay.Program{Form: relay.FormPath, Path: good}, relay.Setup{Dir: "/no/such"}, "make the relay's folder"},
		{"a URL", relay.Program{Form: relay.FormURL}, relay.Setup{}, "not started"},
		{"none", relay.Program{Form: relay.FormNone}, relay.Setup{}, "not started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.s.Dir
			if dir == "" {
				dir = t.TempDir()
				c.s.Dir = dir
			}
			r, err := relay.Start(t.Context(), c.p, c.s)
			if err == nil {
				r.Stop(0)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A check gives what a start would run with, or its error, starts nothing and leaves nothing.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	p := relay.Program{Form: relay.FormPath, Path: script(t, `touch "$2/../started"`)}
	for _, c := range []struct{ key, value, want string }{
		{"http.encoding", "gzip", ""},
		{"relay.port", "1", `set "relay.port": the run chooses a free port`},
		{"http.encoding", "[a]", "a YAML scalar is expected"},
	} {
		s := relay.Setup{Dir: dir, Set: []relay.Setting{{Key: c.key, Value: c.value}}}
		e, err := relay.Check(t.Context(), p, s)
		if (c.want == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.want)
		}
		if err == nil && (e.Hash == "" || !strings.Contains(e.YAML, c.value)) {
			t.Errorf("%s=%s: effective %+v", c.key, c.value, e)
		}
	}
	stood := find(t, relay.FormStandIn)
	s := relay.Setup{Dir: dir, Set: []relay.Setting{{Key: "http.encodingg", Value: "zstd"}}}
	if _, err := relay.Check(t.Context(), stood, s); err == nil || !strings.Contains(err.Error(), "nearest is http.encoding") {
		t.Errorf("stand-in: got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestStartCancelled(t *testing.T) {
	hanging := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, hanging, "#!/bin/sh\nsleep 1000\n")
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	dir := t.TempDir()
	got := make(chan error)
	go func() {
		_, err := relay.Start(ctx, relay.Program{Form: relay.FormPath, Path: hanging}, relay.Setup{Dir: dir})
		got <- err
	}()
	wait(t, "its folder", func() bool {
		made, err := os.ReadDir(dir)
		return err == nil && len(made) == 1
	})
	cancel(cause)
	if err := <-got; !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// ready waits until the relay listens; without an upstream it is not ready.
func listens(t *testing.T, r *relay.Process) {
	t.Helper()
	wait(t, "its port", func() bool {
		select {
		case <-r.Done():
			t.Fatalf("it ended: %+v; its log: %q", r.Exit(), r.Tail(10))
		default:
		}
		c, err := net.Dial("tcp", r.Addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func TestStandInBehindAWrapper(t *testing.T) {
	needProc(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, path, "#!/bin/sh\nexport "+relay.RoleVar+"="+relay.RoleStandIn+"\n"+self+" \"$@\" &\necho $! >&2\nwait $!\n")
	r := start(t, find(t, path), relay.Setup{})
	listens(t, r)
	err = r.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "health check: 503") {
		t.Errorf("Ready without an upstream: got %v, want health check: 503", err)
	}
	pid := r.PID()
	if got := strconv.Itoa(pid); !strings.Contains(strings.Join(r.Tail(100), "\n"), got+"\n{") {
		t.Errorf("PID is %s, the wrapper's child is in %q", got, r.Tail(1))
	}
	// SIGTERM goes to the relay: the wrapper ends with its status, and nobody is killed.
	if got := r.Stop(20 * time.Second); got.Killed || got.Status != "" {
		t.Errorf("Stop: got %+v, want a graceful end", got)
	}
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
	if log := strings.Join(r.Tail(100), "\n"); !strings.Contains(log, "SIGTERM received") || !strings.Contains(log, "shutdown complete") {
		t.Errorf("its log: %s", log)
	}
}

// Another process that takes the port first is noticed, and never measured.
func TestTakenPort(t *testing.T) {
	needProc(t)
	r := start(t, find(t, script(t, "sleep 1000")), relay.Setup{})
	l, err := net.Listen("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "taken by another process") {
		t.Errorf("Ready: got %v, want that the port is taken", err)
	}
	if got := r.PID(); got != 0 {
		t.Errorf("PID: got %d, want 0", got)
	}
}

func TestStandInConfigIsChecked(t *testing.T) {
	p := find(t, relay.FormStandIn)
	for _, c := range []struct{ key, value, want string }{
		{"standin.drop", "10", ""},
		{"standin.delay", "1500ms", ""},
		{"http.encoding", "gzip", ""},
		{"standin.dorp", "10", "nearest is standin.drop"},
		{"standin.drop", "-1", "expected a whole number"},
		{"limits.max_event_size", "1MiB", "no such key"},
	} {
		r, err := relay.Start(t.Context(), p, relay.Setup{Upstream: "127.0.0.1:1", Dir: t.TempDir(), Set: []relay.Setting{{Key: c.key, Value: c.value}}})
		if got := fmt.Sprint(err); (c.want == "") != (err == nil) || !strings.Contains(got, c.want) {
			t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.want)
		}
		if err == nil {
			if e := r.Effective(); !strings.Contains(e.YAML, c.value) {
				t.Errorf("%s=%s: effective config:\n%s", c.key, c.value, e.YAML)
			}
			r.Stop(0)
		}
	}
}
