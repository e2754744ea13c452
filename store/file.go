package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// SaveFile writes a report that Save could not save to a file of its own in a
// folder, under a new id, which it sets. The file is on the disk when it
// returns; [DB.ImportFile] brings it into a store.
func (db *DB) SaveFile(r *Report, dir string) (path string, err error) {
	var last []byte
	_ = db.view(func(tx *bbolt.Tx) error { // a store that cannot be read has no say in it
		id, _ := tx.Bucket(ownBucket).Cursor().Last()
		last = bytes.Clone(id)
		return nil
	})
	saved := *r
	saved.ID, saved.Own = nextID(string(last), db.now()), true
	path = filepath.Join(dir, "relaybench-"+saved.ID+".report")
	record, err := db.encode(&saved)
	if err == nil {
		err = writeNew(path, record)
	}
	if err != nil {
		return "", fmt.Errorf("save report as %q: %w", path, bare(err))
	}
	*r = saved
	return path, nil
}

// writeNew writes a new file, whole or not at all, for good.
func writeNew(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err = temp.Write(data); err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return putInPlace(temp.Name(), path)
}

// ImportFile brings the report of such a file into the store under its own id.
// It counts as made here where host, this machine's name, is the report's. A
// report that is there already is known and not added; where another one has
// its id the error is a [ConflictError].
func (db *DB) ImportFile(path, host string) (id string, added bool, err error) {
	if id, added, err = db.importFile(path, host); err != nil {
		return "", false, fmt.Errorf("import %q: %w", path, bare(err))
	}
	return id, added, nil
}

func (db *DB) importFile(path, host string) (id string, added bool, err error) {
	record, err := readFile(path)
	if err != nil {
		return "", false, err
	}
	r, err := db.decode(record)
	if err != nil {
		return "", false, err
	}
	if _, _, ok := parseID(r.ID); !ok || r.Result == nil {
		return "", false, fmt.Errorf("is no whole report: its id is %q", r.ID)
	}
	r.Own = host != "" && r.Provenance.Host.Name == host
	err = db.update(func(tx *bbolt.Tx) error {
		if known, own := recordOf(tx, r.ID); known != nil {
			same, err := db.same(known, r)
			if err != nil {
				return err
			}
			if !same {
				return &ConflictError{ID: r.ID}
			}
			r.Own = own
			return errKnown
		}
		return db.put(tx, r)
	})
	if errors.Is(err, errKnown) {
		return r.ID, false, nil
	}
	return r.ID, err == nil, err
}

// errKnown ends an import of what is there.
var errKnown = errors.New("known")

// same says whether a record is of the same report, in whatever version it was written.
func (db *DB) same(record []byte, r *Report) (bool, error) {
	known, err := db.decode(record)
	if err != nil {
		return false, fmt.Errorf("the store's report %s: %w", r.ID, err)
	}
	a, err := json.Marshal(known)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(r)
	return bytes.Equal(a, b), err
}

// readFile reads a record's file, of a size that one can have.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, errors.New("is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = errors.New("is too large to be a report")
	}
	return data, err
}

// ConflictError says that the store has another report under the id of one that was to be imported.
type ConflictError struct{ ID string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("report %s: the store has another one under that id, and keeps it; the file is left as it is", e.ID)
}
