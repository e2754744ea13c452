// Package table turns rows of typed cells into what is asked for: text that
// fits a screen, JSON, CSV. All are made of the same rows.
//
// It must never know what the rows mean.
package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column describes the cells below it.
type Column struct {
	Key   string // stable name in JSON and CSV, lower_snake, with the unit at its end where there is one
	Head  string // what a person reads; empty: Key
	Right bool   // align right, as numbers are
	Wrap  bool   // may be wrapped where the table is wider than the screen
}

// Table is rows under columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	// Single says that there is one row and ever will be: a line a column as
	// text, and an object in JSON.
	Single bool
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
	wrapMin = 12   // a wrapped column is at least this wide
)

// Text writes the table for a person, at most width wide; 0: as wide as it is.
// Columns that may be are wrapped, then lines are cut.
func (t *Table) Text(w io.Writer, width int) error {
	if t.Single {
		t = t.turned()
	}
	p := pretty.NewWriter()
	p.SetStyle(pretty.Style{
		Box:     pretty.BoxStyle{PaddingRight: gap, UnfinishedRow: "…"},
		Options: pretty.Options{},
		Size:    pretty.SizeOptions{WidthMax: width},
	})
	p.SuppressTrailingSpaces()
	widths := t.fit(width)
	configs := make([]pretty.ColumnConfig, len(t.Columns))
	head := make(pretty.Row, len(t.Columns))
	for i, c := range t.Columns {
		configs[i] = pretty.ColumnConfig{Number: i + 1}
		if c.Right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
		if c.Wrap {
			configs[i].WidthMax, configs[i].WidthMaxEnforcer = widths[i], text.WrapSoft
		}
		head[i] = c.head()
	}
	p.SetColumnConfigs(configs)
	if len(t.Columns) > 0 && t.Columns[0].Key != "" {
		p.AppendHeader(head)
	}
	for _, cells := range t.Rows {
		row := make(pretty.Row, len(cells))
		for i, c := range cells {
			s := c.String()
			if c.paint != nil {
				s = c.paint(s)
			}
			row[i] = s
		}
		p.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, p.Render())
	return err
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

// fit is how wide each column is, the widest of those that wrap made narrower
// until all fit into width, or none can be.
func (t *Table) fit(width int) []int {
	widths := make([]int, len(t.Columns))
	total := 0
	for i, c := range t.Columns {
		widths[i] = text.StringWidth(c.head())
		for _, row := range t.Rows {
			widths[i] = max(widths[i], text.StringWidth(row[i].String()))
		}
		total += widths[i] + len(gap)
	}
	for width > 0 && total > width {
		widest := -1
		for i, c := range t.Columns {
			if c.Wrap && widths[i] > wrapMin && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
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
	if err := out.Write(line); err != nil {
		return err
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
