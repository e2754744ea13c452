package shell_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what takes a second or two.
const patience = time.Minute

// relaybench is a process of it, which is killed if the test ends before it.
func relaybench(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = "relaybench"
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "TERM=xterm")
	return cmd
}

// status is how a process ended that was waited for.
func status(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// report is what of a report's JSON the tests look at.
type report struct {
	ID  string
	Run struct {
		Cancelled string
		Step      string `json:"failed_step"`
		Drain     string
	}
	Ledger struct {
		Total struct{ Sends map[string]*uint64 }
	}
	Metrics map[string]struct{ Value *float64 }
	Marks   []struct{ Name string }
}

func (r *report) marked(name string) bool {
	for _, m := range r.Marks {
		if m.Name == name {
			return true
		}
	}
	return false
}

// last is the last report of a store.
func last(t testing.TB, db string) report {
	t.Helper()
	out, err := relaybench(t, "-db", db, "-json", "-c", "show last").Output()
	if err != nil {
		t.Fatalf("show last: %v", err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("show last: %v in\n%s", err, out)
	}
	return r
}

// holding is a process that holds a store, and serves no shell, until its standard input ends.
func holding(t *testing.T, db string) (holder *exec.Cmd, stdin io.WriteCloser) {
	t.Helper()
	holder = relaybench(t, "-db", db)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(stdin, "status")
	if l, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("status: %q, %v", l, err)
	}
	return holder, stdin
}

func TestStoreThatIsHeld(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	holder, _ := holding(t, db)

	var stderr bytes.Buffer
	second := relaybench(t, "-db", db, "-c", "status")
	second.Stderr = &stderr
	from := time.Now()
	if code := status(t, second.Run()); code != 4 {
		t.Errorf("exit status %d, want 4", code)
	}
	if took := time.Since(from); took > 10*time.Second {
		t.Errorf("it took %v to say so", took)
	}
	if want := fmt.Sprintf("held by process %d", holder.Process.Pid); !strings.Contains(stderr.String(), want) {
		t.Errorf("stderr %q, want %q in it", stderr.String(), want)
	}
	if code := status(t, relaybench(t, "-db", db, "-c", "help").Run()); code != 0 {
		t.Errorf("help: exit status %d: it needs no store", code)
	}

	// It waits for its script, and a signal ends that.
	if err := holder.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := status(t, holder.Wait()); code != 130 {
		t.Errorf("exit status of the interrupted one %d, want 130", code)
	}
}

func TestUpstreamAlone(t *testing.T) {
	t.Parallel()
	cmd := relaybench(t, "-upstream", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	var said strings.Builder
	for !strings.Contains(said.String(), "/stats\n") {
		l, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, said.String())
		}
		said.WriteString(l)
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/stats`).FindString(said.String())
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stats map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil || stats["envelopes"] == nil {
		t.Errorf("stats %v, %v", stats, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^envelopes +0$`).Match(rest) {
		t.Errorf("counts at the end: %s", rest)
	}
	if code := status(t, cmd.Wait()); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

func TestUpstreamOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var stderr bytes.Buffer
	cmd := relaybench(t, "-upstream", taken.Addr().String())
	cmd.Stderr = &stderr
	if code := status(t, cmd.Run()); code != 4 || !strings.HasPrefix(stderr.String(), "relaybench: upstream: listen ") {
		t.Errorf("exit status %d, stderr %q", code, stderr.String())
	}
}

// A full disk under standard output is told, a reader that went away is not.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	cmd := relaybench(t, "-c", "help")
	cmd.Stdout, cmd.Stderr = full, &stderr
	if code := status(t, cmd.Run()); code != 4 || !strings.Contains(stderr.String(), "write standard output: ") {
		t.Errorf("exit status %d, stderr %q", code, stderr.String())
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	stderr.Reset()
	cmd = relaybench(t, "-c", "help")
	cmd.Stdout, cmd.Stderr = w, &stderr
	err = cmd.Run()
	w.Close()
	if code := status(t, err); code != 0 || stderr.Len() > 0 {
		t.Errorf("closed output: exit status %d, stderr %q", code, stderr.String())
	}
}
