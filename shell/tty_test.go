package shell_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// tty is a terminal of a test.
type tty struct {
	keyboard *os.File
	its      *os.File    // what a program has of it
	text     chan string // what is written to it, until its last program has ended
}

// openTTY opens a terminal of 80 columns and 24 rows.
func openTTY(t testing.TB) *tty {
	t.Helper()
	ours, its, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	ours = closable(t, ours)
	t.Cleanup(func() { its.Close(); ours.Close() })
	if err := pty.Setsize(its, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	y := &tty{keyboard: ours, its: its, text: make(chan string, 1024)}
	go func() { // ends with the terminal
		defer close(y.text)
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			if n > 0 {
				y.text <- string(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return y
}

// closable is a file that can be closed while it is read: pty leaves one that cannot.
func closable(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "terminal")
}

// screen is what a process wrote to a terminal, as it comes.
type screen struct {
	t    *testing.T
	text chan string
	all  strings.Builder
}

// until waits for text that matches, or fails the test.
func (s *screen) until(pattern string) {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for !want.MatchString(s.all.String()) {
		select {
		case text, ok := <-s.text:
			if !ok {
				s.t.Fatalf("the terminal ended without %q:\n%q", pattern, s.all.String())
			}
			s.all.WriteString(text)
		case <-timeout:
			s.t.Fatalf("no %q within %v:\n%q", pattern, patience, s.all.String())
		}
	}
}

// rest reads what comes until the end.
func (s *screen) rest() string {
	for text := range s.text {
		s.all.WriteString(text)
	}
	return s.all.String()
}

// onTerminal starts relaybench with a terminal for its stderr; stdout goes to out.
func onTerminal(t *testing.T, out io.Writer, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	return openTTY(t).starts(t, relaybench(t, args...), out)
}

// asked is the same with a terminal for its stdin too, for what it asks and is answered.
func asked(t *testing.T, out io.Writer, args ...string) (*exec.Cmd, *os.File, *screen) {
	t.Helper()
	y, cmd := openTTY(t), relaybench(t, args...)
	cmd.Stdin = y.its
	_, s := y.starts(t, cmd, out)
	return cmd, y.keyboard, s
}

// starts starts a process that alone has the terminal.
func (y *tty) starts(t *testing.T, cmd *exec.Cmd, out io.Writer) (*exec.Cmd, *screen) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = out, y.its
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	y.its.Close()
	return cmd, &screen{t: t, text: y.text}
}
