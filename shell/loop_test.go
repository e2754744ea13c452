package shell

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"relaybench/commands"
)

// linesOf are the lines of a text as a script reads them.
func linesOf(t *testing.T, text string) []string {
	s := newScript(strings.NewReader(text), "test")
	var lines []string
	for {
		l, err := s.line()
		lines = append(lines, l)
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", commands.MaxLine)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"a", []string{"a"}},
		{"a\nb\n", []string{"a", "b", ""}},
		{"a\r\n\r\nb", []string{"a", "", "b"}},
		{long + "\r\nb", []string{long, "b"}},
		{long + "y\nb", []string{long + "y", "b"}},
		{long + "yyyyyyyyyy\nb", []string{long + "yy", "b"}},
		{long + long + long + "\nb", []string{long + "xx", "b"}},
	} {
		if got := linesOf(t, tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("lines of %.20q… are of %d bytes, want %d", tt.text, lengths(got), lengths(tt.want))
		}
	}
}

func lengths(lines []string) []int {
	var n []int
	for _, l := range lines {
		n = append(n, len(l))
	}
	return n
}

func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "\r\r\n\n", strings.Repeat("ä", commands.MaxLine) + "\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.Split(text, "\n")
		got := linesOf(t, text)
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, w := range want {
			w = strings.TrimSuffix(w, "\r")
			switch {
			case len(w) <= commands.MaxLine && got[i] != w:
				t.Errorf("line %d is %q, want %q", i+1, got[i], w)
			case len(w) > commands.MaxLine && (len(got[i]) <= commands.MaxLine || len(got[i]) > commands.MaxLine+2):
				t.Errorf("line %d of %d bytes came as %d", i+1, len(w), len(got[i]))
			}
		}
	})
}
