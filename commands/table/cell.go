package table

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Dash is how a value that is not known is shown to a person.
const Dash = "-"

// Cell is one typed value of a row. The zero value is one that is not known,
// which is not zero: a dash to a person, null in JSON, empty in CSV.
type Cell struct {
	value any // nil, string, bool, int64, uint64 or float64
	shown string
	paint func(string) string
}

// Text is a cell of text.
func Text(s string) Cell { return Cell{value: s} }

// Bool is a cell that says yes or no.
func Bool(b bool) Cell { return Cell{value: b} }

// Int is a cell of a whole number.
func Int[N int | int64](n N) Cell { return Cell{value: int64(n)} }

// Uint is a cell of a count.
func Uint(n uint64) Cell { return Cell{value: n} }

// Float is a cell of a number. It is not known where ok is false, nor where v is no finite number.
func Float(v float64, ok bool) Cell {
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return Cell{}
	}
	return Cell{value: v}
}

// As is the cell, shown to a person as text instead of as its value. A cell
// that is not known stays a dash.
func (c Cell) As(text string) Cell {
	c.shown = text
	return c
}

// Painted is the cell, shown to a person through paint, which may add colour but no width.
func (c Cell) Painted(paint func(string) string) Cell {
	c.paint = paint
	return c
}

// Known says whether the cell has a value.
func (c Cell) Known() bool { return c.value != nil }

// String is the cell as a person sees it, without colour and control characters.
func (c Cell) String() string {
	switch {
	case !c.Known():
		return Dash
	case c.shown != "":
		return Clean(c.shown)
	}
	if b, ok := c.value.(bool); ok {
		if b {
			return "yes"
		}
		return "no"
	}
	return Clean(c.plain())
}

// plain is the value's text for a machine; empty where it is not known.
func (c Cell) plain() string {
	switch v := c.value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 { // as JSON has it
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// MarshalJSON writes the value, null where it is not known.
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

// Clean makes text from outside fit for a terminal: what would move the
// cursor, change colours or turn the direction of the text is replaced, and so
// are line ends and tabs, by a space.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
