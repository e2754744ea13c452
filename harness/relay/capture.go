package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"relaybench/harness/host"
	"relaybench/harness/variable"
)

// question is a program that is asked something and expected to end soon.
type question struct {
	path  string
	args  []string
	env   []string // whole
	dir   string
	limit time.Duration
	cpus  variable.CPUs // as of [Setup]
}

// answerLimit bounds what a question's answer may be: config show prints 5 KB,
// git ls-files of a large checkout a few MB.
const answerLimit = 16 << 20

var errTooLong = errors.New("it printed too much")

// ask runs a question with /dev/null as its input and returns what it printed.
// It and all of its process group are killed when ctx or the limit ends.
func (q question) ask(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	cmd := exec.CommandContext(limited, q.path, q.args...)
	cmd.Env, cmd.Dir = q.env, q.dir
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A child of the child may hold the pipes open after it has ended.
	cmd.WaitDelay = time.Second
	err := host.On(q.cpus, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in its group
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("no answer within %v", q.limit)
	case stdout.over || stderr.over:
		return "", errTooLong
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	if err == nil {
		return stdout.String(), nil
	}
	var gone *os.PathError
	if errors.As(err, &gone) {
		return "", gone.Err
	}
	if said := firstLines(stderr.String(), 3); said != "" {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return "", err
}

// firstLines is the first n lines of a text that are not empty, on one line.
func firstLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < n {
			lines = append(lines, cut(line, 300))
		}
	}
	return strings.Join(lines, "; ")
}

// cut is at most n bytes of s, ending at a rune, with a sign where something was left out.
func cut(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "?")
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return strings.ToValidUTF8(s[:n], "?") + "…"
}

// bounded is a buffer that takes at most answerLimit bytes.
//
// Note: bytes.Buffer is not embedded: its ReadFrom would go round Write.
type bounded struct {
	buf  bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > answerLimit {
		b.over = true
		return 0, errTooLong
	}
	return b.buf.Write(p)
}

func (b *bounded) String() string { return b.buf.String() }

// scrubbed is a relay's environment: ours, without what would change a relay
// behind the config's back. Relay reads RELAY_*, SHUTDOWN_TIMEOUT, HOSTNAME
// and RUST_* (relay/src/cli.rs), its HTTP client the proxies, its allocator
// MIMALLOC_*.
func scrubbed(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		switch {
		case strings.HasPrefix(upper, "RELAY_"), strings.HasPrefix(upper, "SENTRY_"),
			strings.HasPrefix(upper, "RUST_"), strings.HasPrefix(upper, "TOKIO_"),
			strings.HasPrefix(upper, "MIMALLOC_"), strings.HasSuffix(upper, "_PROXY"),
			upper == "SHUTDOWN_TIMEOUT", upper == "HOSTNAME", name == RoleVar:
		default:
			kept = append(kept, pair)
		}
	}
	return kept
}
