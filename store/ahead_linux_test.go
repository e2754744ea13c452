package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// What is read ahead is what bbolt says a bucket is made of.
func TestEachLevel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relaybench.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, n := range []int{0, 1, 100, 10_000} {
		err := db.update(func(tx *bbolt.Tx) error {
			for i := range n {
				if err := tx.Bucket(indexBucket).Put(fmt.Appendf(nil, "%020d", i), make([]byte, 200)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		err = db.view(func(tx *bbolt.Tx) error {
			db.readAhead(tx, indexBucket, cellsBucket) // must not fail
			stats := tx.Bucket(indexBucket).Stats()
			seen, levels := map[int64]bool{}, 0
			size := int64(tx.DB().Info().PageSize)
			eachLevel(file, int64(tx.Bucket(indexBucket).Root()), size, int(tx.Size()/size), func(pages []int64) {
				levels++
				for _, p := range pages {
					seen[p] = true
				}
			})
			if got, want := len(seen), stats.BranchPageN+stats.LeafPageN; got != want {
				t.Errorf("%d keys: %d pages, want %d", n, got, want)
			}
			if got, want := levels, stats.Depth; want > 1 && got != want {
				t.Errorf("%d keys: %d levels, want %d", n, got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A page may say anything: no more pages are looked at than there are.
func FuzzEachLevel(f *testing.F) {
	const size = 64
	itself := make([]byte, 3*size)
	for at := 0; at < len(itself); at += size {
		itself[at+8] = 1
		binary.LittleEndian.PutUint16(itself[at+10:], 0xffff)
	}
	f.Add(itself)
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 2*size))
	f.Fuzz(func(t *testing.T, file []byte) {
		const most = 100
		n := 0
		eachLevel(bytes.NewReader(file), 1, size, most, func(pages []int64) { n += len(pages) })
		if n > most {
			t.Errorf("%d pages", n)
		}
	})
}
