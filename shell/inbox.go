package shell

import (
	"context"
	"errors"
	"io"
	"sync"
)

// maxTypedAhead is how much a client may have typed and not be done with, in
// bytes. Beyond it, it is not read from.
const maxTypedAhead = 256 << 10

// lineCost is about what a line costs beside its text, in bytes: many empty ones are not free.
const lineCost = 32

// inbox is what a client has typed that was not done yet, in order. One
// inbox serves for commands and for the answers to their questions, so that
// nothing is lost that was typed ahead. One goroutine puts, one takes.
type inbox struct {
	mu     sync.Mutex
	frames []frame
	size   int
	ended  bool // nothing more will come
	closed bool // nothing is taken any more
	more   chan struct{}
	room   chan struct{}
}

func newInbox() *inbox {
	return &inbox{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds a line, once there is room; what comes after close is dropped.
func (b *inbox) put(f frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size > maxTypedAhead && !b.closed {
		b.mu.Unlock()
		<-b.room
		b.mu.Lock()
	}
	if b.closed {
		return
	}
	b.frames = append(b.frames, f)
	b.size += len(f.data) + lineCost
	nudge(b.more)
}

// clear drops what was typed: a Ctrl-C takes it back.
func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames, b.size = nil, 0
	nudge(b.room)
}

// end says that nothing more will come.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	nudge(b.more)
}

// close says that nothing more is taken.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.frames, b.size = nil, 0
	nudge(b.room)
}

// errEmpty says that there is no line yet: more tells when there may be.
var errEmpty = errors.New("nothing was typed yet")

// take takes the next line; its error is errEmpty, or io.EOF after the last one.
func (b *inbox) take() (frame, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.frames) > 0:
		f := b.frames[0]
		b.frames = b.frames[1:]
		b.size -= len(f.data) + lineCost
		nudge(b.room)
		return f, nil
	case b.ended:
		return frame{}, io.EOF
	}
	return frame{}, errEmpty
}

// next waits for the next line; its error is io.EOF after the last one, or ctx's cause.
func (b *inbox) next(ctx context.Context) (frame, error) {
	for {
		f, err := b.take()
		if err != errEmpty {
			return f, err
		}
		select {
		case <-b.more:
		case <-ctx.Done():
			return frame{}, context.Cause(ctx)
		}
	}
}

// nudge lets a channel of capacity 1 be read from.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
