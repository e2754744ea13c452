package blaster

import (
	"errors"
	"math"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"relaybench/envelope"
)

// conn is one connection of a sender: a request is written, then what comes
// back is read, both within one time-out.
type conn struct {
	net     net.Conn
	timeout int64
	stopped *atomic.Bool // the run's

	some func(b []byte) (int, error) // writes what goes out without a wait; nil: b is the sender's own while it waits
	rest []byte                      // what is to go out after a wait

	limit    int64 // when the present answer is given up, on envelope.Now
	deadline int64 // as it is set on net, on envelope.Now

	raw  syscall.RawConn  // nil where the connection is no socket
	peek func(fd uintptr) // made once: it would be allocated for each call
	gone bool
}

func newConn(c net.Conn, timeout time.Duration, stopped *atomic.Bool) *conn {
	k := &conn{net: c, timeout: int64(timeout), stopped: stopped, deadline: math.MinInt64}
	k.peek = k.look
	if w, ok := c.(interface{ WriteSome([]byte) (int, error) }); ok {
		k.some = w.WriteSome
	}
	if s, ok := c.(syscall.Conn); ok {
		k.raw, _ = s.SyscallConn()
	}
	return k
}

// write sends b, at the time now; n is how much of it went out. While it waits, b may change.
//
// Note: to set a deadline costs more than to read a clock, so one is set not
// for each send but once in an eighth of the time-out. It may then pass before
// the present send's time is up, and is set anew to go on.
func (c *conn) write(b []byte, now int64) (n int, err error) {
	c.limit = now + c.timeout
	if c.deadline < c.limit-c.timeout/8 {
		c.setDeadline(c.limit)
	}
	if c.some != nil {
		if n, err = c.some(b); err != nil || n == len(b) {
			return n, err
		}
		c.rest = append(c.rest[:0], b[n:]...)
		b = c.rest
	}
	for {
		m, err := c.net.Write(b)
		n += m
		b = b[m:]
		if err == nil || !c.early(err) {
			return n, err
		}
	}
}

// Read reads within the time-out of the last write.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.net.Read(p)
		if n > 0 || err == nil || !c.early(err) {
			return n, err
		}
	}
}

// early says that err is a deadline that was not the present send's, which is now set.
func (c *conn) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || c.stopped.Load() || envelope.Now() >= c.limit {
		return false
	}
	c.setDeadline(c.limit)
	return true
}

func (c *conn) setDeadline(at int64) {
	c.deadline = at
	c.net.SetDeadline(time.Now().Add(time.Duration(at - envelope.Now())))
	if c.stopped.Load() {
		c.cut()
	}
}

// cut ends what is under way and all that follows. Any goroutine may call it.
func (c *conn) cut() { c.net.SetDeadline(time.Unix(1, 0)) }

// closed says that the peer has closed the connection, or sent what nobody asked for.
func (c *conn) closed() bool {
	if c.raw == nil {
		return false
	}
	return c.raw.Control(c.peek) != nil || c.gone
}

func (c *conn) look(fd uintptr) {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	c.gone = err != syscall.EAGAIN && err != syscall.EINTR
}
