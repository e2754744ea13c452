package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long Open waits for a store that another process holds.
const lockWait = 900 * time.Millisecond

// layout is the number of how buckets are laid out in a store, under formatKey of the bucket meta.
const layout = 1

var (
	metaBucket     = []byte("meta")
	reportsBucket  = []byte("reports")  // id to record
	ownBucket      = []byte("own")      // ids of the runs that were made here, not imported
	settingsBucket = []byte("settings") // name to value

	formatKey = []byte("relaybench-store")
)

// DB is an open store. It may be used by several goroutines at once.
type DB struct {
	bolt   *bbolt.DB
	path   string
	zip    *zstd.Encoder
	unzip  *zstd.Decoder
	now    func() time.Time
	broken atomic.Pointer[error] // what ended a write in its middle; no other is begun after it
}

// HeldError says that another process holds the store.
type HeldError struct {
	Path string
	PID  int // 0: unknown
}

func (e *HeldError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("store %q is held by %s: end it, or name another file with -db", e.Path, by)
}

// Open opens the store at path, and makes it where there is none. It gives up
// within a second with a *HeldError when another process holds it. A file that
// is not a whole store is left as it is, and the error says what is wrong.
func Open(path string) (*DB, error) {
	deadline := time.Now().Add(lockWait)
	bolt, err := open(path, deadline)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, &HeldError{Path: path, PID: holder(path)}
	case err != nil:
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	db := &DB{bolt: bolt, path: path, now: time.Now}
	if db.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err == nil {
		db.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecord))
	}
	if err != nil {
		_ = bolt.Close()
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	return db, nil
}

// open checks the file, read-only, before bbolt may change anything in it.
func open(path string, deadline time.Time) (bolt *bbolt.DB, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("cannot be made: %w: name another file with -db", bare(err))
		}
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be reached: %w: name another file with -db", bare(err))
	case info.IsDir():
		return nil, errors.New("is a folder: name a file in it with -db")
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file: name another with -db")
	case info.Size() == 0:
		return nil, errors.New("is an empty file, not a store: remove it to begin a new one, or name another with -db")
	}
	err = guard(func() error { return check(path, deadline) })
	if err != nil {
		return nil, err
	}
	err = guard(func() (err error) {
		bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: left(deadline)})
		return err
	})
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("cannot be written: %w: make it writable, or name another with -db", bare(err))
	case err != nil:
		return nil, bare(err)
	}
	return bolt, nil
}

// check says what is wrong with the file of a store, without writing to it.
func check(path string, deadline time.Time) error {
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: left(deadline)})
	switch {
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return errors.New("is not a store of relaybench, or its head is damaged: it was left as it is; name another with -db")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot be read: %w: name another with -db", bare(err))
	case errors.Is(err, berrors.ErrTimeout):
		return err
	case err != nil:
		return fmt.Errorf("cannot be opened: %w: put a backup in its place, or name another with -db", bare(err))
	}
	defer bolt.Close()
	return bolt.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return bare(err)
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("is cut short: %d bytes of at least %d: it was left as it is; put a backup in its place, or name another with -db", info.Size(), tx.Size())
		}
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			return errors.New("is a bbolt file of another program, not a store of relaybench: name another with -db")
		}
		text := string(meta.Get(formatKey))
		format, err := strconv.Atoi(text)
		switch {
		case err != nil || format < 1:
			return fmt.Errorf("is a bbolt file of another program, not a store of relaybench (format %q): name another with -db", text)
		case format > layout:
			return fmt.Errorf("has format %d, made by a newer relaybench; this one knows up to %d: use the newer one, or name another with -db", format, layout)
		}
		for _, name := range [][]byte{reportsBucket, ownBucket, settingsBucket} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("is damaged: it has no %s: put a backup in its place, or name another with -db", name)
			}
		}
		return nil
	})
}

// create makes an empty store at path, whole or not at all, unless something is there by then.
func create(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return err
	}
	bolt, err := bbolt.Open(temp.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	err = bolt.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{metaBucket, reportsBucket, ownBucket, settingsBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(formatKey, strconv.AppendInt(nil, layout, 10))
	})
	if err = errors.Join(err, bolt.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		// A file system without links: another process that makes the same store at this moment may lose its own.
		if err := os.Rename(temp.Name(), path); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// syncDir makes the names in a folder last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func left(deadline time.Time) time.Duration { return max(time.Until(deadline), time.Millisecond) }

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

// view reads.
func (db *DB) view(do func(*bbolt.Tx) error) error {
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
	err := guard(func() error { return db.bolt.Update(do) })
	var d *damage
	if err == nil {
		return nil
	}
	err = fmt.Errorf("store %q: %w", db.path, err)
	if errors.As(err, &d) {
		db.broken.Store(&err)
	}
	return err
}

// Close closes it.
//
// Note: after a write that a damaged file ended in its middle, bbolt may hold
// its locks for ever. The file is then left open until the process ends.
func (db *DB) Close() error {
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

// Check says what is wrong in the store: its structure, then each record. It
// reads all of it, and nothing can be written meanwhile.
func (db *DB) Check() error {
	var found []error
	err := db.update(func(tx *bbolt.Tx) error {
		// bbolt's own check runs in a goroutine, where a fault is out of reach of guard: read all of it here first.
		reports := tx.Bucket(reportsBucket)
		if err := reports.ForEach(func(id, record []byte) error {
			if _, err := db.decode(bytes.Clone(record)); err != nil {
				found = append(found, fmt.Errorf("report %s: %w", id, err))
			}
			return nil
		}); err != nil {
			return err
		}
		if err := tx.Bucket(ownBucket).ForEach(func(id, _ []byte) error {
			if reports.Get(id) == nil {
				found = append(found, fmt.Errorf("report %s is listed and is not there", id))
			}
			return nil
		}); err != nil {
			return err
		}
		if err := tx.Bucket(settingsBucket).ForEach(func(_, _ []byte) error { return nil }); err != nil {
			return err
		}
		for err := range tx.Check() {
			found = append(found, err)
		}
		return errCheckOnly
	})
	if !errors.Is(err, errCheckOnly) {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("store %q: %w", db.path, errors.Join(found...))
	}
	return nil
}

// errCheckOnly ends a check's transaction without a write.
var errCheckOnly = errors.New("check only")

// Setting is a small value kept in the store, such as the relay last used; ok is false where it was never set.
func (db *DB) Setting(name string) (value string, ok bool, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		v := tx.Bucket(settingsBucket).Get([]byte(name))
		value, ok = string(v), v != nil
		return nil
	})
	return value, ok, err
}

// SetSetting keeps one; an empty value removes it.
func (db *DB) SetSetting(name, value string) error {
	return db.update(func(tx *bbolt.Tx) error {
		if value == "" {
			return tx.Bucket(settingsBucket).Delete([]byte(name))
		}
		return tx.Bucket(settingsBucket).Put([]byte(name), []byte(value))
	})
}
