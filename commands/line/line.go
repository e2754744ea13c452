// Package line knows how a typed line becomes commands and their words. It is
// pure: it must never know which commands there are, nor who typed.
package line

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/shlex"
)

// Max is the length of the longest line that is taken, in bytes.
const Max = 64 << 10

// What is wrong with a line that is refused whole.
var (
	ErrTooLong = fmt.Errorf("line of more than %d bytes", Max)
	ErrNotText = errors.New("line is not UTF-8 text")
)

// Split cuts a line into commands, and each into its words, as a POSIX shell
// does: `;` outside quotes ends a command, `#` at the start of a word begins a
// comment, quotes and backslash keep what follows them in its word. Commands
// without a word are left out.
//
// Inside double quotes a backslash keeps the next character whatever it is, and is dropped.
func Split(text string) ([][]string, error) {
	if len(text) > Max {
		return nil, ErrTooLong
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, ErrNotText
	}
	pieces, err := cut(text)
	if err != nil {
		return nil, err
	}
	var commands [][]string
	for _, p := range pieces {
		words, err := shlex.Split(p)
		if err != nil {
			return nil, fmt.Errorf("split %q: %w", p, err)
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands, nil
}

// cut cuts a line at each `;` outside quotes, and at the `#` that begins a
// comment.
//
// Note: this cannot be done on the words, for shlex drops their quotes: it
// gives the same word for `';'` and `;`, and one word for `a;b`.
func cut(text string) ([]string, error) {
	var pieces []string
	var quote rune // the one that is open
	start, opened := 0, 0
	inWord, escaped := false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote, opened, inWord = r, i, true
		case r == ';':
			pieces = append(pieces, text[start:i])
			start, inWord = i+1, false
		case r == '#' && !inWord:
			return append(pieces, text[start:i]), nil
		default:
			inWord = !strings.ContainsRune(" \t\r\n", r)
		}
	}
	switch {
	case escaped:
		return nil, errors.New("backslash at the end of the line, with nothing to keep")
	case quote != 0:
		return nil, fmt.Errorf("quote %c is not closed: %s", quote, head(text[opened:]))
	}
	return append(pieces, text[start:]), nil
}

// head is the beginning of a text, for an error.
func head(text string) string {
	const most = 40
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
