package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// The index is a cache of what lists and comparisons need of every report. It
// is of the tables of variables, metrics and marks that made it: their
// fingerprint stands beside it, and where it is another one, all of it is made
// anew from the reports. So nothing in it needs a migration.

// indexCode is to be raised when the code of a variable, headline metric or
// mark, or the form of an entry, changes what the index holds.
const indexCode = 1

// fingerprint is of the tables and the code that make the index.
var fingerprint = func() string {
	h := sha256.New()
	fmt.Fprintln(h, indexCode)
	for _, v := range Variables {
		fmt.Fprintf(h, "%q %q %d\n", v.Name, v.Type.Name(), v.Role)
	}
	for _, i := range headlines {
		fmt.Fprintf(h, "%q %q\n", Metrics[i].Name, Metrics[i].Unit)
	}
	for _, m := range Marks {
		fmt.Fprintf(h, "%q\n", m.Name)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}()

var (
	indexKey = []byte("index") // in meta: the fingerprint, after making where it is not yet whole
	making   = "making "
)

// indexing says whether an index of these tables is there, or being made.
func indexing(tx *bbolt.Tx) (whole, being bool) {
	switch string(tx.Bucket(metaBucket).Get(indexKey)) {
	case fingerprint:
		return true, false
	case making + fingerprint:
		return false, true
	}
	return false, false
}

// putEntry keeps an entry, in the transaction in which its report is kept. An
// index of other tables is left alone: it is made anew in any case.
func putEntry(tx *bbolt.Tx, e *Entry) error {
	if whole, being := indexing(tx); !whole && !being {
		return nil
	}
	return addEntry(tx.Bucket(indexBucket), tx.Bucket(cellsBucket), e)
}

func addEntry(index, cells *bbolt.Bucket, e *Entry) error {
	var name cellName
	if e.Problem == "" {
		var packed []byte
		if name, packed = e.cell.pack(); cells.Get(name[:]) == nil {
			if err := cells.Put(name[:], packed); err != nil {
				return err
			}
		}
	}
	index.FillPercent = 0.9 // ids go up
	return index.Put([]byte(e.ID), e.pack(name))
}

// Newest limits what is read to the newest reports. Its zero value is no limit.
type Newest struct {
	N      int           // that many at most; 0: no limit
	Within time.Duration // saved that long ago at most; 0: no limit
}

// Entries are the reports that all filters match, newest last, and how many
// more match that the limit cut off. No transaction is open when it returns.
func (db *DB) Entries(filters []Filter, limit Newest) (entries []Entry, cut int, err error) {
	err = db.indexed(func() error {
		entries, cut, err = db.scan(filters, limit)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return entries, cut, nil
}

// indexed reads the index, once it is up to date. What is wrong with it is
// mended by making it anew, and then read does its work again: it is a cache.
func (db *DB) indexed(read func() error) error {
	if err := db.Index(nil); err != nil {
		return err
	}
	err := read()
	if !errors.Is(err, errBroken) {
		return err
	}
	if err := db.update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(indexKey) }); err != nil {
		return err
	}
	if err := db.Index(nil); err != nil {
		return err
	}
	return read()
}

// scan reads the index.
func (db *DB) scan(filters []Filter, limit Newest) (entries []Entry, cut int, err error) {
	var found [][]Entry // newest first, in pieces that need not move as they get more
	n, piece := 0, pieceEntries
	if limit.N > 0 {
		piece = min(piece, limit.N)
	}
	cut, err = db.walk(filters, limit, func(e *Entry, _ *seenCell) {
		if n%piece == 0 {
			found = append(found, make([]Entry, 0, piece))
		}
		found[len(found)-1] = append(found[len(found)-1], *e)
		n++
	})
	entries = make([]Entry, 0, n)
	for _, piece := range slices.Backward(found) {
		slices.Reverse(piece)
		entries = append(entries, piece...)
	}
	return entries, cut, err
}

// walk hands over the entries that all filters match, newest first, in one
// transaction, and gives how many more match that the limit cut off. What e
// points to is another entry afterwards; those of one cell come with the same c.
func (db *DB) walk(filters []Filter, limit Newest, visit func(e *Entry, c *seenCell)) (cut int, err error) {
	var after string // ids before it are too old
	if limit.Within > 0 {
		after = db.now().Add(-limit.Within).UTC().Format(idTime)
	}
	ofCell, ofEntry := split(filters)
	seen := map[cellName]*seenCell{}
	var kept []byte
	var e Entry
	n := 0
	err = db.view(func(tx *bbolt.Tx) error {
		cells := tx.Bucket(cellsBucket)
		db.readAhead(tx, indexBucket, cellsBucket)
		c := tx.Bucket(indexBucket).Cursor()
		for id, packed := c.Last(); id != nil; id, packed = c.Prev() {
			over := limit.N > 0 && n == limit.N || string(id) < after
			if over && len(filters) == 0 {
				cut++
				continue
			}
			s := &noCell
			if name, ok := cellOf(packed); ok {
				if s = seen[name]; s == nil {
					of, err := unpackCell(cells.Get(name[:]))
					if err != nil {
						return fmt.Errorf("index: conditions of report %s: %w", id, err)
					}
					s = &seenCell{cell: of, match: matchAll(ofCell, &Entry{cell: of})}
					seen[name] = s
				}
				if !s.match {
					continue
				}
				if over && len(ofEntry) == 0 {
					cut++
					continue
				}
			}
			more, err := e.unpack(id, packed, s.cell, kept)
			switch {
			case err != nil:
				return fmt.Errorf("index: report %s: %w", id, err)
			case s == &noCell && !matchAll(ofCell, &e), !matchAll(ofEntry, &e):
				kept = more[:len(more)-len(e.rest)] // to be written over
				continue
			case over:
				kept = more[:len(more)-len(e.rest)]
				cut++
				continue
			}
			kept = more
			visit(&e, s)
			n++
		}
		return nil
	})
	return cut, err
}

// pieceEntries is how many entries a scan keeps in one piece of memory.
const pieceEntries = 512

// seenCell is a cell that a walk came to, whether it matches those filters that
// are of cells, and where its reports go in a comparison.
type seenCell struct {
	cell  *cell
	match bool
	group *grouping
	row   *Row
}

// noCell is what a report that cannot be read has.
var noCell seenCell

// Index brings the index up to date where the tables of variables, metrics or
// marks are not those that made it; else it does nothing. It reads every report
// then: tell, which may be nil, hears how many it has done. [DB.Entries] calls it.
func (db *DB) Index(tell func(done, all int)) error {
	db.indexing.Lock()
	defer db.indexing.Unlock()
	var whole, being bool
	var all int
	err := db.view(func(tx *bbolt.Tx) error {
		if whole, being = indexing(tx); !whole {
			all = tx.Bucket(reportsBucket).Stats().KeyN
		}
		return nil
	})
	if err != nil || whole {
		return err
	}
	if !being {
		if err := db.update(beginIndex); err != nil {
			return fmt.Errorf("make the index anew: %w", err)
		}
	}
	var last []byte
	for done := 0; ; {
		n, next, err := db.indexMore(last)
		if err != nil {
			return fmt.Errorf("make the index anew: %w", err)
		}
		if next == nil {
			return nil
		}
		last = next
		if done += n; tell != nil {
			tell(done, all)
		}
	}
}

// beginIndex empties the index. From now on what is saved goes into it too.
func beginIndex(tx *bbolt.Tx) error {
	for _, name := range [][]byte{indexBucket, cellsBucket} {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(metaBucket).Put(indexKey, []byte(making+fingerprint))
}

// How many reports are read for the index at once, and how many bytes of them, about.
const (
	indexBatch = 100
	indexBytes = 16 << 20
)

// indexMore adds the reports after an id to the index, some at once. It returns
// how many, and the id of the last one, or nil when the index is whole.
func (db *DB) indexMore(last []byte) (n int, next []byte, err error) {
	type report struct {
		id, record []byte
		own        bool
		entry      *Entry
	}
	var reports []report
	err = db.view(func(tx *bbolt.Tx) error {
		owns, index := tx.Bucket(ownBucket), tx.Bucket(indexBucket)
		c := tx.Bucket(reportsBucket).Cursor()
		id, record := c.Seek(last)
		if last != nil && bytes.Equal(id, last) {
			id, record = c.Next()
		}
		for size := 0; id != nil && len(reports) < indexBatch && size < indexBytes; id, record = c.Next() {
			next = bytes.Clone(id)
			size += len(record)
			if n++; index.Get(id) == nil { // not saved meanwhile, nor before an end in mid-work
				reports = append(reports, report{id: next, record: bytes.Clone(record), own: has(owns, id)})
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}

	Parallel(len(reports), func(i int) {
		reports[i].entry = db.entryOf(string(reports[i].id), reports[i].record, reports[i].own)
	})

	err = db.update(func(tx *bbolt.Tx) error {
		all, index, cells := tx.Bucket(reportsBucket), tx.Bucket(indexBucket), tx.Bucket(cellsBucket)
		for _, r := range reports {
			if all.Get(r.id) == nil { // deleted meanwhile
				continue
			}
			if err := addEntry(index, cells, r.entry); err != nil {
				return err
			}
		}
		// What was saved meanwhile is in the index: where there was no more to read, it is whole.
		if next == nil {
			return tx.Bucket(metaBucket).Put(indexKey, []byte(fingerprint))
		}
		return nil
	})
	return n, next, err
}

// entryOf is the entry of a record, also of one that cannot be read.
func (db *DB) entryOf(id string, record []byte, own bool) *Entry {
	r, err := db.decode(record)
	if err != nil {
		return &Entry{ID: id, Own: own, Problem: err.Error()}
	}
	r.ID, r.Own = id, own
	return EntryOf(r)
}
