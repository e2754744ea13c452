package builds

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mostLog    = 64 << 20 // bytes of a build's output that its log takes
	longLine   = 4 << 10  // bytes that are kept of a line
	mostErrors = 40       // lines of the compiler's errors that are kept
	lastLines  = 20       // lines that are kept of what is no error
)

// output takes what a build prints: it sorts progress from lines, and errors of
// the compiler from these. Its memory is bounded.
type output struct {
	log  *os.File
	room int // bytes that the log takes yet
	line func(string)
	seen func(done, of int)

	part    []byte // of a line
	back    bool   // the last byte was a CR
	errors  []string
	more    int  // lines of errors that were not kept
	inError bool // the line before was one of an error
	last    []string
}

func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			o.add(rest)
			o.back = false
			break
		}
		o.add(rest[:i])
		if i > 0 || !o.back || rest[i] == '\r' {
			o.ends(rest[i] == '\r')
		}
		o.back = rest[i] == '\r'
		rest = rest[i+1:]
	}
	return len(p), nil
}

func (o *output) add(p []byte) {
	if room := longLine - len(o.part); room > 0 {
		o.part = append(o.part, p[:min(room, len(p))]...)
	}
}

// end takes the last line, which may have no newline.
func (o *output) end() {
	if len(o.part) > 0 {
		o.ends(false)
	}
}

// ends takes a line that is whole; one that is to be written over is progress, or none at all.
func (o *output) ends(over bool) {
	line := strings.TrimRight(strings.ToValidUTF8(string(o.part), "?"), " ")
	o.part = o.part[:0]
	line = strings.ReplaceAll(line, "\x1b[K", "")
	if done, of, ok := crates(line); ok {
		o.seen(done, of)
		return
	}
	if over && line == "" {
		return
	}
	if n := len(line) + 1; n <= o.room {
		o.room -= n
		_, _ = o.log.WriteString(line + "\n") // a full disk fails the build by itself
	}
	if o.line != nil {
		o.line(line)
	}
	o.sort(line)
}

// sort keeps what may be why a build fails. The compiler's errors begin with
// the word, and end with an empty line.
func (o *output) sort(line string) {
	switch {
	case strings.HasPrefix(line, "error:"), strings.HasPrefix(line, "error["):
		o.inError = true
	case line == "", strings.HasPrefix(line, "warning:"):
		o.inError = false
	}
	if o.inError {
		if len(o.errors) < mostErrors {
			o.errors = append(o.errors, line)
		} else {
			o.more++
		}
		return
	}
	if line == "" || status(line) {
		return
	}
	if o.last = append(o.last, line); len(o.last) > 2*lastLines {
		o.last = append(o.last[:0], o.last[len(o.last)-lastLines:]...)
	}
}

// status says whether a line is cargo's word on how it goes, right-aligned to 12 letters.
func status(line string) bool {
	word, _, ok := strings.Cut(strings.TrimLeft(line, " "), " ")
	return ok && len(line) > 13 && line[12] == ' ' && strings.HasSuffix(line[:12], word) && strings.HasPrefix(line, strings.Repeat(" ", 12-len(word)))
}

// why are the lines that say why it failed.
func (o *output) why() []string {
	if len(o.errors) > 0 {
		if o.more > 0 {
			return append(o.errors, "… and "+strconv.Itoa(o.more)+" more lines of errors")
		}
		return o.errors
	}
	return o.last[max(0, len(o.last)-lastLines):]
}

// crates reads cargo's progress: "Building [==>  ] 12/340: serde, syn".
func crates(line string) (done, of int, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "Building [")
	if !ok {
		return 0, 0, false
	}
	_, rest, _ = strings.Cut(rest, "] ")
	rest, _, _ = strings.Cut(rest, ":")
	first, second, ok := strings.Cut(strings.TrimSpace(rest), "/")
	if !ok {
		return 0, 0, false
	}
	done, err := strconv.Atoi(first)
	if err == nil {
		of, err = strconv.Atoi(second)
	}
	return done, of, err == nil
}

// watcher tells how a build goes, about once a second.
type watcher struct {
	tell   func(Progress)
	begun  time.Time
	stop   chan struct{}
	joined sync.WaitGroup

	mu  sync.Mutex
	now Progress
}

func watch(o Order, begun time.Time) *watcher {
	w := &watcher{tell: o.Tell, begun: begun, stop: make(chan struct{})}
	if o.Tell == nil {
		return w
	}
	w.joined.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			w.mu.Lock()
			p := w.now
			w.mu.Unlock()
			p.Elapsed = time.Since(w.begun)
			w.tell(p)
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
		}
	})
	return w
}

func (w *watcher) step(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Step = name
}

func (w *watcher) seen(done, of int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Done, w.now.Of = done, of
}

func (w *watcher) close() {
	close(w.stop)
	w.joined.Wait()
}
