package store

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
)

// layout is the number of how buckets are laid out in a store, under formatKey
// of the bucket meta. Layout 1 had no index.
const layout = 2

var (
	metaBucket     = []byte("meta")
	reportsBucket  = []byte("reports")  // id to record
	ownBucket      = []byte("own")      // ids of the runs that were made here, not imported
	settingsBucket = []byte("settings") // name to value
	indexBucket    = []byte("index")    // id to entry
	cellsBucket    = []byte("cells")    // name to cell

	formatKey = []byte("relaybench-store")
)

// buckets are those that a store of a layout has.
func buckets(layout int) [][]byte {
	names := [][]byte{metaBucket, reportsBucket, ownBucket, settingsBucket}
	if layout >= 2 {
		names = append(names, indexBucket, cellsBucket)
	}
	return names
}

// DB is an open store. It may be used by several goroutines at once.
type DB struct {
	path   string
	zip    *zstd.Encoder
	unzip  *zstd.Decoder
	now    func() time.Time
	broken atomic.Pointer[error] // what ended a write in its middle; no other is begun after it

	mu   sync.RWMutex // held by whoever uses bolt; for writing by who replaces the file
	bolt *bbolt.DB

	indexing sync.Mutex // held while the index is made anew
}

// bare is an error without the path that it repeats.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// guard turns what bbolt does on a damaged file, a panic or a fault of
// memory beyond the file's end, into an error.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &damage{fmt.Sprint(r)}
		}
	}()
	return do()
}

// damage is what a panic said of a store.
type damage struct{ what string }

func (d *damage) Error() string {
	return "is damaged (" + d.what + "): put a backup in its place, or name another with -db"
}

// view reads. What it reads is to be copied out: a transaction that stays open
// while something else is waited for keeps the file growing.
func (db *DB) view(do func(*bbolt.Tx) error) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	err := guard(func() error { return db.bolt.View(do) })
	var d *damage
	if errors.As(err, &d) {
		return fmt.Errorf("store %q: %w", db.path, err)
	}
	return err
}

// update writes; it is on the disk when update returns.
func (db *DB) update(do func(*bbolt.Tx) error) error {
	if p := db.broken.Load(); p != nil {
		return *p
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	err := guard(func() error { return db.bolt.Update(do) })
	var d *damage
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		err = fmt.Errorf("store %q: %w", db.path, err)
		db.broken.Store(&err)
		return err
	case outOfSpace(err):
		return &SpaceError{Path: db.path, Left: diskLeft(db.path), Err: bare(err)}
	}
	return fmt.Errorf("store %q: %w", db.path, err)
}

// Close closes it.
//
// Note: after a write that a damaged file ended in its middle, bbolt may hold
// its locks for ever. The file is then left open until the process ends.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.unzip.Close()
	if db.broken.Load() != nil {
		return nil
	}
	if err := db.bolt.Close(); err != nil {
		return fmt.Errorf("store %q: close: %w", db.path, err)
	}
	return nil
}

// Path is the file.
func (db *DB) Path() string { return db.path }

// has says whether a bucket has a key. A key may be there without a value, for which Get gives nil or not.
func has(b *bbolt.Bucket, key []byte) bool {
	k, _ := b.Cursor().Seek(key)
	return string(k) == string(key)
}
