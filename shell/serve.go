package shell

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/commands"
)

// defaultListen is where a shared shell listens, unless it is told otherwise.
const defaultListen = "127.0.0.1:8234"

// server is a shared shell: each connection is a client with a session of its own.
type server struct {
	bench *commands.Bench
	addr  string                        // of TCP; empty: there is none
	token *token                        // nil: none is demanded
	log   func(format string, a ...any) // of what is wrong with a client, a line each

	pause    time.Duration // how long a client that sends lines has nothing to say before it is shown a prompt
	silence  time.Duration // how long one that has seen no prompt before its first line is kept when it says no more
	patience time.Duration // how long a command waits for a remote client that does not read what it prints

	ctx    context.Context // of all lines that are done
	cancel context.CancelCauseFunc
	last   chan struct{} // closed when nothing more will be said

	mu        sync.Mutex
	listeners []net.Listener
	clients   map[*client]struct{}
	most      int // clients at once, since memory was last given back
	ending    bool
	accepting sync.WaitGroup
	talking   sync.WaitGroup // clients whose lines may still be done
	joined    sync.WaitGroup // clients
}

func newServer(bench *commands.Bench, t *token, log func(format string, a ...any)) *server {
	s := &server{bench: bench, token: t, log: log, pause: promptAfter, silence: pipedPatience, patience: readPatience, last: make(chan struct{}), clients: map[*client]struct{}{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// listen listens on a TCP address, as "127.0.0.1:8234". Whoever comes there is
// remote, loopback too.
func (s *server) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen %s: %w", addr, bareAddress(err))
	}
	s.addr = l.Addr().String()
	s.accept(l, true)
	return nil
}

// listenLocal listens beside the store at a path, for its user.
func (s *server) listenLocal(db string) error {
	l, err := listenLocal(socketOf(db))
	if err != nil {
		return err
	}
	s.accept(l, false)
	return nil
}

// accept takes a listener's connections, until Stop.
func (s *server) accept(l net.Listener, remote bool) {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.accepting.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				s.take(conn, remote)
			case errors.Is(err, net.ErrClosed):
				return
			default: // too many open files, mostly: it passes
				s.log("accept: %v", err)
				select {
				case <-time.After(time.Second):
				case <-s.ctx.Done():
					return
				}
			}
		}
	})
}

// take serves a connection.
func (s *server) take(conn net.Conn, remote bool) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		inline(tcp)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		conn.Close()
		return
	}
	c := newClient(s, conn, remote)
	s.clients[c] = struct{}{}
	s.most = max(s.most, len(s.clients))
	s.talking.Add(1)
	s.joined.Go(func() {
		c.run()
		s.left(c)
	})
}

// crowd is how many clients at once are not seen every day.
const crowd = 100

// left takes a client out. When a crowd has left, what it took is given back to
// the system: otherwise that would take minutes.
func (s *server) left(c *client) {
	s.mu.Lock()
	delete(s.clients, c)
	over := s.most >= crowd && len(s.clients) <= s.most/crowd
	if over {
		s.most = len(s.clients)
	}
	s.mu.Unlock()
	if over {
		debug.FreeOSMemory()
	}
}

// inline keeps urgent data in its place: telnet sends the last byte of a
// command as such, which would otherwise be taken out of the stream.
func inline(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1) })
}

// count is how many clients there are.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Stop takes no more clients, tells those that there are why, stops what is
// done for them, and waits for it. What jobs say still reaches them.
func (s *server) Stop(why error) {
	s.mu.Lock()
	s.ending = true
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log("%v", err)
		}
	}
	for c := range s.clients {
		c.bye("the shell has ended: " + by(why))
		c.out.limit(partPatience)
	}
	s.mu.Unlock()
	s.cancel(why)
	s.accepting.Wait()
	s.talking.Wait()
}

// Close ends all connections, once their clients have read what was said.
func (s *server) Close() {
	close(s.last)
	s.joined.Wait()
}

// token is a secret that a client must know: its SHA-256.
type token [sha256.Size]byte

func newToken(secret string) *token {
	t := token(sha256.Sum256([]byte(secret)))
	return &t
}

// tokenLine is the first line of a file, without white space around it.
func tokenLine(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s: its first line is empty", file)
	}
	return line, nil
}

// is compares a secret with what a client has sent, in the same time whatever that is.
func (t *token) is(sent string) bool {
	sum := sha256.Sum256([]byte(strings.TrimSpace(sent)))
	return subtle.ConstantTimeCompare(t[:], sum[:]) == 1
}

// loopback says whether only this machine can reach an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost"
}
