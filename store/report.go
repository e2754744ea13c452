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
// and is not in the store.
func (db *DB) Save(r *Report) error {
	r.ID = ""
	var id string
	err := db.update(func(tx *bbolt.Tx) error {
		reports, own := tx.Bucket(reportsBucket), tx.Bucket(ownBucket)
		last, _ := own.Cursor().Last()
		for id = nextID(string(last), db.now()); reports.Get([]byte(id)) != nil; {
			id = nextID(id, db.now()) // an imported one has it
		}
		saved := *r
		saved.ID = id
		record, err := db.encode(&saved)
		if err != nil {
			return err
		}
		if err := own.Put([]byte(id), nil); err != nil {
			return err
		}
		return reports.Put([]byte(id), record)
	})
	if err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	r.ID = id
	return nil
}

// Get reads the report that ref names: an id, a unique beginning of one, "last" or "last-N".
func (db *DB) Get(ref string) (*Report, error) {
	var id string
	var record []byte
	err := db.view(func(tx *bbolt.Tx) (err error) {
		if id, err = find(tx, ref); err != nil {
			return err
		}
		record = bytes.Clone(tx.Bucket(reportsBucket).Get([]byte(id)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	r, err := db.decode(record)
	if err != nil {
		return nil, fmt.Errorf("store %q: report %s: %w", db.path, id, err)
	}
	return r, nil
}

// Find is the id of the report that ref names, as in [DB.Get].
func (db *DB) Find(ref string) (id string, err error) { panic("stub") }

// ReadReports reads reports by id, in that order, and hands each to do, with no
// transaction open. The first error ends it.
func (db *DB) ReadReports(ids []string, do func(*Report) error) error { panic("stub") }

// Delete removes reports by id, all or none: an error names those that are not there.
func (db *DB) Delete(ids ...string) error { panic("stub") }

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
