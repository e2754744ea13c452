package blaster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/envelope"
)

const accepted = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

// server stands for a relay: it reads requests, notes their numbers, and has
// them handled.
type server struct {
	handle func(c net.Conn, r *request) (keep bool)
	zero   int64         // of the run, where a handler needs it
	idle   time.Duration // after which a connection without a request is closed; 0: never

	mu    sync.Mutex
	seen  map[uint64]int   // how often each number came
	at    map[uint64]int64 // when it came first, on envelope.Now
	conns map[net.Conn]bool
	bytes int64 // of all requests
	bad   error // the first request that was none
	all   sync.WaitGroup

	ended atomic.Int64 // connections
}

type request struct {
	line   string
	header map[string]string // names in lower case
	stamp  envelope.Stamp
	nth    int // on its connection, from 0
}

func newServer(handle func(c net.Conn, r *request) (keep bool)) *server {
	return &server{handle: handle, seen: map[uint64]int{}, at: map[uint64]int64{}, conns: map[net.Conn]bool{}}
}

// listen serves on a port of its own until the test ends.
func (s *server) listen(t testing.TB) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(c)
		}
	})
	t.Cleanup(func() { l.Close(); s.close(t) })
	return l.Addr().String()
}

// close ends all connections; every request must have been one.
func (s *server) close(t testing.TB) {
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
	if s.bad != nil {
		t.Errorf("bad request: %v", s.bad)
	}
}

func (s *server) serve(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	s.all.Go(func() {
		s.connection(c)
		c.Close()
		s.ended.Add(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	})
}

func (s *server) connection(c net.Conn) {
	in := bufio.NewReaderSize(c, 64<<10)
	for n := 0; ; n++ {
		if s.idle > 0 {
			c.SetReadDeadline(time.Now().Add(s.idle))
		}
		r, size, err := readRequest(in)
		s.mu.Lock()
		if err != nil {
			if !errors.Is(err, io.EOF) && !isNetError(err) && s.bad == nil {
				s.bad = err
			}
			s.mu.Unlock()
			return
		}
		r.nth = n
		s.bytes += int64(size)
		if s.seen[r.stamp.Seq]++; s.seen[r.stamp.Seq] == 1 {
			s.at[r.stamp.Seq] = envelope.Now()
		}
		s.mu.Unlock()
		if !s.handle(c, r) {
			return
		}
	}
}

func isNetError(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func readRequest(in *bufio.Reader) (r *request, size int, err error) {
	r = &request{header: map[string]string{}}
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = fmt.Errorf("cut off: %q", line)
			}
			return nil, 0, err
		}
		size += len(line)
		if line = strings.TrimSuffix(line, "\r\n"); first {
			r.line = line
			continue
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ": ")
		if name = strings.ToLower(name); !ok || r.header[name] != "" {
			return nil, 0, fmt.Errorf("header line %q", line)
		}
		r.header[name] = value
	}
	length, err := strconv.Atoi(r.header["content-length"])
	if err != nil {
		return nil, 0, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, 0, err
	}
	var e envelope.Envelope
	if err := e.Parse(body); err != nil {
		return nil, 0, err
	}
	if !e.Stamped {
		return nil, 0, errors.New("no stamp")
	}
	r.stamp = e.Stamp
	r.stamp.Kind = bytes.Clone(e.Stamp.Kind)
	return r, size + length, nil
}

// once checks that every number came at most once, and returns how many came.
func (s *server) once(t testing.TB) uint64 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for seq, n := range s.seen {
		if n > 1 {
			t.Errorf("number %d came %d times", seq, n)
		}
	}
	return uint64(len(s.seen))
}

// say is a handler that answers all requests with a text.
func say(text string, keep bool) func(net.Conn, *request) bool {
	return func(c net.Conn, _ *request) bool {
		io.WriteString(c, text)
		return keep
	}
}

var testMix, testMixErr = envelope.ParseMix(envelope.Kinds, "sessions=2,checkins=1")

func poolConfig(t testing.TB) envelope.PoolConfig {
	t.Helper()
	if testMixErr != nil {
		t.Fatal(testMixErr)
	}
	return envelope.PoolConfig{Mix: testMix, Seed: 1, Size: 30, Projects: 5, Zipf: 1,
		Shape: envelope.Shape{Frames: 1, SpansMin: 1, SpansMax: 1}, Epoch: time.Now()}
}

func newPool(t testing.TB) *envelope.Pool {
	t.Helper()
	pool, err := envelope.NewPool(poolConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// sizedPool is a pool of n bodies of about a size, each of one letter and unlike its neighbours.
func sizedPool(t testing.TB, n, size int) *envelope.Pool {
	t.Helper()
	made := 0
	kind := envelope.Kind{Name: "sized", Weight: 1, Items: []string{"attachment"}, Elements: envelope.One,
		Make: func(m *envelope.Maker) error {
			m.AddItem("attachment", bytes.Repeat([]byte{'a' + byte(made%26)}, size))
			made++
			return nil
		}}
	conf := poolConfig(t)
	conf.Kinds, conf.Size = []envelope.Kind{kind}, n
	var err error
	if conf.Mix, err = envelope.ParseMix(conf.Kinds, kind.Name); err != nil {
		t.Fatal(err)
	}
	pool, err := envelope.NewPool(conf)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// newLoad is a load of a test: everything, from now on.
func newLoad(addr string, rate float64, d time.Duration, connections int) Load {
	return Load{Addr: addr, Zero: envelope.Now(), Duration: d, Connections: connections, Timeout: 30 * time.Second,
		Schedule: Schedule{Rate: rate, Stride: 1}}
}
