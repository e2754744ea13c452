package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	"relaybench/commands/table"
)

// Format is a form of output.
type Format int

// The formats.
const (
	Text Format = iota
	JSON
	CSV
	Markdown // for a person, on a page
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
	// Dir is the folder that its paths are relative to; empty: this process's.
	Dir string
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

// Session is one client's: what it said stays here. Its methods are called by
// one goroutine at a time, where they do not say otherwise.
type Session struct {
	bench     *Bench
	client    Client
	name      string // who it is
	format    Format // of the command that is being done
	fixed     bool   // its width was set
	commands  []command
	relay     *reference // nil: nothing was said yet
	config    string     // of runs; empty: nothing was said yet
	typed     string     // the command that is being done
	lines     []string   // that were typed, the newest last
	undefined error      // why it is not known what is defined
	done      bool       // quit
	ear       *ear       // where it hears of its jobs
	job       *job       // the session is that of a job; nil: of a client
	last      *job       // the newest one that it queued
	watched   atomic.Pointer[watched]
}

// NewSession is a session of a client.
func (b *Bench) NewSession(c Client) *Session {
	if c.Jobs == nil && c.Background {
		out := &turns{to: c.Out}
		c.Out, c.Jobs = out, out
	}
	s := &Session{bench: b, client: c, name: c.Name, format: c.Format, commands: commandTable(), ear: &ear{left: new(atomic.Bool), to: c.Jobs}}
	if b.Opened() {
		_, _ = s.inUse() // it begins with the relay that is in use now; an error comes again when it is needed
	}
	return s
}

// Close says that the client has left. None of its jobs is cancelled; what
// they say to it is dropped from now on. It may be called by any goroutine, and while Do runs.
func (s *Session) Close() { s.ear.left.Store(true) }

// Jobs are the client's own jobs that have not ended, in the queue's order.
func (s *Session) Jobs() []Job {
	q := s.bench.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	var own []Job
	if j := q.running; j != nil && j.owner == s {
		own = append(own, j.view())
	}
	for _, j := range q.waiting {
		if j.owner == s {
			own = append(own, j.view())
		}
	}
	return own
}

// Kill ends at once the relay of the job that Do waits for or follows, where
// that was cancelled already: what a second Ctrl-C does. It may be called by
// any goroutine.
func (s *Session) Kill() {
	if w := s.watched.Load(); w != nil {
		w.kill(s.bench.queue)
	}
}

// Quit says whether the client said quit: Do also ends a line for other reasons.
func (s *Session) Quit() bool { return s.done }

// Resize says that the client's screen has another width now; 0: as wide as it
// gets. It is not called while Do runs. What the client itself set counts more.
func (s *Session) Resize(width int) {
	if !s.fixed {
		s.client.Width = width
	}
}

// Color says whether output to the client is coloured.
func (s *Session) Color() bool { return s.client.Color }

// Format is the form of output that the client wants.
func (s *Session) Format() Format { return s.client.Format }

// Name is who the client is.
func (s *Session) Name() string { return s.name }

// Prompt is what stands before the line that the client types.
func (s *Session) Prompt() string { return "relaybench> " }

// printf prints text.
func (s *Session) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(s.client.Out, format, args...)
	return err
}

// say prints words: beside what is printed for a program, not among it.
func (s *Session) say(format string, args ...any) error {
	switch s.format {
	case Text:
		return s.printf(format, args...)
	case Markdown:
		return s.printf("%s", table.Escape(fmt.Sprintf(format, args...))+"\n")
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
	case Markdown:
		return t.Markdown(s.client.Out)
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
