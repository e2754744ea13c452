package shell

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"relaybench/commands"
)

// tied is a client of a test that speaks in frames.
type tied struct {
	*link
	t    testing.TB
	said lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// frames is a client beside the store.
func (s *shared) frames(h hello) *tied {
	s.t.Helper()
	conn, err := dialLocal(s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := greet(conn, "test", h)
	if err != nil {
		s.t.Fatal(err)
	}
	f := &tied{link: l, t: s.t}
	l.out, l.errs, l.jobs, l.draw = &f.said, &f.said, func(b []byte) { _, _ = f.said.Write(b) }, func(string) {}
	l.start()
	s.t.Cleanup(l.Close)
	return f
}

// do has a line done, and gives what was printed.
func (f *tied) do(line string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := f.line(ctx, line, "", func() {}); err != nil {
		f.t.Fatal(err)
	}
	return f.said.take()
}

func TestFrames(t *testing.T) {
	t.Parallel()
	s := share(t, 1, nil, nil)
	info, err := os.Stat(socketOf(s.db))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	f := s.frames(hello{Asks: true})
	if f.welcome.PID != os.Getpid() || f.prompt != "relaybench> " {
		t.Errorf("welcome %+v", f.welcome)
	}
	if got := f.do("status"); !strings.Contains(got, "stand-in") {
		t.Errorf("status printed %q", got)
	}
	if d, err := f.line(context.Background(), "show nothing; status", "file:7", func() {}); err != nil || commands.Code(d.Code) != commands.CouldNot || d.More || d.Quit {
		t.Errorf("what could not be done: %+v, %v", d, err)
	}
	if got := f.said.take(); !strings.HasPrefix(got, "relaybench: file:7: show: ") || strings.Contains(got, "stand-in") {
		t.Errorf("what could not be done printed %q", got)
	}
	if got := f.do(strings.Repeat("x", 10*commands.MaxLine)); !strings.Contains(got, "line of more than") {
		t.Errorf("a line that is too long printed %q", got)
	}
	if got := f.do("status \xff"); !strings.Contains(got, "not UTF-8") {
		t.Errorf("what is no text printed %q", got)
	}

	f.ask = func(context.Context, string) (string, error) { return "n", nil }
	if got := f.do("delete last"); !strings.Contains(got, "nothing was deleted") {
		t.Errorf("delete, answered no, printed %q", got)
	}
	f.ask = func(context.Context, string) (string, error) { return "", errInterrupted }
	if got := f.do("delete last"); !strings.Contains(got, "interrupted by Ctrl-C") {
		t.Errorf("delete, interrupted, printed %q", got)
	}
	f.ask = func(context.Context, string) (string, error) { return "y", nil }
	if got := f.do("delete last"); !strings.Contains(got, "deleted 1 report") {
		t.Errorf("delete, answered yes, printed %q", got)
	}
	d, err := f.line(context.Background(), "quit", "", func() {})
	if err != nil || !d.Quit {
		t.Errorf("quit: %+v, %v", d, err)
	}

	f = s.frames(hello{Script: true, KeepGoing: true, Format: int(commands.JSON)})
	d, err = f.line(context.Background(), "statsu; status", "-c:1", func() {})
	if got := f.said.take(); err != nil || !d.More || !strings.HasPrefix(got, `{"error":"unknown command`) || !strings.Contains(got, `"relay": "stand-in"`) {
		t.Errorf("a script that keeps going: %+v, %v, %q", d, err, got)
	}

	// Of another version, or no hello.
	for _, tt := range []struct{ sent, want string }{
		{greetingPrefix + "99\n", "take one of the same version"},
		{greeting + "\n" + string(appendFrame(nil, frame{frameLine, []byte("\x00status")})), "no hello came"},
		{greeting + "\n" + string(appendFrame(nil, frame{frameHello, []byte("{")})), "no hello came"},
	} {
		conn, err := dialLocal(s.db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tt.sent); err != nil {
			t.Fatal(err)
		}
		if f, err := readFrame(bufio.NewReader(conn)); err != nil || f.kind != frameBye || !strings.Contains(string(f.data), tt.want) {
			t.Errorf("%q was answered %q, %v", tt.sent, f.data, err)
		}
		conn.Close()
	}
}
