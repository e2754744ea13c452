package shell

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chzyer/readline"
	"github.com/jedib0t/go-pretty/v6/text"
)

// edited sees each line after readline has worked on a key, and completes it for a tab.
func (t *terminal) edited(line []rune, pos int, key rune) ([]rune, int, bool) {
	t.length = len(line)
	if key != readline.CharTab || line == nil {
		return nil, 0, false
	}
	before, after := string(line[:pos]), string(line[pos:])
	start, words := t.complete(before+after, len(before))
	if len(words) == 0 || start < 0 || start > len(before) {
		return nil, 0, false
	}
	word := common(words)
	switch {
	case len(words) == 1 && !strings.HasSuffix(word, "/") && !strings.HasSuffix(word, "="):
		word += " "
	case len(words) > 1 && len(word) <= len(before)-start:
		columns, _ := t.screen.size()
		_, _ = t.rl.Write(inColumns(words, columns))
		return nil, 0, false
	}
	done := []rune(before[:start] + word)
	t.length = len(done) + len(line) - pos
	return append(done, []rune(after)...), len(done), true
}

// common is what all words begin with, in whole characters.
func common(words []string) string {
	all := words[0]
	for _, w := range words[1:] {
		n := 0
		for n < len(all) && n < len(w) && all[n] == w[n] {
			n++
		}
		all = all[:n]
	}
	for !utf8.ValidString(all) && len(all) > 0 {
		all = all[:len(all)-1]
	}
	return all
}

// maxListed is how many rows of words are shown.
const maxListed = 10

// inColumns are words below and beside each other, as ls lists names.
func inColumns(words []string, columns int) []byte {
	width := 0
	for _, w := range words {
		width = max(width, text.StringWidth(w)+2)
	}
	across := max(1, columns/width)
	rows := (len(words) + across - 1) / across
	var b bytes.Buffer
	for row := range min(rows, maxListed) {
		for i := row; i < len(words); i += rows {
			b.WriteString(words[i])
			if i+rows < len(words) {
				b.WriteString(strings.Repeat(" ", width-text.StringWidth(words[i])))
			}
		}
		b.WriteByte('\n')
	}
	if rows > maxListed {
		fmt.Fprintf(&b, "… %d words in all\n", len(words))
	}
	return b.Bytes()
}

// noCompleter keeps readline from completing by itself: its menu of words
// divides by zero in a narrow screen.
type noCompleter struct{}

func (noCompleter) Do([]rune, int) ([][]rune, int) { return nil, 0 }
