package shell

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"relaybench/commands"
)

// signals are those that end what runs. One that was ignored when we started (nohup, a job in the background) stays so.
var signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// catch gives a context that the first of some signals ends, with a cause that is
// [commands.ErrInterrupted], and a channel that the second one closes. From
// then on signals do what they do to any program. release undoes it.
func catch(parent context.Context, signals ...os.Signal) (ctx context.Context, kill <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 2)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	killed, released := make(chan struct{}), make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() {
		select {
		case s := <-came:
			cancel(fmt.Errorf("%w by %s", commands.ErrInterrupted, signalName(s)))
		case <-released:
			return
		}
		select {
		case <-came:
			close(killed)
			signal.Stop(came)
		case <-released:
		}
	})
	return ctx, killed, func() {
		signal.Stop(came)
		close(released)
		joined.Wait()
		cancel(nil)
	}
}

// signalName is a signal as people call it.
func signalName(s os.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}
