package builds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// child is a program that is run in a session and process group of its own,
// with /dev/null as its input: it has no terminal either that it could ask at.
type child struct {
	path string
	args []string
	dir  string
	env  []string  // whole
	out  io.Writer // both of its outputs
	errs io.Writer // its standard error, where that is apart
}

const (
	grace = 2 * time.Second // from SIGTERM to SIGKILL: git takes its locks away
	gone  = 2 * time.Second // for what was killed to be gone
)

// run runs it to its end. When ctx ends, all of its group is ended and waited
// for, and the error is ctx's cause.
func (c child) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, c.out, c.out
	if c.errs != nil {
		cmd.Stderr = c.errs
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	// A child of the child may hold the pipes open after it has ended.
	cmd.WaitDelay = grace
	err := cmd.Run()
	if cmd.Process != nil {
		endGroup(cmd.Process.Pid)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return err
}

// endGroup kills what is left of a process group, and waits until it is gone.
func endGroup(group int) {
	for begun := time.Now(); time.Since(begun) < gone; time.Sleep(2 * time.Millisecond) {
		if syscall.Kill(-group, syscall.SIGKILL) != nil || !alive(group) {
			return
		}
	}
}

// environ is our environment for git and for a build. GIT_DIR and others would
// point git to another repository, and whatever asks for a password fails at once.
func environ() []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		switch {
		case strings.HasPrefix(name, "GIT_SSH"), strings.HasPrefix(name, "GIT_SSL_"), strings.HasPrefix(name, "GIT_HTTP_"), strings.HasPrefix(name, "GIT_PROXY_"):
		case strings.HasPrefix(name, "GIT_"), strings.HasPrefix(name, "SSH_ASKPASS"), strings.HasPrefix(name, "RELAYBENCH_"):
			continue
		}
		env = append(env, pair)
	}
	// Note: an empty GIT_ASKPASS counts more than core.askPass, and is no program.
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never")
}

// answerLimit is what is kept of an answer, in bytes.
const answerLimit = 8 << 20

// bounded keeps the beginning of what is written to it.
type bounded struct{ buf bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := answerLimit - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// said is an error with what the program said of it, in one line.
func said(err error, text string) error {
	var lines []string
	for l := range strings.Lines(text) {
		l = strings.TrimPrefix(strings.TrimSpace(l), "fatal: ")
		if l != "" && len(lines) < 4 && !strings.HasPrefix(l, "hint: ") {
			lines = append(lines, strings.ToValidUTF8(l[:min(len(l), 300)], "?"))
		}
	}
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%s (%w)", strings.Join(lines, "; "), err)
}
