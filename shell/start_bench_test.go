package shell_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"relaybench/store"
	"relaybench/store/storetest"
)

// The goal from the start to a prompt is 50 ms, with 100,000 reports in the store.
func BenchmarkPrompt(b *testing.B) {
	path := filepath.Join(b.TempDir(), "r.db")
	for _, n := range []int{1, 100_000} {
		grow(b, path, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p := sit(b, nil, "-db", path, "-listen", "off", "-interactive")
				p.sees(prompted)
				b.StopTimer()
				p.types("quit\r")
				p.ends(0)
				b.StartTimer()
			}
		})
	}
}

// grow makes a store of n reports, all but one of which are copies.
func grow(b *testing.B, path string, n int) {
	b.Helper()
	db, err := store.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	r := storetest.Report(1)
	if err := db.Save(r); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	err = bolt.Update(func(tx *bbolt.Tx) error {
		for i := range n - 1 {
			id := []byte(fmt.Sprintf("%s-%06x", at.Add(time.Duration(i)*time.Minute).Format("20060102-150405"), i))
			for _, name := range []string{"reports", "own", "index"} {
				bucket := tx.Bucket([]byte(name))
				if err := bucket.Put(id, bucket.Get([]byte(r.ID))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := bolt.Close(); err != nil {
		b.Fatal(err)
	}
}
