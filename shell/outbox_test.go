package shell

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// stuck is an outbox whose client reads nothing, and that client.
func stuck(t *testing.T) (o *outbox, client net.Conn, stalls chan struct{}) {
	ours, client := net.Pipe()
	stalls = make(chan struct{}, 10)
	o = startOutbox(ours, func(n int) []byte { return fmt.Appendf(nil, "[%d]", n) }, func() { stalls <- struct{}{} })
	t.Cleanup(func() {
		client.Close()
		o.Close()
	})
	return o, client, stalls
}

func TestOutbox(t *testing.T) {
	o, client, stalls := stuck(t)
	full := bytes.Repeat([]byte("x"), maxUnread)
	o.offer(full)
	o.offer([]byte("12345")) // there is no room: it does not wait
	<-stalls
	o.write([]byte("678"), time.Hour) // nor does this, any more
	o.reply([]byte("!"))
	read := make(chan string)
	go func() {
		b := make([]byte, maxUnread+len("![8]yz"))
		_, _ = io.ReadFull(client, b)
		read <- string(b[maxUnread:])
	}()
	o.flush(time.Minute)
	o.write([]byte("y"), time.Hour) // it reads again
	o.offer([]byte("z"))
	if got, want := <-read, "![8]yz"; got != want {
		t.Errorf("after what filled it came %q, want %q", got, want)
	}
	if len(stalls) > 0 {
		t.Error("it stalled twice")
	}
	if !o.alive() {
		t.Error("it is closed")
	}
}

// What waits for room waits for its client to read, or for its patience to end.
func TestOutboxPatience(t *testing.T) {
	o, client, stalls := stuck(t)
	from := time.Now()
	o.offer(bytes.Repeat([]byte("x"), maxUnread))
	o.write([]byte("y"), 50*time.Millisecond)
	if took := time.Since(from); took < 50*time.Millisecond {
		t.Errorf("it waited %v", took)
	}
	<-stalls
	client.Close()
	o.flush(0)
	if o.alive() {
		t.Error("it does not know that its client is gone")
	}
	o.write([]byte("z"), 0)

	o, client, _ = stuck(t)
	o.offer(bytes.Repeat([]byte("x"), maxUnread))
	written := make(chan struct{})
	go func() {
		o.write([]byte("y"), 0)
		close(written)
	}()
	b := make([]byte, maxUnread+1)
	if _, err := io.ReadFull(client, b); err != nil || b[maxUnread] != 'y' {
		t.Errorf("%c, %v", b[maxUnread], err)
	}
	<-written

	o, _, _ = stuck(t)
	o.offer(bytes.Repeat([]byte("x"), maxUnread))
	done := make(chan struct{})
	go func() {
		o.write([]byte("y"), 0) // for ever
		close(done)
	}()
	o.limit(10 * time.Millisecond)
	<-done
}

// Who asks without reading the answers is left.
func TestOutboxReplies(t *testing.T) {
	o, client, _ := stuck(t)
	for range maxReplies/1000 + 1 {
		o.reply([]byte(strings.Repeat("r", 1000)))
	}
	if o.alive() {
		t.Error("it takes more replies than it should")
	}
	if _, err := io.Copy(io.Discard, client); err != nil {
		t.Error(err)
	}
}
