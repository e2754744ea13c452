package store

import "go.etcd.io/bbolt"

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
	return db.update(func(tx *bbolt.Tx) error {
		if value == "" {
			return tx.Bucket(settingsBucket).Delete([]byte(name))
		}
		return tx.Bucket(settingsBucket).Put([]byte(name), []byte(value))
	})
}
