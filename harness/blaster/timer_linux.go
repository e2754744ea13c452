package blaster

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/envelope"
)

// fdTimer is a timerfd in the runtime's poller: a waiting sender holds no
// thread and burns nothing, and is woken 20 to 100 µs late, where the
// runtime's own timers, which sleep in whole milliseconds, take half a
// millisecond and more.
type fdTimer struct {
	file *os.File
	raw  syscall.RawConn
	poll func(fd uintptr) bool // t.expired, made once: it would be allocated for each wait

	until int64
	now   int64
	err   error

	interrupted atomic.Bool
}

func newTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	t := &fdTimer{file: os.NewFile(uintptr(fd), "timerfd")}
	if t.raw, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("timer: %w", err)
	}
	t.poll = t.expired
	return t, nil
}

func (t *fdTimer) wait(until int64) (int64, bool) {
	if t.interrupted.Load() {
		return envelope.Now(), false
	}
	t.until, t.err = until, nil
	if t.raw.Read(t.poll) != nil || t.err != nil {
		return envelope.Now(), false
	}
	return t.now, true
}

// expired sets the timer for the time that is left, or says that none is.
//
// Note: it is called by RawConn.Read, once at first and then whenever the timer
// has fired; what fires after a call began is never missed. So one system call
// a wait is enough: setting a timer also resets its count, which is therefore
// never read. The time left is relative because the zero of [envelope.Now] may
// be some microseconds off the kernel's.
func (t *fdTimer) expired(fd uintptr) bool {
	t.now = envelope.Now()
	if t.now >= t.until {
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(t.until - t.now)}
	t.err = unix.TimerfdSettime(int(fd), 0, &spec, nil)
	return t.err != nil
}

func (t *fdTimer) interrupt() {
	t.interrupted.Store(true)
	t.file.SetReadDeadline(time.Unix(1, 0))
}

func (t *fdTimer) close() { t.file.Close() }
