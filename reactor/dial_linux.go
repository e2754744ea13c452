package reactor

import (
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Dial makes a TCP connection to addr, which has no zone, within a time-out.
// [net.Dialer] and [Loop.Take] take a goroutine, twice the time and twice the
// memory, which counts where no collector runs. For coroutines.
func (l *Loop) Dial(addr netip.AddrPort, timeout time.Duration) (*Conn, error) {
	c := &Conn{loop: l, remote: net.TCPAddrFromAddrPort(addr)}
	var err error
	if c.fd, err = unix.Socket(family(addr), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP); err != nil {
		return nil, c.fault("dial", os.NewSyscallError("socket", err))
	}
	unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // as package net does
	begun := unix.Connect(c.fd, sockaddr(addr))
	if begun != nil && begun != unix.EINPROGRESS && begun != unix.EINTR {
		unix.Close(c.fd)
		return nil, c.fault("dial", os.NewSyscallError("connect", begun))
	}
	if err := c.watch(); err != nil {
		return nil, c.fault("dial", err)
	}
	if begun != nil {
		if err := c.connected(time.Now().Add(timeout)); err != nil {
			c.Close()
			return nil, c.fault("dial", err)
		}
	}
	return c, nil
}

// connected waits for the end of a connect that is under way.
func (c *Conn) connected(deadline time.Time) error {
	c.write.able = false
	c.SetWriteDeadline(deadline)
	defer c.SetWriteDeadline(time.Time{})
	if err := c.ready(&c.write); err != nil {
		return err
	}
	no, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && no != 0 {
		err = unix.Errno(no)
	}
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	return nil
}

func family(a netip.AddrPort) int {
	if a.Addr().Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
