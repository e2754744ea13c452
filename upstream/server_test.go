package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
)

func TestStartOnBusyAddress(t *testing.T) {
	s := serve(t, Config{})
	_, err := Start(Config{Addr: s.Addr()})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("start on %s, which is in use: got error %v", s.Addr(), err)
	}
}

func TestStartChecksKinds(t *testing.T) {
	for _, items := range [][]string{nil, make([]string, maxSlots+1)} {
		s, err := Start(Config{Kinds: []envelope.Kind{{Name: "k", Items: items}}})
		if err == nil {
			s.Close()
			t.Errorf("started with a kind of %d item types", len(items))
		}
	}
}

func TestZeroConfig(t *testing.T) {
	s, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := len(s.Stats().Elements); got != len(envelope.Kinds) {
		t.Errorf("counts elements of %d kinds, want those of envelope.Kinds, %d", got, len(envelope.Kinds))
	}
	host, _, err := net.SplitHostPort(s.Addr())
	if err != nil || host != "127.0.0.1" {
		t.Errorf("listens on %s", s.Addr())
	}
}

func TestCloseTwice(t *testing.T) {
	s := serve(t, Config{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Errorf("still listens on %s", s.Addr())
	}
}

// Close cuts whatever a connection is doing: idling, being silent, sending,
// or waiting for a late answer.
func TestCloseCuts(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := serve(t, Config{Fault: func(Request) Treatment {
		asked <- struct{}{}
		return Treatment{Delay: time.Hour}
	}})
	idle, silent, half, late := dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	idle.Write(request("GET", "/api/0/relays/live/", "", nil))
	if _, err := readAnswer(bufio.NewReader(idle)); err != nil {
		t.Fatal(err)
	}
	half.Write([]byte("POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"))
	late.Write(request("POST", "/api/1/envelope/", "", []byte(send(0, "event"))))
	<-asked
	if got := s.Open(); got != 1 {
		t.Errorf("%d requests open, want 1", got)
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > patience {
		t.Errorf("close took %v", took)
	}
	for name, c := range map[string]net.Conn{"idle": idle, "silent": silent, "half": half, "late": late} {
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: connection still open", name)
		}
	}
	if got := s.Fate(0, 0); got != Arrived {
		t.Errorf("fate of a send cut short after it was counted: %v", got)
	}
}

// A peer that stops in the middle of a request, or never begins one, is cut off
// after a while, is not counted, and holds up nobody meanwhile.
func TestSlowPeers(t *testing.T) {
	l := defaultLimits()
	l.read = 500 * time.Millisecond
	var log notes
	s := serveLimited(t, Config{Log: log.add}, l)
	for name, start := range map[string]string{
		"silent":          "",
		"half a head":     "POST /api/1/envelope/ HTTP/1.1\r\nHo",
		"head, no body":   "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"half a body":     "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"event_id\"",
		"huge and silent": "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n\r\n{",
		"half a chunk":    "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc",
	} {
		for range 3 {
			c := dial(t, s)
			if _, err := io.WriteString(c, start); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				b, err := io.ReadAll(c)
				if err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s: %v", name, err)
				}
				if len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {
					t.Errorf("%s: answered %.60q", name, b)
				}
			})
		}
	}
	if got := post(t, s, send(1, "event")).status; got != 200 {
		t.Errorf("status of a request beside slow ones: %d", got)
	}
	st := s.Stats()
	if st.Requests != 1 || st.Malformed != 0 {
		t.Errorf("%d requests, %d malformed; want 1 and 0", st.Requests, st.Malformed)
	}
	if got := log.all(); len(got) > 0 {
		t.Errorf("log: %q", got)
	}
}

// A peer that goes away in the middle of a request (a Relay that is killed) is no malformed body.
func TestPeerGoesAway(t *testing.T) {
	s := serve(t, Config{})
	for _, start := range []string{
		"POST /api/1/env",
		"POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"event_id\"",
		"POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc",
	} {
		c := dial(t, s)
		io.WriteString(c, start)
		c.(*net.TCPConn).CloseWrite()
		io.ReadAll(c)
	}
	if got := s.Stats().Malformed; got != 0 {
		t.Errorf("%d malformed, want 0: %s", got, s.Stats().MalformedFirst)
	}
}

func TestTooManyConnections(t *testing.T) {
	l := defaultLimits()
	l.conns = 2
	var log notes
	s := serveLimited(t, Config{Log: log.add}, l)
	for range 2 {
		c := dial(t, s)
		c.Write(request("GET", "/api/0/relays/live/", "", nil))
		if a, err := readAnswer(bufio.NewReader(c)); err != nil || a.status != 200 {
			t.Fatal(a, err)
		}
	}
	for range 2 {
		b, _ := io.ReadAll(dial(t, s))
		if !strings.HasPrefix(string(b), "HTTP/1.1 503 ") {
			t.Errorf("connection beyond the limit: answered %.60q", b)
		}
	}
	if got := len(log.all()); got != 1 {
		t.Errorf("logged %d times, want once: %q", got, log.all())
	}
}

// Connections are kept, also with requests one behind the other.
func TestKeepAlive(t *testing.T) {
	s := serve(t, Config{})
	c := dial(t, s)
	r := bufio.NewReader(c)
	for seq := range uint64(3) {
		two := append(request("POST", "/api/1/envelope/?sentry_key=k", "", []byte(send(2*seq, "event"))),
			request("POST", "/api/1/envelope/", "zstd", []byte(encode(t, "zstd", send(2*seq+1, "log"))))...)
		if _, err := c.Write(two); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(2) {
			a, err := readAnswer(r)
			if err != nil {
				t.Fatal(err)
			}
			want := answer{status: 200, body: fmt.Sprintf(`{"id":"%032x"}`, 2*seq+i)}
			if a.status != want.status || a.body != want.body {
				t.Errorf("answer %d %q, want %d %q", a.status, a.body, want.status, want.body)
			}
		}
	}
	if got := s.Stats().Envelopes; got != 6 {
		t.Errorf("%d envelopes, want 6", got)
	}
}

func TestBadHTTP(t *testing.T) {
	l := defaultLimits()
	l.wire = 1 << 20
	for _, test := range []struct {
		name, request string
		status        int
		first         string
	}{
		{"no HTTP", "hello\r\n\r\n", 400, "request header"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "request header"},
		{"huge head", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10), 431, "request header"},
		{"huge body", "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", 413, "larger than 1048576"},
		{"huge chunk", "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n", 413, "larger than 1048576"},
		{"negative", "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400, "request header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serveLimited(t, Config{}, l)
			a, err := exchange(t, s, []byte(test.request))
			if err != nil {
				t.Fatal(err)
			}
			st := s.Stats()
			if a.status != test.status || st.Malformed != 1 || !strings.Contains(st.MalformedFirst, test.first) {
				t.Errorf("status %d, %d malformed, first %q; want %d, 1, %q", a.status, st.Malformed, st.MalformedFirst, test.status, test.first)
			}
		})
	}
}

func TestStatsRoute(t *testing.T) {
	s := serve(t, Config{})
	post(t, s, send(1, "event"))
	post(t, s, "no envelope")
	do(t, s, "GET", "/nothing", "", "")
	a := do(t, s, "GET", "/stats", "", "")
	var got Stats
	unmarshal(t, a.body, &got)
	if diff := cmp.Diff(s.Stats(), got); a.status != 200 || diff != "" {
		t.Errorf("status %d, stats (-want +got):\n%s", a.status, diff)
	}
	var keys map[string]any
	unmarshal(t, a.body, &keys)
	for _, key := range []string{"envelopes", "items", "elements", "wire_bytes", "plain_bytes", "outcomes", "repeats", "unknown_routes", "malformed_first"} {
		if keys[key] == nil {
			t.Errorf("no %s in %s", key, a.body)
		}
	}
}
