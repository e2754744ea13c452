package line

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/shlex"
)

// A definition is the commands that a name stands for, with holes for the
// words that are typed after it: $1 is the first of them, $2 the second, $* all;
// a $ by itself takes one of the last, in order. A hole may be a part of a word,
// also inside double quotes; inside single quotes, or after a backslash, $
// stands for itself.

// maxCalls bounds how many definitions a line may come to use, one through another.
const maxCalls = 1000

// Expand replaces, in the commands of a line, each that begins with a
// definition's name by that definition's commands, in which the same is done.
// define gives what a name stands for.
//
// The words after a name fill the definition's holes; those that fill none are
// appended to its last command. Each $ that is open then is filled from the words
// that were so appended to the line's last command: of "do ; do main dev" the
// first do has main and the second dev. The error names the definition that lacks
// a word, that leads back to itself, or that does not parse.
func Expand(commands [][]string, define func(name string) (definition string, ok bool)) ([][]string, error) {
	e := expander{define: define}
	var lines []command
	for _, words := range commands {
		c := command{}
		for _, w := range words {
			c.words = append(c.words, word{{text: w}})
		}
		lines = append(lines, c)
	}
	all, err := e.line(lines, nil, false)
	if err != nil {
		return nil, err
	}
	out := make([][]string, 0, len(all))
	for _, c := range all {
		texts := make([]string, len(c.words))
		for i, w := range c.words {
			for _, p := range w {
				if p.hole == next {
					return nil, fmt.Errorf("%q needs a word for its $, and the line has too few", p.of)
				}
			}
			texts[i] = w.text()
		}
		if len(texts) > 0 { // a definition of $* alone, without a word
			out = append(out, texts)
		}
	}
	return out, nil
}

// Calls are the first words of a definition's commands, those which may be
// names of definitions. Its error says why the definition does not parse.
func Calls(definition string) (names []string, err error) {
	commands, err := parse(definition)
	for _, c := range commands {
		if name, ok := c.words[0].literal(); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// command is one of a line while it is expanded.
type command struct {
	words []word
	loose int // how many of the last words fill no hole of the definition that they were typed after
}

// word is the parts of a word, one after another.
type word []part

// part is a text, or a hole that is to be filled.
type part struct {
	text string
	hole int    // of hole kinds; a number above 0 is $1 and so on
	of   string // the definition that has the hole
}

const (
	next = -1 // $
	rest = -2 // $*
)

// literal is the word's text, if it has no hole.
func (w word) literal() (text string, ok bool) {
	for _, p := range w {
		if p.hole != 0 {
			return "", false
		}
	}
	return w.text(), true
}

func (w word) text() string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(p.text)
	}
	return b.String()
}

// expander expands the commands of one line.
type expander struct {
	define func(string) (string, bool)
	calls  int
	bytes  int
}

// spend counts words that definitions and filled holes add to the line.
func (e *expander) spend(words ...word) error {
	for _, w := range words {
		for _, p := range w {
			e.bytes += len(p.text) + 1
		}
	}
	if e.bytes > Max {
		return fmt.Errorf("definitions make more than %d bytes of a line", Max)
	}
	return nil
}

// line expands the commands of a line or of a definition. within are the names
// that led here; more says that words may be appended to the last command yet,
// so that its numbered holes may stay open.
func (e *expander) line(commands []command, within []string, more bool) ([]command, error) {
	var all []command
	for i, c := range commands {
		some, err := e.expand(c, within, more && i == len(commands)-1)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	last := &all[len(all)-1]
	from := len(last.words) - last.loose
	pool := slices.Clone(last.words[from:])
	last.words = last.words[:from]
	used, err := e.fillNext(all, pool)
	for i, w := range pool {
		if !used[i] {
			last.words = append(last.words, w)
		}
	}
	last.loose = 0
	return all, err
}

// expand gives what one command stands for: itself, where it begins with no name.
func (e *expander) expand(c command, within []string, more bool) ([]command, error) {
	if len(c.words) == 0 {
		return []command{c}, nil
	}
	name, ok := c.words[0].literal()
	if !ok {
		return []command{c}, nil
	}
	definition, ok := e.define(name)
	if !ok {
		return []command{c}, nil
	}
	within = append(slices.Clip(within), name)
	if slices.Contains(within[:len(within)-1], name) {
		return nil, fmt.Errorf("definition %q leads back to itself: %s", name, strings.Join(within, " → "))
	}
	if e.calls++; e.calls > maxCalls {
		return nil, fmt.Errorf("line uses definitions more than %d times, one through another", maxCalls)
	}
	body, err := parse(definition)
	if err != nil {
		return nil, fmt.Errorf("definition %q: %w", name, err)
	}
	for _, b := range body {
		for _, w := range b.words {
			for i := range w {
				w[i].of = name
			}
		}
		if err := e.spend(b.words...); err != nil {
			return nil, err
		}
	}
	if body, err = e.line(body, within, true); err != nil {
		return nil, err
	}
	return e.give(name, body, c.words[1:], within, more)
}

// give fills the holes of a definition's commands from the words after its
// name, and appends those that fill none.
func (e *expander) give(name string, body []command, given []word, within []string, more bool) ([]command, error) {
	used := make([]bool, len(given))
	begun := make([]bool, len(body)) // whether a command's first word is known
	for i := range body {
		c := &body[i]
		if len(c.words) > 0 {
			_, begun[i] = c.words[0].literal()
		}
		var words []word
		for _, w := range c.words {
			if len(w) == 1 && w[0].hole == rest { // words of their own
				for j := range used {
					used[j] = true
				}
				if err := e.spend(given...); err != nil {
					return nil, err
				}
				if words = append(words, given...); more {
					words = append(words, w)
				}
				continue
			}
			filled, err := e.fill(w, func(p part) (word, error) {
				switch {
				case p.hole == next:
					return word{p}, nil
				case p.hole == rest:
					var all word
					for j, g := range given {
						used[j] = true
						if j > 0 {
							all = append(all, part{text: " "})
						}
						all = append(all, g...)
					}
					return all, nil
				case p.hole <= len(given):
					used[p.hole-1] = true
					return given[p.hole-1], nil
				case more:
					return word{{hole: p.hole - len(given), of: p.of}}, nil
				}
				return nil, fmt.Errorf("%q needs a word for its $%d, and has too few after it", name, p.hole)
			})
			if err != nil {
				return nil, err
			}
			words = append(words, filled)
		}
		c.words = words
	}
	var pool []word
	for i, g := range given {
		if !used[i] {
			pool = append(pool, g)
		}
	}
	taken, err := e.fillNext(body, pool)
	if err != nil {
		return nil, err
	}
	last := &body[len(body)-1]
	for i, g := range pool {
		if !taken[i] {
			last.words = append(last.words, g)
			last.loose++
		}
	}
	var out []command
	for i, c := range body {
		if begun[i] {
			out = append(out, c)
			continue
		}
		some, err := e.expand(c, within, more && i == len(body)-1) // what filled the first word may be a name
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// fillNext fills each $ of commands from the last words of a pool, in order,
// as far as they go, and says which it took.
func (e *expander) fillNext(commands []command, pool []word) (taken []bool, err error) {
	taken = make([]bool, len(pool))
	n := 0
	for _, c := range commands {
		for _, w := range c.words {
			for _, p := range w {
				if p.hole == next {
					n++
				}
			}
		}
	}
	at := max(0, len(pool)-n)
	for _, c := range commands {
		for i, w := range c.words {
			c.words[i], err = e.fill(w, func(p part) (word, error) {
				if p.hole != next || at == len(pool) {
					return word{p}, nil
				}
				taken[at] = true
				at++
				return pool[at-1], nil
			})
			if err != nil {
				return taken, err
			}
		}
	}
	return taken, nil
}

// fill puts in the place of each hole of a word what by gives for it.
func (e *expander) fill(w word, by func(hole part) (word, error)) (word, error) {
	if _, whole := w.literal(); whole {
		return w, nil
	}
	var out word
	for _, p := range w {
		if p.hole == 0 {
			out = append(out, p)
			continue
		}
		filled, err := by(p)
		if err == nil {
			err = e.spend(filled)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, filled...)
	}
	return out, nil
}

// parse reads a definition: at least one command.
func parse(definition string) ([]command, error) {
	if err := check(definition); err != nil {
		return nil, err
	}
	marked, err := mark(definition)
	if err != nil {
		return nil, err
	}
	pieces, err := cut(marked)
	if err != nil {
		return nil, err
	}
	var out []command
	for _, p := range pieces {
		texts, err := shlex.Split(p)
		if err != nil {
			return nil, fmt.Errorf("split %q: %w", p, err)
		}
		var c command
		for _, t := range texts {
			c.words = append(c.words, holes(t))
		}
		if len(c.words) > 0 {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("definition is empty: %q", definition)
	}
	return out, nil
}

// mark puts each hole of a definition between two NUL, which no text has:
// their quotes are gone once the words are split.
func mark(text string) (string, error) {
	var b strings.Builder
	var s scanner
	for i := 0; i < len(text); {
		r := rune(text[i]) // what matters is ASCII, and no byte of another character is
		if r == '$' && !s.escaped && s.quote != '\'' && !s.comment {
			end := i + 1
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			if end == i+1 && end < len(text) && text[end] == '*' {
				end++
			}
			spec := text[i+1 : end]
			if n, err := strconv.Atoi(spec); spec != "" && spec != "*" && (err != nil || n < 1 || n > maxCalls) {
				return "", fmt.Errorf("$%s is no word: the first is $1; \\$ is a dollar", spec)
			}
			b.WriteString("\x00" + spec + "\x00")
			s.step('$')
			i = end
			continue
		}
		s.step(r)
		b.WriteByte(text[i])
		i++
	}
	return b.String(), nil
}

// holes reads the marks of a word.
func holes(text string) word {
	var w word
	for i, t := range strings.Split(text, "\x00") {
		switch {
		case i%2 == 0 && (t != "" || text == ""):
			w = append(w, part{text: t})
		case i%2 == 0:
		case t == "":
			w = append(w, part{hole: next})
		case t == "*":
			w = append(w, part{hole: rest})
		default:
			n, _ := strconv.Atoi(t) // mark has seen to it
			w = append(w, part{hole: n})
		}
	}
	return w
}
