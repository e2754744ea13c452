package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// interruptible is a reader whose reads end, with ctx's cause, when ctx does:
// a script may come through a pipe on which nothing is written for long.
// release must be called when it is not read any more.
func interruptible(ctx context.Context, from io.Reader) (r io.Reader, release func(), err error) {
	f, ok := from.(*os.File)
	if !ok {
		return from, func() {}, nil
	}
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { end.Close() })
	return &polled{ctx, f, ended}, func() {
		if stop() {
			end.Close()
		}
		ended.Close()
	}, nil
}

// polled waits for its file to be readable, or ended to be closed at its other end.
type polled struct {
	ctx   context.Context
	f     *os.File
	ended *os.File
}

func (p *polled) Read(b []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(p.f.Fd()), Events: unix.POLLIN}, {Fd: int32(p.ended.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("poll: %w", err)
		case fds[1].Revents != 0:
			return 0, context.Cause(p.ctx)
		case fds[0].Revents != 0:
			return p.f.Read(b)
		}
	}
}
