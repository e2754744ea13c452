package relay_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relaybench/harness/relay"
	"relaybench/harness/standin"
)

// The test binary plays all faces of relaybench's, and that of a relaybench
// that is killed.
func TestMain(m *testing.M) {
	switch os.Getenv(relay.RoleVar) {
	case relay.RoleKeeper:
		os.Exit(relay.KeeperMain())
	case relay.RoleStandIn:
		os.Exit(standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	case roleEngine:
		os.Exit(engineCLI())
	case "victim":
		os.Exit(victim())
	}
	// A race detector makes each process that ends wait for a second.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// victim starts the relay that it is told, says so, and waits to be killed.
func victim() int {
	p, err := relay.Find(context.Background(), os.Args[1], "")
	if err == nil {
		_, err = relay.Start(context.Background(), p, relay.Setup{Upstream: "127.0.0.1:1", Dir: os.Args[2]})
	}
	fmt.Println("started", err)
	if err != nil {
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	select {
	case <-signals:
	case <-time.After(time.Minute): // nobody killed it
	}
	return 0
}

// script makes an executable of a shell script. It answers --version and
// `config show` as Relay does; what is given is its `run`, with the folder in $2.
func script(t *testing.T, run string) string {
	t.Helper()
	path := t.TempDir() + "/relay"
	text := "#!/bin/sh\n" +
		"[ \"$1\" = --version ] && echo relay 1.2.3 && exit\n" +
		"[ \"$3\" = config ] && exec cat \"$2/config.yml\"\n" + run + "\n"
	writeExecutable(t, path, text)
	return path
}

// writeExecutable writes a file to be executed, while nothing is forked: a child
// would hold it open for writing until its exec, and then it cannot be run (ETXTBSY).
func writeExecutable(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, ref string) relay.Program {
	t.Helper()
	p, err := relay.Find(t.Context(), ref, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func start(t *testing.T, p relay.Program, s relay.Setup) *relay.Process {
	t.Helper()
	if s.Upstream == "" {
		s.Upstream = "127.0.0.1:1"
	}
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	r, err := relay.Start(t.Context(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(0) })
	return r
}

// wait waits until ok says so, asked again and again.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ended(t *testing.T, r *relay.Process) relay.Exit {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("it has not ended within 20 s; its log: %q", r.Tail(10))
	}
	return r.Exit()
}

// readLine reads one line of a file that another process writes.
func readLine(t *testing.T, f *os.File) string {
	t.Helper()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatalf("read: %v (got %q)", err, line)
	}
	return line
}
