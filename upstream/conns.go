package upstream

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"
)

// A carrier serves connections, each until it ends or the carrier is stopped.
type carrier interface {
	// carry serves c, and returns at once. What is left of c when it is served no more is closed.
	carry(c net.Conn)
	// stop cuts all connections and waits for their end.
	stop()
}

// A host is what a connection is served on. Whatever serves it waits by these
// alone, as others may be served on the same thread.
type host interface {
	// sleep waits for d, or until the server is closed.
	sleep(d time.Duration)
	// await runs f, which may wait, or take its time.
	await(f func())
	// own is the host's own reader, nil where it has none: one of the server's is to be waited for.
	own() *reader
}

// peer is a connection, with what serves it and the room that it has taken for its present body.
type peer struct {
	net.Conn
	host  host
	room  *semaphore.Weighted
	read  time.Duration
	ctx   context.Context // the server's
	taken atomic.Int64    // units
}

// serveConn serves a connection until it ends.
func (s *Server) serveConn(c net.Conn, h host) {
	p := &peer{Conn: c, host: h, room: s.room, read: s.limits.read, ctx: s.ctx}
	defer p.free()
	if err := s.http.ServeConn(p); errors.Is(err, fasthttp.ErrConcurrencyLimit) {
		s.sayOnce("conns", "more than %d connections: answered 503", s.limits.conns)
	}
}

// hostOf is what a request is served on.
func hostOf(ctx *fasthttp.RequestCtx) host { return ctx.Conn().(*peer).host }
