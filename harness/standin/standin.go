package standin

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// relayVersion is what it says of itself where Relay says 26.4.0.
const relayVersion = "stand-in-1"

// crashStatus is the exit status of a Relay that panicked.
const crashStatus = 101

// usage is Relay's command line as far as the stand-in has it.
const usage = "usage: --version | -c DIR config show | -c DIR run"

// Main is the stand-in's face: Relay's command line, and its exit status.
// Running, it stops gracefully at SIGTERM and at once when ctx ends, or at
// SIGINT, SIGQUIT and a second signal.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, "relay", relayVersion)
		return 0
	}
	if len(args) < 3 || args[0] != "-c" {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	dir, args := args[1], args[2:]
	c, given, err := load(dir)
	if err != nil {
		return fail(err)
	}
	switch {
	case len(args) == 2 && args[0] == "config" && args[1] == "show":
		if err := show(stdout, given); err != nil {
			return fail(err)
		}
		return 0
	case len(args) == 1 && args[0] == "run":
		who, err := loadIdentity(dir)
		if err != nil {
			return fail(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := newRelay(ctx, c, who, newLogger(stderr, c.level))
		r.log.say("INFO", "launching relay from config folder "+dir)
		status, err := r.run(ctx, cancel)
		if err != nil {
			return fail(err)
		}
		return status
	}
	fmt.Fprintln(stderr, usage)
	return 2
}

// relay is a running stand-in.
type relay struct {
	config config
	log    *logger
	up     *upstream
	ctx    context.Context // run's: for the server's handlers

	projects *projects
	outcomes outcomes
	metrics  *metrics // nil: nobody wants them

	// An envelope's way: admit, processing, delayed (or not), sending, retrying (or not).
	processing, sending *queue
	delayed, retrying   line
	pace                pace
	inside              atomic.Int64 // jobs on that way

	registered, stopping atomic.Bool
	global               chan struct{} // closed once the global config is there

	numbered atomic.Uint64 // sends counted for crash_after
	crashed  chan struct{}

	leaking sync.Mutex
	leaked  [][]byte
}

func newRelay(ctx context.Context, c config, who identity, log *logger) *relay {
	r := &relay{
		config: c, log: log, up: newUpstream(ctx, c, who), ctx: ctx, projects: newProjects(),
		processing: newQueue(), sending: newQueue(),
		delayed: line{newQueue(), c.delay}, retrying: line{newQueue(), c.retryDelay},
		global: make(chan struct{}), crashed: make(chan struct{}),
	}
	if c.statsd != "" {
		r.metrics = &metrics{timers: map[string][]float64{}, counters: map[string]uint64{}}
	}
	if c.capacity > 0 {
		r.pace.every = time.Duration(float64(time.Second) / c.capacity)
	}
	return r
}

// run serves until it is told to stop, and returns the exit status. cancel ends ctx.
func (r *relay) run(ctx context.Context, cancel func()) (int, error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	listener, err := net.Listen("tcp", net.JoinHostPort(r.config.host, strconv.Itoa(r.config.port)))
	if err != nil {
		return 0, err
	}
	server := &fasthttp.Server{
		Handler:                      r.handle,
		ErrorHandler:                 handleError,
		Name:                         "sentry-relay/" + relayVersion,
		IdleTimeout:                  5 * time.Second, // as Relay closes idle connections
		ReadBufferSize:               16 << 10,
		MaxRequestBodySize:           r.config.maxEnvelope,
		NoDefaultDate:                true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		Logger:                       silence{},
	}
	var work sync.WaitGroup
	served := make(chan error, 1)
	work.Go(func() { served <- server.Serve(listener) })
	work.Go(func() { r.connect(ctx) })
	work.Go(func() { r.fetchAll(ctx) })
	work.Go(func() { r.reportAll(ctx) })
	work.Go(func() { r.sendMetrics(ctx) })
	work.Go(func() { r.delayed.run(ctx, r.sending.push) })
	work.Go(func() { r.retrying.run(ctx, r.sending.push) })
	for range r.config.threads {
		work.Go(func() { r.process(ctx) })
	}
	for range r.config.requests {
		work.Go(r.send)
	}
	r.log.say("INFO", "  listening on http://"+listener.Addr().String()+"/")

	select {
	case err = <-served:
	case <-r.crashed:
		// Note: nothing is waited for, as nothing is by a process that panics.
		return crashStatus, nil
	case <-ctx.Done():
	case got := <-signals:
		if got == syscall.SIGTERM {
			r.drain(ctx, server, signals)
		}
	}
	cancel()
	for _, q := range []*queue{r.processing, r.sending, r.delayed.queue, r.retrying.queue} {
		q.close()
	}
	listener.Close()
	work.Wait()
	r.log.say("INFO", "relay shutdown complete")
	return 0, err
}

// drain stops gracefully: what is inside has until the shutdown timeout, or
// until the next signal, to get out.
func (r *relay) drain(ctx context.Context, server *fasthttp.Server, signals <-chan os.Signal) {
	r.log.say("INFO", fmt.Sprintf("SIGTERM received, stopping in %v", r.config.shutdown))
	r.stopping.Store(true)
	ctx, cancel := context.WithTimeout(ctx, r.config.shutdown)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	})
	defer cancel()
	_ = server.ShutdownWithContext(ctx) // its error is that ctx ended, which ends the rest too
	for r.inside.Load() > 0 && sleep(ctx, 5*time.Millisecond) {
	}
	if err := r.report(); err != nil {
		r.log.say("ERROR", "failed to send outcomes: "+err.Error())
	}
}

// silence is fasthttp's log: what clients do wrong is answered to them.
type silence struct{}

func (silence) Printf(string, ...any) {}
