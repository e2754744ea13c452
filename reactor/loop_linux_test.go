package reactor

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB) *Loop {
	l, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// do runs f as a coroutine and waits for its end.
func do(t testing.TB, l *Loop, f func()) {
	t.Helper()
	done := make(chan struct{})
	if !l.Go(func() { defer close(done); f() }) {
		t.Fatal("the loop has ended")
	}
	<-done
}

// echo is a server of plain goroutines that sends back what comes.
func echo(t testing.TB) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { io.Copy(c, c); c.Close() })
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return ln.Addr().String()
}

// dial is for coroutines.
func dial(t testing.TB, l *Loop, addr string) *Conn {
	var c net.Conn
	var err error
	l.Await(func() { c, err = net.Dial("tcp", addr) })
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	k, err := l.Take(c)
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	return k
}

// pair is a connection of the loop, for coroutines, and its other end.
func pair(t testing.TB, l *Loop) (mine *Conn, theirs net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	defer ln.Close()
	mine = dial(t, l, ln.Addr().String())
	if theirs, err = ln.Accept(); err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	return mine, theirs
}

// What is written comes back, over a thousand connections of two loops at once,
// one of which yields, in pieces that fill the sockets' buffers and in small ones.
func TestEcho(t *testing.T) {
	addr := echo(t)
	loops := []*Loop{start(t), start(t)}
	loops[0].Yield()
	var all sync.WaitGroup
	for i := range 1000 {
		l := loops[i%len(loops)]
		size := 1 + i
		if i < 4 {
			size = 8 << 20
		}
		all.Add(1)
		l.Go(func() {
			defer all.Done()
			c := dial(t, l, addr)
			defer c.Close()
			sent := make([]byte, size)
			rand.NewChaCha8([32]byte{byte(i)}).Read(sent)
			l.Go(func() { // writes while the other reads
				if n, err := c.Write(sent); n != size || err != nil {
					t.Errorf("wrote %d of %d bytes: %v", n, size, err)
				}
			})
			got := make([]byte, size)
			if n, err := io.ReadFull(c, got); n != size || err != nil || string(got) != string(sent) {
				t.Errorf("read %d of %d bytes: %v", n, size, err)
			}
		})
	}
	all.Wait()
}

// A coroutine of one loop and one of another speak with each other.
func TestTwoLoops(t *testing.T) {
	a, b := start(t), start(t)
	a.Yield()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const rounds = 1000
	var all sync.WaitGroup
	all.Add(2)
	b.Go(func() {
		defer all.Done()
		var c net.Conn
		b.Await(func() { c, _ = ln.Accept() })
		k, err := b.Take(c)
		if err != nil {
			t.Error(err)
			return
		}
		defer k.Close()
		buf := make([]byte, 4)
		for range rounds {
			if _, err := io.ReadFull(k, buf); err != nil {
				t.Error(err)
				return
			}
			k.Write(buf)
		}
		if n, err := k.Read(buf); n != 0 || err != io.EOF {
			t.Errorf("read %d bytes, error %v, want the end", n, err)
		}
	})
	a.Go(func() {
		defer all.Done()
		k := dial(t, a, ln.Addr().String())
		defer k.Close()
		buf := []byte("ping")
		for range rounds {
			k.Write(buf)
			if _, err := io.ReadFull(k, buf); err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Wait()
}

func TestSleep(t *testing.T) {
	l := start(t)
	var all sync.WaitGroup
	for i := range 500 {
		all.Add(1)
		l.Go(func() {
			defer all.Done()
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range 20 {
				until := l.Now() + r.Int64N(int64(5*time.Millisecond)) - int64(time.Millisecond)
				if !l.SleepUntil(until) || l.Now() < until {
					t.Error("woke early")
				}
			}
		})
	}
	all.Wait()
}

func TestDeadlines(t *testing.T) {
	l := start(t)
	do(t, l, func() {
		c, theirs := pair(t, l)
		defer theirs.Close()
		defer c.Close()
		buf := make([]byte, 1<<20)
		for _, after := range []time.Duration{-time.Hour, 0, time.Millisecond, 20 * time.Millisecond} {
			at := time.Now().Add(after)
			c.SetReadDeadline(at)
			n, err := c.Read(buf)
			var timeout net.Error
			if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || time.Now().Before(at) {
				t.Errorf("read %d bytes, error %v %v after the deadline", n, err, time.Since(at))
			}
		}
		c.SetReadDeadline(time.Time{})
		c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		for total := 0; ; {
			n, err := c.Write(buf) // nobody reads
			if total += n; err == nil {
				continue
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || total == 0 {
				t.Errorf("wrote %d bytes: %v", total, err)
			}
			break
		}
		theirs.Write([]byte("x"))
		if n, err := c.Read(buf); n != 1 || err != nil {
			t.Errorf("read %d bytes after the deadlines: %v", n, err)
		}
	})
}

// Any goroutine ends a read under way, by each of the ways.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(l *Loop, c *Conn)
		want error
	}{
		"close":    {func(_ *Loop, c *Conn) { c.Close() }, net.ErrClosed},
		"deadline": {func(_ *Loop, c *Conn) { c.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"stop":     {func(l *Loop, _ *Conn) { l.Stop() }, net.ErrClosed},
		"earlier":  {func(_ *Loop, c *Conn) { c.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
	} {
		for i := range 50 {
			l := start(t)
			reads := make(chan *Conn, 1)
			var all sync.WaitGroup
			all.Go(func() {
				k := <-reads
				for range i { // before the read, or within it
					runtime.Gosched()
				}
				c.cut(l, k)
			})
			do(t, l, func() {
				k, theirs := pair(t, l)
				defer theirs.Close()
				defer k.Close()
				k.SetDeadline(time.Now().Add(time.Hour))
				reads <- k
				if n, err := k.Read(make([]byte, 1)); n != 0 || !errors.Is(err, c.want) {
					t.Errorf("%s: read %d bytes, error %v, want %v", name, n, err, c.want)
				}
			})
			all.Wait()
			l.Close()
		}
	}
}

// A peer's end is told: after what came before it, and in the place of an answer.
func TestPeerEnds(t *testing.T) {
	l := start(t)
	do(t, l, func() {
		c, theirs := pair(t, l)
		defer c.Close()
		io.WriteString(theirs, "last")
		theirs.Close()
		if all, err := io.ReadAll(c); string(all) != "last" || err != nil {
			t.Errorf("read %q: %v", all, err)
		}

		c, theirs = pair(t, l)
		defer c.Close()
		theirs.(*net.TCPConn).SetLinger(0)
		theirs.Close()
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read %d bytes, error %v, want a reset", n, err)
		}
	})
}

// Close ends all that waits, whatever it waits for, and what comes after it fails.
func TestClose(t *testing.T) {
	addr := echo(t)
	l := start(t)
	var began, ended sync.WaitGroup
	var kept *Conn
	for i := range 100 {
		began.Add(1)
		ended.Add(1)
		l.Go(func() {
			defer ended.Done()
			if i%2 == 0 {
				began.Done()
				if l.SleepUntil(l.Now() + int64(time.Hour)) {
					t.Error("slept to the end of an hour")
				}
				return
			}
			c := dial(t, l, addr)
			kept = c // left open: the loop closes it
			began.Done()
			if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
				t.Errorf("read %d bytes, error %v", n, err)
			}
		})
	}
	began.Wait()
	l.Close()
	ended.Wait()
	if l.Go(func() { t.Error("ran on a loop that has ended") }) {
		t.Error("a loop that has ended takes on work")
	}
	if kept.SetDeadline(time.Now()); !errors.Is(kept.Close(), net.ErrClosed) {
		t.Error("a connection outlived its loop")
	}
	l.Close()
}

func TestPanic(t *testing.T) {
	l := &Loop{tasks: map[*task]struct{}{}}
	l.begin(func() { panic("oh") })
	defer func() {
		p, ok := recover().(*Panic)
		if !ok || p.Value != "oh" || !strings.Contains(p.Error(), "TestPanic") {
			t.Errorf("got panic %v", p)
		}
	}()
	l.ready[0].next()
	t.Error("no panic")
}

// A system without epoll_pwait2 waits by other calls.
func TestOldSystem(t *testing.T) {
	addr := echo(t)
	l := start(t)
	do(t, l, func() {
		l.poll.old = true
		c := dial(t, l, addr)
		defer c.Close()
		c.Write([]byte("ping"))
		if n, err := c.Read(make([]byte, 9)); n != 4 || err != nil {
			t.Errorf("read %d bytes: %v", n, err)
		}
		until := l.Now() + int64(5*time.Millisecond)
		if !l.SleepUntil(until) || l.Now() < until {
			t.Error("woke early")
		}
	})
}

// A wait costs no memory.
func TestNoAllocations(t *testing.T) {
	addr := echo(t)
	l := start(t)
	do(t, l, func() {
		c := dial(t, l, addr)
		defer c.Close()
		buf := make([]byte, 100)
		if n := testing.AllocsPerRun(1000, func() {
			c.SetDeadline(time.Now().Add(time.Minute))
			c.Write(buf)
			c.Read(buf)
			l.SleepUntil(l.Now() + 1000)
		}); n >= 1 {
			t.Errorf("%v allocations for a write, a read and a sleep", n)
		}
	})
}
