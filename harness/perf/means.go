package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The call graphs that perf records: how it finds the callers of what runs.
const (
	FP    = "fp"    // by frame pointers, which a release build of Rust lacks unless it is told to keep them
	Dwarf = "dwarf" // by a copy of the stack and the program's debug information
	LBR   = "lbr"   // by the CPU's record of branches
)

// CallGraphs are their names.
var CallGraphs = []string{Dwarf, FP, LBR}

// DefaultFreq is how many samples a second of CPU are taken where nobody says how many.
//
// Note: with dwarf each sample is a copy of up to 64 KiB of the stack.
func DefaultFreq(callGraph string) int {
	if callGraph == Dwarf {
		return 99
	}
	return 499
}

// The events whose samples are taken.
const (
	cycles   = "cycles"
	cpuClock = "cpu-clock"
	userOnly = ":u"
)

// Means is with what a profile can be recorded on this host.
type Means struct {
	Perf      string // path of the program
	Version   string // as it says
	CallGraph string
	// Event is what is counted between samples: cycles, or cpu-clock where the
	// CPU has none to count, as in most virtual machines; with :u where this user may
	// not see the kernel's part.
	Event string
}

// UserOnly says whether the kernel's part is not seen.
func (m Means) UserOnly() bool { return strings.HasSuffix(m.Event, userOnly) }

// Clock says whether samples are by time, for there are no cycles to count.
func (m Means) Clock() bool { return strings.HasPrefix(m.Event, cpuClock) }

// Find finds out with what a profile can be recorded here by one of some call
// graphs, in order of preference. Its error says why by none of them, and what to do.
func Find(ctx context.Context, callGraphs ...string) (Means, error) {
	return system.find(ctx, callGraphs)
}

// host is what there is to know of a host; tests have others.
type host struct {
	look func(program string) (path string, err error)
	// open opens the event that a profile would be made with, on this process, and closes it again.
	open     func(event string, lbr bool) error
	paranoid func() string // kernel.perf_event_paranoid
	cpu      func() string
}

var system = host{look: exec.LookPath, open: probe, cpu: cpuModel, paranoid: func() string {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}}

func (h host) find(ctx context.Context, callGraphs []string) (m Means, err error) {
	if m.Perf, err = h.look("perf"); err != nil {
		return m, fmt.Errorf("%w: install it (Debian: apt-get install linux-perf, Ubuntu: linux-tools-generic, Fedora: perf)", err)
	}
	if m.Version, err = version(ctx, m.Perf); err != nil {
		return m, err
	}
	if m.Event, err = h.event(); err != nil {
		return m, err
	}
	var whys []error
	for _, c := range callGraphs {
		if c == LBR {
			if err := h.lbr(m.Event); err != nil {
				whys = append(whys, err)
				continue
			}
		}
		m.CallGraph = c
		return m, nil
	}
	return m, errors.Join(whys...)
}

// event is the best event that there is.
func (h host) event() (string, error) {
	var denied error
	for _, event := range []string{cycles, cycles + userOnly, cpuClock, cpuClock + userOnly} {
		err := h.open(event, false)
		switch {
		case err == nil:
			return event, nil
		case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
			denied = err
		case errors.Is(err, syscall.ENOSYS):
			return "", errors.New("this system has no perf events")
		}
	}
	if denied != nil {
		return "", fmt.Errorf("this user may not record perf events (%w): kernel.perf_event_paranoid is %s; set it with sysctl -w kernel.perf_event_paranoid=1, or run as root, and in a container with the capability PERFMON", denied, h.paranoid())
	}
	return "", errors.New("this system has neither of the perf events cycles and cpu-clock")
}

// lbr says why there is no record of branches.
func (h host) lbr(event string) error {
	if strings.HasPrefix(event, cycles) && h.open(event, true) == nil {
		return nil
	}
	why := "this one has no record of branches"
	if strings.HasPrefix(event, cpuClock) {
		why = "this machine has no hardware events, as in a virtual machine"
	}
	return fmt.Errorf("call graph lbr needs an Intel CPU of the generation Haswell or newer, and no virtual machine: %s (%s); dwarf works everywhere, and lbr,dwarf takes it where lbr is not to be had", why, h.cpu())
}

// version is what perf says of itself.
func version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := command(path, "--version")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := run(ctx, cmd); err != nil {
		// Debian and Ubuntu have a perf that only says that there is none for the kernel.
		return "", fmt.Errorf("%s --version: %w: %s", path, err, firstLine(said.String()+out.String()))
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(firstLine(out.String())), "perf version")), nil
}

// command is a perf of ours: without our standard input, in a process group of
// its own, and with no configuration of the user's.
func command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// DEBUGINFOD_URLS would have it ask the net for debug information.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null", "DEBUGINFOD_URLS=", "PAGER=cat")
	cmd.WaitDelay = time.Second // whoever it started may hold its output
	return cmd
}

// run runs a command until it or ctx ends; with ctx it and its group are killed.
func run(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err := cmd.Wait()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// firstLine is the first line of a text that says something.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "it said nothing"
}
