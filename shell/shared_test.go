package shell

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/commands"
	"relaybench/store/storetest"
)

// patience is how long a test waits for what takes a moment.
const patience = time.Minute

// shared is a shared shell of a test.
type shared struct {
	*server
	t     testing.TB
	db    string
	bench *commands.Bench
	end   func()
	mu    sync.Mutex
	logs  strings.Builder
	more  chan struct{} // of one: something was logged
}

// share starts a shared shell with so many reports in its store. No client
// sees a prompt, unless tune, which may be nil, says otherwise.
func share(t testing.TB, reports int, token *token, tune func(*server)) *shared {
	t.Helper()
	s := &shared{t: t, more: make(chan struct{}, 1), db: filepath.Join(t.TempDir(), "r.db")}
	storetest.Fill(t, s.db, reports)
	s.bench = commands.NewBench(commands.Config{DB: s.db})
	if err := s.bench.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.bench.Start(ctx)
	s.server = newServer(s.bench, token, func(format string, a ...any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&s.logs, format+"\n", a...)
		nudge(s.more)
	})
	s.pause, s.silence = time.Hour, time.Hour
	if tune != nil {
		tune(s.server)
	}
	if err := s.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := s.listenLocal(s.db); err != nil {
		t.Fatal(err)
	}
	s.end = sync.OnceFunc(func() {
		why := fmt.Errorf("%w by a test", commands.ErrInterrupted)
		cancel(why)
		if err := end(s.server, s.bench, why, nil); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.end)
	return s
}

// prompts lets clients see one soon.
func prompts(s *server) { s.pause = time.Millisecond }

// logged waits for a line of the log that matches.
func (s *shared) logged(pattern string) {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	logs := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.logs.String()
	}
	for late := time.After(patience); !want.MatchString(logs()); {
		select {
		case <-s.more:
		case <-late:
			s.t.Fatalf("no log that matches %s within %v: %s", pattern, patience, logs())
		}
	}
}

// eventually waits until something is so of which there is no event.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not %s within %v", what, patience)
		}
	}
}

// guest is a TCP client of a test.
type guest struct {
	*net.TCPConn
	t    testing.TB
	read strings.Builder
}

func (s *shared) guest() *guest {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	return &guest{TCPConn: conn.(*net.TCPConn), t: s.t}
}

func (g *guest) send(text string) {
	g.t.Helper()
	if _, err := io.WriteString(g, text); err != nil {
		g.t.Fatal(err)
	}
}

// until reads until what was read since the last time matches, and gives that.
func (g *guest) until(pattern string) string {
	g.t.Helper()
	want := regexp.MustCompile(pattern)
	b := make([]byte, 4096)
	for !want.MatchString(g.read.String()) {
		n, err := g.Read(b)
		g.read.Write(b[:n])
		if err != nil {
			g.t.Fatalf("%v before %q came, after %q", err, pattern, g.read.String())
		}
	}
	defer g.read.Reset()
	return g.read.String()
}

// rest is what comes after the guest has nothing more to say.
func (g *guest) rest() string {
	g.t.Helper()
	if err := g.CloseWrite(); err != nil {
		g.t.Fatal(err)
	}
	return g.all()
}

// all is what comes until the server closes.
func (g *guest) all() string {
	g.t.Helper()
	b, err := io.ReadAll(g)
	if err != nil {
		g.t.Fatalf("%v after %.1000q", err, b)
	}
	return g.read.String() + string(b)
}

const prompt = `relaybench> $`
