package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/storetest"
)

// The goal for a save, encoding included, is at most twice what a plain
// durable write of the same bytes takes: ratio, of the two in turn. Reserved,
// the room for the report was set aside before, as it is when its run begins.
func BenchmarkSave(b *testing.B) {
	for _, seconds := range []int{10, 60, 600} {
		b.Run(fmt.Sprintf("%ds", seconds), func(b *testing.B) { save(b, seconds, false) })
		b.Run(fmt.Sprintf("%ds-reserved", seconds), func(b *testing.B) { save(b, seconds, true) })
	}
}

func save(b *testing.B, seconds int, reserve bool) {
	r := storetest.Uneven(seconds)
	db := openAt(b, filepath.Join(b.TempDir(), "relaybench.db"))
	record, err := db.Encode(r)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "record")
	var save, file time.Duration
	n := 0
	for b.Loop() {
		if reserve {
			if err := db.Reserve(store.RecordSize(time.Duration(seconds)*time.Second, false)); err != nil {
				b.Fatal(err)
			}
		}
		begun := time.Now()
		if err := db.Save(r); err != nil {
			b.Fatal(err)
		}
		saved := time.Now()
		if err := writeFile(path, record); err != nil {
			b.Fatal(err)
		}
		save, file = save+saved.Sub(begun), file+time.Since(saved)
		n++
	}
	b.ReportMetric(float64(len(record)), "B/record")
	b.ReportMetric(float64(save)/float64(n), "ns/save")
	b.ReportMetric(float64(file)/float64(n), "ns/file")
	b.ReportMetric(float64(save)/float64(file), "ratio")
}

func BenchmarkEncode(b *testing.B) {
	r := storetest.Report(10)
	db := openAt(b, filepath.Join(b.TempDir(), "relaybench.db"))
	b.Run("record", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("entry", func(b *testing.B) {
		for b.Loop() {
			store.EntryOf(r)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	db := openAt(b, filepath.Join(b.TempDir(), "relaybench.db"))
	if err := db.Save(storetest.Report(10)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.Get("last"); err != nil {
			b.Fatal(err)
		}
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
