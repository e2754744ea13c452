package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const testID = "9ec79c33ec9942ab8353589fcb2e04dc"

// show is a parsed envelope as text, for comparison.
func show(e *Envelope) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id=%s stamped=%t", e.EventID, e.Stamped)
	for _, it := range e.Items {
		fmt.Fprintf(&b, " | %s x%d %q", it.Type, it.Count, it.Payload)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	stamp := string(AppendStamp(nil, Stamp{Seq: 7, Due: 9, Kind: []byte("logs")}))
	for _, c := range []struct{ name, body, want string }{
		{"header alone", `{}`, "id= stamped=false"},
		{"header and newline", "{}\n", "id= stamped=false"},
		{"event", "{\"event_id\":\"" + testID + "\"}\n{\"type\":\"event\",\"length\":2}\n{}\n", "id=" + testID + ` stamped=false | event x1 "{}"`},
		{"no last newline", "{}\n{\"type\":\"event\",\"length\":2}\n{}", `id= stamped=false | event x1 "{}"`},
		{"no length", "{}\n{\"type\":\"event\"}\nhello\n{\"type\":\"a\"}\nb", `id= stamped=false | event x1 "hello" | a x1 "b"`},
		{"empty payloads", "{}\n{\"type\":\"attachment\",\"length\":0}\n\n{\"type\":\"attachment\",\"length\":0}\n", `id= stamped=false | attachment x1 "" | attachment x1 ""`},
		{"empty payload at the end of bytes", "{}\n{\"type\":\"attachment\",\"length\":0}", `id= stamped=false | attachment x1 ""`},
		{"no length at the end of bytes", "{}\n{\"type\":\"attachment\"}", `id= stamped=false | attachment x1 ""`},
		{"newlines in payload", "{}\n{\"type\":\"attachment\",\"length\":3}\n\n\n\n\n", `id= stamped=false | attachment x1 "\n\n\n"`},
		{"count", "{}\n{\"type\":\"log\",\"item_count\":12,\"length\":2}\n{}\n", `id= stamped=false | log x12 "{}"`},
		{"count of none", "{}\n{\"type\":\"log\",\"item_count\":0}\n{}\n", `id= stamped=false | log x0 "{}"`},
		{"white space in headers", "{ \"event_id\" :\t\"x\" , \"a\":[ 1 , {} ] }\n{ \"type\" : \"a\" }\n\n", `id=x stamped=false | a x1 ""`},
		{"id that is null", `{"event_id":null}`, "id= stamped=false"},
		{"stamp", `{"relaybench":"` + stamp + `"}`, "id= stamped=true"},
		{"deep keys are not the header's", `{"a":{"event_id":1,"relaybench":2},"event_id":"x"}`, "id=x stamped=false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Envelope
			if err := e.Parse([]byte(c.body)); err != nil {
				t.Fatal(err)
			}
			if got := show(&e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		offset     int
		what       string
	}{
		{"nothing", "", 0, "envelope header is not a JSON object"},
		{"newline", "\n", 0, "envelope header is not a JSON object"},
		{"no object", "null\n", 0, "envelope header is not a JSON object"},
		{"cut header", `{"a":1`, 6, "no comma after member"},
		{"header over two lines", "{\"a\":\n1}\n", 5, "header ends early"},
		{"bytes after header", "{} \n", 2, "bytes after envelope header"},
		{"carriage return", "{}\r\n", 2, "bytes after envelope header"},
		{"not UTF-8", "{\"a\":\"\xff\"}\n", 0, "envelope header is not UTF-8"},
		{"id of another type", `{"event_id":1}`, 12, "event_id is not a string"},
		{"two ids", `{"event_id":"a","event_id":"b"}`, 27, "second event_id"},
		{"stamp that is none", `{"relaybench":"7"}`, 14, "no stamp: relaybench"},
		{"stamp of another type", `{"relaybench":7}`, 14, "relaybench is not a string"},
		{"item without a type", "{}\n{}\n", 3, "item header without a type"},
		{"item with an empty type", "{}\n{\"type\":\"\"}\n", 3, "item header without a type"},
		{"type of another type", "{}\n{\"type\":[]}\n", 11, "type is not a string"},
		{"escape in type", "{}\n{\"type\":\"\\u0065vent\"}\n", 11, "escape in type"},
		{"blank line between items", "{}\n{\"type\":\"a\"}\n\n\n{\"type\":\"a\"}\n\n", 17, "item header is not a JSON object"},
		{"blank line at the end", "{}\n{\"type\":\"a\"}\nb\n\n", 18, "item header is not a JSON object"},
		{"length beyond the end", "{}\n{\"type\":\"a\",\"length\":3}\nbc", 29, "payload ends before its length"},
		{"length beyond all ends", "{}\n{\"type\":\"a\",\"length\":2147483647}\nbc", 38, "payload ends before its length"},
		{"length beyond numbers", "{}\n{\"type\":\"a\",\"length\":99999999999999999999}\nbc", 24, "length is too large"},
		{"negative length", "{}\n{\"type\":\"a\",\"length\":-1}\n", 24, "length is not a whole number from 0"},
		{"length with a fraction", "{}\n{\"type\":\"a\",\"length\":1.0}\n", 24, "length is not a whole number from 0"},
		{"length as text", "{}\n{\"type\":\"a\",\"length\":\"1\"}\n", 24, "length is not a whole number from 0"},
		{"length that is null", "{}\n{\"type\":\"a\",\"length\":null}\n", 24, "length is not a whole number from 0"},
		{"negative count", "{}\n{\"type\":\"a\",\"item_count\":-1}\n", 28, "item_count is not a whole number from 0"},
		{"count beyond 31 bits", "{}\n{\"type\":\"a\",\"item_count\":2147483648}\n", 28, "item_count is too large"},
		{"two lengths", "{}\n{\"type\":\"a\",\"length\":1,\"length\":1}\nb\n", 35, "second length"},
		{"too deep", `{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", 5 + maxDepth - 1, "header nests too deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Envelope
			err := e.Parse([]byte(c.body))
			var got *SyntaxError
			if !errors.As(err, &got) {
				t.Fatalf("error %v, envelope %s", err, show(&e))
			}
			if diff := cmp.Diff(&SyntaxError{c.offset, c.what}, got); diff != "" {
				t.Error(diff)
			}
			if len(e.Items) > 0 {
				t.Errorf("%d items of a bad envelope", len(e.Items))
			}
		})
	}
}

// The length of an attachment of three bytes, counted as an SDK that takes characters for bytes would.
func TestLengthInCharacters(t *testing.T) {
	head := `{"event_id":"` + testID + `"}` + "\n"
	for _, c := range []struct {
		length int
		want   string // or the offset past the item's header
		offset int
	}{
		{3, `id=` + testID + ` stamped=false | attachment x1 "▶" | event x1 "{}"`, 0},
		{1, "no newline after payload", 1},
		{2, "no newline after payload", 2},
		{4, "no newline after payload", 4},
		{20, "item header without a type", 21},
	} {
		item := fmt.Sprintf(`{"type":"attachment","length":%d,"filename":"a.txt"}`+"\n", c.length)
		body := head + item + "▶\n{\"type\":\"event\"}\n{}\n"
		var e Envelope
		err := e.Parse([]byte(body))
		if c.offset == 0 {
			if got := show(&e); err != nil || got != c.want {
				t.Errorf("length %d: %s, %v; want %s", c.length, got, err, c.want)
			}
			continue
		}
		var got *SyntaxError
		want := &SyntaxError{len(head) + len(item) + c.offset, c.want}
		if !errors.As(err, &got) || *got != *want || len(e.Items) > 0 {
			t.Errorf("length %d: %v with %d items, want %v with none", c.length, err, len(e.Items), want)
		}
	}
}

func TestParseReusesMemory(t *testing.T) {
	p := testPool(t, Mixed, 20, DefaultShape())
	var bodies [][]byte
	for seq := range uint64(20) {
		bodies = append(bodies, p.Append(nil, seq, 0))
	}
	var e Envelope
	got := testing.AllocsPerRun(100, func() {
		for _, body := range bodies {
			if err := e.Parse(body); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

// What a first envelope left behind is not seen in a second, also not a bad one.
func TestParseAgain(t *testing.T) {
	var e Envelope
	first := `{"event_id":"x","relaybench":"` + string(AppendStamp(nil, Stamp{Kind: []byte("logs")})) + "\"}\n{\"type\":\"log\",\"item_count\":3}\n"
	for _, second := range []string{"{}", "", "{}\n{}"} {
		if err := e.Parse([]byte(first)); err != nil {
			t.Fatal(err)
		}
		_ = e.Parse([]byte(second))
		if got, want := show(&e), "id= stamped=false"; got != want {
			t.Errorf("after %q: %s, want %s", second, got, want)
		}
	}
}

func TestStampText(t *testing.T) {
	for _, s := range []Stamp{
		{Kind: []byte("errors")},
		{Seq: 1<<64 - 1, Due: 1<<63 - 1, Warm: true, Kind: []byte("a")},
		{Seq: 12, Due: -5, Kind: []byte("check-ins_2")},
	} {
		text := AppendStamp(nil, s)
		got, ok := ParseStamp(text)
		if diff := cmp.Diff(s, got); !ok || diff != "" {
			t.Errorf("%s: %t %s", text, ok, diff)
		}
	}
	good := string(AppendStamp(nil, Stamp{Kind: []byte("e")}))
	for _, bad := range []string{"", good[:stampFixed], strings.ToUpper("A" + good[1:]), "g" + good[1:], good[:34] + "2" + good[35:], strings.Replace(good, "-", "_", 1)} {
		if s, ok := ParseStamp([]byte(bad)); ok {
			t.Errorf("%q is a stamp: %+v", bad, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"{}\n", "{\"event_id\":\"x\"}\n{\"type\":\"event\",\"length\":2}\n{}\n", "{}\n{\"type\":\"a\"}\n\n{\"type\":\"log\",\"item_count\":3}",
		`{"relaybench":"0000000000000001-0000000000000002-1-logs","a":[1,-0.5e+3,true,null,"\u00e9\\"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e Envelope
		if err := e.Parse(body); err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(body) || syntax.What == "" {
				t.Fatalf("error %#v", err)
			}
			if len(e.Items) > 0 {
				t.Fatalf("items of a bad envelope")
			}
			return
		}
		// Each byte is a header's or a payload's, in order.
		whole := append([]byte{}, e.Header...)
		headers := [][]byte{e.Header}
		for _, it := range e.Items {
			whole = append(append(append(append(whole, '\n'), it.Header...), '\n'), it.Payload...)
			headers = append(headers, it.Header)
		}
		if !bytes.Equal(bytes.TrimRight(whole, "\n"), bytes.TrimRight(body, "\n")) {
			t.Fatalf("%q is not %q", whole, body)
		}
		for _, h := range headers {
			if !json.Valid(h) || !utf8.Valid(h) {
				t.Fatalf("header %q is no JSON", h)
			}
		}
	})
}

// The scanner agrees with encoding/json on what an object is, but for depth.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[{},[],"x",1.5e-3,true,false,null],"":"\"\\\/\b\f\n\r\t\u12aF"}`, `{"a":01}`, `{"a":1,}`, `[1]`, `{"a" :	-0 }`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s := scanner{line: line}
		err := s.object("header", func([]byte, int) {})
		trimmed := len(line) > 0 && line[0] == '{' && line[len(line)-1] == '}'
		want := trimmed && json.Valid(line) && utf8.Valid(line)
		if got := err == nil; got != want && (err == nil || s.err.What != "header nests too deep") {
			t.Fatalf("%q: %v, encoding/json says %t", line, err, want)
		}
	})
}

func FuzzParseStamp(f *testing.F) {
	f.Add(AppendStamp(nil, Stamp{Seq: 3, Due: 4, Kind: []byte("errors")}))
	f.Add([]byte("0000000000000000-0000000000000000-0-"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, ok := ParseStamp(text); ok && !bytes.Equal(AppendStamp(nil, s), text) {
			t.Fatalf("%q is read as %+v", text, s)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, k := range Kinds {
		b.Run(k.Name, func(b *testing.B) {
			body := testPool(b, k.Name, 1, DefaultShape()).Append(nil, 0, 0)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var e Envelope
			for b.Loop() {
				if err := e.Parse(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
