package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relaybench/envelope"
)

// peerEnv makes the test binary the client of BenchmarkPaced, told what to send in its value.
const peerEnv = "RELAYBENCH_TEST_PEER"

func TestMain(m *testing.M) {
	if args := os.Getenv(peerEnv); args != "" {
		if err := playPeer(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// BenchmarkPaced is the CPU that a request takes of the whole process, as it
// comes from a relay: from another process, whose CPU is not counted, at a rate
// at which the server sleeps between two requests, and as fast as they come.
func BenchmarkPaced(b *testing.B) {
	for _, rate := range []int{300, 2000, 0} {
		for _, mix := range []string{"sessions", "errors"} {
			for _, encoding := range []string{"identity", "zstd", "gzip"} {
				name := fmt.Sprintf("%d/%s/%s", rate, mix, encoding)
				if rate == 0 {
					name = fmt.Sprintf("flat-out/%s/%s", mix, encoding)
				}
				b.Run(name, func(b *testing.B) {
					s := serve(b, Config{Kinds: envelope.Kinds})
					benchmarkPaced(b, s.Addr(), rate, 4, mix, encoding)
				})
			}
		}
	}
}

func benchmarkPaced(b *testing.B, addr string, rate, conns int, mix, encoding string) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d %s %s", peerEnv, addr, rate, conns, b.N, mix, encoding))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	said := make([]byte, 1)
	io.ReadFull(out, said)
	from := cpuTime(b)
	b.ResetTimer()
	in.Write(said)
	io.ReadFull(out, said)
	b.StopTimer()
	used := cpuTime(b) - from
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// playPeer is the other process. It writes a byte when it is about to send, waits for one, and writes one when it has sent all.
func playPeer(args string) error {
	var addr, mixed, encoding string
	var rate, conns, n int
	if _, err := fmt.Sscan(args, &addr, &rate, &conns, &n, &mixed, &encoding); err != nil {
		return err
	}
	wires, err := peerRequests(min(n+100, 4096), mixed, encoding)
	if err != nil {
		return err
	}
	var all []net.Conn
	for range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		all = append(all, c)
	}
	for i := range 100 {
		if err := ask(all[i%conns], wires[i], make([]byte, 4096)); err != nil {
			return err
		}
	}
	os.Stdout.Write([]byte{1})
	os.Stdin.Read(make([]byte, 1))
	start := time.Now()
	var k atomic.Int64
	var senders sync.WaitGroup
	for _, c := range all {
		senders.Go(func() {
			room := make([]byte, 4096)
			for i := int(k.Add(1)) - 1; i < n; i = int(k.Add(1)) - 1 {
				if rate > 0 {
					time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				}
				if err := ask(c, wires[(i+100)%len(wires)], room); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
		})
	}
	senders.Wait()
	os.Stdout.Write([]byte{1})
	os.Stdin.Read(make([]byte, 1)) // until the server's process has looked at its clock
	return nil
}

func ask(c net.Conn, wire, room []byte) error {
	if _, err := c.Write(wire); err != nil {
		return err
	}
	n, err := c.Read(room)
	if err == nil && !bytes.HasPrefix(room[:n], []byte("HTTP/1.1 200 ")) {
		err = fmt.Errorf("answered %q", room[:n])
	}
	return err
}

// peerRequests are requests as Relay 26.4 sends them.
func peerRequests(n int, mixed, encoding string) ([][]byte, error) {
	mix, err := envelope.ParseMix(envelope.Kinds, mixed)
	if err != nil {
		return nil, err
	}
	pool, err := envelope.NewPool(envelope.PoolConfig{Mix: mix, Seed: 1, Size: 100, Projects: 1, Shape: envelope.DefaultShape(), Epoch: time.Now()})
	if err != nil {
		return nil, err
	}
	wires := make([][]byte, n)
	for i := range wires {
		body, err := envelope.FindEncoding(encoding).Encode(nil, pool.Append(nil, uint64(i), 0))
		if err != nil {
			return nil, err
		}
		if encoding != envelope.Identity {
			wires[i] = fmt.Appendf(nil, "Content-Encoding: %s\r\n", encoding)
		}
		wires[i] = fmt.Appendf(nil, "POST /api/1/envelope/ HTTP/1.1\r\nUser-Agent: %s\r\nHost: 127.0.0.1\r\nContent-Type: application/x-sentry-envelope\r\n"+
			"Content-Length: %d\r\nX-Sentry-Relay-Id: 3b371161-ce33-4591-b100-e22236f3907b\r\n%s"+
			"X-Sentry-Auth: Sentry sentry_key=%s, sentry_version=7, sentry_client=relaybench/1\r\nX-Forwarded-For: 127.0.0.1\r\n"+
			"X-Sentry-Relay-Signature: %0172d\r\n\r\n%s", pool.UserAgent(uint64(i)), len(body), wires[i], envelope.Key(0), 0, body)
	}
	return wires, nil
}
