package relay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"relaybench/harness/relay"
)

const testImage = "docker:relay-test"

// A program that is stopped by SIGTERM, and says so.
const serving = `trap 'echo bye; exit 7' TERM; echo up; cat "$2/credentials.json" >/dev/null && echo read; while :; do sleep 0.02; done`

func TestImageIsFound(t *testing.T) {
	for _, cli := range []string{"docker", "podman"} {
		e := newEngine(t, script(t, ""), cli)
		got := find(t, testImage)
		want := relay.Program{Form: relay.FormImage, Image: "relay-test", Engine: cli, Version: "1.2.3", SHA256: imageID, Size: 58461439}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if want := "relay 1.2.3, image relay-test in " + cli + ", sha256 0123456789ab"; got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
		runs := e.ran("run")
		if len(runs) != 1 || e.there() != 0 {
			t.Fatalf("runs: %q, %d containers left", runs, e.there())
		}
		if line := strings.Join(runs[0], " "); !strings.Contains(line, " --pull never ") || !strings.HasSuffix(line, " sha256:"+imageID+" --version") {
			t.Errorf("run: %s", line)
		}
		if len(e.ran("pull")) > 0 {
			t.Error("it was pulled")
		}
	}
}

func TestImageErrors(t *testing.T) {
	notRelay := filepath.Join(t.TempDir(), "other")
	writeExecutable(t, notRelay, "#!/bin/sh\necho BusyBox v1\n")
	says := func(command, said string, code int) func(*fakeEngine) {
		return func(e *fakeEngine) {
			e.answer(func(args []string) (string, int, bool) { return said, code, args[1] == command })
		}
	}
	for _, c := range []struct {
		name, ref string
		program   string
		with      func(*fakeEngine)
		is        error
		want      string
	}{
		{"none of this name", "docker:nosuch", "", nil, relay.ErrNoImage, `image "nosuch": no such image here: docker has none of this name`},
		{"the published one", "docker", "", nil, relay.ErrNoImage, `image "ghcr.io/getsentry/relay": no such image`},
		{"no engine answers", testImage, "", says("info", "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?\n", 1), relay.ErrNoEngine, "no container engine answers: docker info: exit status 1: Cannot connect to the Docker daemon"},
		{"no engine, and exit status 0", testImage, "", says("info", `{"ServerErrors":["Cannot connect to the Docker daemon"]}`, 0), relay.ErrNoEngine, "docker info: Cannot connect"},
		{"not permitted", testImage, "", says("info", "permission denied while trying to connect to the Docker daemon socket\n", 1), relay.ErrNoEngine, "permission denied while trying to connect"},
		{"a virtual machine", testImage, "", says("info", `{"OperatingSystem":"Docker Desktop"}`, 0), relay.ErrNoEngine, "in a virtual machine"},
		{"rootless", testImage, "", says("info", `{"SecurityOptions":["name=rootless"]}`, 0), relay.ErrNoEngine, "a network of its own"},
		{"not a Relay", testImage, notRelay, nil, nil, `image "relay-test": not a Relay: --version says "BusyBox v1"`},
		{"cannot be run", testImage, "/no/such", nil, nil, `not a Relay: --version: exit status 127: docker: Error response from daemon: fork/exec /no/such: no such file`},
		{"a flag", "docker:--privileged", "", nil, nil, "is no name of an image"},
		{"empty", "docker:", "", nil, nil, "is no name of an image"},
		{"words", "docker:a b", "", nil, nil, "is no name of an image"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := c.program
			if program == "" {
				program = script(t, "")
			}
			e := newEngine(t, program, "docker")
			if c.with != nil {
				c.with(e)
			}
			_, err := relay.Find(t.Context(), c.ref, "")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want that it is %v", err, c.is)
			}
			if e.there() != 0 {
				t.Error("a container is left")
			}
		})
	}
	t.Run("no CLI", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := relay.Find(t.Context(), testImage, ""); !errors.Is(err, relay.ErrNoEngine) || !strings.Contains(err.Error(), "neither docker nor podman is there") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("docker does not answer, and podman does", func(t *testing.T) {
		e := newEngine(t, script(t, ""), "docker", "podman")
		e.answer(func(args []string) (string, int, bool) {
			return "Cannot connect\n", 1, args[0] == "docker" && args[1] == "info"
		})
		if p := find(t, testImage); p.Engine != "podman" {
			t.Errorf("got %+v, want podman", p)
		}
	})
}

// An engine that hangs is given up when the one who waits does, and its CLI is gone then.
func TestHangingEngine(t *testing.T) {
	e := newEngine(t, script(t, ""), "docker")
	enough := errors.New("enough")
	for _, command := range []string{"info", "image", "pull"} {
		e.answer(func(args []string) (string, int, bool) { return "", hangs, args[1] == command })
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for len(e.ran(command)) == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			cancel(enough)
		}()
		var err error
		if command == "pull" {
			err = relay.Pull(ctx, testImage, func(string) {})
		} else {
			_, err = relay.Find(ctx, testImage, "")
		}
		if cancel(nil); !errors.Is(err, enough) {
			t.Errorf("%s: got %v, want that it was cancelled", command, err)
		}
		e.mu.Lock()
		e.calls = nil
		e.mu.Unlock()
	}
}

func TestPull(t *testing.T) {
	e := newEngine(t, script(t, ""), "docker")
	e.answer(func(args []string) (string, int, bool) {
		return "a: Pulling fs layer\nb: Pull complete\n", 0, args[1] == "pull"
	})
	var said []string
	tell := func(line string) { said = append(said, line) }
	if err := relay.Pull(t.Context(), "docker:relay:26.4.0", tell); err != nil || !slices.Equal(said, []string{"a: Pulling fs layer", "b: Pull complete"}) {
		t.Errorf("got %v, %q", err, said)
	}
	if got := e.ran("pull"); len(got) != 1 || !slices.Equal(got[0][1:], []string{"pull", "relay:26.4.0"}) {
		t.Errorf("calls: %q", got)
	}
	e.answer(func(args []string) (string, int, bool) { return "Trying\nError: denied\n", 1, args[1] == "pull" })
	if err := relay.Pull(t.Context(), testImage, tell); err == nil || !strings.HasSuffix(err.Error(), "exit status 1: Error: denied") {
		t.Errorf("got %v", err)
	}
}

// A container is started, heard and stopped as a process is, and nothing of it is left.
func TestContainer(t *testing.T) {
	for _, c := range []struct {
		name, run string
		grace     time.Duration
		status    string
		killed    bool
		last      string
	}{
		{"in time", serving, 20 * time.Second, "exit status 7", false, "bye"},
		{"too late", "trap '' TERM; echo up; echo read; while :; do sleep 0.02; done", 50 * time.Millisecond, "signal: killed", true, "read"},
		{"at once", serving, 0, "signal: killed", true, "read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			e := newEngine(t, script(t, c.run), "docker")
			r := start(t, find(t, testImage), relay.Setup{Dir: dir, CPUs: []int{0, 2}, Memory: 300 << 20})
			wait(t, "its first lines", func() bool { return slices.Equal(r.Tail(2), []string{"up", "read"}) })
			if e.there() != 1 || len(r.Effective().Hash) != 64 {
				t.Errorf("%d containers, config %q", e.there(), r.Effective().Hash)
			}
			line := strings.Join(e.ran("run")[2], " ")
			for _, want := range []string{" --network host ", " --pull never ", " --label relaybench ", " --cpuset-cpus 0,2 --memory 314572800 --memory-swap 314572800 ", "type=bind,source=" + dir, "target=/relaybench,readonly", " sha256:" + imageID + " -c /relaybench run"} {
				if !strings.Contains(line, want) {
					t.Errorf("without %q: %s", want, line)
				}
			}
			// Whoever the image runs as can read it, and nobody else of this host.
			folder := value(e.ran("run")[2], "--mount")
			_, folder, _ = strings.Cut(folder, "source=")
			folder, _, _ = strings.Cut(folder, ",")
			for path, mode := range map[string]os.FileMode{filepath.Dir(folder): 0o700, folder: 0o755, folder + "/config.yml": 0o644, folder + "/credentials.json": 0o644} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
				}
			}
			got := r.Stop(c.grace)
			if !got.Ended || got.Status != c.status || got.Killed != c.killed || got.Took <= 0 {
				t.Errorf("got %+v, want status %q, killed %v", got, c.status, c.killed)
			}
			if tail := r.Tail(1); !slices.Equal(tail, []string{c.last}) {
				t.Errorf("its last line: %q", tail)
			}
			if left, err := os.ReadDir(dir); e.there() != 0 || err != nil || len(left) > 0 {
				t.Errorf("left: %d containers, %v, %v", e.there(), left, err)
			}
		})
	}
}

func TestContainerEnds(t *testing.T) {
	for _, c := range []struct{ run, want string }{{"exit 101", "exit status 101"}, {"kill -9 $$", "signal: killed"}} {
		e := newEngine(t, script(t, "echo up; sleep 0.3; "+c.run), "docker")
		r := start(t, find(t, testImage), relay.Setup{})
		if got := ended(t, r); got.Status != c.want || got.Killed {
			t.Errorf("%s: got %+v, want %q", c.run, got, c.want)
		}
		if e.there() != 0 {
			t.Errorf("%s: the container is left", c.run)
		}
	}
}

func TestContainerStartErrors(t *testing.T) {
	e := newEngine(t, script(t, serving), "docker")
	p := find(t, testImage)
	run := func(text string, code int) {
		e.answer(func(args []string) (string, int, bool) {
			return text, code, args[1] == "run" && args[len(args)-1] == "run"
		})
	}
	dir := t.TempDir()
	run("docker: Error response from daemon: Requested CPUs are not available.\nSee 'docker run --help'.\n", 125)
	_, err := relay.Start(t.Context(), p, relay.Setup{Upstream: "127.0.0.1:1", Dir: dir})
	if want := `start relay: image "relay-test": docker run: docker: Error response from daemon: Requested CPUs are not available.`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// Cancelled while the engine makes it.
	run("", hangs)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for len(e.ran("container")) < 2 {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(enough)
	}()
	if _, err = relay.Start(ctx, p, relay.Setup{Upstream: "127.0.0.1:1", Dir: dir}); !errors.Is(err, enough) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The stand-in in a container: it is measured by the process that owns its port.
func TestContainerOwnsItsPort(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_ROLE", relay.RoleStandIn)
	newEngine(t, self, "docker")
	up := startUpstream(t)
	r := start(t, find(t, testImage), relay.Setup{Upstream: up.Addr()})
	wait(t, "ready", func() bool { return r.Ready(t.Context()) == nil })
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.PID())); err != nil || exe != self {
		t.Errorf("process %d is %s (%v), want %s", r.PID(), exe, err, self)
	}
	if got := r.Stop(20 * time.Second); got.Status != "" || got.Killed {
		t.Errorf("got %+v, want a graceful end", got)
	}
}

// When relaybench is killed, or the keeper, the container goes.
func TestContainerOfTheKilled(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		dir := t.TempDir()
		e := newEngine(t, script(t, serving), "docker")
		victim := startVictim(t, testImage, dir)
		if e.there() != 1 {
			t.Fatalf("%d containers", e.there())
		}
		if err := victim.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = victim.Wait() // its status is its signal
		wait(t, "end of the container", func() bool { return e.there() == 0 })
		wait(t, "end of its folder", func() bool {
			left, err := os.ReadDir(dir)
			return err == nil && len(left) == 0
		})
	}
	e := newEngine(t, script(t, serving), "docker")
	r := start(t, find(t, testImage), relay.Setup{})
	wait(t, "its first line", func() bool { return len(r.Tail(1)) == 1 })
	for _, pid := range children(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got := ended(t, r); !strings.Contains(got.Status, "keeper") {
		t.Errorf("got %+v, want a status that names the keeper", got)
	}
	if e.there() != 0 {
		t.Error("the container is left")
	}
}

// Image names, and what they mean.
func TestIsImage(t *testing.T) {
	for ref, want := range map[string]bool{"docker": true, "docker:": true, "docker:a/b:c": true, "docker:sha256:0": true, "dockers": false, "./docker": false, "docker/x": false, "": false} {
		if got := relay.IsImage(ref); got != want {
			t.Errorf("%q: got %v", ref, got)
		}
	}
}
