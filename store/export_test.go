package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"relaybench/store/stats"
)

// What tests of this package, in store_test, reach inside it for.

var (
	NextID   = nextID
	LockedBy = lockedBy
	Layout   = layout
)

const MaxSuffix = idSpace - 1

func (db *DB) SetClock(now func() time.Time) { db.now = now }

func (db *DB) Encode(r *Report) ([]byte, error) { return db.encode(r) }

func (db *DB) Decode(record []byte) (*Report, error) { return db.decode(record) }

// Record is a record of a version that holds text.
func (db *DB) Record(number int, text []byte) []byte {
	return db.zip.EncodeAll(text, fmt.Appendf(nil, "%s%d v0\n", recordMagic, number))
}

// Text is the JSON of a record, as an export has it.
func (db *DB) Text(record []byte) ([]byte, error) {
	_, text, err := db.unpack(record)
	return text, err
}

// Held is what a record holds of a report, with samples in columns where they are not more than most.
func Held(r *Report, most int) ([]byte, error) {
	text, columns, err := marshal(r, most)
	return append(text, columns...), err
}

// MaxSamples is how many samples may be in columns.
var MaxSamples = maxSamples

// Columns are the names of columns, in their order.
func Columns() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// Versions are the numbers of the table of versions, and whether each has a migration.
func Versions() (numbers []int, migrates []bool) {
	for _, v := range versions {
		numbers = append(numbers, v.number)
		migrates = append(migrates, v.migrate != nil)
	}
	return numbers, migrates
}

// DecodeJSON reads the JSON of a report of some version.
func DecodeJSON(number int, text []byte) (*Report, error) {
	r := &Report{}
	text, err := migrated(number, text)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	return r, err
}

// PutImported keeps a report as an import does: under its own id, and not as a run made here.
func (db *DB) PutImported(r *Report) error {
	return db.update(func(tx *bbolt.Tx) error { return db.put(tx, r) })
}

const IndexCode = indexCode

var CompactPath = compactPath

// Generate keeps n reports, each the same record as the first but for its
// entry in the index, in few transactions.
func (db *DB) Generate(n int, report func(i int) *Report) error {
	const batch = 10_000
	var record []byte
	for from := 0; from < n; from += batch {
		err := db.update(func(tx *bbolt.Tx) error {
			reports, own := tx.Bucket(reportsBucket), tx.Bucket(ownBucket)
			for i := from; i < min(n, from+batch); i++ {
				r := report(i)
				if record == nil {
					var err error
					if record, err = db.encode(r); err != nil {
						return err
					}
				}
				if err := reports.Put([]byte(r.ID), record); err != nil {
					return err
				}
				if err := own.Put([]byte(r.ID), nil); err != nil {
					return err
				}
				if err := putEntry(tx, EntryOf(r)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetIndexState says of which tables the index is; "making" stands for an index of these that is not whole.
func (db *DB) SetIndexState(state string) error {
	if state == "making" {
		state = making + fingerprint
	}
	return db.update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(indexKey, []byte(state)) })
}

// PutRaw writes bytes into a bucket as they are; nil removes what is there.
func (db *DB) PutRaw(bucket, key string, value []byte) error {
	return db.update(func(tx *bbolt.Tx) error {
		if value == nil {
			return tx.Bucket([]byte(bucket)).Delete([]byte(key))
		}
		return tx.Bucket([]byte(bucket)).Put([]byte(key), value)
	})
}

// Pack is an entry as it is stored, and its cell.
func (e *Entry) Pack() (entry, cell []byte) {
	name, cell := e.cell.pack()
	return e.pack(name), cell
}

// UnpackEntry reads both.
func UnpackEntry(id, entry, cell []byte) (*Entry, error) {
	c, err := unpackCell(cell)
	if err != nil {
		return nil, err
	}
	e := &Entry{}
	_, err = e.unpack(id, entry, c, nil)
	return e, err
}

func (db *DB) Trim() { db.trim() }

// Reading calls do while a transaction that reads is open.
func (db *DB) Reading(do func()) error {
	return db.view(func(*bbolt.Tx) error { do(); return nil })
}

// NextVersion adds a version to the table, to which migrate brings the records of the one before, until undo.
func NextVersion(migrate func([]byte) ([]byte, error)) (undo func()) {
	was := versions
	versions = append([]version(nil), was...)
	versions[len(versions)-1].migrate = migrate
	versions = append(versions, version{number: current() + 1})
	return func() { versions = was }
}

// ImportBytes imports what a file would hold, with lines of so many bytes at most.
func (db *DB) ImportBytes(ctx context.Context, data []byte, most int, rest bool) (Imported, error) {
	im := importing{db: db, cells: map[cellName]*cell{}}
	if err := im.read(ctx, bytes.NewReader(data), most); err != nil {
		return Imported{}, err
	}
	return im.save(rest)
}

// Exchange reads what a file would hold, and gives it as an export would, without keeping it.
func (db *DB) Exchange(data []byte, most int) (lines []byte, left LeftOut, err error) {
	im := importing{db: db, cells: map[cellName]*cell{}}
	if err := im.read(context.Background(), bytes.NewReader(data), most); err != nil {
		return nil, im.left, err
	}
	for _, it := range im.items {
		if lines, err = db.appendLine(lines, it.record); err != nil {
			return nil, im.left, err
		}
	}
	return lines, im.left, nil
}

// Refill gives the runs of a row other values of a metric, by its number in Cells.
func (c *Collated) Refill(row *Row, metric int, values []float64) {
	for i, v := range values {
		at := metric*len(row.Runs) + i
		row.values[at], row.unfit[at] = v, 0
	}
	cell := &row.cells[metric]
	cell.Values, cell.sorted = values, slices.Sorted(slices.Values(values))
	cell.Summary = stats.Summarize(values)
}
