package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/adrg/xdg"
	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
	"relaybench/store"
)

// Config is what a bench is made with.
type Config struct {
	DB   string // file of the store; empty: in the user's data folder
	Host string // name of this machine in reports; empty: the system's
}

// Bench is what all clients of a store share.
type Bench struct {
	config Config
	mu     sync.Mutex
	db     *store.DB // nil until it is first needed
}

// NewBench is a bench. Its store is opened when a command first needs it.
func NewBench(c Config) *Bench { return &Bench{config: c} }

// open opens the store, once.
func (b *Bench) open() (*store.DB, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.db != nil {
		return b.db, nil
	}
	path := b.config.DB
	if path == "" {
		var err error
		if path, err = dataFile("relaybench.db"); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	db, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	b.db = db
	return db, nil
}

// dataFile is a file in relaybench's folder under the user's data folder; the folder is made.
func dataFile(name string) (string, error) {
	if _, err := os.UserHomeDir(); err != nil && os.Getenv("XDG_DATA_HOME") == "" {
		return "", hinted(errors.New("no home folder to keep it in"), "give a file with -db FILE")
	}
	path, err := xdg.DataFile(filepath.Join("relaybench", name))
	if err != nil {
		return "", hinted(err, "give another file with -db FILE")
	}
	return path, nil
}

// Close closes the store, if it was opened.
func (b *Bench) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.db == nil {
		return nil
	}
	err := b.db.Close()
	b.db = nil
	if err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

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
	Out    io.Writer // what commands print
	Notes  io.Writer // how a run goes; nil: nobody wants to know
	Live   int       // width of the terminal that Notes is, for one line that is written over; 0: it is none
	Format Format
	Color  bool
	Width  int // of the screen; 0: as wide as it gets
	// Ask asks the person there a question and gives the line that they typed;
	// io.EOF where they said nothing. nil: nobody can be asked.
	Ask func(ctx context.Context, question string) (answer string, err error)
	// Kill, when closed, ends the relay of a run that was interrupted, at once. May be nil.
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
