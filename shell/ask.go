package shell

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// asker asks the person at the terminal, who sees errs. It is nil where there is
// none to ask: what comes through a pipe are lines of a script, not answers.
func asker(stdin io.Reader, errs *output) func(ctx context.Context, question string) (string, error) {
	if !isTerminal(stdin) || !isTerminal(errs.to) {
		return nil
	}
	return func(ctx context.Context, question string) (string, error) {
		from, release, err := interruptible(ctx, stdin)
		if err != nil {
			return "", err
		}
		defer release()
		fmt.Fprint(errs, question)
		answer, err := terminalLine(from)
		if err != nil {
			fmt.Fprintln(errs) // nobody has typed one
		}
		return answer, err
	}
}

// terminalLine reads one line, and nothing of what was typed ahead for later: a
// terminal gives a line a read at most.
func terminalLine(from io.Reader) (string, error) {
	var b strings.Builder
	part := make([]byte, 4096)
	for {
		n, err := from.Read(part)
		b.Write(part[:n])
		if line, whole := strings.CutSuffix(b.String(), "\n"); whole {
			return line, nil
		}
		if err != nil {
			return "", err
		}
		if b.Len() > len(part) {
			return "", io.ErrShortBuffer
		}
	}
}
