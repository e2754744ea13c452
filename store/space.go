package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"relaybench/harness/variable"
)

// SpaceError says that the disk has too little room for what was to be written.
type SpaceError struct {
	Path       string
	Need, Left int64 // bytes: what was to be written, 0 unknown, and what the disk has left for this user, -1 unknown
	Err        error // what the system said
}

func (e *SpaceError) Error() string {
	text := fmt.Sprintf("store %q: no room", e.Path)
	if e.Need > 0 {
		text += fmt.Sprintf(" for %s", variable.RoughSize(uint64(e.Need)))
	}
	if e.Left >= 0 {
		text += fmt.Sprintf(": the disk has %s left", variable.RoughSize(uint64(e.Left)))
		if e.Need > e.Left {
			text += fmt.Sprintf(", %s too little", variable.RoughSize(uint64(e.Need-e.Left)))
		}
	}
	return text + ": " + e.Err.Error()
}

func (e *SpaceError) Unwrap() error { return e.Err }

// outOfSpace says whether the system refused to let a file grow.
//
// Note: bbolt keeps of an error of growing the text alone.
func outOfSpace(err error) bool {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, no) || err != nil && strings.HasSuffix(err.Error(), ": "+no.Error()) {
			return true
		}
	}
	return false
}

// diskLeft is how many bytes the disk of a file has left for this user; -1 unknown.
func diskLeft(path string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &fs) != nil {
		return -1
	}
	return int64(uint64(fs.Bavail) * uint64(fs.Bsize))
}

// What a record is reckoned to need: for what every run has, its logs and
// config among it, for each sample, which is taken once a second, and for what
// the relay said by statsd. Measured, and doubled.
const (
	recordBase   = 512 << 10
	recordSample = 400
	recordStatsd = 512 << 10
)

// RecordSize is the most bytes that the record of a run with such a load can be
// expected to have; statsd says that it keeps what the relay says by that.
func RecordSize(load time.Duration, statsd bool) int64 {
	size := recordBase + recordSample*int64((load+2*time.Minute)/time.Second)
	if statsd {
		size += recordStatsd
	}
	return size
}

// spare is what a write needs beside the record itself, for the pages of the
// trees above it, the index and the list of free pages.
const spare = 256 << 10

// Reserve makes sure of disk space for a report of so many bytes, a
// [RecordSize], that is to be saved next: it fills that much of the file and
// sets it free again, so that Save needs no more from the disk. Its error is a
// [SpaceError] where that is the cause; the file is then as it was.
//
// Note: a file system that writes nothing in place, such as btrfs, may need new
// room all the same. Then Save fails, and [DB.SaveFile] is for that.
func (db *DB) Reserve(bytes int64) error {
	bytes += spare
	name := []byte("reserve")
	err := db.update(func(tx *bbolt.Tx) error {
		if _, last := tx.Bucket(reportsBucket).Cursor().Last(); last != nil {
			bytes += int64(len(last)) // stands in one page with the next, and is written again with it
		}
		fill := make([]byte, bytes)
		if _, err := rand.Read(fill); err != nil { // no file system makes a hole of it
			return err
		}
		b, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		return b.Put(name, fill)
	})
	if err == nil {
		err = db.update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(name) })
	}
	var full *SpaceError
	if errors.As(err, &full) {
		full.Need = bytes
		db.trim()
		full.Left = diskLeft(db.path)
	}
	if err != nil {
		return fmt.Errorf("reserve room for a report: %w", err)
	}
	return nil
}

// trim gives back what of the file was never written, or only by a write that
// failed. It is a courtesy to whoever else uses the disk: its failure changes nothing.
func (db *DB) trim() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken.Load() != nil {
		return
	}
	_ = guard(func() error { return trim(db.bolt, db.path) })
}

func trim(bolt *bbolt.DB, path string) error {
	return bolt.View(func(tx *bbolt.Tx) error { return os.Truncate(path, tx.Size()) })
}
