package reactor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection of a loop, as [Loop.Take] makes one. Read and Write are
// for the loop's coroutines, one at a time each; any goroutine may call the
// rest, and ends by that what is under way.
type Conn struct {
	loop          *Loop
	fd            int
	local, remote net.Addr

	read, write side
	hungUp      bool // the peer has closed its side: a short read is no sign that nothing is left
	closed      atomic.Bool
}

// side is one direction of a connection.
type side struct {
	able     bool        // a system call may find something to do
	waits    atomic.Bool // waiter does
	waiter   *task
	deadline atomic.Int64 // on the loop's clock; 0: none
}

// Take makes a connection over a socket one of the loop, and leaves c closed.
// It does so also when it fails. For coroutines.
//
// Deadlines that c had are gone.
func (l *Loop) Take(c net.Conn) (*Conn, error) {
	defer c.Close()
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("reactor: %T is no socket", c)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	if err := raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("dup", failed)
	}
	k := &Conn{loop: l, fd: fd, local: c.LocalAddr(), remote: c.RemoteAddr()}
	if err := k.watch(); err != nil {
		return nil, err
	}
	return k, nil
}

// watch has the loop look after the socket, or closes it.
func (c *Conn) watch() error {
	c.read.able, c.write.able = true, true
	if err := c.loop.poll.add(c.fd, edges); err != nil {
		unix.Close(c.fd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	for c.fd >= len(c.loop.sockets) {
		c.loop.sockets = append(c.loop.sockets, nil)
	}
	c.loop.sockets[c.fd] = c
	return nil
}

// happened notes events, on the loop.
func (c *Conn) happened(events uint32) {
	const broken = unix.EPOLLERR | unix.EPOLLHUP
	c.hungUp = c.hungUp || events&(unix.EPOLLRDHUP|broken) != 0
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|broken) != 0 {
		c.read.able = true
		c.loop.wake(c.read.waiter)
	}
	if events&(unix.EPOLLOUT|broken) != 0 {
		c.write.able = true
		c.loop.wake(c.write.waiter)
	}
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if err := c.ready(&c.read); err != nil {
			return 0, c.fault("read", err)
		}
		// Note: syscall's Read and Write, not unix's: for the race detector, what one
		// end of a connection did before a write comes before what the other does after the read.
		n, err := syscall.Read(c.fd, p)
		switch {
		case n > 0:
			// Note: what comes after a short read is an event of its own.
			c.read.able = n == len(p) || c.hungUp
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err == unix.EAGAIN:
			c.read.able = false
		case err != unix.EINTR:
			return 0, c.fault("read", os.NewSyscallError("read", err))
		}
	}
	return 0, nil
}

// Write implements [net.Conn].
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		if err := c.ready(&c.write); err != nil {
			return n, c.fault("write", err)
		}
		m, err := syscall.Write(c.fd, p[n:])
		if m > 0 {
			n += m
		}
		switch {
		case err == unix.EAGAIN:
			c.write.able = false
		case err != nil && err != unix.EINTR:
			return n, c.fault("write", os.NewSyscallError("write", err))
		}
		if n == len(p) {
			return n, nil
		}
	}
}

// WriteSome writes what goes out without a wait, which may be nothing. Unlike
// [Conn.Write] it minds no deadline. For coroutines.
func (c *Conn) WriteSome(p []byte) (int, error) {
	for !c.closed.Load() && !c.loop.stopped.Load() {
		n, err := syscall.Write(c.fd, p)
		switch {
		case err == nil:
			return n, nil
		case err == unix.EAGAIN:
			c.write.able = false
			return 0, nil
		case err != unix.EINTR:
			return 0, c.fault("write", os.NewSyscallError("write", err))
		}
	}
	return 0, c.fault("write", net.ErrClosed)
}

// ready returns when a system call is worth making.
func (c *Conn) ready(s *side) error {
	for {
		deadline := s.deadline.Load()
		switch {
		case c.closed.Load() || c.loop.stopped.Load():
			return net.ErrClosed
		case deadline != 0 && (deadline <= c.loop.tick || !s.able && deadline <= c.loop.Now()):
			return os.ErrDeadlineExceeded
		case s.able:
			return nil
		}
		if deadline == 0 {
			deadline = never
		}
		s.waiter = c.loop.current
		s.waits.Store(true)
		// Note: looked at again, now that all who change it see that one waits.
		if now := s.deadline.Load(); !c.closed.Load() && (now == deadline || now == 0 && deadline == never) {
			c.loop.wait(deadline)
		}
		s.waits.Store(false)
		s.waiter = nil
	}
}

// kick has those who wait look again.
func (c *Conn) kick() {
	if c.read.waits.Load() || c.write.waits.Load() {
		c.loop.post(func() {
			c.loop.wake(c.read.waiter)
			c.loop.wake(c.write.waiter)
		})
	}
}

func (c *Conn) fault(what string, err error) error {
	return &net.OpError{Op: what, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close implements [net.Conn]. The socket itself is closed by the loop, at its next turn.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.fault("close", net.ErrClosed)
	}
	c.kick()
	c.loop.post(c.shut) // or the loop has ended, which closed it
	return nil
}

// shut closes the socket, on the loop.
func (c *Conn) shut() {
	if c.fd >= 0 {
		c.closed.Store(true)
		c.loop.sockets[c.fd] = nil
		unix.Close(c.fd)
		c.fd = -1
	}
}

// LocalAddr implements [net.Conn]. It is not known of a connection that the loop has made.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn]. It costs no system call.
func (c *Conn) SetDeadline(t time.Time) error {
	at := c.at(t)
	c.read.deadline.Store(at)
	c.write.deadline.Store(at)
	c.kick()
	return nil
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.deadline.Store(c.at(t))
	c.kick()
	return nil
}

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.deadline.Store(c.at(t))
	c.kick()
	return nil
}

// at is t on the loop's clock, as a deadline has it.
func (c *Conn) at(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(1, int64(t.Sub(c.loop.base)))
}

// SyscallConn implements [syscall.Conn], for what options and looks need. For
// coroutines; of the [syscall.RawConn] only Control can be used.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c}, nil }

type rawConn struct{ c *Conn }

func (r rawConn) Control(f func(fd uintptr)) error {
	if r.c.closed.Load() || r.c.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(r.c.fd))
	return nil
}

func (r rawConn) Read(func(uintptr) bool) error  { return errors.ErrUnsupported }
func (r rawConn) Write(func(uintptr) bool) error { return errors.ErrUnsupported }
