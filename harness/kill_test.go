package harness

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// runMain is a process that makes a long run against the relay named by its
// first argument, and says each step.
func runMain() int {
	os.Unsetenv("RELAYBENCH_ROLE") // not for the relay that it starts
	p := plan.Default()
	p.Duration, p.Rate = time.Minute, 50
	program, err := relay.Find(context.Background(), os.Args[1], "")
	if err == nil {
		_, err = Run(context.Background(), p, program, Options{Observer: sayer{}})
	}
	fmt.Println("ended:", err)
	return 1
}

type sayer struct{}

func (sayer) Step(name string)     { fmt.Println("step:", name) }
func (sayer) Sample(result.Sample) {}

// That of a run against the stand-in itself is among the faults of package shell.
func TestStandInWrappedSIGKILL(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testRunSIGKILL(t, wrapper(t, "RELAYBENCH_ROLE=stand-in "+exe), StepReady, StepLoad)
}

func TestRealRunSIGKILL(t *testing.T) {
	testRunSIGKILL(t, realRelay(t).Path, StepRelay, StepReady, StepIdle, StepLoad)
}

func TestRealWrappedSIGKILL(t *testing.T) { testRunSIGKILL(t, wrapper(t, realRelay(t).Path), StepLoad) }

// wrapper is a script that runs a relay below it, in the background, as people's wrappers do.
func wrapper(t *testing.T, command string) string {
	path := filepath.Join(t.TempDir(), "relay")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+command+" \"$@\" &\nwait $!\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// testRunSIGKILL kills a relaybench at some steps of its run and wants nothing
// of it left within two seconds, times ten.
func testRunSIGKILL(t *testing.T, ref string, steps ...string) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("processes cannot be listed here")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir() // stands in the command line of a relay, and so tells it
			cmd := exec.Command(exe, ref)
			cmd.Env = append(os.Environ(), "RELAYBENCH_ROLE=run", "TMPDIR="+dir)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said []string
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				said = append(said, lines.Text())
				if lines.Text() == "step: "+step {
					break
				}
			}
			if len(said) == 0 || said[len(said)-1] != "step: "+step {
				t.Errorf("it did not come to %q: %q", step, said)
			}
			if step == StepLoad && len(running(t, dir)) == 0 {
				t.Error("no relay is running below it: what is to be seen to end?")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // killed: an error, as it should be
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				left := running(t, dir)
				if len(left) == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("still running: %q", left)
				}
			}
		})
	}
}

// running are the command lines that name dir.
func running(t *testing.T, dir string) (commands []string) {
	t.Helper()
	procs, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		line, err := p.CmdLine()
		if err != nil || !strings.Contains(strings.Join(line, " "), dir) {
			continue
		}
		if st, err := p.Stat(); err == nil && st.State != "Z" {
			commands = append(commands, strings.Join(line, " "))
		}
	}
	return commands
}
