package perf

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// faked has the test binary play perf, in a temporary folder of its own.
func faked(t *testing.T, manner string) (m Means, temp string) {
	t.Helper()
	script, err := filepath.Abs("testdata/relay-dwarf.txt")
	if err != nil {
		t.Fatal(err)
	}
	temp = t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv(fakeVar, manner)
	t.Setenv(fakeVar+"_SCRIPT", script)
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return Means{Perf: os.Args[0], Version: "6.1.187", CallGraph: Dwarf, Event: cpuClock}, temp
}

func TestRecord(t *testing.T) {
	m, _ := faked(t, "whole")
	ctx := context.Background()
	r, err := Start(ctx, m, 99, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	r.End()
	p := r.Profile(ctx)
	r.Close()
	if p.Failed != "" || p.Samples != 24 || p.Lost != 3 || p.Whole != 8 || p.Took <= 0 || p.Event != cpuClock || p.CallGraph != Dwarf || p.Freq != 99 || len(p.Data) == 0 {
		t.Errorf("got %+v", p)
	}
	if top, err := TopOf(p.Data, "uaparser"); err != nil || top.Kept == 0 {
		t.Errorf("got %+v, %v", top, err)
	}
}

// What perf says when it does not work is what is said of it, and nothing is left of it.
func TestRecordFails(t *testing.T) {
	for _, tt := range []struct{ manner, start, begin, failed string }{
		{"old", "older than 5.10", "", ""},
		{"denied", "Error:", "", ""},
		{"mute", "exit status 255: it said nothing", "", ""},
		{"dies", "", "Segmentation fault", "Segmentation fault"},
		{"damaged", "", "", "perf script: exit status 1: incompatible file format"},
	} {
		t.Run(tt.manner, func(t *testing.T) {
			m, _ := faked(t, tt.manner)
			ctx := context.Background()
			r, err := Start(ctx, m, 99, os.Getpid())
			if tt.start != "" {
				if err == nil || !strings.Contains(err.Error(), tt.start) {
					t.Fatalf("start: got %v, want %q", err, tt.start)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.Begin(ctx); (err != nil) != (tt.begin != "") || err != nil && !strings.Contains(err.Error(), tt.begin) {
				t.Errorf("begin: got %v, want %q", err, tt.begin)
			}
			r.End()
			if p := r.Profile(ctx); !strings.Contains(p.Failed, tt.failed) || len(p.Data) > 0 {
				t.Errorf("got %+v, want %q", p, tt.failed)
			}
		})
	}
}

// A perf that ended because a thread did is started again.
func TestRecordAgain(t *testing.T) {
	m, _ := faked(t, "mute once")
	once := filepath.Join(t.TempDir(), "once")
	if err := os.WriteFile(once, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeVar+"_ONCE", once)
	r, err := Start(context.Background(), m, 99, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := os.Stat(once); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("perf did not fail once: %v", err)
	}
}

// A perf that hangs is left with the context, and does not live on.
func TestRecordEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	m, _ := faked(t, "deaf")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
	if r, err := Start(ctx, m, 99, os.Getpid()); !errors.Is(err, stopped) {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	m, _ := faked(t, "endless")
	r, err := Start(context.Background(), m, 99, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.End()
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(300*time.Millisecond, func() { cancel(stopped) })
	if p := r.Profile(ctx); !strings.Contains(p.Failed, "stopped") {
		t.Errorf("got %+v", p)
	}
}

// With the perf of this machine, if there is one that may record.
func TestRecordForReal(t *testing.T) {
	ctx := context.Background()
	m, err := Find(ctx, FP)
	if err != nil {
		t.Skipf("no perf here: %v", err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r, err := Start(ctx, m, 499, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		burnt += spin(1000)
	}
	r.End()
	p := r.Profile(ctx)
	r.Close()
	if p.Failed != "" || p.Samples == 0 || len(p.Data) == 0 {
		t.Fatalf("got %+v", p)
	}
	// Note: go test strips the binary, so that what ran has no name.
	if top, err := TopOf(p.Data, "spin$|"+regexp.QuoteMeta(filepath.Base(os.Args[0]))); err != nil || top.Kept == 0 || top.Total < top.Kept {
		t.Errorf("got %+v, %v", top, err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

var burnt int

//go:noinline
func spin(n int) (sum int) {
	for i := range n {
		sum += i * i % 7
	}
	return sum
}
