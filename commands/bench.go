package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/adrg/xdg"

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

// Bench is what all clients of a store share: the store and the queue.
type Bench struct {
	config Config
	mu     sync.Mutex
	db     *store.DB // nil until it is first needed
}

// NewBench is a bench. Its store is opened when a command first needs it, or by Open.
func NewBench(c Config) *Bench { return &Bench{config: c} }

// Open opens the store now. Its error is a [store.HeldError] where another process holds it.
func (b *Bench) Open() error {
	_, err := b.open()
	return err
}

// Start starts what runs the jobs of the queue, one after another, until ctx
// ends: then the one that runs is stopped with ctx's cause, and no other is
// begun. Without it no queued command is ever done. Close waits for it.
func (b *Bench) Start(ctx context.Context) {}

// News are lines to say when relaybench starts: which job was interrupted when
// it last ended, and which were waiting then. Nothing is run again. Each is
// told once, so that what was told is gone; it opens the store.
func (b *Bench) News() []string { return nil }

// Banner is what a person reads first: three lines, of the version, the store,
// the relay in use, and what to type. It opens the store.
func (b *Bench) Banner() []string { return nil }

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

// Close stops the job that runs, waits for what Start started, and closes the
// store, if it was opened.
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
