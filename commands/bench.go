package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/adrg/xdg"

	"relaybench/commands/table"
	"relaybench/harness"
	"relaybench/harness/builds"
	"relaybench/harness/perf"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
)

// Config is what a bench is made with.
type Config struct {
	DB         string // file of the store; empty: in the user's data folder
	Host       string // name of this machine in reports; empty: the system's
	AllowPaths bool   // remote clients too may name paths of this host
	// Log takes what is for whoever runs relaybench and not for the client, such
	// as where a command panicked. nil: the client that it happened to is told.
	Log io.Writer
}

// Bench is what all clients of a store share: the store, the queue and the builds.
type Bench struct {
	config Config
	queue  *queue
	run    engine
	// findPerf is [perf.Find], except in tests.
	findPerf func(ctx context.Context, callGraphs ...string) (perf.Means, error)

	mu      sync.Mutex
	db      *store.DB                     // nil until it is first needed
	kept    *builds.Kept                  // the same
	process atomic.Pointer[relay.Process] // of the run that goes on; nil where none does
	aliases map[string]string             // by name; nil until they are first needed
	stop    context.CancelCauseFunc       // nil before Start
	joined  sync.WaitGroup
}

// NewBench is a bench. Its store is opened when a command first needs it, or by Open.
func NewBench(c Config) *Bench {
	return &Bench{config: c, queue: newQueue(), run: harness.Run, findPerf: perf.Find}
}

// engine makes a run: it is [harness.Run], except in tests.
type engine func(context.Context, plan.Plan, relay.Program, harness.Options) (*result.Result, error)

// HeldError says that another process holds the store.
type HeldError = store.HeldError

// Path is the file of the store, whether or not it is open or there.
func (b *Bench) Path() (string, error) {
	if b.config.DB != "" {
		return b.config.DB, nil
	}
	path, err := dataFile("relaybench.db")
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return path, nil
}

// Open opens the store now. Its error is a *[HeldError] where another process holds it.
func (b *Bench) Open() error {
	_, err := b.open()
	return err
}

// Start starts what runs the jobs of the queue, one after another, until ctx
// ends: then the one that runs is stopped with ctx's cause, and no other is
// begun. Without it no queued command is ever done. Close waits for it.
func (b *Bench) Start(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, b.stop = context.WithCancelCause(ctx)
	b.queue.start()
	b.joined.Go(func() { b.queue.work(ctx) })
}

// Kill ends at once the relay of the job that runs, once that is being stopped: it does what [Session.Kill] does for its client.
func (b *Bench) Kill() {
	if j := b.queue.head(); j != nil {
		b.queue.end(j)
	}
}

// News are lines to say when relaybench starts: which job was interrupted when
// it last ended, and which were waiting then. Nothing is run again. Each is
// told once, so that what was told is gone; it opens the store.
func (b *Bench) News() []string {
	db, err := b.open()
	if err != nil {
		return nil // as every command will say
	}
	left, err := b.queue.news(db)
	var lines []string
	for _, k := range left[:min(len(left), mostNews)] {
		said := "was waiting"
		if k.State == Running {
			said = "was interrupted"
		}
		lines = append(lines, table.Clean(fmt.Sprintf("j%d of %s %s when relaybench last ended, and is not run again: %s (%s since %s)",
			k.Number, k.Owner, said, k.Line, k.State, k.Since.Local().Format(time.DateTime))))
	}
	if more := len(left) - mostNews; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", count(more)))
	}
	if err != nil {
		lines = append(lines, table.Clean(fmt.Sprintf("this will be said again, for the store does not forget it: %v", err)))
	}
	return lines
}

// mostNews is of how many jobs there is news at most.
const mostNews = 10

// Banner is what a person reads first: three lines, of the version, the store,
// the relay in use, and what to type. It opens the store.
func (b *Bench) Banner() []string {
	version, revision := Version()
	if version == "" {
		version = "of unknown version"
	}
	if revision != "" {
		version += " (" + revision[:min(12, len(revision))] + ")"
	}
	what := "the store could not be opened"
	ref := reference{What: relay.FormStandIn}
	db, err := b.open()
	if err == nil {
		what = db.Path()
		if last, ok, err := b.lastRelay(); err == nil && ok {
			ref = last
		}
	}
	return []string{
		"relaybench " + version + " load-tests Sentry's Relay; reports are in " + table.Clean(what),
		"relay in use: " + table.Clean(ref.String()) + " (relay use says more, relay use PATH takes another)",
		"type help for the commands; to begin: test 10s --rate 200",
	}
}

// open opens the store, once.
func (b *Bench) open() (*store.DB, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.db != nil {
		return b.db, nil
	}
	path, err := b.Path()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	b.db = db
	return db, nil
}

// Opened says whether the store is open.
func (b *Bench) Opened() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.db != nil
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

// Close stops the job that runs, waits for what Start started, and closes the
// store, if it was opened. Jobs that wait are not begun.
func (b *Bench) Close() error {
	b.end()
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

// end stops the job that runs, and waits for what Start started.
func (b *Bench) end() {
	b.mu.Lock()
	stop := b.stop
	b.mu.Unlock()
	if stop != nil {
		stop(fmt.Errorf("%w: relaybench ends", ErrInterrupted))
		b.joined.Wait()
	}
}

// fault is the error of a panic, which is called while it is recovered from.
// Where it was goes to the log, under a number that the error has.
func (b *Bench) fault(panicked any) error {
	id := strings.ToLower(rand.Text()[:6])
	stack := strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")
	t := &told{error: fmt.Errorf("internal error %s: %v", id, panicked), hint: "this is a fault of relaybench: please report it with the lines above", detail: stack}
	if b.config.Log != nil {
		t.detail, t.hint = nil, "this is a fault of relaybench: please report it, with what its log has of "+id
		fmt.Fprintf(b.config.Log, "%s internal error %s: %v\n  %s\n", time.Now().Format(time.RFC3339), id, panicked, strings.Join(stack, "\n  "))
	}
	return t
}
