package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"relaybench/commands"
)

// engine does the lines of a script: a session of ours, or one of a process that holds the store.
type engine interface {
	// do does a line, which stands at the place at. more is false where nothing
	// is to follow: it quit, failed, or was stopped.
	do(ctx context.Context, text, at string) (code commands.Code, more bool)
}

// own is a session of this process.
type own struct {
	session   *commands.Session
	tell      teller
	keepGoing bool
}

func (o own) do(ctx context.Context, text, at string) (commands.Code, bool) {
	return o.session.Do(ctx, text, func(f *commands.Failure) bool {
		o.tell.tell(withConnect(f), at)
		return o.keepGoing
	})
}

// script is lines that are run one after another.
type script struct {
	from    *bufio.Reader
	name    string // in errors
	unnamed bool   // it has one line: its name and number would say nothing
}

func newScript(from io.Reader, name string) *script {
	return &script{from: bufio.NewReader(from), name: name}
}

// run runs the lines until they end, one fails, says quit, or ctx ends. It
// gives the gravest code; empty is true where there was nothing but white space.
func (s *script) run(ctx context.Context, e engine, tell teller) (code commands.Code, empty bool) {
	empty = true
	for number := 1; ; number++ {
		at := fmt.Sprintf("%s:%d", s.name, number)
		if s.unnamed {
			at = ""
		}
		text, err := s.line()
		if err != nil && !errors.Is(err, io.EOF) {
			f := &commands.Failure{Err: err, Code: commands.CouldNot}
			if errors.Is(err, commands.ErrInterrupted) {
				f.Code = commands.Interrupted
			}
			tell.tell(f, at)
			return commands.Gravest(code, f.Code), false
		}
		if number == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // as some editors begin a file
		}
		if strings.TrimSpace(text) != "" {
			empty = false
			c, more := e.do(ctx, text, at)
			if code = commands.Gravest(code, c); !more {
				return code, false
			}
		}
		if err != nil {
			return code, empty
		}
	}
}

// line is the next line without its end; io.EOF comes with the last one. One
// that is too long is cut to a little more than the longest that is taken, so
// that it is refused, and costs no memory.
func (s *script) line() (string, error) {
	const most = commands.MaxLine + len("\r\n")
	var b strings.Builder
	for {
		part, err := s.from.ReadSlice('\n')
		b.Write(part[:min(len(part), most-b.Len())])
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		text := strings.TrimSuffix(b.String(), "\n")
		return strings.TrimSuffix(text, "\r"), err
	}
}

// teller tells what could not be done.
type teller struct {
	to   io.Writer
	json bool
}

// tell tells a failure; at is where the line stands, empty where that says nothing.
func (t teller) tell(f *commands.Failure, at string) {
	if t.json || f.JSON {
		t.tellJSON(f, at)
		return
	}
	var b strings.Builder
	b.WriteString("relaybench: ")
	if at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(f.Text() + "\n")
	for _, l := range f.Detail {
		b.WriteString("  " + l + "\n")
	}
	if f.Usage != "" {
		b.WriteString("usage: " + f.Usage + "\n")
	}
	if f.Hint != "" {
		b.WriteString("hint: " + f.Hint + "\n")
	}
	fmt.Fprint(t.to, b.String())
}

func (t teller) tellJSON(f *commands.Failure, at string) {
	b, err := json.Marshal(struct {
		Error   string   `json:"error"`
		At      string   `json:"at,omitempty"`
		Command string   `json:"command,omitempty"`
		Detail  []string `json:"detail,omitempty"`
		Usage   string   `json:"usage,omitempty"`
		Hint    string   `json:"hint,omitempty"`
		Code    int      `json:"code"`
	}{f.Err.Error(), at, f.Command, f.Detail, f.Usage, f.Hint, int(f.Code)})
	if err != nil { // texts and a number: there is nothing in them that JSON has not
		b = []byte(`{"error":"internal error"}`)
	}
	fmt.Fprintf(t.to, "%s\n", b)
}
