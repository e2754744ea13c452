package shell_test

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// listed are the reports of a store, as programs read them.
func listed(t *testing.T, db string) []map[string]any {
	t.Helper()
	out, err := relaybench(t, "-db", db, "-json", "-c", "reports -n all").Output()
	if err != nil {
		t.Fatalf("reports: %v", err)
	}
	var all []map[string]any
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("reports: %v in\n%s", err, out)
	}
	return all
}

// One line says how a whole list goes. A signal ends the run in hand and the
// list, keeps what there is, and says how to go on.
func TestInterruptedList(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	var out bytes.Buffer
	cmd, screen := onTerminal(t, &out, "-db", db, "-c", "test 300ms --rate 20,40 --mix sessions --pool 10; test 1h --rate 20,40 --mix sessions --pool 10 --repeat 2; status")
	screen.until(`\r\x1b\[K1/2, \d+s left  check …`)
	screen.until(`\r\x1b\[K2/2, \d+s left  load …`)
	screen.until(`\r\x1b\[K1/4 round 1/2, [34]h\d+m left  ready …`)
	screen.until(`\r\x1b\[K1/4 round 1/2, [34]h\d+m left  sent \d+/s  arrived \d+/s`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	shown := screen.rest()
	if code := status(t, cmd.Wait()); code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
	for _, want := range []string{"relaybench: test: interrupted by SIGINT\r\n", "hint: 0 of 4 runs were done: the same line with --resume makes those that have no fit report\r\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the terminal is without %q: %q", want, shown[max(0, len(shown)-300):])
		}
	}
	if got := len(listed(t, db)); got != 3 {
		t.Errorf("%d reports, want those of two runs and of the one that was interrupted", got)
	}
	if strings.Contains(out.String(), "\nstore ") {
		t.Error("the line went on after it")
	}
}

// At a terminal delete asks. What was typed ahead is the answer, and what comes
// after it is left for whoever asks next; the end of input is no consent.
func TestDeleteAtATerminal(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	if code := status(t, relaybench(t, "-db", db, "-c", "relay use none; test 300ms --rate 20 --mix sessions --pool 10; test 300ms --rate 30 --mix sessions --pool 10").Run()); code != 5 {
		t.Fatalf("test: exit status %d", code)
	}
	// A question ends with the signal that ends what asked it.
	cmd, _, screen := asked(t, io.Discard, "-db", db, "-c", "delete last; delete last --yes")
	screen.until(`\? y/N `)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	screen.rest()
	if code := status(t, cmd.Wait()); code != 130 {
		t.Errorf("exit status of the interrupted one %d, want 130", code)
	}

	const endOfInput = "\x04"
	for _, tt := range []struct {
		typed string
		says  string
		left  int
	}{
		{"n\n", "nothing was deleted\nnothing was deleted\n", 2},
		{endOfInput, "nothing was deleted\nnothing was deleted\n", 2},
		{"n\ny\n", "nothing was deleted\ndeleted 1 report: ", 1},
		{"y\n", "deleted 1 report: ", 0},
	} {
		var out bytes.Buffer
		line := "delete last; delete last"
		if tt.left == 0 {
			line = "delete last"
		}
		cmd, keys, screen := asked(t, &out, "-db", db, "-c", line)
		typed := tt.typed
		if n := strings.Count(tt.says, "delete"); strings.Count(typed, "\n") < n {
			typed = strings.Repeat(typed, n)
		}
		if _, err := io.WriteString(keys, typed); err != nil { // before it asks
			t.Fatal(err)
		}
		screen.until(`delete 1 report \([0-9a-f-]+\)\? y/N `)
		screen.rest()
		if code := status(t, cmd.Wait()); code != 0 || !strings.HasPrefix(out.String(), tt.says) {
			t.Errorf("%q: exit status %d, said %q, want %q", tt.typed, code, out.String(), tt.says)
		}
		if got := len(listed(t, db)); got != tt.left {
			t.Errorf("%q: %d reports are left, want %d", tt.typed, got, tt.left)
		}
	}
}
