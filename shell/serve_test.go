package shell

import (
	"errors"
	"os"
	"testing"
)

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8234": true, "127.1.2.3:1": true, "[::1]:8234": true, "localhost:8234": true,
		":8234": false, "0.0.0.0:8234": false, "[::]:8234": false, "192.168.0.1:8234": false, "bench1:8234": false, "8234": false,
	} {
		if got := loopback(addr); got != want {
			t.Errorf("loopback(%q) = %v", addr, got)
		}
	}
}

// Whoever is connected when the server ends is told.
func TestServerThatEnds(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, nil)
	g := s.guest()
	g.send("status\n")
	g.until("no job is queued\n")
	f := s.frames(hello{})
	s.end()
	if got := g.all(); got != "relaybench: the shell has ended: a test\n" {
		t.Errorf("a TCP client is told %q", got)
	}
	<-f.ended
	if f.err == nil || f.err.Error() != "the shell has ended: a test" {
		t.Errorf("a terminal is told %v", f.err)
	}
	if _, err := os.Stat(socketOf(s.db)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
