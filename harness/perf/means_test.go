package perf

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// opens is a host on which some events can be opened; of the others the error is err.
func opens(err error, events ...string) host {
	return host{
		look: func(string) (string, error) { return os.Args[0], nil },
		open: func(event string, lbr bool) error {
			if lbr {
				event += "+lbr"
			}
			if slices.Contains(events, event) {
				return nil
			}
			return err
		},
		paranoid: func() string { return "3" }, cpu: func() string { return "a CPU" },
	}
}

func TestFind(t *testing.T) {
	t.Setenv(fakeVar, "whole")
	for _, tt := range []struct {
		name   string
		host   host
		graphs string
		want   string // event and call graph
		err    string // a part of it
	}{
		{"hardware", opens(nil, "cycles", "cycles+lbr"), "dwarf", "cycles dwarf", ""},
		{"lbr", opens(nil, "cycles", "cycles+lbr"), "lbr", "cycles lbr", ""},
		{"no lbr", opens(syscall.EOPNOTSUPP, "cycles"), "lbr", "", "Haswell"},
		{"no lbr, and it may be without", opens(syscall.EOPNOTSUPP, "cycles"), "lbr fp", "cycles fp", ""},
		{"a virtual machine", opens(syscall.ENOENT, "cpu-clock", "cpu-clock:u"), "fp", "cpu-clock fp", ""},
		{"lbr in a virtual machine", opens(syscall.ENOENT, "cpu-clock"), "lbr", "", "no hardware events, as in a virtual machine (a CPU)"},
		{"lbr in one, and it may be without", opens(syscall.ENOENT, "cpu-clock"), "lbr dwarf", "cpu-clock dwarf", ""},
		{"a user who may not see the kernel", opens(syscall.EACCES, "cycles:u", "cpu-clock:u"), "fp", "cycles:u fp", ""},
		{"a user who may nothing", opens(syscall.EACCES), "fp", "", "kernel.perf_event_paranoid is 3"},
		{"a container", opens(syscall.EPERM), "fp", "", "capability PERFMON"},
		{"no events at all", opens(syscall.ENOSYS), "fp", "", "no perf events"},
	} {
		m, err := tt.host.find(context.Background(), strings.Fields(tt.graphs))
		if got := m.Event + " " + m.CallGraph; tt.err == "" && (err != nil || got != tt.want || m.Version != "6.1.187") {
			t.Errorf("%s: got %+v, %v", tt.name, m, err)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.err)
		}
	}
	none := opens(nil, "cycles")
	none.look = func(string) (string, error) { return "", errors.New("exec: perf: not found") }
	if _, err := none.find(context.Background(), []string{FP}); err == nil || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("without perf: %v", err)
	}
	t.Setenv(fakeVar, "missing")
	if _, err := opens(nil, "cycles").find(context.Background(), []string{FP}); err == nil || !strings.Contains(err.Error(), "not found for kernel") {
		t.Errorf("without a perf for the kernel: %v", err)
	}
}
