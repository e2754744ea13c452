package blaster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/harness/result"
)

// large is more than what a socket takes without a wait, in bytes.
const large = 8 << 20

// Bodies that go out in pieces, each while others are made and sent, arrive as they are.
func TestLargeBodiesTogether(t *testing.T) {
	const n = 8
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all, begun sync.WaitGroup
	begun.Add(n)
	var whole atomic.Int64
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				size := 0
				for line := ""; line != "\r\n"; {
					if line, err = in.ReadString('\n'); err != nil {
						begun.Done()
						t.Error(err)
						return
					}
					fmt.Sscanf(line, "Content-Length: %d", &size)
				}
				begun.Done()
				begun.Wait() // all are being sent
				body := make([]byte, size)
				if _, err := io.ReadFull(in, body); err != nil {
					t.Error(err)
					return
				}
				body = bytes.TrimSuffix(body, []byte("\n"))
				payload := body[len(body)-large:]
				if bytes.Count(payload, payload[:1]) != len(payload) {
					t.Errorf("a body of %q has other letters, too", payload[:1])
				}
				whole.Add(1)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			})
		}
	})
	pool := sizedPool(t, n, large)
	got := sendAll(t, newLoad(l.Addr().String(), 1000, n*time.Millisecond, n), func(r *run) { r.pool = pool })
	l.Close()
	all.Wait()
	if got.Counts[result.Accepted] != n || whole.Load() != n {
		t.Errorf("%d accepted, %d whole, want %d: %v", got.Counts[result.Accepted], whole.Load(), n, got.Errors)
	}
}

// A relay that refuses may answer and close before it has read all.
func TestEarlyAnswer(t *testing.T) {
	pool := sizedPool(t, 1, large)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.ReadFull(c, make([]byte, 1000))
			io.WriteString(c, "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n")
			c.Close()
		}
	}()
	defer func() { l.Close(); <-served }()
	got := sendAll(t, newLoad(l.Addr().String(), 100, 50*time.Millisecond, 1), func(r *run) { r.pool = pool })
	if n := got.Counts[result.AnswerOf(413)]; n != 5 {
		t.Errorf("%d sent, %d of them 413, want 5: %v", got.Sent, n, got.Errors)
	}
	if got.Pushed >= got.Sent*large {
		t.Errorf("%d bytes pushed in %d sends: the answer was not early", got.Pushed, got.Sent)
	}
}
