package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// compactBytes is how much is copied in one transaction, to bound memory.
const compactBytes = 16 << 20

// compactPath is where the compacted copy of a store is written.
func compactPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".compact")
}

// Compact writes the store anew beside itself without its free pages, and puts
// that in its place: what is there at any moment is whole. It waits for what is
// being read or written, and nothing is while it works.
func (db *DB) Compact() (before, after int64, err error) {
	if p := db.broken.Load(); p != nil {
		return 0, 0, *p
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if before, after, err = db.compact(); err != nil {
		if outOfSpace(err) {
			err = &SpaceError{Path: db.path, Need: before, Left: diskLeft(db.path), Err: bare(err)}
		} else {
			err = fmt.Errorf("store %q: %w", db.path, err)
		}
		return 0, 0, fmt.Errorf("compact: %w", err)
	}
	return before, after, nil
}

func (db *DB) compact() (before, after int64, err error) {
	info, err := os.Stat(db.path)
	if err != nil {
		return 0, 0, bare(err)
	}
	before = info.Size()
	temp := compactPath(db.path)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return before, 0, err
	}
	defer os.Remove(temp) // nothing, once it has its name
	bolt, err := openBolt(temp, lockWait)
	if err != nil {
		return before, 0, err
	}
	err = guard(func() error {
		bolt.NoSync = true // once for all of it
		defer func() { bolt.NoSync = false }()
		if err := bbolt.Compact(bolt, db.bolt, compactBytes); err != nil {
			return err
		}
		if err := trim(bolt, temp); err != nil {
			return err
		}
		return bolt.Sync()
	})
	if err == nil {
		err = os.Chmod(temp, info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(temp, db.path)
	}
	if err != nil {
		return before, 0, errors.Join(err, bolt.Close())
	}
	// From here on the new file is the store, and locked; the old one has no
	// name any more, and whoever waits for its lock looks again: see open.
	old := db.bolt
	db.bolt = bolt
	if err := errors.Join(old.Close(), syncDir(filepath.Dir(db.path))); err != nil {
		return before, 0, err
	}
	if info, err = os.Stat(db.path); err != nil {
		return before, 0, err
	}
	return before, info.Size(), nil
}

// Backup writes a consistent copy of the store to a new file, while the store
// is in use. It does not replace a file.
func (db *DB) Backup(path string) (size int64, err error) {
	err = NewFile(path, func(w io.Writer) error {
		return db.view(func(tx *bbolt.Tx) (err error) {
			size, err = tx.WriteTo(w)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("backup to %q: %w", path, err)
	}
	return size, nil
}
