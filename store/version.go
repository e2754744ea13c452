package store

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A record is a report as it is stored: a line that names the record's version
// and the relaybench that wrote it, then the report's JSON, compressed by zstd:
//
//	relaybench report 2 v0.3.0
//
// The JSON is what an export holds, but for the samples of a run, which are in
// columns behind it: see columns.go.

// maxRecord bounds a record's JSON, in bytes: a day of samples takes a tenth of it.
const maxRecord = 256 << 20

// version is one entry of the table of versions of the record.
type version struct {
	number int
	// migrate makes the JSON of a report of this version into that of the
	// next; the newest has none.
	migrate func([]byte) ([]byte, error)
}

// versions is the table of versions of the record, oldest first. To add one:
// an entry here, the migration of the one before it, and a golden file of it,
// testdata/report-vN.json.
//
// A version is needed where what is stored changes its name or meaning. A
// field that is new needs none: reports without it have its zero value.
var versions = []version{
	{number: 1, migrate: func(text []byte) ([]byte, error) { return text, nil }},
	// Records have samples in columns, which an older relaybench could not read: a run of ten
	// minutes is encoded in less than a third of the time. As JSON it is what it was in version 1.
	{number: 2},
}

// current is the version in which reports are written.
func current() int { return versions[len(versions)-1].number }

const recordMagic = "relaybench report "

// maxHead bounds a record's first line, in bytes.
const maxHead = 200

// encode is the record of a report.
func (db *DB) encode(r *Report) ([]byte, error) {
	text, columns, err := marshal(r, maxSamples)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("encode: %d bytes are more than the %d of a record", len(text), maxRecord)
	}
	return db.pack(r, text, columns), nil
}

// pack is the record of a report, whose JSON in the current version is text,
// with its samples in it or, behind it, in columns.
func (db *DB) pack(r *Report, text, columns []byte) []byte {
	record := make([]byte, 0, maxHead+(len(text)+len(columns))/2) // as much as it comes to
	record = fmt.Appendf(record, "%s%d %s\n", recordMagic, current(), printable(r.Provenance.Bench.Version))
	record = db.zip.EncodeAll(text, record)
	return db.zip.EncodeAll(columns, record) // of none, nothing
}

// printable is a program's version fit for a record's first line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			return r
		}
		return '_'
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 100)], "")
}

// decode reads a record of any version up to the current one.
func (db *DB) decode(record []byte) (*Report, error) {
	_, number, text, err := db.open(record)
	if err == nil && number < current() {
		text, err = asOf(number, text)
	}
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("record is damaged: %w", err)
	}
	return r, nil
}

// unpack is the JSON of a record, in the current version with its samples one
// by one, and the relaybench that wrote it.
func (db *DB) unpack(record []byte) (by string, text []byte, err error) {
	by, number, text, err := db.open(record)
	if err != nil {
		return "", nil, err
	}
	text, err = asOf(number, text)
	return by, text, err
}

// open is what a record holds, as it holds it.
func (db *DB) open(record []byte) (by string, number int, text []byte, err error) {
	line, packed, ok := bytes.Cut(record, []byte("\n"))
	number, by, err = parseHead(string(line), ok)
	switch {
	case err != nil:
		return "", 0, nil, err
	case number > current():
		return "", 0, nil, newer(number, by)
	}
	if text, err = db.unzip.DecodeAll(packed, nil); err != nil {
		return "", 0, nil, fmt.Errorf("record is damaged: %w", err)
	}
	return by, number, text, nil
}

// asOf is what a record of some version holds as JSON of the current one, with its samples one by one.
func asOf(number int, text []byte) ([]byte, error) {
	if number > 1 { // the first had no columns
		var err error
		if text, err = plain(text); err != nil {
			return nil, fmt.Errorf("record is damaged: %w", err)
		}
	}
	return migrated(number, text)
}

// newer is the error of a record of a version that is to come.
func newer(number int, by string) error {
	return fmt.Errorf("record version %d was written by relaybench %s, and this one reads up to %d: use that one", number, orUnknown(printable(by)), current())
}

// parseHead reads the first line of a record; ended says that there is one.
func parseHead(line string, ended bool) (number int, by string, err error) {
	rest, magic := strings.CutPrefix(line, recordMagic)
	if !ended || !magic {
		return 0, "", errors.New("is no record of a report")
	}
	text, by, _ := strings.Cut(rest, " ")
	number, err = strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, "", fmt.Errorf("record version %q is no number", text)
	}
	return number, by, nil
}

func orUnknown(version string) string {
	if version == "" {
		return "of unknown version"
	}
	return version
}

// migrated is the JSON of a report of some version in the current one.
func migrated(number int, text []byte) ([]byte, error) {
	for _, v := range versions {
		if v.number < number || v.migrate == nil {
			continue
		}
		next, err := v.migrate(text)
		if err != nil {
			return nil, fmt.Errorf("migrate record version %d: %w", v.number, err)
		}
		text = next
	}
	return text, nil
}
