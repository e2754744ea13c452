package table

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
)

func sample() *Table {
	t := &Table{Columns: []Column{{Key: "kind"}, {Key: "p99_ns", Head: "p99", Right: true}, {Key: "sent", Right: true}, {Key: "why", Wrap: true}}}
	t.Add(Text("errors"), Float(1.5e6, true).As("1.50 ms"), Uint(math.MaxUint64), Text("a, \"quoted\"\nand an umlaut: ä"))
	t.Add(Text("日本"), Float(math.NaN(), true), Int(-3), Text("\x1b[31mred\x1b[0m"))
	t.Add(Text("x"), Float(math.Inf(1), true).As("inf"), Cell{}, Bool(true))
	return t
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := sample().Text(&b, 0); err != nil {
		t.Fatal(err)
	}
	want := `kind        p99                  sent  why
errors  1.50 ms  18446744073709551615  a, "quoted" and an umlaut: ä
日本          -                    -3  ` + "\uFFFD" + `[31mred` + "\uFFFD" + `[0m
x             -                     -  yes
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestTextFits(t *testing.T) {
	for _, width := range []int{20, 40, 50, 60, 80} {
		var b strings.Builder
		if err := sample().Text(&b, width); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(b.String()) {
			if got := text.StringWidth(strings.TrimSuffix(l, "\n")); got > width {
				t.Errorf("width %d: a line is %d wide: %q", width, got, l)
			}
		}
		for _, part := range []string{"1.50 ms", "18446744073709551615", "sent"} {
			if width >= 40 && !strings.Contains(b.String(), part) {
				t.Errorf("width %d: %q is not there:\n%s", width, part, b.String())
			}
		}
		if width >= 50 && !strings.Contains(b.String(), "umlaut") {
			t.Errorf("width %d: a wrapped cell lost its end:\n%s", width, b.String())
		}
	}
}

func TestPainted(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "a"}, {Key: "b"}}}
	tab.Add(Text("x").Painted(func(s string) string { return text.FgRed.Sprint(s) }), Text("y"))
	var b strings.Builder
	if err := tab.Text(&b, 10); err != nil {
		t.Fatal(err)
	}
	if got, want := text.StripEscape(b.String()), "a  b\nx  y\n"; got != want {
		t.Errorf("without colour %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := sample().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	d := json.NewDecoder(strings.NewReader(b.String()))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"kind": "errors", "p99_ns": json.Number("1500000"), "sent": json.Number("18446744073709551615"), "why": "a, \"quoted\"\nand an umlaut: ä"},
		{"kind": "日本", "p99_ns": nil, "sent": json.Number("-3"), "why": "\x1b[31mred\x1b[0m"},
		{"kind": "x", "p99_ns": nil, "sent": nil, "why": true},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if k, p := strings.Index(b.String(), "kind"), strings.Index(b.String(), "p99_ns"); k > p {
		t.Error("keys are not in the columns' order")
	}
	b.Reset()
	if err := (&Table{Columns: sample().Columns}).JSON(&b); err != nil || b.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", b.String(), err)
	}
}

func TestCSV(t *testing.T) {
	var b strings.Builder
	if err := sample().CSV(&b); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"kind", "p99_ns", "sent", "why"},
		{"errors", "1500000", "18446744073709551615", "a, \"quoted\"\nand an umlaut: ä"},
		{"日本", "", "-3", "\x1b[31mred\x1b[0m"},
		{"x", "", "", "true"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestRecord(t *testing.T) {
	r := Record()
	r.Field("form", "relay", Text("stand-in"))
	r.Field("size", "size", Uint(12).As("12 B"))
	r.Field("sha256", "sha256", Cell{})
	for _, tt := range []struct {
		name string
		do   func(io.Writer) error
		want string
	}{
		{"text", func(w io.Writer) error { return r.Text(w, 40) }, "relay   stand-in\nsize    12 B\nsha256  -\n"},
		{"json", r.JSON, "{\n  \"form\": \"stand-in\",\n  \"size\": 12,\n  \"sha256\": null\n}\n"},
		{"csv", r.CSV, "form,size,sha256\nstand-in,12,\n"},
	} {
		var b strings.Builder
		if err := tt.do(&b); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, b.String()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
}

func TestData(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "a"}, {Key: "b", Data: true}, {Key: "c"}}}
	tab.Add(Int(1), Int(2), Int(3))
	var text, data strings.Builder
	if err := tab.Text(&text, 0); err != nil {
		t.Fatal(err)
	}
	if err := tab.CSV(&data); err != nil {
		t.Fatal(err)
	}
	if got, want := text.String()+data.String(), "a  c\n1  3\na,b,c\n1,2,3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBlocks(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "kind"}, {Key: "first", Right: true}, {Key: "second", Right: true}, {Key: "third", Right: true}}}
	tab.Add(Text("errors"), Uint(1), Uint(2), Uint(3))
	var b strings.Builder
	if err := tab.Text(&b, 21); err != nil {
		t.Fatal(err)
	}
	want := `kind    first  second
errors      1       2

kind    third
errors      3
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Where the columns do not fit anyway, a wrapped one cuts no word; where a cut word keeps the table in one piece, it is cut.
func TestWordsAreCutLast(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "report"}, {Key: "marks", Wrap: true}}}
	tab.Add(Text("20261130-224415"), Text("short, host-busy, stand-in"))
	for width, want := range map[int]string{
		27: "report           marks\n20261130-224415  short,\n                 host-busy,\n                 stand-in\n",
		26: "report           marks\n20261130-224415  short,\n                 host-busy\n                 ,\n                 stand-in\n",
	} {
		var b strings.Builder
		if err := tab.Text(&b, width); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want {
			t.Errorf("in %d columns:\n got %q\nwant %q", width, got, want)
		}
	}
	// In two pieces none is cut, though there is room for less.
	tab = &Table{Columns: []Column{{Key: "report"}, {Key: "relay"}, {Key: "marks", Wrap: true}}}
	tab.Add(Text("20261130-224415"), Text("a name of nineteen."), Text("short, host-busy, stand-in"))
	var b strings.Builder
	if err := tab.Text(&b, 40); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "host-busy,\n") || !strings.Contains(got, "\n\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestTextWidth(t *testing.T) {
	texts := []string{"", "CPU/env", "±2.1%", "[−33, −29]", "日本", "e\u0301", "−\u0301", "ä\u200d", "👩‍👩‍👧", "🇩🇪", "\uFFFD[0m", "…"}
	for r := ' '; r < '\u0300'; r++ {
		texts = append(texts, "a"+string(r), string(r)+"−")
	}
	for _, s := range texts {
		if got, want := textWidth(s), text.StringWidth(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}
