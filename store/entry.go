package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is what the index knows of a report: its variables, headline metrics
// and marks. It holds no transaction, and may be kept.
type Entry struct {
	ID         string
	Start, End time.Time // of the run; zero where there was none
	Own        bool      // made here, not imported
	// Problem is why the report cannot be read, in words that say what to do.
	// Nothing else is known of it then.
	Problem string

	cell *cell
	rest []byte // marks, headline metrics and what is of the occasion, packed; shared, never written to
}

// cell is the conditions of a report, which it shares with all that were made alike.
type cell struct {
	values []string // by conditions; "" is unknown
	extra  []pair   // that are in no table, by name

	mu   sync.Mutex
	keys map[string]string // groupKey by the named variables
}

type pair struct{ name, value string }

// What of the tables stands where in cells and entries.
var (
	conditions = placesOf(func(v *Variable) bool { return v.Role != Occasion })
	occasions  = placesOf(func(v *Variable) bool {
		return v.Role == Occasion && !slices.Contains([]string{reportID, reportDate, started, ended, imported}, v.Name)
	})
	headlines = func() []int {
		var at []int
		for i := range Metrics {
			if Metrics[i].Headline {
				at = append(at, i)
			}
		}
		return at
	}()
)

// placesOf are the places in the table of variables of some, and by name their number among them.
func placesOf(some func(*Variable) bool) (p struct {
	at     []int
	number map[string]int
}) {
	p.number = map[string]int{}
	for i := range Variables {
		if some(&Variables[i]) {
			p.number[Variables[i].Name] = len(p.at)
			p.at = append(p.at, i)
		}
	}
	return p
}

// EntryOf derives an entry from a report, or from the plan and provenance of one that is not yet run.
func EntryOf(r *Report) *Entry {
	e := &Entry{ID: r.ID, Start: startOf(r), End: endOf(r), Own: r.Own, cell: &cell{values: make([]string, 0, len(conditions.at))}}
	for _, i := range conditions.at {
		value, _ := Variables[i].Of(r)
		e.cell.values = append(e.cell.values, value)
	}
	plan := others(r)
	for _, name := range slices.Sorted(maps.Keys(plan)) {
		e.cell.extra = append(e.cell.extra, pair{name, plan[name]})
	}

	var marks []int
	for i := range Marks {
		if _, ok := Marks[i].Of(r); ok {
			marks = append(marks, i)
		}
	}
	b := make([]byte, 0, 200+8*len(headlines)) // what it comes to, with what is said of occasions
	b = binary.AppendUvarint(b, uint64(len(marks)))
	for _, i := range marks {
		b = binary.AppendUvarint(b, uint64(i))
	}
	for _, i := range headlines {
		v, ok := Metrics[i].Of(r)
		if !ok {
			v = math.NaN()
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	for _, i := range occasions.at {
		value, _ := Variables[i].Of(r)
		b = appendText(b, value)
	}
	e.rest = b
	return e
}

// Var is the value of a variable, canonical; ok is false where it is unknown or not set.
func (e *Entry) Var(name string) (value string, ok bool) {
	switch name {
	case reportID:
		value = e.ID
	case reportDate:
		value = timeText(dateOf(e.ID))
	case started:
		value = timeText(e.Start)
	case ended:
		value = timeText(e.End)
	case imported:
		value = yesNo(!e.Own)
	default:
		if e.cell == nil {
			return "", false
		}
		if i, is := occasions.number[name]; is {
			value = e.occasion(i)
			break
		}
		return e.cell.get(name)
	}
	return value, value != ""
}

func (c *cell) get(name string) (value string, ok bool) {
	if i, is := conditions.number[name]; is {
		return c.values[i], c.values[i] != ""
	}
	i, ok := slices.BinarySearchFunc(c.extra, name, func(p pair, name string) int { return strings.Compare(p.name, name) })
	if !ok {
		return "", false
	}
	return c.extra[i].value, true
}

// occasion is the value of one of occasions by its number.
func (e *Entry) occasion(number int) string {
	u := unpack(e.rest)
	u.marks(nil)
	u.skip(8 * len(headlines))
	for range number {
		u.bytes()
	}
	return string(u.bytes())
}

// Vars are all variables that are known, by name.
func (e *Entry) Vars() map[string]string {
	values := map[string]string{}
	for i := range Variables {
		name := Variables[i].Name
		if value, ok := e.Var(name); ok {
			values[name] = value
		}
	}
	if e.cell != nil {
		for _, p := range e.cell.extra {
			values[p.name] = p.value
		}
	}
	return values
}

// Conditions are those of its variables that are not of the occasion: what [Entry.Group] without a name is the key of.
func (e *Entry) Conditions() map[string]string {
	values := e.Vars()
	maps.DeleteFunc(values, func(name, _ string) bool {
		i, ok := place[name]
		return ok && Variables[i].Role == Occasion
	})
	return values
}

// Metric is the value of a headline metric, in its unit; ok is false where it is unknown.
func (e *Entry) Metric(name string) (value float64, ok bool) {
	number := slices.IndexFunc(headlines, func(i int) bool { return Metrics[i].Name == name })
	if number < 0 || e.cell == nil {
		return 0, false
	}
	u := unpack(e.rest)
	u.marks(nil)
	u.skip(8 * number)
	v := u.float()
	if math.IsNaN(v) {
		return 0, false
	}
	return v, true
}

// Marks are the marks that it has, in the table's order.
func (e *Entry) Marks() (marks []*Mark) {
	if e.cell == nil {
		return nil
	}
	u := unpack(e.rest)
	u.marks(func(i int) { marks = append(marks, &Marks[i]) })
	return marks
}

// Unfit says whether its marks make a metric unfit, and which one does first.
func (e *Entry) Unfit(metric string) (by string, ok bool) {
	if e.cell == nil {
		return "", false
	}
	u := unpack(e.rest)
	u.marks(func(i int) {
		if !ok && Marks[i].unfits(metric) {
			by, ok = Marks[i].Name, true
		}
	})
	return by, ok
}

// Fit says that it can be read and that no mark makes any metric of it unfit.
func (e *Entry) Fit() bool {
	return e.Problem == "" && !slices.ContainsFunc(e.Marks(), func(m *Mark) bool { return len(m.Unfit) > 0 })
}

// Group is [GroupKey] of its variables.
func (e *Entry) Group(named ...string) string {
	if e.cell == nil {
		return ""
	}
	return e.cell.group(named)
}

func (c *cell) group(named []string) string {
	by := strings.Join(named, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.keys[by]
	if !ok {
		var extra []string
		for _, p := range c.extra {
			extra = append(extra, p.name)
		}
		key = groupKey(c.get, extra, named)
		if c.keys == nil {
			c.keys = map[string]string{}
		}
		c.keys[by] = key
	}
	return key
}

// An entry is stored under its report's id as a byte that says whether the
// report can be read, then
//
//	unreadable: the problem's text
//	readable: 1 where it is own, the name of its cell, start and end, rest
//
// and a cell, under its name, as the texts of its values, then of its extra pairs.
const (
	entryReadable   = 'r'
	entryUnreadable = 'u'
)

// cellName is what a cell is stored under: the beginning of the SHA-256 of what is stored.
type cellName [16]byte

func (c *cell) pack() (name cellName, packed []byte) {
	for _, v := range c.values {
		packed = appendText(packed, v)
	}
	for _, p := range c.extra {
		packed = appendText(appendText(packed, p.name), p.value)
	}
	sum := sha256.Sum256(packed)
	return cellName(sum[:]), packed
}

// unpackCell reads a stored cell. It keeps nothing of packed.
func unpackCell(packed []byte) (*cell, error) {
	u, all := unpack(packed), string(packed)
	text := func() string {
		n := len(u.bytes())
		end := len(packed) - len(u.left)
		return all[end-n : end]
	}
	c := &cell{values: make([]string, len(conditions.at))}
	for i := range c.values {
		c.values[i] = text()
	}
	for len(u.left) > 0 {
		c.extra = append(c.extra, pair{text(), text()})
	}
	return c, u.err()
}

// pack is the entry as it is stored. That of its cell is stored apart, under name.
func (e *Entry) pack(name cellName) []byte {
	if e.Problem != "" {
		return append([]byte{entryUnreadable, own(e.Own)}, e.Problem...)
	}
	b := append([]byte{entryReadable, own(e.Own)}, name[:]...)
	b = appendTime(appendTime(b, e.Start), e.End)
	return append(b, e.rest...)
}

func own(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// entryHead is how many bytes of a stored entry stand before what varies in length.
const entryHead = 2 + len(cellName{}) + 2*12

// cellOf is the name of a stored entry's cell; ok is false where its report cannot be read.
func cellOf(packed []byte) (name cellName, ok bool) {
	if len(packed) < entryHead || packed[0] != entryReadable {
		return name, false
	}
	return cellName(packed[2:]), true
}

// unpack reads a stored entry, whose cell is c. It keeps nothing of packed:
// what it needs of it is appended to kept, which it returns.
func (e *Entry) unpack(id, packed []byte, c *cell, kept []byte) ([]byte, error) {
	*e = Entry{ID: string(id)}
	if len(packed) < 2 {
		return kept, errBroken
	}
	e.Own = packed[1] == 1
	if packed[0] == entryUnreadable {
		e.Problem = string(packed[2:])
		return kept, nil
	}
	if c == nil || len(packed) < entryHead {
		return kept, errBroken
	}
	e.Start, e.End = timeAt(packed[2+len(cellName{}):]), timeAt(packed[2+len(cellName{})+12:])
	rest := packed[entryHead:]
	if len(kept)+len(rest) > cap(kept) {
		kept = make([]byte, 0, max(keptBytes, len(rest))) // what is full stays with its entries
	}
	at := len(kept)
	kept = append(kept, rest...)
	e.cell, e.rest = c, kept[at:len(kept):len(kept)]
	u := unpack(e.rest)
	u.marks(nil)
	u.skip(8 * len(headlines))
	for range occasions.at {
		u.bytes()
	}
	return kept, u.err()
}

// keptBytes is how much of entries is kept in one piece of memory.
const keptBytes = 16 << 10

// appendTime writes an instant in 12 bytes, with its nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.LittleEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

func timeAt(b []byte) time.Time {
	t := time.Unix(int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint32(b[8:])))
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errBroken = errors.New("is damaged")

// unpacker reads what was packed. Once something is missing it reads nothing more, and err says so.
type unpacker struct {
	left []byte
	bad  bool
}

func unpack(packed []byte) unpacker { return unpacker{left: packed} }

// err is nil when all was read, and no more was asked for.
func (u *unpacker) err() error {
	if u.bad || len(u.left) > 0 {
		return errBroken
	}
	return nil
}

func (u *unpacker) fail() { u.left, u.bad = nil, true }

func (u *unpacker) skip(n int) (skipped []byte) {
	if n > len(u.left) {
		u.fail()
		return nil
	}
	skipped, u.left = u.left[:n], u.left[n:]
	return skipped
}

// number is one below limit.
func (u *unpacker) number(limit int) int {
	v, n := binary.Uvarint(u.left)
	if n <= 0 || v >= uint64(limit) {
		u.fail()
		return 0
	}
	u.left = u.left[n:]
	return int(v)
}

func (u *unpacker) bytes() []byte { return u.skip(u.number(math.MaxInt32)) }

func (u *unpacker) float() float64 {
	if b := u.skip(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return math.NaN()
}

// marks reads the places of marks in their table.
func (u *unpacker) marks(each func(place int)) {
	for range u.number(len(Marks) + 1) {
		if i := u.number(len(Marks)); each != nil && !u.bad {
			each(i)
		}
	}
}
