package shell_test

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// vt is what a terminal shows of what was written to it: as much of a terminal
// as is needed here. Nothing scrolls away.
type vt struct {
	columns, rows int
	lines         [][]rune
	row, column   int
	wrapped       bool   // the last character filled its line: the next one begins another
	part          string // of a sequence or character
}

func newVT(columns, rows int) *vt { return &vt{columns: columns, rows: rows, lines: [][]rune{nil}} }

func (v *vt) write(text string) {
	text = v.part + text
	v.part = ""
	for text != "" {
		if text[0] == '\x1b' {
			end := strings.IndexFunc(text[1:], func(r rune) bool { return r >= '@' && r != '[' })
			if end < 0 {
				v.part = text
				return
			}
			v.escape(text[1 : end+2])
			text = text[end+2:]
			continue
		}
		if !utf8.FullRuneInString(text) {
			v.part = text
			return
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch r {
		case '\r':
			v.column, v.wrapped = 0, false
		case '\n':
			v.down()
		case '\b':
			v.column, v.wrapped = max(0, v.column-1), false
		case '\a':
		default:
			v.put(r)
		}
	}
}

func (v *vt) down() {
	v.wrapped = false
	if v.row++; v.row == len(v.lines) {
		v.lines = append(v.lines, nil)
	}
}

func (v *vt) put(r rune) {
	if v.wrapped {
		v.down()
		v.column = 0
	}
	l := v.lines[v.row]
	for len(l) <= v.column {
		l = append(l, ' ')
	}
	l[v.column] = r
	v.lines[v.row] = l
	if v.column++; v.column == v.columns {
		v.column, v.wrapped = v.column-1, true
	}
}

// escape does a sequence without its ESC, such as "[2K".
func (v *vt) escape(s string) {
	n, err := strconv.Atoi(s[1 : len(s)-1])
	if err != nil {
		n = 0
	}
	v.wrapped = false
	l := v.lines[v.row]
	switch s[len(s)-1] {
	case 'A':
		v.row = max(0, v.row-max(n, 1))
	case 'C':
		v.column = min(v.columns-1, v.column+max(n, 1))
	case 'H':
		v.row, v.column = max(0, len(v.lines)-v.rows), 0
	case 'J':
		v.lines = v.lines[:v.row+1]
		v.lines[v.row] = l[:min(len(l), v.column)]
	case 'K':
		if n == 2 {
			v.lines[v.row] = nil
		} else {
			v.lines[v.row] = l[:min(len(l), v.column)]
		}
	}
}

// String is all lines, with a ▏ before the character under the cursor.
func (v *vt) String() string {
	var b strings.Builder
	for i, l := range v.lines {
		text := strings.TrimRight(string(l), " ")
		if i == v.row {
			r := []rune(string(l))
			for len(r) < v.column {
				r = append(r, ' ')
			}
			text = strings.TrimRight(string(r[:v.column])+"▏"+string(r[v.column:]), " ")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
