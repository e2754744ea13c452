package relay

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func followed(r io.Reader) *logbook {
	l := &logbook{}
	l.follow(r)
	return l
}

func TestRecordedLogs(t *testing.T) {
	for _, c := range []struct {
		file string
		want []Message
	}{
		{"testdata/log.jsonl", []Message{}},
		{"testdata/log.txt", []Message{{"ERROR", "Health check probe 'auth' failed", 9}}},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		l := followed(bytes.NewReader(text))
		if d := cmp.Diff(c.want, l.messages()); d != "" {
			t.Errorf("%s: messages (-want +got):\n%s", c.file, d)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if d := cmp.Diff(lines[len(lines)-3:], l.tail(3)); d != "" {
			t.Errorf("%s: tail (-want +got):\n%s", c.file, d)
		}
	}
}

func TestLogLines(t *testing.T) {
	for _, c := range []struct{ line, level, text string }{
		{`{"timestamp":"x","level":"ERROR","message":"a \"b\" c","target":"t"}`, "ERROR", `a "b" c`},
		{`{"level":"WARN","error":"e"}`, "WARN", "e"},
		{`{"level":"WARN"}`, "WARN", "(no message)"},
		{`{"level":"INFO","message":"\"level\":\"ERROR\""}`, "", ""},
		{`{"level":"INFO","x":{"level":"ERROR"}}`, "", ""},
		{`{"level":"ERROR","message":"cut in the midd`, "ERROR", "cut in the midd"},
		{`{"level":"ERROR","mess`, "ERROR", "(a line that was cut)"},
		{`2026-11-30T14:50:05.8Z ERROR relay_server::x: no: go`, "ERROR", "no: go"},
		{`2026-11-30T14:50:05.8Z  WARN relay_server::x: hm`, "WARN", "hm"},
		{`2026-11-30T14:50:05.8Z  INFO relay_server::x: ERROR hm`, "", ""},
		{`2026-11-30T14:50:05.8Z ERROR a text: with a colon`, "ERROR", "a text: with a colon"},
		{`thread 'main-rt' panicked at relay-server/src/x.rs:178:9:`, "ERROR", "panicked at relay-server/src/x.rs:178:9"},
		{`attempt to divide by zero`, "", ""},
		{``, "", ""},
		{` `, "", ""},
		{`{`, "", ""},
	} {
		var p lineParser
		if level, text := p.parse([]byte(c.line)); level != c.level || string(text) != c.text {
			t.Errorf("%s: got %q %q, want %q %q", c.line, level, text, c.level, c.text)
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	var in bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&in, `{"level":"ERROR","message":"number %d"}`+"\n", i)
	}
	in.WriteString(strings.Repeat("x", 3*logRead) + "\n")
	in.WriteString("last, without an end")
	l := followed(&in)
	tail := l.tail(1 << 30)
	if len(tail) != logLines {
		t.Errorf("got %d lines, want %d", len(tail), logLines)
	}
	if got, want := tail[len(tail)-1], "last, without an end"; got != want {
		t.Errorf("last line: got %q, want %q", got, want)
	}
	if got := len(tail[len(tail)-2]); got != logLine {
		t.Errorf("long line: got %d bytes, want %d", got, logLine)
	}
	if got, want := tail[len(tail)-3], `{"level":"ERROR","message":"number 2999"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	messages := l.messages()
	if len(messages) != logMessages+1 {
		t.Errorf("got %d messages, want %d", len(messages), logMessages+1)
	}
	if got, want := messages[0], (Message{"ERROR", otherMessages, 3000 - logMessages}); got != want {
		t.Errorf("got %v first, want %v", got, want)
	}
	l.reset()
	if got := l.messages(); len(got) != 0 {
		t.Errorf("after reset: got %v", got)
	}
	if len(l.tail(-1)) != 0 || len(l.tail(2)) != 2 {
		t.Error("tail(-1) or tail(2) is of another length")
	}
}

// flood is a log of n lines as Relay writes them for what it drops.
type flood struct {
	line []byte
	left int
	rest []byte
}

func (f *flood) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.left == 0 {
			return 0, io.EOF
		}
		f.left--
		f.rest = f.line
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func TestFloodCostsNoMemory(t *testing.T) {
	line := []byte(`{"level":"ERROR","message":"dropped envelope: ` + strings.Repeat("y", 2000) + `"}` + "\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := followed(&flood{line: line, left: 20000}) // 41 MB
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(3*logLines*logLine); got > most {
		t.Errorf("got %d bytes allocated for a log of %d", got, most)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*logLines*logLine); got > most {
		t.Errorf("got %d bytes kept, want %d at most", got, most)
	}
	if got := l.messages(); len(got) != 1 || got[0].Count != 20000 {
		t.Errorf("got %v, want one message 20000 times", got)
	}
}

func BenchmarkFollow(b *testing.B) {
	line := []byte(`{"level":"ERROR","message":"dropped envelope: ` + strings.Repeat("y", 2000) + `"}` + "\n")
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	followed(&flood{line: line, left: b.N})
}

// FuzzLogLine: any line is counted under a level and a text that can be stored, or not at all.
func FuzzLogLine(f *testing.F) {
	for _, file := range []string{"testdata/log.jsonl", "testdata/log.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			f.Add(line)
		}
	}
	f.Add([]byte(`{"level":"ERROR","message":"` + "\xff"))
	f.Add([]byte("thread 'a' panicked at "))
	f.Fuzz(func(t *testing.T, in []byte) {
		l := followed(bytes.NewReader(in))
		total := uint64(0)
		for _, m := range l.messages() {
			total += m.Count
			if m.Level != "ERROR" && m.Level != "WARN" || !utf8.ValidString(m.Text) || len(m.Text) > messageText {
				t.Errorf("message %q %q", m.Level, m.Text)
			}
		}
		if lines := uint64(bytes.Count(in, []byte("\n"))) + 1; total > lines {
			t.Errorf("%d messages in %d lines", total, lines)
		}
	})
}
