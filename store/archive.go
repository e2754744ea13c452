package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// An export is lines of JSON, a report each: the version of its record, the
// relaybench that wrote it, and the record's JSON as it is in the store, with
// all that this relaybench may not know of.
//
//	{"relaybench_report":1,"by":"v0.3.0","report":{"id":"20261130-164502-3f9a1c",…}}

// archived is such a line.
type archived struct {
	Version int             `json:"relaybench_report"`
	By      string          `json:"by"`
	Report  json.RawMessage `json:"report"`
}

// maxLine bounds such a line, in bytes.
const maxLine = maxRecord + maxHead*6 + 100

// ReadLines reads reports by id, in that order, and hands the line of each to
// do, with its newline and with no transaction open. The line is do's until it
// returns. The first error ends it.
func (db *DB) ReadLines(ids []string, do func(line []byte) error) error {
	var line []byte
	return db.readRecords(ids, func(id string, record []byte, _ bool) (err error) {
		if line, err = db.appendLine(line[:0], record); err != nil {
			return fmt.Errorf("store %q: report %s: %w", db.path, id, err)
		}
		return do(line)
	})
}

// appendLine appends the line of a record.
func (db *DB) appendLine(line, record []byte) ([]byte, error) {
	by, text, err := db.unpack(record)
	if err != nil {
		return line, err
	}
	name, err := json.Marshal(by)
	if err != nil {
		return line, err
	}
	line = fmt.Appendf(line, `{"relaybench_report":%d,"by":%s,"report":`, current(), name)
	return append(append(line, text...), "}\n"...), nil
}

// Imported is what became of a file that was imported.
type Imported struct {
	New   int // reports that were added
	Known int // those that were there already
	Left  LeftOut
}

// LeftOut is what of a file could not be imported. As an error it says that
// nothing of the file was.
type LeftOut struct {
	Bad       int      // lines that hold no report
	Conflicts int      // reports with the id of another one
	Why       []string // of the first of both, with the number of the line
}

// mostWhys is how many lines are told of.
const mostWhys = 10

func (l *LeftOut) Error() string {
	text := l.Why[0]
	if more := l.Bad + l.Conflicts - 1; more > 0 {
		text += fmt.Sprintf("; so it is with %d more", more)
	}
	return text + ": nothing was imported"
}

func (l *LeftOut) add(line int, err error) {
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		l.Conflicts++
	} else {
		l.Bad++
	}
	if len(l.Why) < mostWhys {
		if line > 0 {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		l.Why = append(l.Why, err.Error())
	}
}

// ConflictError says that another report has the id of one that was to be imported.
type ConflictError struct {
	ID  string
	Err error // why the other one could not be read; nil: it was, and is another one
}

func (e *ConflictError) Error() string {
	text := fmt.Sprintf("report %s: the store has another one under that id, and keeps it; the file is left as it is", e.ID)
	if e.Err != nil {
		text += fmt.Sprintf(" (the store's cannot be read: %v)", e.Err)
	}
	return text
}

// Import brings in the reports of a file under their own ids: the lines of an
// export, or the one report of a [DB.SaveFile]. Reports that are there already
// are known, and not added again. Where a line holds no report, or another
// report has its id, nothing is imported, and the error is a [*LeftOut]; with
// rest, what can be imported is. All of it is on the disk when it returns, and none of it before.
//
// Only the report of a SaveFile counts as made here, where host, this machine's
// name, is the report's: an export may be from anywhere, also from a machine of the same name.
//
// Note: until all is read, the reports are in memory, compressed.
func (db *DB) Import(ctx context.Context, path, host string, rest bool) (Imported, error) {
	im := importing{db: db, host: host, cells: map[cellName]*cell{}}
	f, err := openRegular(path)
	if err == nil {
		err = im.read(ctx, f, maxLine)
		err = errors.Join(err, f.Close())
	}
	var done Imported
	if err == nil {
		done, err = im.save(rest)
	}
	if err != nil {
		return Imported{}, fmt.Errorf("import %q: %w", path, bare(err))
	}
	return done, nil
}

// importing is a file that is being imported.
type importing struct {
	db    *DB
	host  string
	items []item
	left  LeftOut
	cells map[cellName]*cell // that reports share
}

// item is a report of the file, ready to be stored.
type item struct {
	line   int // 0: the file has none
	id     string
	own    bool
	record []byte
	entry  *Entry
}

// openRegular opens a file that can be read to its end.
func openRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, errors.New("is no regular file")
	}
	return os.Open(path)
}

// read reads a file whose lines are of so many bytes at most.
func (im *importing) read(ctx context.Context, f io.Reader, most int) error {
	r := bufio.NewReaderSize(f, 64<<10)
	if head, _ := r.Peek(len(recordMagic)); string(head) == recordMagic {
		return im.readRecord(r)
	}
	return readLines(r, most, func(number int, line []byte, whole bool) error {
		it, err := item{}, errors.New("is too long to be a report")
		if whole {
			it, err = im.parse(line)
		}
		if err != nil {
			im.left.add(number, err)
		} else {
			it.line = number
			im.items = append(im.items, it)
		}
		return context.Cause(ctx)
	})
}

// readRecord reads the file of a SaveFile.
func (im *importing) readRecord(r io.Reader) error {
	record, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if err != nil {
		return err
	}
	if len(record) > maxRecord {
		return errors.New("is too large to be a report")
	}
	_, text, err := im.db.unpack(record)
	if err != nil {
		return err
	}
	it, err := im.item(text, im.host)
	if err != nil {
		return err
	}
	im.items = append(im.items, it)
	return nil
}

// readLines hands each line to do, without white space around it; empty ones
// are left out. Of a line of more than so many bytes the beginning is handed, as not whole.
func readLines(r *bufio.Reader, most int, do func(number int, line []byte, whole bool) error) error {
	var line []byte
	for number := 1; ; number++ {
		line = line[:0]
		if cap(line) > 1<<20 {
			line = nil // a long one does not stay
		}
		whole := true
		var err error
		for {
			var part []byte
			part, err = r.ReadSlice('\n')
			if whole = whole && len(line)+len(part) <= most; whole {
				line = append(line, part...)
			}
			if err != bufio.ErrBufferFull {
				break
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 || !whole {
			if err := do(number, text, whole); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// parse reads a line of an export.
func (im *importing) parse(line []byte) (item, error) {
	if !utf8.Valid(line) {
		return item{}, errors.New("is no report: it is not UTF-8")
	}
	var a archived
	err := json.Unmarshal(line, &a)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) && line[0] == '{' && int(syntax.Offset) >= len(line):
		return item{}, errors.New("is cut off, or damaged at its end")
	case err != nil:
		return item{}, fmt.Errorf("is no report: %w", err)
	case a.Version < 1:
		return item{}, errors.New("is no report of an export")
	case a.Version > current():
		return item{}, newer(a.Version, a.By)
	}
	text, err := migrated(a.Version, a.Report)
	if err != nil {
		return item{}, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return item{}, fmt.Errorf("is no report: %w", err)
	}
	return im.item(compact.Bytes(), "")
}

// item is the report of that JSON. It was made here where host is its host.
func (im *importing) item(text []byte, host string) (it item, err error) {
	if len(text) > maxRecord {
		return it, errors.New("is too large to be a report")
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return it, fmt.Errorf("is no report: %w", err)
	}
	if !whole(r) {
		return it, fmt.Errorf("is no whole report: its id is %q", clip(r.ID))
	}
	r.Own = host != "" && r.Provenance.Host.Name == host
	it = item{id: strings.Clone(r.ID), own: r.Own, record: im.db.pack(r, text, nil)}
	err = guard(func() error { it.entry = EntryOf(r); return nil }) // what an import holds, no run may ever have had
	if err != nil {
		return it, fmt.Errorf("is no report that makes sense: %w", err)
	}
	name, _ := it.entry.cell.pack()
	if shared := im.cells[name]; shared != nil {
		it.entry.cell = shared
	} else {
		im.cells[name] = it.entry.cell
	}
	return it, nil
}

// whole says whether a report has what every saved one has.
func whole(r *Report) bool {
	t, n, ok := parseID(r.ID)
	return ok && r.ID == formatID(t, n) && r.Result != nil
}

// save keeps what was read, in one transaction.
func (im *importing) save(rest bool) (done Imported, err error) {
	err = im.db.update(func(tx *bbolt.Tx) error {
		done = Imported{Left: im.left}
		for _, it := range im.items {
			known, _ := recordOf(tx, it.id)
			if known == nil {
				done.New++
				if err := putRecord(tx, it.record, it.own, it.entry); err != nil {
					return err
				}
				continue
			}
			same, err := im.db.same(known, it.record)
			if same {
				done.Known++
			} else {
				done.Left.add(it.line, &ConflictError{ID: it.id, Err: err})
			}
		}
		if len(done.Left.Why) > 0 && !rest {
			left := done.Left
			return &left
		}
		if done.New == 0 {
			return errKnown
		}
		return nil
	})
	var left *LeftOut
	switch {
	case errors.Is(err, errKnown):
		return done, nil
	case errors.As(err, &left):
		return Imported{}, left
	}
	return done, err
}

// errKnown ends an import of what is there, without a write.
var errKnown = errors.New("known")

// same says whether two records are of the same report, in whatever version and order of keys they were written.
func (db *DB) same(known, record []byte) (bool, error) {
	_, a, err := db.unpack(known)
	if err != nil {
		return false, err
	}
	_, b, err := db.unpack(record)
	if err != nil || bytes.Equal(a, b) {
		return err == nil, err
	}
	x, err := generic(a)
	if err != nil {
		return false, err
	}
	y, err := generic(b)
	return err == nil && reflect.DeepEqual(x, y), err
}

// generic reads JSON with its numbers as they are written.
func generic(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
