package store

import (
	"bytes"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

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
	return db.SetSettings(map[string]string{name: value})
}

// Settings are those whose names begin with a prefix, such as those of a shelf "alias/".
func (db *DB) Settings(prefix string) (map[string]string, error) {
	values := map[string]string{}
	err := db.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(settingsBucket).Cursor()
		for k, v := c.Seek([]byte(prefix)); bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			values[string(k)] = string(v)
		}
		return nil
	})
	return values, err
}

// SetSettings keeps several, all or none; those with an empty value are removed.
func (db *DB) SetSettings(values map[string]string) error {
	return db.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(settingsBucket)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			err := b.Put([]byte(name), []byte(values[name]))
			if values[name] == "" {
				err = b.Delete([]byte(name))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
