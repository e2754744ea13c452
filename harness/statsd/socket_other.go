//go:build !linux

package statsd

import "net"

func enlarge(conn *net.UDPConn, bytes int) { _ = conn.SetReadBuffer(bytes) }

func dropped(*net.UDPConn) int64 { return -1 }
