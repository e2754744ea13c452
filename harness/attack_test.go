package harness

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/envelope"
	"relaybench/store"
)

// TestUpstreamAttacked has others do their worst to the upstream's socket
// during a run: that stops nothing, is not counted, and memory stays within a bound.
func TestUpstreamAttacked(t *testing.T) {
	zeros := make([]byte, 20<<20) // more than may come of so small a body
	var bombs []string
	for _, e := range envelope.Encodings {
		if e.Name == "identity" {
			continue
		}
		body, err := e.Encode(nil, zeros)
		if err != nil {
			t.Fatal(err)
		}
		bombs = append(bombs, fmt.Sprintf("POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", e.Name, len(body), body))
	}
	zeros = nil
	silent := 1000
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < 3000 {
		silent = int(files.Cur / 3)
	}
	const head = "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\n"
	var attackers sync.WaitGroup
	over := make(chan struct{})
	// holds keeps a connection open on which text has been written, and more is, bit by bit.
	holds := func(addr, text, more string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		attackers.Go(func() {
			defer c.Close()
			c.Write([]byte(text))
			if more == "" {
				<-over
				return
			}
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-over:
					return
				case <-tick.C:
					c.Write([]byte(more))
				}
			}
		})
	}
	o := Options{limits: quick(), at: func(step string, x *run) {
		switch step {
		case "send":
			addr := x.up.Addr()
			for range silent {
				holds(addr, "", "")
			}
			for range 5 {
				holds(addr, "POST /api/1/env", "")
				holds(addr, head+"Content-Length: 1000\r\n\r\n{", "")
				holds(addr, head+"Content-Length: 30000000\r\n\r\n{", "x") // slow
				holds(addr, head+"Content-Length: 1073741824\r\n\r\n", strings.Repeat("x", 1<<16))
				holds(addr, head+"Transfer-Encoding: chunked\r\n\r\n40000000\r\n", strings.Repeat("x", 1<<16))
			}
			for _, bomb := range bombs {
				attackers.Go(func() { attack(t, addr, bomb) })
			}
		case StepDrain:
			close(over)
		}
	}}
	_, before, _, _ := processMemory(os.Getpid())
	// The relay waits long enough for a machine that is slow at all this.
	r, l := ran(t, standIn(t), o, "mix=mixed", "rate=100", "duration=2s", "drain=20s", "http.timeout=60")
	attackers.Wait()
	closed(t, r, l, 200)
	if u := r.Upstream; u.Envelopes != l.Total.Sends.Arrived || u.Unstamped != 0 || u.Malformed == 0 {
		t.Errorf("%d envelopes counted, %d without a stamp, %d malformed; want %d, 0, some", u.Envelopes, u.Unstamped, u.Malformed, l.Total.Sends.Arrived)
	}
	// The bound of the upstream, and the gigabyte up to which the collector keeps out of a load.
	if grown := r.Harness.RSSPeak - before; grown > 2<<30 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	} else {
		t.Logf("memory grew by %d MiB", grown>>20)
	}
	if ms := store.MarksOf(&store.Report{Result: r}); !marks(ms, "not-understood") {
		t.Errorf("marks %v, want not-understood", ms)
	}
}

func marks(ms []store.Marked, name string) bool {
	for _, m := range ms {
		if m.Name == name {
			return true
		}
	}
	return false
}
