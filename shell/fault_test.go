package shell_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// fault is what happens to one part of relaybench in mid-run, and how that ends.
type fault struct {
	part string // whom it befalls: "" is relaybench itself, else a process below it by its role
	name string
	how  []syscall.Signal // one after the other, a moment apart
	code int              // exit status; 0: killed
	says string           // in what it says, or in the report
	at   []string         // the steps at which it is tried unless all are
}

var faults = []fault{
	{"", "SIGTERM", []syscall.Signal{syscall.SIGTERM}, 130, "interrupted by SIGTERM", []string{"ready", "load", "drain"}},
	{"", "SIGINT", []syscall.Signal{syscall.SIGINT}, 130, "interrupted by SIGINT", []string{"start relay", "idle", "stop relay"}},
	{"", "SIGINT twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 130, "interrupted by SIGINT", []string{"ready", "load", "drain"}},
	{"", "SIGKILL", []syscall.Signal{syscall.SIGKILL}, 0, "", []string{"start relay", "ready", "idle", "load", "drain", "stop relay"}},
	{"sender", "SIGKILL", []syscall.Signal{syscall.SIGKILL}, 4, "sender process", []string{"load"}},
	{"keeper", "SIGKILL", []syscall.Signal{syscall.SIGKILL}, 4, "keeper ended", []string{"load"}},
	{"stand-in", "SIGKILL", []syscall.Signal{syscall.SIGKILL}, 4, "the relay ended by itself: signal: killed", []string{"idle", "load", "drain"}},
}

// lasting is a run of which each step from ready on lasts a while: all of
// it waits for a session that never comes out, and the relay keeps some to its end.
const lasting = "test 2s --rate 50 --mix sessions --pool 10 --connections 2x2 --drain 1500ms -E standin.slow_start=500ms -E standin.drop=10 -E standin.answer_delay=5ms"

// TestFaults has each of the faults befall a run at its steps, and wants
// nothing of it to go on that should not, the store whole, and the next start
// to say what was interrupted. RELAYBENCH_ALL=1 tries each at all steps.
func TestFaults(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes cannot be told apart here")
	}
	steps := []string{"start relay", "ready", "idle", "load", "drain", "stop relay"}
	for _, f := range faults {
		for i, step := range steps {
			all := os.Getenv("RELAYBENCH_ALL") != "" && (f.part == "" || i > 1 && step != "stop relay") // else there may be no such part
			if !all && !slices.Contains(f.at, step) {
				continue
			}
			t.Run(strings.TrimSpace(f.part+" "+f.name)+" at "+step, func(t *testing.T) {
				t.Parallel()
				f.befalls(t, step)
			})
		}
	}
}

func (f *fault) befalls(t *testing.T, step string) {
	db := filepath.Join(t.TempDir(), "r.db")
	var out bytes.Buffer
	cmd, screen := onTerminal(t, &out, "-db", db, "-c", lasting)
	home := "" // tells whose a process is
	for _, e := range cmd.Env {
		if strings.HasPrefix(e, "XDG_DATA_HOME=") {
			home = e
		}
	}
	screen.until(`\r\x1b\[K` + step + ` …`)
	pid := cmd.Process.Pid
	if step == "load" && len(with(t, home)) < 4 {
		t.Errorf("only %q run: want relaybench, two senders, a keeper and a relay", with(t, home))
	}
	if f.part != "" {
		pid = below(t, cmd.Process.Pid, f.part)
	}
	for i, s := range f.how {
		if i > 0 {
			time.Sleep(100 * time.Millisecond) // else they come as one
		}
		if err := syscall.Kill(pid, s); err != nil && i == 0 {
			t.Fatal(err)
		}
	}
	shown := screen.rest()
	err := cmd.Wait()
	if f.code == 0 {
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("it ended with %v, want killed", err)
		}
	} else if code := status(t, err); code != f.code && step != "stop relay" && step != "drain" {
		t.Errorf("exit status %d, want %d\n%s%s", code, f.code, shown, out.String())
	} else if code == f.code && !strings.Contains(shown+out.String(), f.says) {
		t.Errorf("without %q:\n%s%s", f.says, shown, out.String())
	}
	gone(t, home)

	var errs bytes.Buffer
	next := relaybench(t, "-db", db, "-c", "db check; status; reports -n all --csv")
	next.Stderr = &errs
	said, err := next.Output()
	if err != nil {
		t.Fatalf("the next start: %v\n%s%s", err, said, errs.String())
	}
	if killed := strings.Contains(errs.String(), "was interrupted when relaybench last ended"); killed != (f.code == 0) {
		t.Errorf("the next start says:\n%s", errs.String())
	}
	if !strings.Contains(string(said), "no job is queued") {
		t.Errorf("the next start:\n%s", said)
	}
	saved := strings.Count(string(said), "\n20") > 0
	if want := f.code != 0; saved != want && step != "start relay" && step != "stop relay" {
		t.Errorf("a report was saved: %v, want %v\n%s", saved, want, said)
	}
}

// below is the pid of a process below one, by its role.
func below(t *testing.T, pid int, role string) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, p := range children(t, pid) {
			if env, err := p.Environ(); err == nil && slices.Contains(env, "RELAYBENCH_ROLE="+role) {
				return int(p.Pid)
			}
		}
	}
	t.Fatalf("no %s below process %d", role, pid)
	return 0
}

// gone waits until no process has that in its environment.
func gone(t *testing.T, pair string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = with(t, pair); len(left) == 0 {
			return
		}
	}
	t.Errorf("still running: %q", left)
}

// with are the processes that have that in their environment.
func with(t *testing.T, pair string) (commands []string) {
	t.Helper()
	all, err := process.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if env, err := p.Environ(); err == nil && slices.Contains(env, pair) {
			line, _ := p.Cmdline()
			commands = append(commands, fmt.Sprint(p.Pid, " ", line))
		}
	}
	return commands
}
