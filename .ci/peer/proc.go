//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ended is what a program did that has ended.
type ended struct {
	out   []byte
	cpu   time.Duration // its own, and that of those below it that it waited for
	took  time.Duration
	rss   int64 // bytes, at most
	state *os.ProcessState
}

// command is a program that ends with ctx and with this process, by SIGTERM and then SIGKILL.
func command(ctx context.Context, argv ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 3 * time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// run runs a program to its end, which must come in time.
func run(ctx context.Context, limit time.Duration, dir string, argv ...string) (ended, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := command(ctx, argv...)
	c.Dir = dir
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	from := time.Now()
	err := c.Run()
	e := ended{out: out.Bytes(), took: time.Since(from), state: c.ProcessState}
	if c.ProcessState != nil {
		e.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		e.rss = c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("did not end within %v", limit)
	}
	if err != nil {
		return e, fmt.Errorf("%s: %w: %s", argv[0], err, last(said.String()+"\n"+out.String()))
	}
	return e, nil
}

// last is the last line of a text that says something.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// server is a program that serves until stop.
type server struct {
	cmd  *exec.Cmd
	addr string
}

// serve starts a server that prints its address, or that listens on addr.
func serve(ctx context.Context, addr string, argv ...string) (*server, error) {
	s := &server{cmd: command(ctx, argv...), addr: addr}
	s.cmd.Stderr = os.Stderr
	if addr != "" {
		if err := s.cmd.Start(); err != nil {
			return nil, err
		}
		return s, nil
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: no address", argv[0])
	}
	s.addr = strings.TrimSpace(line)
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(3*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait()
	kill.Stop()
}

// cpu is the CPU that the server has used until now, by its own clock.
// Source: clock_getcpuclockid(3).
func (s *server) cpu() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &ts); err != nil {
		return 0, errors.New("the server has ended")
	}
	return time.Duration(ts.Nano()), nil
}
