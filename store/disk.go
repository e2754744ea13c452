package store

import "time"

// Info is what there is to know of a store as a file.
type Info struct {
	Path           string
	Size           int64 // bytes of the file
	Free           int64 // of them, bytes that compacting would give back, or reports to come will fill
	Disk           int64 // bytes that its disk has left for this user; -1 unknown
	Reports        int
	Own            int            // of them, made here
	Oldest, Newest string         // ids; "" where there is no report
	Versions       map[int]int    // reports by version of their record
	Writers        map[string]int // reports by the version of relaybench that wrote them
	Layout         int            // number of the file's layout
	IndexCurrent   bool           // the index is of this relaybench's tables
}

// Info looks the store over. It reads each record's first line.
func (db *DB) Info() (Info, error) { panic("stub") }

// Compact writes the store anew beside itself without its free pages, and puts
// that in its place: what is there at any moment is whole. It waits for what is
// being read or written, and nothing is while it works.
func (db *DB) Compact() (before, after int64, err error) { panic("stub") }

// Backup writes a consistent copy of the store to a new file, while the store is in use. It does not replace a file.
func (db *DB) Backup(path string) (size int64, err error) { panic("stub") }

// SpaceError says that the disk has too little room for a report.
type SpaceError struct {
	Path       string
	Need, Left int64 // bytes; Left -1: unknown
	Err        error // what the system said
}

func (e *SpaceError) Error() string { panic("stub") }

func (e *SpaceError) Unwrap() error { return e.Err }

// Reserve makes sure of disk space for a report of so many bytes, a
// [RecordSize], that is to be saved next: Save will then need no more of it.
// Its error is a [SpaceError] where that is the cause.
func (db *DB) Reserve(bytes int64) error { panic("stub") }

// RecordSize is the most bytes that the record of a run can be expected to have.
func RecordSize(load time.Duration) int64 { panic("stub") }
