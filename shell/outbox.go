package shell

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxUnread is how much output waits for a client that does not read, in bytes.
	maxUnread = 1 << 20
	// maxReplies is how much waits at most, with answers that cannot be dropped. A client that has that
	// much coming asks without reading, and is left.
	maxReplies = 2 * maxUnread
	// piece is how much is written at once, in bytes.
	piece = 32 << 10
)

// outbox is output on its way to a client. What the client does not read waits
// in it up to a bound; beyond that it is dropped, and the client is told so when
// it reads again. It may be used concurrently.
type outbox struct {
	conn    net.Conn
	lost    func(bytes int) []byte // what a client is told
	stalled func()                 // called when dropping begins

	mu      sync.Mutex
	most    time.Duration // that anything waits for a client that takes nothing; 0: for ever
	queue   []byte
	writing int           // bytes that were taken from the queue and are not written yet
	moved   time.Time     // when the client last took something
	dropped int           // bytes; not 0: all output is dropped until the queue has gone out
	changed chan struct{} // closed, and made anew, when something of this has changed
	closed  bool
	joined  sync.WaitGroup
}

// startOutbox starts writing to a connection. Close it when nothing is to be
// written any more.
func startOutbox(conn net.Conn, lost func(int) []byte, stalled func()) *outbox {
	o := &outbox{conn: conn, lost: lost, stalled: stalled, moved: time.Now(), changed: make(chan struct{})}
	o.joined.Go(o.run)
	return o
}

// change tells all who wait. The lock is held.
func (o *outbox) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// run writes what is in the queue until it is closed.
func (o *outbox) run() {
	var spare []byte
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && o.dropped == 0 && !o.closed {
			changed := o.changed
			o.mu.Unlock()
			<-changed
			o.mu.Lock()
		}
		if o.closed {
			o.mu.Unlock()
			return
		}
		if len(o.queue) == 0 {
			o.queue = append(o.queue, o.lost(o.dropped)...)
			o.dropped = 0
		}
		now := o.queue
		o.queue, o.writing = spare[:0], len(now)
		o.mu.Unlock()

		for left := now; len(left) > 0; {
			n, err := o.conn.Write(left[:min(len(left), piece)])
			left = left[n:]
			o.mu.Lock()
			o.writing, o.moved = len(left), time.Now()
			if err != nil {
				o.writing, o.closed = 0, true
			}
			o.change()
			closed := o.closed
			o.mu.Unlock()
			if closed {
				return
			}
		}
		if spare = now; cap(spare) > 2*piece { // a burst does not stay with an idle client
			spare = nil
		}
	}
}

// reply puts in what must not be dropped, and does not wait.
func (o *outbox) reply(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.queue)+o.writing+len(b) > maxReplies {
		o.closed = true
		_ = o.conn.Close()
	} else {
		o.queue = append(o.queue, b...)
	}
	o.change()
}

// offer puts in what is dropped where there is no room, and does not wait.
func (o *outbox) offer(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room() {
		o.take(b)
	} else {
		o.drop(len(b))
	}
}

// write puts in what waits for room, and is dropped where the client takes
// nothing for so long; 0: for ever.
func (o *outbox) write(b []byte, patience time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.room() && o.dropped == 0 && !o.closed {
		if !o.wait(patience) {
			break
		}
	}
	if o.room() {
		o.take(b)
	} else {
		o.drop(len(b))
	}
}

// wait waits for a change, and says false where the client has taken nothing for so long. The lock is held.
func (o *outbox) wait(patience time.Duration) bool {
	changed := o.changed
	if o.most > 0 && (patience == 0 || patience > o.most) {
		patience = o.most
	}
	var over <-chan time.Time
	if patience > 0 {
		left := patience - time.Since(o.moved)
		if left <= 0 {
			return false
		}
		t := time.NewTimer(left)
		defer t.Stop()
		over = t.C
	}
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-changed:
	case <-over:
	}
	return true
}

func (o *outbox) room() bool { return o.dropped == 0 && len(o.queue)+o.writing < maxUnread }

func (o *outbox) take(b []byte) {
	if o.closed || len(b) == 0 {
		return
	}
	if len(o.queue)+o.writing == 0 {
		o.moved = time.Now() // its time begins with what there is to take
	}
	o.queue = append(o.queue, b...)
	o.change()
}

func (o *outbox) drop(n int) {
	if o.closed {
		return
	}
	if o.dropped == 0 {
		o.stalled()
	}
	o.dropped += n
	o.change()
}

// limit says how long anything waits from now on for a client that takes nothing.
func (o *outbox) limit(most time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most, o.moved = most, time.Now()
	o.change()
}

// flush waits until all has been written, or the client has taken nothing for so long.
func (o *outbox) flush(patience time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved = time.Now()
	for (len(o.queue) > 0 || o.writing > 0 || o.dropped > 0) && !o.closed {
		if !o.wait(patience) {
			return
		}
	}
}

// alive says whether the client can still be written to.
func (o *outbox) alive() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed
}

// Close closes the connection, drops what was not written, and waits for the end of it.
func (o *outbox) Close() {
	o.mu.Lock()
	o.closed = true
	o.change()
	o.mu.Unlock()
	_ = o.conn.Close()
	o.joined.Wait()
}

// writer is a way into an outbox that never fails: a client that does not read is its own affair.
type writer func(p []byte)

var _ io.Writer = writer(nil)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
