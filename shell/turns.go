package shell

import (
	"context"
	"fmt"
	"sync"

	"relaybench/commands"
)

// turns does the lines of a client one at a time, and lets its Ctrl-C reach the
// one that is being done.
type turns struct {
	session *commands.Session
	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the line that is being done; nil: there is none
	again   bool                    // it was cancelled already
	left    bool                    // nobody waits for anything any more
}

// do does a line. begun is called when Ctrl-C can reach it.
func (t *turns) do(ctx context.Context, text string, begun func(), failed func(*commands.Failure) (goOn bool)) (code commands.Code, more bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	t.cancel, t.again = cancel, false
	if t.left {
		cancel(commands.ErrLeft)
	}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.cancel = nil
		t.mu.Unlock()
		cancel(nil)
	}()
	begun()
	return t.session.Do(ctx, text, failed)
}

// interrupt is a Ctrl-C, or a signal of that name: it cancels what is being
// done, and kills what takes its time to end when it comes again. It says false
// where nothing is being done.
func (t *turns) interrupt(by string) bool {
	t.mu.Lock()
	cancel, again := t.cancel, t.again
	t.again = true
	t.mu.Unlock()
	switch {
	case cancel == nil:
		return false
	case again:
		t.session.Kill()
	default:
		cancel(fmt.Errorf("%w by %s", commands.ErrInterrupted, by))
	}
	return true
}

// abandon lets go of what is being done: the client has left.
func (t *turns) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	if t.cancel != nil {
		t.cancel(commands.ErrLeft)
	}
}
