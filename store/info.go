package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// Info is what there is to know of a store as a file.
type Info struct {
	Path           string
	Size           int64 // bytes of the file
	Free           int64 // of them, bytes that compacting would give back, or reports to come will fill
	Disk           int64 // bytes that its disk has left for this user; -1 unknown
	Reports        int
	Own            int            // of them, made here
	Oldest, Newest string         // ids; "" where there is no report
	Versions       map[int]int    // reports by version of their record; 0: no record that can be read
	Writers        map[string]int // reports by the version of relaybench that wrote them, "" unknown
	Layout         int            // number of the file's layout
	IndexCurrent   bool           // the index is of this relaybench's tables; else it is made anew when it is needed
}

// Info looks the store over. It reads each record's first line.
func (db *DB) Info() (Info, error) {
	info := Info{Path: db.path, Layout: layout, Disk: diskLeft(db.path), Versions: map[int]int{}, Writers: map[string]int{}}
	var used int64
	err := db.update(func(tx *bbolt.Tx) error { // for bbolt's count of free pages, which a read does not renew
		used = tx.Size()
		info.IndexCurrent, _ = indexing(tx)
		if err := tx.Bucket(ownBucket).ForEach(func(_, _ []byte) error { info.Own++; return nil }); err != nil {
			return err
		}
		c := tx.Bucket(reportsBucket).Cursor()
		for id, record := c.First(); id != nil; id, record = c.Next() {
			if info.Oldest == "" {
				info.Oldest = string(id)
			}
			info.Newest = string(id)
			info.Reports++
			line, _, ended := bytes.Cut(record[:min(len(record), maxHead)], []byte("\n"))
			number, by, err := parseHead(string(line), ended)
			if err != nil {
				number, by = 0, ""
			}
			info.Versions[number]++
			info.Writers[by]++
		}
		return errCheckOnly
	})
	if !errors.Is(err, errCheckOnly) {
		return info, err
	}
	file, err := os.Stat(db.path)
	if err != nil {
		return info, fmt.Errorf("store %q: %w", db.path, bare(err))
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	stats := db.bolt.Stats()
	info.Size = file.Size()
	info.Free = max(0, file.Size()-used) + int64(stats.FreePageN+stats.PendingPageN)*int64(os.Getpagesize())
	return info, nil
}
