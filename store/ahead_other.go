//go:build !linux

package store

import "go.etcd.io/bbolt"

// readAhead does nothing here: a scan waits for its pages.
func (db *DB) readAhead(*bbolt.Tx, ...[]byte) {}
