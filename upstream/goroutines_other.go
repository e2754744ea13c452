//go:build !linux

package upstream

import (
	"net"
	"sync"
	"time"
)

// newCarrier is how connections are served on this system.
func newCarrier(s *Server) carrier {
	return &goroutines{s: s, conns: map[net.Conn]struct{}{}}
}

// goroutines is a carrier that has a goroutine for each connection.
type goroutines struct {
	s    *Server
	work sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // open ones; nil once stopped
}

func (g *goroutines) carry(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		c.Close()
		return
	}
	g.conns[c] = struct{}{}
	g.work.Go(func() {
		defer g.release(c)
		g.s.serveConn(c, g)
	})
}

func (g *goroutines) release(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

func (g *goroutines) stop() {
	g.mu.Lock()
	conns := g.conns
	g.conns = nil
	g.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	g.work.Wait()
}

func (g *goroutines) sleep(d time.Duration) { g.s.wait(d) }
func (g *goroutines) await(f func())        { f() }
func (g *goroutines) own() *reader          { return nil }
