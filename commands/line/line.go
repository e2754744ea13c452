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
	if err := check(text); err != nil {
		return nil, err
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

// check refuses what is no line at all.
func check(text string) error {
	if len(text) > Max {
		return ErrTooLong
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ErrNotText
	}
	return nil
}

// scanner knows, character by character, what of a line is quoted.
type scanner struct {
	quote   rune // the one that is open; 0: none
	escaped bool // the next character is kept by a backslash
	inWord  bool
	comment bool // the rest of the line is one
}

// step takes the next character. It says whether that ends a command.
func (s *scanner) step(r rune) (ends bool) {
	switch {
	case s.comment:
	case s.escaped:
		s.escaped = false
	case r == '\\' && s.quote != '\'':
		s.escaped, s.inWord = true, true
	case s.quote != 0:
		if r == s.quote {
			s.quote = 0
		}
	case r == '\'' || r == '"':
		s.quote, s.inWord = r, true
	case r == ';':
		s.inWord = false
		return true
	case r == '#' && !s.inWord:
		s.comment = true
	default:
		s.inWord = !isSpace(r)
	}
	return false
}

func isSpace(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }

// cut cuts a line at each `;` outside quotes, and at the `#` that begins a
// comment.
//
// Note: this cannot be done on the words, for shlex drops their quotes: it
// gives the same word for `';'` and `;`, and one word for `a;b`.
func cut(text string) ([]string, error) {
	var pieces []string
	var s scanner
	start, opened := 0, 0
	for i, r := range text {
		was := s.quote
		if s.step(r) {
			pieces = append(pieces, text[start:i])
			start = i + 1
		}
		if s.comment {
			return append(pieces, text[start:i]), nil
		}
		if was == 0 && s.quote != 0 {
			opened = i
		}
	}
	switch {
	case s.escaped:
		return nil, errors.New("backslash at the end of the line, with nothing to keep")
	case s.quote != 0:
		return nil, fmt.Errorf("quote %c is not closed: %s", s.quote, head(text[opened:]))
	}
	return append(pieces, text[start:]), nil
}

// First is the first word of a line, and what stands after it, as typed; word
// is empty where there is none, or one that is not whole.
func First(text string) (word, after string) {
	var s scanner
	from := -1
	for i, r := range text {
		if s.step(r) || s.comment {
			return shlexed(text[max(from, 0):i], from >= 0), text[i:]
		}
		if from < 0 && s.inWord {
			from = i
		}
		if from >= 0 && !s.inWord {
			return shlexed(text[from:i], true), text[i:]
		}
	}
	if s.escaped || s.quote != 0 || from < 0 {
		return "", text
	}
	return shlexed(text[from:], true), ""
}

// shlexed is the word that a piece of text is, if it is one.
func shlexed(text string, is bool) string {
	if words, err := shlex.Split(text); is && err == nil && len(words) == 1 {
		return words[0]
	}
	return ""
}

// Tail is what completion has to know of a line that is being typed: the words
// of its last command before the last word, and where that begins, with its
// text so far: "" where a new word would begin. ok is false in a comment.
func Tail(text string) (words []string, start int, last string, ok bool) {
	var s scanner
	command, was := 0, false
	for i, r := range text {
		if s.step(r) {
			command, start = i+1, i+1
		}
		if s.inWord && !was {
			start = i
		}
		was = s.inWord
	}
	if s.comment || check(text) != nil {
		return nil, len(text), "", false
	}
	if !s.inWord {
		start = len(text)
	}
	typed := text[start:]
	if s.escaped {
		typed = typed[:len(typed)-1]
	}
	if s.quote != 0 {
		typed += string(s.quote)
	}
	before, err := shlex.Split(text[command:start])
	if err != nil {
		return nil, len(text), "", false
	}
	return before, start, shlexed(typed, true), true
}

// Quote is a word as it can be typed: in quotes, where it needs them.
func Quote(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\r\n;#'\"\\$") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// Join is words as they can be typed as one command.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// head is the beginning of a text, for an error.
func head(text string) string {
	const most = 40
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
