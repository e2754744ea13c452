package shell

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// abused lets f abuse a shared shell, while another client asks for its status
// again and again; then it must have left nothing behind. No other test may run.
func (s *shared) abused(f func()) {
	s.t.Helper()
	used := func() (heap uint64, goroutines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse, runtime.NumGoroutine()
	}
	was, before := used()
	done := make(chan struct{})
	var worst time.Duration
	var joined sync.WaitGroup
	joined.Go(func() {
		g := s.guest()
		defer g.Close()
		for {
			from := time.Now()
			g.send("status\n")
			g.until("no job is queued\n")
			worst = max(worst, time.Since(from))
			select {
			case <-done:
				return
			default:
			}
		}
	})
	f()
	close(done)
	joined.Wait()
	if worst > 10*time.Second { // under one, on a machine that is not busy
		s.t.Errorf("another client's status took %v", worst)
	}
	eventually(s.t, "left by all clients", func() bool { return s.count() == 0 })
	eventually(s.t, "back to as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	if now, _ := used(); now > was+10<<20 {
		s.t.Errorf("the memory in use has grown from %d to %d bytes", was, now)
	}
}

// narrow is a listener to whose connections little can be written that is not read.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return conn, err
}

// A client that reads nothing costs a bounded amount, hinders nobody, and is
// told what it missed.
func TestStalledReader(t *testing.T) {
	s := share(t, 0, nil, func(s *server) { s.patience = 2 * time.Second })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.accept(narrow{l}, true)
	s.addr = l.Addr().String()
	s.abused(func() {
		g := s.guest()
		defer g.Close()
		if err := g.SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		g.send("# " + strings.Repeat("x", 60_000) + "\n" + strings.Repeat("history\n", 40)) // 2.4 MB
		s.logged("reads nothing: what is printed for it is dropped")
		got := g.rest()
		if !regexp.MustCompile(`\nrelaybench: \d+ bytes were dropped here, as nothing was read\n`).MatchString(got) {
			t.Errorf("it was not told what it missed: %d bytes came, at the end %q", len(got), got[max(0, len(got)-200):])
		}
	})
}

// A line without an end is refused once it is too long, and costs no more than that.
func TestEndlessLine(t *testing.T) {
	s := share(t, 0, nil, nil)
	s.abused(func() {
		g := s.guest()
		defer g.Close()
		part := strings.Repeat("x", 1<<20)
		for range 4 {
			g.send(part)
		}
		g.until("relaybench: line of more than 65536 bytes\n")
		g.send("\nstatus \xc3\xa9\xff\xffx\nstatus\n")
		got := g.rest()
		if strings.Count(got, "stand-in") != 1 || !strings.Contains(got, "relaybench: line is not UTF-8 text\n") || strings.Contains(got, "of more than") {
			t.Errorf("after the end of it: %q", got)
		}
	})
}

// Clients that come, say half of something, and vanish, cost nothing afterwards.
func TestVanishingClients(t *testing.T) {
	s := share(t, 0, nil, nil)
	halves := []string{"", "stat", "\xff", "\xff\xfa\x18", "status\n", "status\nhelp", greeting + "\n", greeting + "\nh\x00\x00", greeting + "\nh\xff\xff\xff\xff", "delete last\n"}
	s.abused(func() {
		for i := range 1000 {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, halves[i%len(halves)]); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // torn down
					t.Fatal(err)
				}
			}
			conn.Close()
		}
	})
}

// Rubbish harms nobody.
func TestRandomBytes(t *testing.T) {
	s := share(t, 1, nil, nil)
	s.abused(func() {
		var joined sync.WaitGroup
		for i := range 20 {
			joined.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				b := make([]byte, 100_000)
				for j := range b {
					b[j] = byte(r.Uint32())
				}
				if i%2 == 0 {
					b = append([]byte(greeting+"\n"), b...)
				}
				conn, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = conn.Write(b)
				_ = conn.(*net.TCPConn).CloseWrite()
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("rubbish %d is still being worked on", i)
				}
			})
		}
		joined.Wait()
	})
	g := s.guest()
	g.send("reports")
	if got := g.rest(); !strings.Contains(got, "1s") {
		t.Errorf("the report is gone: %q", got)
	}
}
