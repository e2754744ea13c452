package relay_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"relaybench/harness/relay"
)

// fakeEngine plays docker: its CLI is the test binary, which asks this process,
// so that a container is no descendant of the CLI, as with the real one.
type fakeEngine struct {
	t       *testing.T
	program string // that its only image has as its entrypoint: "relay-test"
	bin     string // folder of its CLI
	reply   func(args []string) (said string, code int, ok bool)

	mu      sync.Mutex
	calls   [][]string
	running map[string]int // first process of each container that is there, by name; 0: none runs
	freed   chan struct{}  // closed when CLIs that hang may go
}

const (
	roleEngine = "engine"
	engineVar  = "FAKE_ENGINE" // the socket
	imageID    = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// cliMessage is what CLI and engine tell each other.
type cliMessage struct {
	Args   []string `json:",omitempty"`
	Signal string   `json:",omitempty"`
	Out    string   `json:",omitempty"`
	Err    string   `json:",omitempty"`
	Code   int
	End    bool
}

// newEngine makes an engine whose image runs program, under the names of its CLI.
func newEngine(t *testing.T, program string, names ...string) *fakeEngine {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("containers are for Linux")
	}
	dir, err := os.MkdirTemp("", "engine") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	e := &fakeEngine{t: t, program: program, bin: filepath.Join(dir, "bin"), running: map[string]int{}, freed: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(e.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		writeExecutable(t, filepath.Join(e.bin, name), fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' %s \"$@\"\n", relay.RoleVar, roleEngine, self, name))
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(engineVar, socket)
	t.Setenv("PATH", e.bin)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		close(e.freed)
		l.Close()
		served.Wait()
		for name := range e.running {
			t.Errorf("container %s is left", name)
		}
		os.RemoveAll(dir)
	})
	return e
}

// engineCLI is the face of the CLI: it hands on what it is told.
func engineCLI() int {
	conn, err := net.Dial("unix", os.Getenv(engineVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Cannot connect to the Docker daemon")
		return 1
	}
	defer conn.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	to := json.NewEncoder(conn)
	if to.Encode(cliMessage{Args: os.Args[1:]}) != nil {
		return 1
	}
	go func() { // ends with the process
		for range signals {
			_ = to.Encode(cliMessage{Signal: "TERM"})
		}
	}()
	from := json.NewDecoder(conn)
	for {
		var m cliMessage
		if from.Decode(&m) != nil {
			return 1
		}
		fmt.Fprint(os.Stdout, m.Out)
		fmt.Fprint(os.Stderr, m.Err)
		if m.End {
			return m.Code
		}
	}
}

func (e *fakeEngine) serve(conn net.Conn) {
	defer conn.Close()
	from := json.NewDecoder(conn)
	var m cliMessage
	if from.Decode(&m) != nil {
		return
	}
	e.mu.Lock()
	e.calls = append(e.calls, m.Args)
	reply := e.reply
	e.mu.Unlock()
	to := &sender{to: json.NewEncoder(conn)}
	args := m.Args[1:]
	if reply != nil {
		if said, code, ok := reply(m.Args); ok {
			if code == hangs {
				hung := make(chan struct{})
				go func() { defer close(hung); _, _ = io.Copy(io.Discard, conn) }()
				select {
				case <-e.freed:
				case <-hung: // the CLI was killed
				}
				conn.Close()
				<-hung
				return
			}
			if code == 0 {
				to.send(cliMessage{Out: said, End: true})
			} else {
				to.send(cliMessage{Err: said, Code: code, End: true})
			}
			return
		}
	}
	say := func(out string) { to.send(cliMessage{Out: out + "\n", End: true}) }
	fail := func(code int, text string) { to.send(cliMessage{Err: text + "\n", Code: code, End: true}) }
	switch args[0] {
	case "--version":
		say(map[string]string{"docker": "Docker version 28.2.2, build e6534b4", "podman": "podman version 4.3.1"}[m.Args[0]])
	case "info":
		say(map[string]string{"docker": `{"OperatingSystem":"Debian GNU/Linux 12","SecurityOptions":["name=seccomp,profile=default"]}`, "podman": "false"}[m.Args[0]])
	case "image":
		if name := args[len(args)-1]; name != "relay-test" && name != "sha256:"+imageID {
			fail(1, "Error response from daemon: no such image: "+name)
			return
		}
		say("sha256:" + imageID + " 58461439")
	case "container":
		e.mu.Lock()
		pid, ok := e.running[args[len(args)-1]]
		e.mu.Unlock()
		switch {
		case !ok:
			fail(1, "Error: No such container")
		case strings.Contains(args[3], "OOM"):
			say("false")
		default:
			say(strconv.Itoa(pid))
		}
	case "rm":
		name := args[len(args)-1]
		e.mu.Lock()
		pid, ok := e.running[name]
		delete(e.running, name)
		if pid != 0 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		e.mu.Unlock()
		if !ok {
			to.send(cliMessage{Err: "Error response from daemon: No such container: " + name + "\n", End: true})
			return
		}
		say(name)
	case "run":
		e.run(args, from, to)
	default:
		fail(125, "unknown command")
	}
}

const hangs = -1

// sender takes turns.
type sender struct {
	mu sync.Mutex
	to *json.Encoder
}

func (s *sender) send(m cliMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.to.Encode(m) // or the CLI has gone
}

func (s *sender) Write(p []byte) (int, error) {
	s.send(cliMessage{Out: string(p)})
	return len(p), nil
}

// run runs the entrypoint with what comes after the image.
func (e *fakeEngine) run(args []string, from *json.Decoder, to *sender) {
	at := slices.Index(args, "sha256:"+imageID)
	name := value(args, "--name")
	rest := slices.Clone(args[at+1:])
	if m := value(args, "--mount"); m != "" {
		_, dir, _ := strings.Cut(m, "source=")
		dir, _, _ = strings.Cut(dir, ",")
		rest[1] = dir
	}
	cmd := exec.Command(e.program, rest...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0", relay.RoleVar + "=" + os.Getenv("FAKE_ROLE")}
	cmd.Stdout, cmd.Stderr = to, to
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a child of it may hold its output open
	e.mu.Lock()
	err := cmd.Start()
	e.running[name] = 0
	if err == nil {
		e.running[name] = cmd.Process.Pid
	}
	e.mu.Unlock()
	if err != nil {
		to.send(cliMessage{Err: "docker: Error response from daemon: " + err.Error() + "\nSee 'docker run --help'.\n", Code: 127, End: true})
		return
	}
	signals := make(chan struct{})
	go func() {
		defer close(signals)
		var m cliMessage
		for from.Decode(&m) == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}()
	_ = cmd.Wait() // its state says how
	e.mu.Lock()
	if _, ok := e.running[name]; ok {
		e.running[name] = 0
	}
	e.mu.Unlock()
	code := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	to.send(cliMessage{Code: code, End: true})
	<-signals
}

// value is what comes after a flag.
func value(args []string, flag string) string {
	if at := slices.Index(args, flag); at >= 0 && at+1 < len(args) {
		return args[at+1]
	}
	return ""
}

// ran are the calls of a command, without its name.
func (e *fakeEngine) ran(command string) (found [][]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		if len(c) > 1 && c[1] == command {
			found = append(found, c)
		}
	}
	return found
}

// there are the containers that are there.
func (e *fakeEngine) there() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running)
}

// answer makes the engine say something else.
func (e *fakeEngine) answer(reply func(args []string) (said string, code int, ok bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply = reply
}

// children are the keepers among this process's children.
func children(t *testing.T) (found []int) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.PPID != os.Getpid() {
			continue
		}
		if line, err := p.CmdLine(); err == nil && len(line) > 0 && line[0] == "relaybench-keeper" {
			found = append(found, p.PID)
		}
	}
	return found
}
