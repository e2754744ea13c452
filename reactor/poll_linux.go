package reactor

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poll is an epoll instance, which another thread can wake.
type poll struct {
	epoll, wake int  // descriptors
	old         bool // the system has no epoll_pwait2, or does not let it be used
	idle        int  // short waits in a row without an event
	events      [128]unix.EpollEvent
	limit       struct{ sec, nsec int64 } // the kernel's timespec, of 64 bits on every machine
}

// edges are the events of a connection, each told once: when it comes about.
const edges = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

func newPoll() (p *poll, err error) {
	p = &poll{wake: -1}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = p.add(p.wake, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return p, nil
}

func (p *poll) add(fd int, events uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// rouse ends a wait under way, or the next one. Any thread may call it.
func (p *poll) rouse() {
	one := [8]byte{1}
	unix.Write(p.wake, one[:]) // never read: each write is an edge
}

// wait waits for events, for ns nanoseconds at most (below 0: for ever). It may return before, without any.
func (p *poll) wait(ns int64) ([]unix.EpollEvent, error) {
	if p.old && ns != 0 {
		// Wait for the epoll instance itself.
		limit := unix.NsecToTimespec(ns)
		at := &limit
		if ns < 0 {
			at = nil
		}
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(p.epoll), Events: unix.POLLIN}}, at, nil); err != nil && err != unix.EINTR {
			return nil, fmt.Errorf("ppoll: %w", err)
		}
		ns = 0
	}
	p.limit.sec, p.limit.nsec = ns/1e9, ns%1e9
	limit := &p.limit
	if ns < 0 {
		limit = nil
	}
	if ns > 0 && ns <= shortWait {
		p.idle = 0 // who waits for so short a time will again
	} else if ns != 0 && p.idle < shortWaits {
		p.limit.sec, p.limit.nsec, limit = 0, shortWait, &p.limit
		p.idle++
	}
	var n uintptr
	var no unix.Errno
	if p.old {
		n, _, no = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	} else {
		n, _, no = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
			uintptr(unsafe.Pointer(limit)), 0, 0)
	}
	if n > 0 && no == 0 {
		p.idle = 0
	}
	switch {
	case no == 0:
		return p.events[:n], nil
	case no == unix.EINTR:
		return nil, nil
	case no == unix.ENOSYS && !p.old, no == unix.EPERM && !p.old: // before Linux 5.11, or in a sandbox that does not know it
		p.old = true
		return nil, nil
	}
	return nil, fmt.Errorf("epoll: %w", no)
}

func (p *poll) close() {
	unix.Close(p.epoll)
	if p.wake >= 0 {
		unix.Close(p.wake)
	}
}
