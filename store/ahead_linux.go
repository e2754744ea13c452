package store

import (
	"encoding/binary"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// readAhead has the system read all pages of some buckets into memory, for which
// a scan would else wait one by one: bbolt maps its file as one that is read
// here and there. It is a hint: what is wrong with a page, the scan will say.
func (db *DB) readAhead(tx *bbolt.Tx, buckets ...[]byte) {
	file, err := os.Open(db.path)
	if err != nil {
		return
	}
	defer file.Close()
	size := int64(tx.DB().Info().PageSize)
	for _, name := range buckets {
		eachLevel(file, int64(tx.Bucket(name).Root()), size, int(tx.Size()/size), func(pages []int64) {
			willNeed(file, pages, size)
		})
	}
}

// eachLevel hands over the numbers of the pages of a tree, from its root down, a
// level at a time: those of leaves are all on the last one. A damaged page may
// lead anywhere, so it ends where there would be more pages than most.
//
// Source of a page's form: https://github.com/etcd-io/bbolt/blob/v1.5.0/internal/common/page.go.
func eachLevel(file io.ReaderAt, root, size int64, most int, do func(pages []int64)) {
	const branch, head, element = 1, 16, 16 // a flag, and lengths in bytes
	if root == 0 {
		return // it is so small that it lies in a page of the tree above
	}
	page := make([]byte, size)
	for level := []int64{root}; len(level) > 0 && len(level) <= most; {
		do(level)
		most -= len(level)
		var below []int64
		for _, number := range level {
			if _, err := file.ReadAt(page, number*size); err != nil || page[8]&branch == 0 {
				return
			}
			elements := page[head:]
			for range min(int(binary.LittleEndian.Uint16(page[10:])), len(elements)/element, most+1-len(below)) {
				below = append(below, int64(binary.LittleEndian.Uint64(elements[8:])))
				elements = elements[element:]
			}
		}
		level = below
	}
}

// willNeed tells the system of pages that will soon be read. Those with little
// between them are told of together.
func willNeed(file *os.File, pages []int64, size int64) {
	const little = 16
	pages = slices.Sorted(slices.Values(pages))
	for from, to := 0, 1; from < len(pages); from, to = to, to+1 {
		for to < len(pages) && pages[to]-pages[to-1] <= little {
			to++
		}
		_ = unix.Fadvise(int(file.Fd()), pages[from]*size, (pages[to-1]+1-pages[from])*size, unix.FADV_WILLNEED)
	}
}
