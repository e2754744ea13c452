package upstream

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
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

// SetReadDeadline sets a deadline. One that is hours away takes the room for a
// body first, for as long as the body itself may take; without it the connection ends.
func (p *peer) SetReadDeadline(at time.Time) error {
	units := int64(time.Until(at) / roomMark)
	if at.IsZero() || units == 0 {
		return p.Conn.SetReadDeadline(at)
	}
	p.free()
	if !p.room.TryAcquire(units) && !p.acquire(units) {
		p.Conn.Close()
		return net.ErrClosed
	}
	p.taken.Store(units)
	return p.Conn.SetReadDeadline(time.Now().Add(p.read))
}

// acquire waits for room.
func (p *peer) acquire(units int64) (ok bool) {
	ctx, cancel := context.WithTimeout(p.ctx, p.read)
	defer cancel()
	p.host.await(func() { ok = p.room.Acquire(ctx, units) == nil })
	return ok
}

// free gives the room back.
func (p *peer) free() {
	if n := p.taken.Swap(0); n > 0 {
		p.room.Release(n)
	}
}
