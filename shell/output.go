package shell

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// output is a standard stream that may go away: what is written after that is
// dropped, so that a closed pipe ends no run. It may be used concurrently.
type output struct {
	to  io.Writer
	mu  sync.Mutex
	err error // the first one
}

// Write never fails: see trouble.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		_, o.err = o.to.Write(p)
	}
	return len(p), nil
}

// trouble is why something was not written, unless its reader went away, which is its right.
func (o *output) trouble() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) || errors.Is(o.err, syscall.EIO) || errors.Is(o.err, os.ErrClosed) {
		return nil
	}
	return o.err
}

// brokenPipes makes a write to a closed standard stream an error as any other,
// until the func that it returns is called.
//
// Note: a signal that is caught is back to its default in the programs that we
// start; one that is ignored would be ignored there too.
func brokenPipes() (restore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
