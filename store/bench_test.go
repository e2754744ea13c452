package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"relaybench/store"
	"relaybench/store/storetest"
)

// The goal for save is at most twice what file takes.
func BenchmarkSave(b *testing.B) {
	for _, seconds := range []int{10, 60, 600} {
		r := storetest.Report(seconds)
		db, err := store.Open(filepath.Join(b.TempDir(), "relaybench.db"))
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		record, err := db.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%ds/save", seconds), func(b *testing.B) {
			for b.Loop() {
				if err := db.Save(r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(record)), "B/record")
		})
		b.Run(fmt.Sprintf("%ds/file", seconds), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "record")
			for b.Loop() {
				if err := writeFile(path, record); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%ds/get", seconds), func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Get("last"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// writeFile is a plain durable write: write, fsync, rename.
func writeFile(path string, data []byte) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
