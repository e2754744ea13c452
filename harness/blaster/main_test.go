package blaster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary play a sender process, and a server that does
// nothing but answer, in a process of its own so that its cost is not counted.
func TestMain(m *testing.M) {
	switch os.Getenv("RELAYBENCH_ROLE") {
	case "sender":
		if err := SenderMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "null server":
		if err := nullServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The race detector would hold each process up for a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	goleak.VerifyTestMain(m)
}

func nullServer() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answerAll(c, func() {})
	}
}

// answerAll reads requests and answers each after hold, at the least cost.
func answerAll(c net.Conn, hold func()) {
	defer c.Close()
	buf := make([]byte, 256<<10)
	answer := []byte(accepted)
	for n := 0; ; {
		m, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += m
		head := bytes.Index(buf[:n], []byte("\r\n\r\n"))
		if head < 0 {
			continue
		}
		_, length, _ := bytes.Cut(buf[:head], []byte("Content-Length: "))
		length, _, _ = bytes.Cut(length, []byte("\r\n"))
		size, err := strconv.Atoi(string(length))
		if err != nil {
			return
		}
		if n == head+4+size {
			hold()
			c.Write(answer)
			n = 0
		}
	}
}

// startNullServer starts one that ends with the test.
func startNullServer(t testing.TB) (addr string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RELAYBENCH_ROLE=null server")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
