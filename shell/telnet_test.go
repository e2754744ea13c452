package shell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"relaybench/commands"
)

// events are what a telnet hears of some bytes, in words.
func events(t *telnet, b []byte) []string {
	var all []string
	for _, c := range b {
		switch t.hear(c) {
		case heardLine:
			all = append(all, "line "+string(t.line))
		case heardInterrupt:
			all = append(all, "interrupt")
		case heardQuit:
			all = append(all, "quit")
		case heardAnswer:
			all = append(all, fmt.Sprintf("answer % X", t.answer))
		}
	}
	if rest := t.rest(); rest != "" {
		all = append(all, "rest "+rest)
	}
	return all
}

func TestTelnet(t *testing.T) {
	long := strings.Repeat("x", commands.MaxLine)
	for _, tt := range []struct {
		name, sent string
		want       []string
	}{
		{"line feed", "a\nb\n\nc", []string{"line a", "line b", "line ", "rest c"}},
		{"CR LF", "a\r\nb\r\n\r\n", []string{"line a", "line b", "line "}},
		{"CR NUL", "a\r\x00b\r\x00", []string{"line a", "line b"}},
		{"CR", "a\rb\r\rc", []string{"line a", "line b", "line ", "rest c"}},
		{"LF CR", "a\n\rb", []string{"line a", "line ", "rest b"}},
		{"NUL does nothing", "\x00a\x00b\n\x00", []string{"line ab"}},
		{"end of file on an empty line", "a\n\x04", []string{"line a", "quit"}},
		{"end of file elsewhere", "a\x04b\n", []string{"line ab"}},
		{"interrupt process", "abc\xff\xf4d\n", []string{"interrupt", "line d"}},
		{"break", "\xff\xf3", []string{"interrupt"}},
		{"a terminal's own Ctrl-C", "abc\x03d\n", []string{"interrupt", "line d"}},
		{"timing mark", "\xff\xfd\x06", []string{"answer FF FB 06"}},
		{"Ctrl-C of telnet", "\xff\xf4\xff\xfd\x06status\r\n", []string{"interrupt", "answer FF FB 06", "line status"}},
		{"options asked for", "\xff\xfd\x01\xff\xfd\x03", []string{"answer FF FC 01", "answer FF FC 03"}},
		{"options offered", "\xff\xfb\x1f\xff\xfb\x06", []string{"answer FF FE 1F", "answer FF FE 06"}},
		{"options refused", "\xff\xfc\x01\xff\xfe\x06", nil},
		{"other commands", "a\xff\xf1b\xff\xf2c\xff\xf9\xff\xf0d\n", []string{"line abcd"}},
		{"IAC IAC is a byte", "a\xff\xffb\n", []string{"line a\xffb"}},
		{"a window 255 wide", "\xff\xfa\x1f\x00\xff\xff\x00\x50\xff\xf0status\r\n", []string{"line status"}},
		{"a sub-negotiation with what looks like more", "\xff\xfa\x18\r\nquit\n\x04\xff\xf4\xff\xfd\x06\x03\xff\xf0ok\n", []string{"line ok"}},
		{"an unfinished sub-negotiation", "status\n\xff\xfa\x18quit\n", []string{"line status"}},
		{"IAC between CR and LF", "a\r\xff\xf1\nb\n", []string{"line a", "line b"}},
		{"the longest line", long + "\n", []string{"line " + long}},
		{"a line too long", long + "yz\x04\x03\nb\n", []string{"line " + long + "y", "interrupt", "line ", "line b"}},
		{"a line much too long", long + long + long + "\r\nb\r\n", []string{"line " + long + "x", "line b"}},
		{"a last line too long", long + "yz", []string{"line " + long + "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := events(&telnet{}, []byte(tt.sent)); !slices.Equal(got, tt.want) {
				t.Errorf("heard %.200q, want %.200q", got, tt.want)
			}
		})
	}
}

// Whatever comes, a telnet keeps no more than a line, and lines are whole.
func FuzzTelnet(f *testing.F) {
	for _, s := range []string{"status\r\n", "a\xff\xf4\xff\xfd\x06", "\xff\xfa\x1f\x00\xff\xff\x00\x50\xff\xf0status\r\n", "\xff\xfb\x01\xff\xfe\x03\x04", "\xff", "\r\x00\n\r\n", "\xff\xff\xff\xff\n"} {
		f.Add([]byte(s))
	}
	f.Add(bytes.Repeat([]byte("y"), commands.MaxLine+2))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var m telnet
		for _, b := range sent {
			h := m.hear(b)
			if len(m.line) > commands.MaxLine+1 || cap(m.line) > 4*commands.MaxLine {
				t.Fatalf("it keeps a line of %d bytes, in %d", len(m.line), cap(m.line))
			}
			switch h {
			case heardLine:
				if bytes.ContainsAny(m.line, "\r\n\x00\x03\x04") {
					t.Fatalf("line %q has what ends one, or does nothing", m.line)
				}
			case heardAnswer:
				if m.answer[0] != telnetIAC || m.answer[1] < telnetWILL {
					t.Fatalf("answer % X", m.answer)
				}
			}
		}
		// Text alone is the lines of any reader of text.
		if bytes.ContainsAny(sent, "\r\x00\x03\x04") || bytes.IndexByte(sent, telnetIAC) >= 0 || len(sent) > commands.MaxLine {
			return
		}
		var want []string
		lines := strings.Split(string(sent), "\n")
		for _, l := range lines[:len(lines)-1] {
			want = append(want, "line "+l)
		}
		if last := lines[len(lines)-1]; last != "" {
			want = append(want, "rest "+last)
		}
		if got := events(&telnet{}, sent); !slices.Equal(got, want) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	})
}
