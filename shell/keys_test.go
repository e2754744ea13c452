package shell

import (
	"context"
	"io"
	"strings"
	"testing"
)

// next is what keys hand over next.
func (k *keys) next(t *testing.T) string {
	t.Helper()
	b := make([]byte, 64)
	n, err := k.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// Nothing is handed over beyond what may end a line, until the line is opened.
func TestKeys(t *testing.T) {
	k := newKeys()
	typed := func(s string) { k.put(context.Background(), []byte(s)) }
	typed("status\rquit\r\x03\x04ä")
	k.open()
	for _, want := range []string{"status\r", "quit\r", "\x03", "\x04", "ä"} {
		if got := k.next(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		k.open()
	}

	// A wake comes as soon as it may, but never within a character or a key.
	wake := string(wakeRune)
	k.show()
	k.show()
	typed("x")
	for _, want := range []string{wake, "x"} {
		if got := k.next(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, part := range []struct{ first, rest string }{
		{"\xc3", "\xa4"}, {"\xe2\x96", "\xb6"}, {"\xf0", "\x9f\x90\xa2"}, {"\x1b[", "A"}, {"\x1b[1;", "5D"}, {"\x1bO", "P"},
	} {
		typed(part.first)
		got := k.next(t)
		k.show()
		typed(part.rest)
		got += "|" + k.next(t) + "|" + k.next(t)
		if want := part.first + "|" + part.rest + "|" + wake; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, whole := range []string{"\x1b", "a", "ä", "\x1b[A", "\x80", "\xff\x41"} {
		typed(whole)
		got := k.next(t)
		k.show()
		typed("z")
		if got += "|" + k.next(t) + "|" + k.next(t); got != whole+"|"+wake+"|z" {
			t.Errorf("%q", got)
		}
	}

	typed("ahead\rof\x03it\r")
	if !k.interrupted() || k.interrupted() {
		t.Error("a Ctrl-C that was typed ahead is not found once")
	}
	if got := k.next(t); got != "it\r" {
		t.Errorf("after it %q", got)
	}
	typed("lost")
	k.end()
	if _, err := k.Read(make([]byte, 64)); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
}

func TestOtherKeys(t *testing.T) {
	for typed, want := range map[string]string{
		"a\x00b": "ab", "\x1b[3~": string(deleteRune), "\x1b[1~x\x1b[4~": "\x01x\x05", "\x1b[1;5D": "\x1bb", "\x1b[A": "\x1b[A", "ä\xff": "ä\xff",
	} {
		if got := otherKeys.Replace(typed); got != want {
			t.Errorf("%q becomes %q, want %q", typed, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for want, words := range map[string][]string{
		"status": {"status"}, "s": {"show", "status"}, "": {"a", "b"}, "ä": {"äa", "äb"}, "x": {"xä", "xö"}, "--ra": {"--rate", "--ramp", "--ra"},
	} {
		if got := common(words); got != want {
			t.Errorf("%q begin with %q, want %q", words, got, want)
		}
	}
	if got, want := string(inColumns([]string{"a", "bbb", "c", "d", "e"}, 10)), "a    d\nbbb  e\nc\n"; got != want {
		t.Errorf("in columns:\n%s\nwant\n%s", got, want)
	}
	if got := string(inColumns(strings.Fields(strings.Repeat("word ", 100)), 10)); strings.Count(got, "\n") != maxListed+1 || !strings.HasSuffix(got, "… 100 words in all\n") {
		t.Errorf("many: %q", got)
	}
}

func TestHeight(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a\nb\n": 2, "\n\n": 2, strings.Repeat("x", 10): 1, strings.Repeat("x", 11) + "\n": 2, "\x1b[31m" + strings.Repeat("x", 10) + "\x1b[0m": 1, "日本日本日本": 2} {
		if got := height([]byte(text), 10); got != want {
			t.Errorf("%q is %d rows high, want %d", text, got, want)
		}
	}
}
