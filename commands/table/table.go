// Package table turns rows of typed cells into what is asked for: text that
// fits a screen, Markdown, JSON, CSV. All are made of the same rows.
//
// It must never know what the rows mean.
package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column describes the cells below it.
type Column struct {
	Key   string // stable name in JSON and CSV, lower_snake, with the unit at its end where there is one
	Head  string // what a person reads; empty: Key
	Right bool   // align right, as numbers are
	Wrap  bool   // may be wrapped where the table is wider than the screen
	Data  bool   // for programs only: not in the text
}

// Table is rows under columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	// Single says that there is one row and ever will be: a line a column as
	// text, and an object in JSON.
	Single bool
	// Bare leaves the line of keys out of CSV: more rows of a table that was begun.
	Bare bool
}

// Record is a table of one row; field by field with [Table.Field].
func Record() *Table { return &Table{Single: true, Rows: [][]Cell{nil}} }

// Field adds a column, and its cell in the one row; head is what a person reads.
func (t *Table) Field(key, head string, c Cell) {
	t.Columns = append(t.Columns, Column{Key: key, Head: head})
	t.Rows[0] = append(t.Rows[0], c)
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

const (
	gap     = "  " // between columns
	wrapMin = 9    // a wrapped column is at least this wide,
	wordMin = 18   // and as wide as its longest word, where that is no longer than this and it does not cost the table its one piece
)

// Text writes the table for a person, at most width wide; 0: as wide as it is.
// Where it is too wide, columns that may be are wrapped; where that is not
// enough, the columns that have no room stand below, the first one repeated.
func (t *Table) Text(w io.Writer, width int) error {
	if t.Single {
		t = t.turned()
	}
	t = t.read()
	widths := t.fit(width)
	for from := 0; ; {
		to, room := from+1, width-widths[0]
		if from == 0 {
			room += widths[0]
		}
		for room -= widths[from]; to < len(widths) && (width <= 0 || room >= len(gap)+widths[to]); to++ {
			room -= len(gap) + widths[to]
		}
		columns := []int{}
		if from > 0 {
			columns = append(columns, 0)
		}
		for i := from; i < to; i++ {
			columns = append(columns, i)
		}
		if err := t.render(w, columns, widths, width); err != nil || to >= len(widths) {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		from = to
	}
}

// render writes some of the columns; what is wider than width is cut.
func (t *Table) render(w io.Writer, columns, widths []int, width int) error {
	p := pretty.NewWriter()
	whole := -len(gap)
	for _, i := range columns {
		whole += widths[i] + len(gap)
	}
	if whole <= width {
		width = 0 // it would be cut for the last column's gap, which is not printed
	}
	p.SetStyle(pretty.Style{
		Box:     pretty.BoxStyle{PaddingRight: gap, UnfinishedRow: "…"},
		Options: pretty.Options{},
		Size:    pretty.SizeOptions{WidthMax: width},
	})
	p.SuppressTrailingSpaces()
	var configs []pretty.ColumnConfig
	var head pretty.Row
	headed := false
	for n, i := range columns {
		c := t.Columns[i]
		config := pretty.ColumnConfig{Number: n + 1}
		if c.Right {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		if c.Wrap {
			config.WidthMax, config.WidthMaxEnforcer = widths[i], text.WrapSoft
		}
		configs = append(configs, config)
		head = append(head, c.head())
		headed = headed || c.head() != ""
	}
	p.SetColumnConfigs(configs)
	if headed {
		p.AppendHeader(head)
	}
	for _, cells := range t.Rows {
		var row pretty.Row
		for _, i := range columns {
			s := cells[i].String()
			if cells[i].paint != nil {
				s = cells[i].paint(s)
			}
			row = append(row, s)
		}
		p.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, p.Render())
	return err
}

// Markdown writes the table for a person who reads it on a page.
func (t *Table) Markdown(w io.Writer) error {
	if t.Single {
		t = t.turned()
	}
	t = t.read()
	var b strings.Builder
	b.WriteByte('|')
	for _, c := range t.Columns {
		b.WriteString(" " + Escape(c.head()) + " |")
	}
	b.WriteString("\n|")
	for _, c := range t.Columns {
		if c.Right {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteByte('\n')
	for _, row := range t.Rows {
		b.WriteByte('|')
		for _, c := range row {
			b.WriteString(" " + Escape(c.String()) + " |")
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// Escape keeps what has a meaning in Markdown from having it.
func Escape(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`)

// read is the table without columns for programs only.
func (t *Table) read() *Table {
	if !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Data }) {
		return t
	}
	out := &Table{Rows: make([][]Cell, len(t.Rows))}
	for i, c := range t.Columns {
		if c.Data {
			continue
		}
		out.Columns = append(out.Columns, c)
		for j, row := range t.Rows {
			out.Rows[j] = append(out.Rows[j], row[i])
		}
	}
	return out
}

// turned is a table of one row as one of two columns without heads.
func (t *Table) turned() *Table {
	out := &Table{Columns: []Column{{}, {Wrap: true}}}
	for i, c := range t.Columns {
		out.Add(Text(c.head()), t.Rows[0][i])
	}
	return out
}

func (c Column) head() string {
	if c.Head == "" {
		return c.Key
	}
	return c.Head
}

// least is how narrow a column that wraps may be: no word is cut but a long one.
func (t *Table) least(column int) int {
	n := wrapMin
	if t.Columns[column].Wrap {
		for _, row := range t.Rows {
			for w := range strings.FieldsSeq(row[column].String()) {
				n = max(n, min(textWidth(w), wordMin))
			}
		}
	}
	return n
}

// textWidth is how many columns of a screen a text takes. Below the combining
// marks each letter stands for itself, as the minus sign does.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		if r >= '\u0300' && r != '−' {
			return text.StringWidth(s)
		}
		n += text.RuneWidth(r)
	}
	return n
}

// fit is how wide each column is, the widest of those that wrap made narrower
// until all fit into width, or none can be.
func (t *Table) fit(width int) []int {
	widths, least := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	total := 0
	for i, c := range t.Columns {
		widths[i] = textWidth(c.head())
		for _, row := range t.Rows {
			widths[i] = max(widths[i], textWidth(row[i].String()))
		}
		least[i] = t.least(i)
		total += widths[i] + len(gap)
	}
	total -= len(gap)
	if width <= 0 {
		return widths
	}
	narrowed, ok := t.narrowed(widths, total-width, func(i int) int { return least[i] })
	if !ok { // with words cut, perhaps
		if cut, ok := t.narrowed(widths, total-width, func(int) int { return wrapMin }); ok {
			return cut
		}
	}
	return narrowed
}

// narrowed are the widths with some columns less, the widest of those that wrap
// first, and none below its least; ok is false where it is not enough.
func (t *Table) narrowed(widths []int, less int, least func(column int) int) (narrowed []int, ok bool) {
	narrowed = slices.Clone(widths)
	for ; less > 0; less-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Wrap && narrowed[i] > least(i) && (widest < 0 || narrowed[i] > narrowed[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return narrowed, false
		}
		narrowed[widest]--
	}
	return narrowed, true
}

// JSON writes an array of one object a row, keys in the columns' order; the
// object alone for a single row.
func (t *Table) JSON(w io.Writer) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

// MarshalJSON is the array that [Table.JSON] writes.
func (t *Table) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if !t.Single {
		b.WriteByte('[')
	}
	for i, row := range t.Rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('{')
		for j, c := range row {
			if j > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(t.Columns[j].Key)
			if err != nil {
				return nil, err
			}
			value, err := c.MarshalJSON()
			if err != nil {
				return nil, err
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
	}
	if !t.Single {
		b.WriteByte(']')
	}
	return b.Bytes(), nil
}

// CSV writes a line of keys and one a row.
func (t *Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = c.Key
	}
	if !t.Bare {
		if err := out.Write(line); err != nil {
			return err
		}
	}
	for _, row := range t.Rows {
		for i, c := range row {
			line[i] = c.plain()
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
