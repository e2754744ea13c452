package store

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"relaybench/harness/result"
)

// Report is a saved run: what it was to do, where its figures come from, what
// was observed. Nothing in it is derived.
type Report struct {
	ID         string            `json:"id"` // unique, ordered in time; given by Save
	Plan       map[string]string `json:"plan"`
	Provenance result.Provenance `json:"provenance"`
	Result     *result.Result    `json:"result"`

	Own bool `json:"-"` // made here, not imported; set by the store
}

// Save stores a report of a run made here under a new id, which it sets. It is
// on the disk when Save returns. When it returns an error the report has no id
// and is not in the store; [DB.SaveFile] may keep it then. The error is a
// [SpaceError] where the disk is full.
func (db *DB) Save(r *Report) error {
	r.ID = ""
	saved := *r
	saved.Own = true
	err := db.update(func(tx *bbolt.Tx) error {
		last, _ := tx.Bucket(ownBucket).Cursor().Last()
		for saved.ID = nextID(string(last), db.now()); tx.Bucket(reportsBucket).Get([]byte(saved.ID)) != nil; {
			saved.ID = nextID(saved.ID, db.now()) // an imported one has it
		}
		return db.put(tx, &saved)
	})
	if err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	r.ID, r.Own = saved.ID, true
	return nil
}

// put keeps a report under its id, and its entry in the index.
func (db *DB) put(tx *bbolt.Tx, r *Report) error {
	record, err := db.encode(r)
	if err != nil {
		return err
	}
	return putRecord(tx, record, r.Own, EntryOf(r))
}

// putRecord keeps a record and its entry.
func putRecord(tx *bbolt.Tx, record []byte, own bool, e *Entry) error {
	if own {
		if err := tx.Bucket(ownBucket).Put([]byte(e.ID), nil); err != nil {
			return err
		}
	}
	if err := tx.Bucket(reportsBucket).Put([]byte(e.ID), record); err != nil {
		return err
	}
	return putEntry(tx, e)
}

// Get reads the report that ref names: an id, a unique beginning of one, "last" or "last-N".
func (db *DB) Get(ref string) (*Report, error) {
	var id string
	var record []byte
	var own bool
	err := db.view(func(tx *bbolt.Tx) (err error) {
		if id, err = find(tx, ref); err == nil {
			record, own = recordOf(tx, id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return db.report(id, record, own)
}

// Find is the id of the report that ref names, as in [DB.Get].
func (db *DB) Find(ref string) (id string, err error) {
	err = db.view(func(tx *bbolt.Tx) (err error) {
		id, err = find(tx, ref)
		return err
	})
	return id, err
}

// ReadReports reads reports by id, in that order, and hands each to do, with no
// transaction open. The first error ends it.
func (db *DB) ReadReports(ids []string, do func(*Report) error) error {
	return db.readRecords(ids, func(id string, record []byte, own bool) error {
		r, err := db.report(id, record, own)
		if err != nil {
			return err
		}
		return do(r)
	})
}

// readRecords hands records to do, with no transaction open.
func (db *DB) readRecords(ids []string, do func(id string, record []byte, own bool) error) error {
	for _, id := range ids {
		var record []byte
		var own bool
		err := db.view(func(tx *bbolt.Tx) error {
			if record, own = recordOf(tx, id); record == nil {
				return fmt.Errorf("no report %q", id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := do(id, record, own); err != nil {
			return err
		}
	}
	return nil
}

// recordOf is a copy of a report's record, nil where there is none, and whether it was made here.
func recordOf(tx *bbolt.Tx, id string) (record []byte, own bool) {
	return bytes.Clone(tx.Bucket(reportsBucket).Get([]byte(id))), has(tx.Bucket(ownBucket), []byte(id))
}

// report reads a record.
func (db *DB) report(id string, record []byte, own bool) (*Report, error) {
	r, err := db.decode(record)
	if err != nil {
		return nil, fmt.Errorf("store %q: report %s: %w", db.path, id, err)
	}
	r.ID, r.Own = id, own
	return r, nil
}

// Delete removes reports by id, all or none: an error names those that are not there.
func (db *DB) Delete(ids ...string) error {
	var unknown []string
	err := db.update(func(tx *bbolt.Tx) error {
		reports, own, index := tx.Bucket(reportsBucket), tx.Bucket(ownBucket), tx.Bucket(indexBucket)
		for _, id := range ids {
			if reports.Get([]byte(id)) == nil {
				unknown = append(unknown, strconv.Quote(id))
			}
		}
		if len(unknown) > 0 {
			return errUnknown
		}
		for _, id := range ids {
			for _, b := range []*bbolt.Bucket{reports, own, index} {
				if err := b.Delete([]byte(id)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, errUnknown) {
		return fmt.Errorf("no report %s: nothing was deleted", strings.Join(unknown, ", "))
	}
	return err
}

// errUnknown ends a transaction without a write.
var errUnknown = errors.New("unknown")

// find is the id that ref names.
func find(tx *bbolt.Tx, ref string) (string, error) {
	if text, ok := strings.CutPrefix(ref, "last"); ok {
		back := 0
		if text != "" {
			n, err := strconv.ParseUint(strings.TrimPrefix(text, "-"), 10, 31)
			if err != nil || text[0] != '-' {
				return "", fmt.Errorf("report %q: expected last, or last-N as in last-1", ref)
			}
			back = int(n)
		}
		return findLast(tx, ref, back)
	}
	if ref == "" {
		return "", errors.New("report \"\": expected an id, the beginning of one, or last")
	}
	c := tx.Bucket(reportsBucket).Cursor()
	var ids []string
	n := 0
	for id, _ := c.Seek([]byte(ref)); bytes.HasPrefix(id, []byte(ref)); id, _ = c.Next() {
		if string(id) == ref {
			return ref, nil
		}
		if n++; n <= 3 {
			ids = append(ids, string(id))
		}
	}
	switch {
	case n == 0:
		return "", fmt.Errorf("no report %q", ref)
	case n == 1:
		return ids[0], nil
	case n > len(ids):
		ids = append(ids, "…")
	}
	return "", fmt.Errorf("report %q: %d reports begin so: %s", ref, n, strings.Join(ids, ", "))
}

// findLast is the newest run made here, or one of those before it.
func findLast(tx *bbolt.Tx, ref string, back int) (string, error) {
	c := tx.Bucket(ownBucket).Cursor()
	n := 0
	for id, _ := c.Last(); id != nil; id, _ = c.Prev() {
		if n == back {
			return string(id), nil
		}
		n++
	}
	if n == 0 {
		return "", fmt.Errorf("no report %q: no run was made here yet", ref)
	}
	return "", fmt.Errorf("no report %q: of runs made here there are %d", ref, n)
}
