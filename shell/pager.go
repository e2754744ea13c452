package shell

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// page shows text in a pager; where there is none, as it is.
func (t *terminal) page(ctx context.Context, p []byte) error {
	pager, ok := os.LookupEnv("PAGER")
	if !ok {
		pager = "less"
	}
	if pager == "" {
		t.screen.print(p)
		return nil
	}
	t.screen.leave()
	if err := t.suspend(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p), t.screen.out, t.screen.out
	if os.Getenv("LESS") == "" {
		cmd.Env = append(os.Environ(), "LESS=FRX")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it gives the terminal back
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	resumed := t.resume()
	t.screen.back()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 127 { // the shell found no such program
		t.screen.print(p)
	}
	return resumed
}
