package upstream

import (
	"net"
	"runtime"
	"sync"
	"time"

	"relaybench/reactor"
)

// loopConns is how many connections a loop is given before the next one is begun
// with: few do with one thread, which then wakes least often.
const loopConns = 8

// newCarrier is how connections are served on this system.
func newCarrier(s *Server) carrier {
	return &loops{s: s, all: make([]*loop, 0, runtime.NumCPU())}
}

// loops is a carrier that has a thread or a few for all connections: as many as
// there are CPUs, started when they are needed.
type loops struct {
	s *Server

	mu      sync.Mutex
	all     []*loop
	stopped bool
}

// loop is one of them: a host, with a reader that only what runs on it uses.
type loop struct {
	*reactor.Loop
	reader *reader
	conns  int // guarded by loops.mu
}

func (ls *loops) carry(c net.Conn) {
	l, err := ls.choose()
	if err != nil {
		ls.s.sayOnce("loop", "%v", err)
	}
	if l == nil {
		c.Close()
		return
	}
	begun := l.Go(func() {
		defer ls.leave(l)
		k, err := l.Take(c)
		if err != nil {
			ls.s.sayOnce("take", "connection: %v", err)
			return
		}
		ls.s.serveConn(k, l)
	})
	if !begun {
		c.Close()
	}
}

// choose is the loop for one more connection; nil once stopped.
func (ls *loops) choose() (*loop, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.stopped {
		return nil, nil
	}
	var best *loop
	for _, l := range ls.all {
		if best == nil || best.conns >= loopConns && l.conns < best.conns {
			best = l
		}
	}
	if (best == nil || best.conns >= loopConns) && len(ls.all) < cap(ls.all) {
		l, err := reactor.Start()
		if err != nil {
			return nil, err
		}
		best = &loop{Loop: l, reader: newReader()}
		ls.all = append(ls.all, best)
	}
	best.conns++
	return best, nil
}

func (ls *loops) leave(l *loop) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.conns--
}

func (ls *loops) stop() {
	ls.mu.Lock()
	ls.stopped = true
	ls.mu.Unlock()
	for _, l := range ls.all {
		l.Stop()
	}
	for _, l := range ls.all {
		l.Close()
	}
}

func (l *loop) sleep(d time.Duration) { l.SleepUntil(l.Now() + int64(d)) }
func (l *loop) await(f func())        { l.Await(f) }
func (l *loop) own() *reader          { return l.reader }
