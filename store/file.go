package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// SaveFile writes a report that Save could not save to a file of its own in a
// folder, under a new id, which it sets. The file is on the disk when it
// returns; [DB.Import] brings it into a store.
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
		err = NewFile(path, func(w io.Writer) error { _, err := w.Write(record); return err })
	}
	if err != nil {
		return "", fmt.Errorf("save report as %q: %w", path, bare(err))
	}
	*r = saved
	return path, nil
}

// NewFile writes a new file, whole or not at all, for good. It does not replace
// one. What write returns is in its error.
func NewFile(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return errors.New("there is a file of that name: name another, or remove it")
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return bare(err)
	}
	defer os.Remove(temp.Name())
	if err = write(temp); err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return bare(err)
	}
	if err := putInPlace(temp.Name(), path); errors.Is(err, fs.ErrExist) {
		return errors.New("there is a file of that name by now: name another, or remove it")
	} else if err != nil {
		return bare(err)
	}
	return nil
}
