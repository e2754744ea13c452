package upstream

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"
)

const (
	// roomUnit is the size of body, in bytes, that every connection may send
	// without asking: what the kinds of a run make fits in it. Larger ones take
	// room by units of it.
	roomUnit = 64 << 10
	// roomMark is how the room that a body takes is told by fasthttp to its
	// connection: as hours, one a unit, beyond the time to read it.
	roomMark = time.Hour
)

// sized is called between the head and the body of a request, and says how
// large the body may be and how long it may take.
//
// Note: it does not know on which connection it is called. But the time that it
// allows is set on that connection as a deadline, before anything is made or
// read for the body, and no deadline is an hour away otherwise. See [peer.SetReadDeadline].
func (s *Server) sized(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	switch n := h.ContentLength(); {
	case n == -1: // chunked, which Relay sends nothing in
		c.MaxRequestBodySize = min(roomUnit, s.limits.wire)
	case n > roomUnit && n <= s.limits.wire:
		c.ReadTimeout = s.limits.read + time.Duration((n+roomUnit-1)/roomUnit)*roomMark
	}
	return c
}

// peer is a connection, and the room that it has taken for its present body.
type peer struct {
	net.Conn
	room  *semaphore.Weighted
	read  time.Duration
	ctx   context.Context // the server's
	taken atomic.Int64    // units
}

// SetReadDeadline sets a deadline. One that is hours away takes the room for a
// body first, for as long as the body itself may take; without it the connection ends.
func (p *peer) SetReadDeadline(at time.Time) error {
	units := int64(time.Until(at) / roomMark)
	if at.IsZero() || units == 0 {
		return p.Conn.SetReadDeadline(at)
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.read)
	defer cancel()
	p.free()
	if err := p.room.Acquire(ctx, units); err != nil {
		p.Conn.Close()
		return net.ErrClosed
	}
	p.taken.Store(units)
	return p.Conn.SetReadDeadline(time.Now().Add(p.read))
}

// free gives the room back.
func (p *peer) free() {
	if n := p.taken.Swap(0); n > 0 {
		p.room.Release(n)
	}
}
