package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"relaybench/envelope"
)

// Config is what an upstream is started with. Its zero value serves on a free port of 127.0.0.1.
type Config struct {
	Addr     string          // host:port to listen on; "" is 127.0.0.1:0
	Kinds    []envelope.Kind // whose stamps are counted by kind; nil: [envelope.Kinds]
	Zero     int64           // the run's zero on [envelope.Now], to which stamps and At are relative
	Features []string        // feature flags of every project, beside those that Kinds need
	Quotas   []Quota         // of every project
	Latency  time.Duration   // before the answer to each envelope but warm-ups, beside what Fault delays
	Fault    Fault           // nil: none; it must not wait
	Conns    int             // connections that are expected, where they are more than 4096
	// Arrived is called for each send of a run (not a warm-up) when the first of
	// its kind's item types is first acknowledged, with the index of its kind in
	// Kinds, and both times since Zero: at is when the whole request had been
	// received. Called concurrently; it must not wait.
	Arrived func(kind int, due, at int64)
	// Log is told, once per sort, of what was not understood, one text at a time; nil: nowhere.
	// What it waits for holds up requests.
	Log func(text string)
}

// limits bound what peers can make the server hold.
type limits struct {
	wire    int           // bytes of a body as received
	plain   int           // bytes of it decoded
	json    int           // bytes of a decoded body of JSON
	conns   int           // open connections; more are answered 503
	room    int           // bytes of bodies over 64 KiB that are received at once; more wait
	readers int           // bodies that are decoded, parsed and counted at once, beside those that loops decode; more wait
	read    time.Duration // from the first byte of a request (on a new connection: from its start) to its last
	write   time.Duration // for an answer
	idle    time.Duration // between requests; Relay itself gives up a connection after 90 s
}

// defaultLimits are the limits of [Start].
func defaultLimits() limits {
	return limits{
		wire:    32 << 20,
		plain:   64 << 20,
		json:    8 << 20,
		conns:   4096,
		room:    256 << 20,
		readers: max(4, 2*runtime.GOMAXPROCS(0)),
		read:    30 * time.Second,
		write:   30 * time.Second,
		idle:    10 * time.Minute,
	}
}

// Server is a running upstream.
type Server struct {
	kinds    []envelope.Kind
	zero     int64
	fault    Fault
	latency  time.Duration
	arrived  func(kind int, due, at int64)
	log      func(text string)
	limits   limits
	projects projects
	counts   *counts
	readers  chan *reader
	room     *semaphore.Weighted // in units
	ctx      context.Context     // ends when it is closed
	cancel   func()
	said     *tally     // sorts of what was logged
	saying   sync.Mutex // held to log

	http    *fasthttp.Server
	ln      net.Listener
	carrier carrier
	close   func() error   // what Close does, once
	done    chan struct{}  // closed by it
	work    sync.WaitGroup // the accepting goroutine
}

// Start starts an upstream.
//
// What peers can make it hold is bounded. There are at most 4096 connections (or Conns),
// each with buffers and a body of 64 KiB, 400 MiB in all. Larger bodies, of at
// most 32 MiB, share 256 MiB: one for which there is no room waits up to 30 s,
// then its connection ends, and Relay sends it again. Three bodies per CPU (at
// least five) are decoded at a time, to 64 MiB at most (to 4 MiB, where that is
// more than 256 times what was received), beside which their
// parsed items take up to six times as much in the worst case. A chunked body
// has at most 64 KiB. Buffers over 1 MiB are given back after use. A request must be received
// within 30 s; connections may idle for 10 minutes.
//
// On Linux, connections share a few threads (see package reactor): while a body
// of up to 64 KiB is decoded, what shares its thread waits.
func Start(c Config) (*Server, error) { return start(c, defaultLimits()) }

func start(c Config, l limits) (*Server, error) {
	l.conns = max(l.conns, c.Conns)
	s := &Server{
		kinds:   c.Kinds,
		zero:    c.Zero,
		fault:   c.Fault,
		latency: c.Latency,
		arrived: c.Arrived,
		log:     c.Log,
		limits:  l,
		readers: make(chan *reader, l.readers),
		room:    semaphore.NewWeighted(int64(l.room / roomUnit)),
		said:    newTally(100),
		done:    make(chan struct{}),
	}
	if s.kinds == nil {
		s.kinds = envelope.Kinds
	}
	for _, k := range s.kinds {
		if len(k.Items) == 0 || len(k.Items) > maxSlots {
			return nil, fmt.Errorf("upstream: kind %s: %d item types, want 1 to %d", k.Name, len(k.Items), maxSlots)
		}
	}
	s.counts = newCounts(len(s.kinds))
	var err error
	if s.projects, err = newProjects(c, s.kinds); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	for range l.readers {
		s.readers <- newReader()
	}
	s.http = &fasthttp.Server{
		Handler:        s.handle,
		ErrorHandler:   s.handleError,
		HeaderReceived: s.sized,
		// One read takes head and body of most of Relay's requests.
		ReadBufferSize:               16 << 10,
		Concurrency:                  l.conns,
		MaxRequestBodySize:           l.wire,
		ReadTimeout:                  l.read,
		WriteTimeout:                 l.write,
		IdleTimeout:                  l.idle,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		Logger:                       silence{},
	}
	addr := c.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	s.ln, err = net.Listen("tcp", addr)
	if c.Addr == "" && errors.Is(err, syscall.EADDRNOTAVAIL) { // a loopback of IPv6 alone
		s.ln, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.carrier = newCarrier(s)
	s.close = sync.OnceValue(s.end)
	s.work.Add(1)
	go s.accept()
	return s, nil
}

// silence is a logger that says nothing: what goes wrong with a connection
// is its peer's affair, and what matters of it comes by handleError.
type silence struct{}

func (silence) Printf(string, ...any) {}

// accept hands each connection to the carrier.
//
// Note: fasthttp's own loop hands connections to a pool of goroutines that
// outlive it, of which Close could not wait.
func (s *Server) accept() {
	defer s.work.Done()
	for {
		c, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.sayOnce("accept", "accept: %v", err)
			s.wait(50 * time.Millisecond) // out of descriptors: some may come free
			continue
		}
		s.carrier.carry(c)
	}
}

// Addr is the address it listens on, host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close stops it and waits for its goroutines. Connections still open are cut.
// The counts can be read on. Closing it again does nothing.
func (s *Server) Close() error { return s.close() }

func (s *Server) end() error {
	close(s.done)
	s.cancel()
	err := s.ln.Close()
	s.work.Wait()
	s.carrier.stop()
	if err != nil {
		return fmt.Errorf("upstream: close: %w", err)
	}
	return nil
}

// now is the time since the run's zero.
func (s *Server) now() int64 { return envelope.Now() - s.zero }

// handleError answers what could not be read as a request.
func (s *Server) handleError(ctx *fasthttp.RequestCtx, err error) {
	var timeout net.Error
	var network *net.OpError
	var head *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		reply(ctx, fasthttp.StatusRequestTimeout, []byte(`{"detail":"timeout"}`))
		return
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return // the peer went away in the middle of a request; nobody reads an answer
	}
	refused := &refusal{fasthttp.StatusBadRequest, "http", err}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refused = &refusal{fasthttp.StatusRequestEntityTooLarge, "size",
			fmt.Errorf("body larger than %d bytes", s.limits.wire)}
		if isEnvelope(requestPath(&ctx.Request.Header)) {
			s.counts.requests.Add(1)
			s.counts.answers.add([]byte("413"), 1)
		}
	case errors.As(err, &head):
		refused.status = fasthttp.StatusRequestHeaderFieldsTooLarge
	}
	answer, t := s.refuse(nil, refused)
	reply(ctx, t.Status, answer)
}

// sayOnce logs a text unless one of its sort was logged before.
func (s *Server) sayOnce(sort, format string, args ...any) {
	if s.said.add([]byte(sort), 1) {
		s.say(format, args...)
	}
}

func (s *Server) say(format string, args ...any) {
	if s.log == nil {
		return
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	s.log(fmt.Sprintf(format, args...))
}
