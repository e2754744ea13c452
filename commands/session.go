package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
)

// Format is a form of output.
type Format int

// The formats.
const (
	Text Format = iota
	JSON
	CSV
)

// Client is whom a session serves, and how output is to look there.
type Client struct {
	Name   string    // who this is in status and errors, such as "terminal" or "127.0.0.1:53422", until it says name TEXT
	Out    io.Writer // what commands print
	Notes  io.Writer // how a run goes; nil: nobody wants to know
	Live   int       // width of the terminal that Notes is, for one line that is written over; 0: it is none
	Format Format
	Color  bool
	Width  int // of the screen; 0: as wide as it gets
	// Remote says that the client names no path of this host, unless [Config.AllowPaths].
	Remote bool
	// Background says that a queued command gives the prompt back at once, with
	// the job's id; without it each is waited for, as in a script.
	Background bool
	// Jobs takes what jobs in the background say that are the client's own; each Write is of whole
	// lines. It comes from another goroutine than Do's, while Do runs or not, so it
	// must take turns with Out by itself, and must never block. nil: Out, in turns.
	Jobs io.Writer
	// Progress draws a line over the last one that it drew, while a job is
	// waited for or followed; "" clears it. It is called by Do alone. nil: nothing can be drawn over.
	Progress func(line string)
	// Ask asks the person there a question and gives the line that they typed;
	// io.EOF where they said nothing. nil: nobody can be asked.
	Ask func(ctx context.Context, question string) (answer string, err error)
	// Kill, when closed, does what [Session.Kill] does, once for all. May be nil.
	Kill <-chan struct{}
}

// Session is one client's: what it said stays here. It is not safe for concurrent use.
type Session struct {
	bench    *Bench
	client   Client
	format   Format
	commands []command
	relay    *reference // nil: nothing was said yet
	done     bool       // quit
}

// Complete gives the words that may stand at pos in a line that is being
// typed, counted in bytes as start is: any of them may replace what stands from
// start to pos. They are whole words, in quotes where they need them, sorted;
// there may be none.
func (s *Session) Complete(line string, pos int) (start int, candidates []string) { return pos, nil }

// Close says that the client has left. None of its jobs is cancelled; what
// they say to it is dropped from now on. It may be called while Do runs.
func (s *Session) Close() {}

// Jobs are the client's own jobs that have not ended, in the queue's order.
func (s *Session) Jobs() []Job { return nil }

// Kill ends at once the relay of the job that Do waits for or follows, where
// that was cancelled already: what a second Ctrl-C does. It may be called from
// any goroutine.
func (s *Session) Kill() {}

// Quit says whether the client said quit: Do also ends a line for other reasons.
func (s *Session) Quit() bool { return s.done }

// Resize says that the client's screen has another width now; 0: as wide as it
// gets. It is not called while Do runs. What the client itself set counts more.
func (s *Session) Resize(width int) { s.client.Width = width }

// Color says whether output to the client is coloured.
func (s *Session) Color() bool { return s.client.Color }

// Format is the form of output that the client wants.
func (s *Session) Format() Format { return s.client.Format }

// Prompt is what stands before the line that the client types.
func (s *Session) Prompt() string { return "relaybench> " }

// NewSession is a session of a client.
func (b *Bench) NewSession(c Client) *Session {
	return &Session{bench: b, client: c, format: c.Format, commands: commandTable()}
}

// reference is a relay as it was named: it is found when it is used.
type reference struct {
	What     string `json:"what"`
	Upstream string `json:"upstream,omitempty"`
}

// form is that of the relay, as [relay.Find] would have it.
func (r reference) form() string {
	switch {
	case r.What == relay.FormStandIn || r.What == relay.FormNone:
		return r.What
	case strings.Contains(r.What, "://"):
		return relay.FormURL
	}
	return relay.FormPath
}

// relaySetting is the name under which the store keeps the relay last used.
const relaySetting = "relay"

// lastRelay is the relay that the store knows; ok is false where none was used yet.
func (b *Bench) lastRelay() (r reference, ok bool, err error) {
	db, err := b.open()
	if err != nil {
		return r, false, err
	}
	text, ok, err := db.Setting(relaySetting)
	if err != nil || !ok {
		return r, false, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, false, fmt.Errorf("relay last used: %w", err)
	}
	return r, true, nil
}

// inUse is the relay that the session uses: what it said itself, else the last
// one that the store knows, else the stand-in.
func (s *Session) inUse() (reference, error) {
	if s.relay != nil {
		return *s.relay, nil
	}
	r, ok, err := s.bench.lastRelay()
	if err != nil {
		return r, err
	}
	if !ok {
		r.What = relay.FormStandIn
	}
	return r, nil
}

// path is a typed path made absolute, with ~ for the home folder: what it
// names does not change with the folder that a later session is started in.
func (s *Session) path(typed string) (string, error) {
	if rest, ok := strings.CutPrefix(typed, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, rest), nil
	}
	return filepath.Abs(typed)
}

// maxFile is the size of the largest file that a command reads, in bytes.
const maxFile = 1 << 20

// readFile reads a file that was named in a line. No command opens a file but by this.
func (s *Session) readFile(typed string) (string, error) {
	path, err := s.path(typed)
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return string(b), nil
}

// printf prints text.
func (s *Session) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(s.client.Out, format, args...)
	return err
}

// say prints words: beside what is printed for a program, not among it.
func (s *Session) say(format string, args ...any) error {
	if s.format == Text {
		return s.printf(format, args...)
	}
	s.note(format, args...)
	return nil
}

// note tells how something goes that takes long, or what is to be known beside what is printed.
func (s *Session) note(format string, args ...any) {
	if s.client.Notes != nil {
		fmt.Fprintf(s.client.Notes, format, args...)
	}
}

// print prints a table in the format that is asked for.
func (s *Session) print(t *table.Table) error {
	switch s.format {
	case JSON:
		return t.JSON(s.client.Out)
	case CSV:
		return t.CSV(s.client.Out)
	}
	return t.Text(s.client.Out, s.client.Width)
}

// printJSON prints a value as JSON.
func (s *Session) printJSON(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return s.printf("%s\n", b)
}

// quitCommand is the command that leaves, by one of its names.
func quitCommand(name string) command {
	return command{
		name:    name,
		summary: "leave",
		detail:  "In a script, the lines after it are not run.",
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) {
				s.done = true
				return Fine, nil
			}
		},
	}
}
