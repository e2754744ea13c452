package statsd

import (
	"net"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// enlarge asks for a receive buffer: beyond the system's limit where this user may, else up to it.
func enlarge(conn *net.UDPConn, bytes int) {
	_ = conn.SetReadBuffer(bytes)
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) })
	}
}

// dropped is how many datagrams the kernel has dropped for want of room in the
// receive buffer; -1 unknown. Source: the column drops of /proc/net/udp.
func dropped(conn *net.UDPConn) int64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return -1
	}
	sockets, err := fs.NetUDP()
	if err != nil {
		return -1
	}
	here := conn.LocalAddr().(*net.UDPAddr)
	for _, s := range sockets {
		if s.LocalPort == uint64(here.Port) && s.LocalAddr.Equal(here.IP) && s.Drops != nil {
			return int64(*s.Drops)
		}
	}
	return -1
}
