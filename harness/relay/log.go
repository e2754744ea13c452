package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sort"
	"strings"
	"sync"

	"github.com/valyala/fastjson"
)

// The bounds of a log: Relay writes 2 KB for each envelope that it drops when
// it is stopped, 147 MB have been seen.
const (
	logLines    = 1000     // kept for Tail
	logLine     = 4 << 10  // bytes kept of a line
	logRead     = 64 << 10 // bytes read at a time
	logMessages = 64       // distinct messages counted
	messageText = 300      // bytes kept of a message
)

// otherMessages stands for the messages beyond logMessages.
const otherMessages = "(other messages)"

// Message is a log message of a level WARN or ERROR, with how often it came.
type Message struct {
	Level string `json:"level"`
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// logbook keeps the end of a log and counts its warnings and errors, in bounded memory.
type logbook struct {
	mu     sync.Mutex
	lines  [][]byte           // a ring, each reused
	next   int                // where in lines the next one goes
	added  uint64             // lines that came
	counts map[string]*uint64 // by level, a space and text as it came
	key    []byte
	parser lineParser
}

// follow reads r to its end. Whatever writes there is never held up by more than this reading.
func (l *logbook) follow(r io.Reader) {
	in := bufio.NewReaderSize(r, logRead)
	for {
		line, err := in.ReadSlice('\n')
		whole := len(line) > 0
		if whole {
			l.add(bytes.TrimRight(line[:min(len(line), logLine)], "\r\n"))
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func (l *logbook) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < logLines {
		l.lines = append(l.lines, bytes.Clone(line))
	} else {
		l.lines[l.next] = append(l.lines[l.next][:0], line...)
	}
	l.next = (l.next + 1) % logLines
	l.added++
	level, text := l.parser.parse(line)
	if level == "" {
		return
	}
	l.key = append(append(append(l.key[:0], level...), ' '), text[:min(len(text), messageText)]...)
	n, known := l.counts[string(l.key)]
	if !known && len(l.counts) >= logMessages {
		l.key = append(append(append(l.key[:0], level...), ' '), otherMessages...)
		n, known = l.counts[string(l.key)]
	}
	if !known {
		if l.counts == nil {
			l.counts = map[string]*uint64{}
		}
		n = new(uint64)
		l.counts[string(l.key)] = n
	}
	*n++
}

func (l *logbook) tail(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest(n)
}

// since gives the lines after the first n that came, as far as they are kept, and how many have come by now.
func (l *logbook) since(n uint64) (lines []string, added uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest(int(min(l.added-min(n, l.added), logLines))), l.added
}

// newest are the last n lines. The lock is held.
func (l *logbook) newest(n int) []string {
	n = max(0, min(n, len(l.lines)))
	tail := make([]string, 0, n)
	for i := len(l.lines) - n; i < len(l.lines); i++ {
		at := i
		if len(l.lines) == logLines {
			at = (l.next + i) % logLines
		}
		tail = append(tail, strings.ToValidUTF8(string(l.lines[at]), "?"))
	}
	return tail
}

func (l *logbook) messages() []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Message, 0, len(l.counts))
	for key, n := range l.counts {
		level, text, _ := strings.Cut(key, " ")
		all = append(all, Message{level, strings.ToValidUTF8(text, "?"), *n})
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.Count != b.Count {
			return a.Count > b.Count
		}
		if a.Level != b.Level {
			return a.Level < b.Level
		}
		return a.Text < b.Text
	})
	return all
}

func (l *logbook) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.counts)
}

// lineParser finds the warnings and errors of a log, in Relay's JSON and
// simplified formats, and its panics.
type lineParser struct{ json fastjson.Parser }

var (
	jsonError = []byte(`"level":"ERROR"`)
	jsonWarn  = []byte(`"level":"WARN"`)
	jsonText  = []byte(`"message":"`)
	panicked  = []byte("' panicked at ")
)

// parse is the level, WARN or ERROR, and the message of a line; level is "" for any other line.
// text may alias line or the parser's memory.
func (p *lineParser) parse(line []byte) (level string, text []byte) {
	if len(line) > 0 && line[0] == '{' {
		switch {
		case bytes.Contains(line, jsonError):
			level = "ERROR"
		case bytes.Contains(line, jsonWarn):
			level = "WARN"
		default:
			return "", nil
		}
		return p.parseJSON(line, level)
	}
	if i := bytes.Index(line, panicked); i >= 0 && bytes.HasPrefix(line, []byte("thread '")) {
		return "ERROR", bytes.TrimSuffix(line[i+len("' "):], []byte(":"))
	}
	// TIME LEVEL TARGET: MESSAGE
	_, rest, _ := bytes.Cut(line, []byte(" "))
	word, rest, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	if level = string(word); level != "ERROR" && level != "WARN" {
		return "", nil
	}
	if target, message, ok := bytes.Cut(rest, []byte(": ")); ok && !bytes.ContainsAny(target, " ") {
		rest = message
	}
	return level, rest
}

func (p *lineParser) parseJSON(line []byte, level string) (string, []byte) {
	v, err := p.json.ParseBytes(line)
	if err != nil { // it was cut: what stands of its message will do
		_, rest, ok := bytes.Cut(line, jsonText)
		if !ok {
			return level, []byte("(a line that was cut)")
		}
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			end = len(rest)
		}
		return level, rest[:end]
	}
	if string(v.GetStringBytes("level")) != level {
		return "", nil // it stood in a message
	}
	for _, key := range []string{"message", "error"} {
		if text := v.GetStringBytes(key); len(text) > 0 {
			return level, text
		}
	}
	return level, []byte("(no message)")
}
