package shell_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal stops a run: what there is is saved, marked and shown.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		signal syscall.Signal
		name   string
	}{{syscall.SIGINT, "SIGINT"}, {syscall.SIGTERM, "SIGTERM"}, {syscall.SIGHUP, "SIGHUP"}} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "r.db")
			var out bytes.Buffer
			cmd, screen := onTerminal(t, &out, "-db", db, "-c", "test 1h --rate 50 --mix sessions --pool 10; show last host")
			screen.until(`\r\x1b\[K\d+s, \S+ left  sent \d+/s  arrived \d+/s  backlog \d+  relay [0-9.]+ cores \d+ MB`)
			if err := cmd.Process.Signal(s.signal); err != nil {
				t.Fatal(err)
			}
			shown := screen.rest()
			if code := status(t, cmd.Wait()); code != 130 {
				t.Errorf("exit status %d, want 130", code)
			}
			for _, want := range []string{`cancelled in step "load": interrupted by ` + s.name, "mark cancelled"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("without %q:\n%s", want, out.String())
				}
			}
			if want := "relaybench: test: interrupted by " + s.name + "\r\n"; !strings.HasSuffix(shown, want) {
				t.Errorf("the terminal ends without %q: %q", want, shown[max(0, len(shown)-200):])
			}
			for l := range strings.SplitSeq(shown, "\r\x1b[K") {
				if w := len([]rune(l)); w > 80 && !strings.Contains(l, "relaybench") {
					t.Errorf("a live line is %d wide on a screen of 80: %q", w, l)
				}
			}
			r := last(t, db)
			if r.Run.Cancelled != "interrupted by "+s.name || r.Run.Step != "load" || !r.marked("cancelled") {
				t.Errorf("report %+v", r)
			}
			// A send that was cut short need not have arrived; the others have.
			if sends := r.Ledger.Total.Sends; *sends["arrived"] == 0 || *sends["arrived"] < *sends["accepted"] {
				t.Errorf("the ledger does not close: %s", out.String())
			}
		})
	}
}

// The second signal ends the relay at once: what it still has does not arrive,
// as it would in the drain, however long that took.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	var out bytes.Buffer
	cmd, screen := onTerminal(t, &out, "-db", db, "-c", "test 1h --rate 50 --mix sessions --pool 10 --drain 1h -E standin.capacity=1")
	screen.until(`\r\x1b\[K\d+s, \S+ left  sent`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	screen.until(`\r\x1b\[Kdrain `)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	screen.rest()
	if code := status(t, cmd.Wait()); code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
	r := last(t, db)
	if !r.marked("cancelled") || *r.Ledger.Total.Sends["arrived"] >= *r.Ledger.Total.Sends["sent"] {
		t.Errorf("report %+v", r)
	}
}

// A closed standard output neither ends the run nor loses the report.
func TestReaderThatLeaves(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	db := filepath.Join(t.TempDir(), "r.db")
	var stderr bytes.Buffer
	cmd := relaybench(t, "-db", db, "-c", "help; test 500ms --rate 20 --mix sessions --pool 10; show last")
	cmd.Stdout, cmd.Stderr = w, &stderr
	err = cmd.Run()
	w.Close()
	if code := status(t, err); code != 5 || strings.Contains(stderr.String(), "relaybench: ") {
		t.Errorf("exit status %d, stderr %q; want 5 and no error", code, stderr.String())
	}
	if got := last(t, db); *got.Ledger.Total.Sends["arrived"] != 10 {
		t.Errorf("report %+v", got)
	}
}

// Where no line can be written over, there is one every few seconds.
func TestProgressInALog(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	cmd := relaybench(t, "-c", "test 8s --rate 20 --mix sessions --pool 10")
	cmd.Stderr = &stderr
	from := time.Now()
	if code := status(t, cmd.Run()); code != 0 && code != 5 {
		t.Errorf("exit status %d", code)
	}
	lines := strings.Count(stderr.String(), "\n")
	if most := int(time.Since(from) / (4 * time.Second)); lines < 1 || lines > most {
		t.Errorf("%d lines in %v, want 1 to %d:\n%s", lines, time.Since(from), most, stderr.String())
	}
	if !regexp.MustCompile(`(?m)^\d+s, \d+s left  sent \d+/s  `).MatchString(stderr.String()) {
		t.Errorf("stderr %q", stderr.String())
	}
}

// A relay that dies in mid-run: saved, marked, its last words shown.
func TestRelayThatDies(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	var out, stderr bytes.Buffer
	cmd := relaybench(t, "-db", db, "-c", "test 1h --rate 50 --mix sessions --pool 10 --connections 2 -E standin.crash_after=20")
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if code := status(t, cmd.Run()); code != 4 {
		t.Errorf("exit status %d, want 4", code)
	}
	r := last(t, db)
	if !r.marked("relay-died") {
		t.Errorf("report %+v", r)
	}
	for _, want := range []string{"relaybench: test: load: ", "the relay's last lines:", "hint: what there is was saved: show " + r.ID + " log"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr without %q:\n%s", want, stderr.String())
		}
	}
	if !strings.Contains(out.String(), "mark relay-died") {
		t.Errorf("the summary is without its mark:\n%s", out.String())
	}
}
