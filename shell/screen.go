package shell

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

const (
	// holdFor is how long output is held back, to be seen whole in a pager if it is longer than the screen.
	holdFor = 300 * time.Millisecond
	// maxHeld is how much is, in bytes.
	maxHeld = 8 << 20
)

// screen is what a person at a terminal sees. All that is written to it goes
// through one lock, and what comes while a line is edited waits until whoever
// edits it shows it.
type screen struct {
	out   *os.File
	plain bool   // it knows no escape sequences, and is not in raw mode
	pages bool   // what is longer than it goes to a pager
	wake  func() // tells whoever edits a line that something waits to be shown

	mu       sync.Mutex
	state    screenState
	drawn    func() // called when the prompt of the line that is edited is drawn
	pending  []byte // to be shown when the state allows it
	missed   int    // bytes that were too many to wait
	progress bool   // the line that the cursor is in can be drawn over
	middle   bool   // the cursor is not at the start of a line
	holding  bool   // what is printed is held back
	held     []byte
	letting  *time.Timer // lets go of it
}

// screenState is whose the screen is.
type screenState int

const (
	screenOurs   screenState = iota // what is written appears
	screenEdited                    // a line is edited in it
	screenAway                      // another program's, or nobody's
)

// size is that of the terminal, in columns and rows.
func (s *screen) size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 {
		return 80, 24
	}
	return columns, rows
}

// put writes, in raw mode too. The lock is held.
func (s *screen) put(p []byte) {
	if len(p) == 0 {
		return
	}
	s.middle = p[len(p)-1] != '\n'
	if !s.plain {
		p = bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
	}
	_, _ = s.out.Write(p) // a terminal that is gone ends what is typed, too
}

// emit writes text in place of what can be drawn over. The lock is held.
func (s *screen) emit(p []byte) {
	if s.progress {
		s.progress = false
		s.put([]byte("\r\x1b[K"))
		s.middle = false
	}
	s.put(p)
}

// Write is readline's way to draw.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == screenAway {
		return len(p), nil
	}
	s.put(p)
	if s.drawn != nil {
		s.drawn()
		s.drawn = nil
	}
	return len(p), nil
}

// print writes what a command prints.
func (s *screen) print(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holding {
		s.emit(p)
		return
	}
	if s.letting == nil {
		s.letting = time.AfterFunc(holdFor, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.letGo()
		})
	}
	if s.held = append(s.held, p...); len(s.held) > maxHeld {
		s.letGo()
	}
}

// show writes what is to be seen at once, after what was printed before.
func (s *screen) show(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letGo()
	s.emit(p)
}

// letGo shows what was held back; what follows is shown at once. The lock is held.
func (s *screen) letGo() {
	held := s.held
	s.holding, s.held = false, nil
	s.emit(held)
}

// say shows whole lines, now or as soon as that is possible. It never waits for a person.
func (s *screen) say(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == screenOurs {
		s.letGo()
		s.emit(p)
		return
	}
	if len(s.pending)+len(p) > maxUnread {
		s.missed += len(p)
		return
	}
	s.pending = append(s.pending, p...)
	if s.state == screenEdited {
		s.wake()
	}
}

// draw draws a line over the last one that it drew; "" only clears that.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != screenOurs || s.plain {
		return
	}
	s.letGo()
	s.emit(nil)
	if line == "" {
		return
	}
	if columns, _ := s.size(); text.StringWidth(line) >= columns {
		line = text.Trim(line, columns-2) + "…"
	}
	s.put([]byte(line))
	s.progress = true
}

// take takes what waits to be shown. The lock is held.
func (s *screen) take() []byte {
	p := s.pending
	if s.missed > 0 {
		p = fmt.Appendf(p, "relaybench: %d bytes were dropped here, as they were too many to wait\n", s.missed)
	}
	s.pending, s.missed = nil, 0
	return p
}

// waiting takes what waits to be shown.
func (s *screen) waiting() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take()
}

// edit gives the screen to whoever edits a line, at the start of one; drawn is
// called when its prompt is drawn.
func (s *screen) edit(drawn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letGo()
	s.emit(nil)
	if s.middle {
		s.put([]byte("\n"))
	}
	s.state, s.drawn = screenEdited, drawn
	if len(s.pending) > 0 {
		s.wake()
	}
}

// leave says that it is another program's.
func (s *screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = screenAway
}

// back takes the screen back, at the start of a line.
func (s *screen) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.drawn, s.middle = screenOurs, nil, false
	s.put(s.take())
}

// begin begins to hold back what is printed, until finish or until it takes long.
func (s *screen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = s.pages
}

// finish shows what was held back, or gives it where it is longer than the screen.
func (s *screen) finish() (long []byte) {
	columns, rows := s.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.letting != nil {
		s.letting.Stop()
		s.letting = nil
	}
	if s.holding && height(s.held, columns) >= rows {
		long, s.held = s.held, nil
	}
	s.letGo()
	return long
}

// height is how many rows text takes on a screen.
func height(p []byte, columns int) int {
	rows := 0
	for l := range strings.Lines(string(p)) {
		rows += max(1, (text.StringWidthWithoutEscSequences(strings.TrimSuffix(l, "\n"))+columns-1)/columns)
	}
	return rows
}
