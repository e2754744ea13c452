package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long Open waits for a store that another process holds.
const lockWait = 900 * time.Millisecond

// The file grows by allocSize bytes at a time, and mapSize bytes of addresses
// are set aside for it, so that a write never has to wait for readers to map it
// anew. Where addresses are scarce it is mapped as it is, and that wait comes back.
const (
	allocSize = 1 << 20
	mapSize   = 1 << (30 + 6*(strconv.IntSize/64)) // 64 GiB, or 1 GiB on 32 bits
)

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
	if err = guard(func() error { return upgrade(bolt) }); err == nil {
		db.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	}
	if err == nil {
		db.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRecord))
	}
	if err != nil {
		_ = bolt.Close()
		if outOfSpace(err) {
			return nil, &SpaceError{Path: path, Left: diskLeft(path), Err: bare(err)}
		}
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	_ = os.Remove(compactPath(path)) // of a process that ended while it compacted
	return db, nil
}

// open opens the file, once it was found whole.
func open(path string, deadline time.Time) (*bbolt.DB, error) {
	for {
		info, err := present(path)
		if err != nil {
			return nil, err
		}
		// The process that held it may put another file in its place meanwhile,
		// as Compact does: what was found then is of neither, or of one without a name.
		replaced := func() bool {
			now, err := os.Stat(path)
			return err == nil && !os.SameFile(info, now)
		}
		// bbolt may change a file that it opens to write to.
		switch err := guard(func() error { return check(path, deadline) }); {
		case replaced():
			continue
		case err != nil:
			return nil, err
		}
		bolt, err := openBolt(path, left(deadline))
		switch {
		case err == nil && !replaced():
			return bolt, nil
		case err == nil:
			err = bolt.Close()
		case replaced():
			err = nil
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			err = fmt.Errorf("cannot be written: %w: make it writable, or name another with -db", bare(err))
		}
		if err != nil {
			return nil, bare(err)
		}
	}
}

func openBolt(path string, wait time.Duration) (bolt *bbolt.DB, err error) {
	for _, size := range []int{mapSize, 0} {
		err = guard(func() (err error) {
			bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: wait, InitialMmapSize: size})
			return err
		})
		if !errors.Is(err, syscall.ENOMEM) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	bolt.AllocSize = allocSize
	return bolt, nil
}

// present makes the file where there is none, and looks at what there is.
func present(path string) (fs.FileInfo, error) {
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
	return info, nil
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
		format, err := layoutOf(tx)
		if err != nil {
			return err
		}
		for _, name := range buckets(format) {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("is damaged: it has no %s: put a backup in its place, or name another with -db", name)
			}
		}
		return nil
	})
}

// layoutOf is the number of a store's layout.
func layoutOf(tx *bbolt.Tx) (int, error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return 0, errors.New("is a bbolt file of another program, not a store of relaybench: name another with -db")
	}
	text := string(meta.Get(formatKey))
	format, err := strconv.Atoi(text)
	switch {
	case err != nil || format < 1:
		return 0, fmt.Errorf("is a bbolt file of another program, not a store of relaybench (format %q): name another with -db", text)
	case format > layout:
		return 0, fmt.Errorf("has format %d, made by a newer relaybench; this one knows up to %d: use the newer one, or name another with -db", format, layout)
	}
	return format, nil
}

// upgrade brings a store of an older layout to this one. Layout 1 lacks the
// index, which is made when it is first needed.
func upgrade(bolt *bbolt.DB) error {
	var format int
	err := bolt.View(func(tx *bbolt.Tx) (err error) {
		format, err = layoutOf(tx)
		return err
	})
	if err != nil || format == layout {
		return err
	}
	return bolt.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets(layout) {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return putLayout(tx)
	})
}

func putLayout(tx *bbolt.Tx) error {
	return tx.Bucket(metaBucket).Put(formatKey, strconv.AppendInt(nil, layout, 10))
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
		for _, name := range buckets(layout) {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := tx.Bucket(metaBucket).Put(indexKey, []byte(fingerprint)); err != nil {
			return err
		}
		return putLayout(tx)
	})
	if err = errors.Join(err, bolt.Close()); err != nil {
		return err
	}
	if err := putInPlace(temp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// putInPlace gives a whole file the name that it is to have, for good. Its
// error is fs.ErrExist where something has that name.
func putInPlace(temp, path string) error {
	if err := os.Link(temp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fs.ErrExist
		}
		// A file system without links: what another process puts there at this very moment may be lost.
		if _, err := os.Lstat(path); err == nil {
			return fs.ErrExist
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
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
