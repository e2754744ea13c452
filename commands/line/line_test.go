package line

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		text string
		want [][]string
	}{
		{"", nil},
		{"  \t ", nil},
		{"help", [][]string{{"help"}}},
		{"test 10s  --rate\t200", [][]string{{"test", "10s", "--rate", "200"}}},
		{"a;b", [][]string{{"a"}, {"b"}}},
		{"a ; b;", [][]string{{"a"}, {"b"}}},
		{";; a ;;", [][]string{{"a"}}},
		{"a';'b", [][]string{{"a;b"}}},
		{"a ';'", [][]string{{"a", ";"}}},
		{`a \;b`, [][]string{{"a", ";b"}}},
		{`a ";"; b`, [][]string{{"a", ";"}, {"b"}}},
		{"status # don't stop; quit", [][]string{{"status"}}},
		{"a;# all a comment", [][]string{{"a"}}},
		{"a#b", [][]string{{"a#b"}}},
		{"''#b", [][]string{{"#b"}}},
		{`\#b # c`, [][]string{{"#b"}}},
		{"a '#' \"# x\"", [][]string{{"a", "#", "# x"}}},
		{"a '' \"\"", [][]string{{"a", "", ""}}},
		{`a 'it''s' "it's"`, [][]string{{"a", "its", "it's"}}},
		{`a '\' "\"" "\n"`, [][]string{{"a", `\`, `"`, "n"}}},
		{"explain test 6s --rate 10 --label 'a;b # c'; explain test 6s --label ';'", [][]string{
			{"explain", "test", "6s", "--rate", "10", "--label", "a;b # c"}, {"explain", "test", "6s", "--label", ";"}}},
		{"a\r", [][]string{{"a"}}},
		{"größe ▶;日本", [][]string{{"größe", "▶"}, {"日本"}}},
	} {
		got, err := Split(tt.text)
		if err != nil {
			t.Errorf("Split(%q): %v", tt.text, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Split(%q): (-want +got)\n%s", tt.text, d)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a 'b; c", "quote ' is not closed: 'b; c"},
		{`a "b\"`, `quote " is not closed: "b\"`},
		{`a \`, "backslash at the end"},
		{"a 'x" + strings.Repeat("y", 100), "yyy…"},
		{"a \xff", ErrNotText.Error()},
		{"a \x00", ErrNotText.Error()},
		{strings.Repeat("a", Max+1), ErrTooLong.Error()},
	} {
		got, err := Split(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Split(%.20q…): %q, %v; want an error with %q", tt.text, got, err, tt.want)
		}
	}
	if _, err := Split(strings.Repeat("a", Max)); err != nil {
		t.Errorf("a line of exactly %d bytes: %v", Max, err)
	}
}

// quote writes a word so that Split gives it back.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a;b", "a ';' # c", `"\"" \; 'x`, "ä\r\n#", "a\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		commands, err := Split(text)
		if err != nil {
			if commands != nil {
				t.Errorf("commands beside the error %v", err)
			}
			if !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrNotText) && !strings.Contains(err.Error(), "quote") && !strings.Contains(err.Error(), "backslash") {
				t.Errorf("an error that the cut did not find: %v", err)
			}
			return
		}
		var lines []string
		for _, words := range commands {
			if len(words) == 0 {
				t.Error("a command without a word")
			}
			var quoted []string
			for _, w := range words {
				quoted = append(quoted, quote(w))
			}
			lines = append(lines, strings.Join(quoted, " "))
		}
		again := strings.Join(lines, ";") + " # it's; over"
		if len(again) > Max {
			return
		}
		got, err := Split(again)
		if err != nil {
			t.Fatalf("Split(%q): %v", again, err)
		}
		if !slices.EqualFunc(got, commands, slices.Equal) {
			t.Errorf("Split(%q) = %q, want %q", again, got, commands)
		}
	})
}
