package store

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Check says what is wrong in the store: each record, what the index says of
// it, then the structure of the file. It reads all of it, and what is saved
// meanwhile waits for the last part only.
func (db *DB) Check() error {
	found, err := db.checkRecords()
	if err != nil {
		return err
	}
	err = db.update(func(tx *bbolt.Tx) error {
		// bbolt's own check runs in a goroutine, where a fault is out of reach of guard: touch all of it here first.
		for _, name := range buckets(layout) {
			if err := tx.Bucket(name).ForEach(func(_, value []byte) error { _ = bytes.Count(value, []byte{0}); return nil }); err != nil {
				return err
			}
		}
		reports, index := tx.Bucket(reportsBucket), tx.Bucket(indexBucket)
		whole, _ := indexing(tx)
		for _, name := range [][]byte{ownBucket, indexBucket} {
			if err := tx.Bucket(name).ForEach(func(id, _ []byte) error {
				if reports.Get(id) == nil && (whole || bytes.Equal(name, ownBucket)) {
					found = append(found, fmt.Errorf("report %s is listed and is not there", id))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if err := reports.ForEach(func(id, _ []byte) error {
			if whole && index.Get(id) == nil {
				found = append(found, fmt.Errorf("report %s is not in the index", id))
			}
			return nil
		}); err != nil {
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

// checkRecords reads every record, and compares with it what the index has of it.
func (db *DB) checkRecords() (found []error, err error) {
	for last := []byte(nil); ; {
		var id, record, entry, cell []byte
		var own bool
		err := db.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket(reportsBucket).Cursor()
			next, value := c.Seek(last)
			if last != nil && bytes.Equal(next, last) {
				next, value = c.Next()
			}
			id, record, own = bytes.Clone(next), bytes.Clone(value), has(tx.Bucket(ownBucket), next)
			if whole, _ := indexing(tx); !whole || id == nil {
				return nil
			}
			entry = bytes.Clone(tx.Bucket(indexBucket).Get(id))
			if name, ok := cellOf(entry); ok {
				cell = bytes.Clone(tx.Bucket(cellsBucket).Get(name[:]))
			}
			return nil
		})
		if err != nil || id == nil {
			return found, err
		}
		if last != nil && bytes.Compare(id, last) <= 0 { // of a damaged page: it might lead round in a circle
			return append(found, fmt.Errorf("report %q comes after %q", id, last)), nil
		}
		last = id
		e := db.entryOf(string(id), record, own)
		if e.Problem != "" {
			found = append(found, fmt.Errorf("report %s: %s", id, e.Problem))
		}
		if entry == nil {
			continue // no index, or said below
		}
		var name cellName
		var packed []byte
		if e.Problem == "" {
			name, packed = e.cell.pack()
		}
		if !bytes.Equal(entry, e.pack(name)) || !bytes.Equal(cell, packed) {
			found = append(found, fmt.Errorf("report %s: the index says something else of it", id))
		}
	}
}
