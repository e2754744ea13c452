package reactor

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDial(t *testing.T) {
	l := start(t)
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"} {
		ln, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Logf("%s: left out: %v", host, err)
			continue
		}
		addr := netip.MustParseAddrPort(ln.Addr().String())
		if host == "[::ffff:127.0.0.1]" {
			addr = netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), addr.Port())
		}
		do(t, l, func() {
			c, err := l.Dial(addr, time.Minute)
			if err != nil {
				t.Errorf("%s: %v", host, err)
				return
			}
			defer c.Close()
			theirs, err := ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(theirs, "hello")
			theirs.Close()
			if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
				t.Errorf("%s: read %q: %v", host, got, err)
			}
		})
		ln.Close()
		do(t, l, func() {
			if _, err := l.Dial(addr, time.Minute); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s, where nobody listens: error %v, want refused", host, err)
			}
		})
	}
}

// A peer that does not answer is given up in time, and at once when the loop stops.
func TestDialUnanswered(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(own.(*unix.SockaddrInet4).Port))

	l := start(t)
	do(t, l, func() {
		for { // until its queue is full
			c, err := l.Dial(addr, 200*time.Millisecond)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("error %v, want a deadline", err)
				}
				return
			}
			defer c.Close()
		}
	})
	ended := make(chan error, 1)
	l.Go(func() {
		l.Go(l.Stop)
		_, err := l.Dial(addr, time.Minute)
		ended <- err
	})
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want closed", err)
	}
}

// What a connection costs that is made and closed.
func BenchmarkDial(b *testing.B) {
	addr := netip.MustParseAddrPort(echo(b))
	l := start(b)
	b.ReportAllocs()
	do(b, l, func() {
		for b.Loop() {
			c, err := l.Dial(addr, time.Minute)
			if err != nil {
				b.Error(err)
				return
			}
			c.Close()
		}
	})
}

// The same with package net.
func BenchmarkDialAndTake(b *testing.B) {
	addr := echo(b)
	l := start(b)
	b.ReportAllocs()
	do(b, l, func() {
		for b.Loop() {
			dial(b, l, addr).Close()
		}
	})
}
