package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode"

	"github.com/chzyer/readline"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"relaybench/commands"
)

// errInterrupted says that Ctrl-C was typed in place of a line.
var errInterrupted = fmt.Errorf("%w by Ctrl-C", commands.ErrInterrupted)

// terminal is this process's terminal. Lines are edited by readline, or where
// it is a dumb one, by itself.
//
// Note: nothing of readline's may be used while it works on a key, for it takes
// no locks. So whatever is to be done with it while a line is edited, it does
// itself: keys wakes it with a key that nobody typed, which filter gets to see.
type terminal struct {
	in      *os.File
	screen  *screen
	keys    *keys
	history *history
	// complete gives the words that may stand at a byte of a line, from start on.
	complete func(line string, pos int) (start int, words []string)
	// interrupter takes a Ctrl-C that is typed while no line is edited.
	interrupter atomic.Pointer[partner]

	rl      *readline.Instance // nil: a dumb terminal
	widen   func()             // tells rl of another width
	widened atomic.Bool        // it is to be told
	editing atomic.Bool        // a line is read
	asking  bool               // it is an answer
	length  int                // of that line as it stands, in runes
	over    atomic.Bool        // there is nothing more to read

	was     *term.State // the terminal as it was found
	pumping func()      // ends what reads from it
	attends func()      // ends what takes its signals
}

// openTerminal begins to read from a terminal. Close it to have it as it was.
func openTerminal(in, out *os.File, h *history) (*terminal, error) {
	t := &terminal{in: in, keys: newKeys(), history: h}
	t.complete = func(string, int) (int, []string) { return 0, nil }
	dumb := os.Getenv("TERM") == "dumb"
	t.screen = &screen{out: out, plain: dumb, pages: !dumb, wake: t.keys.show}
	var err error
	if t.was, err = term.GetState(int(in.Fd())); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	if err := t.resume(); err != nil {
		return nil, err
	}
	t.attends = t.attend()
	if dumb {
		return t, nil
	}
	rl, err := readline.NewEx(&readline.Config{
		Stdin: t.keys, Stdout: t.screen, Stderr: t.screen,
		HistoryLimit: maxHistory, DisableAutoSaveHistory: true,
		Listener: readline.FuncListener(t.edited), AutoComplete: noCompleter{},
		FuncFilterInputRune: t.filter, EOFPrompt: "\n",
		FuncGetWidth: t.width, FuncOnWidthChanged: func(f func()) { t.widen = f },
		FuncIsTerminal: func() bool { return true }, ForceUseInteractive: true,
		FuncMakeRaw: func() error { return nil }, FuncExitRaw: func() error { return nil },
	})
	if err != nil {
		t.attends()
		return nil, errors.Join(fmt.Errorf("terminal: %w", err), t.suspend())
	}
	t.rl = rl
	t.recall()
	return t, nil
}

// Close gives the terminal back. No line may be read any more.
func (t *terminal) Close() error {
	t.attends()
	err := t.suspend()
	t.keys.end()
	if t.rl == nil {
		return err
	}
	t.screen.leave() // nobody wants to see what readline draws at its end
	for !t.over.Load() {
		if _, e := t.rl.Readline(); e == io.EOF {
			t.over.Store(true)
		}
	}
	return errors.Join(err, t.rl.Config.Stdin.Close())
}

// width is that of the screen as readline is to have it: in one that is hardly
// wider than the prompt, it would never end.
func (t *terminal) width() int {
	columns, _ := t.screen.size()
	return max(columns, 40)
}

// resume begins to read what is typed: key by key, if the terminal is not a dumb one.
func (t *terminal) resume() error {
	if !t.screen.plain {
		if _, err := term.MakeRaw(int(t.in.Fd())); err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	from, release, err := interruptible(ctx, t.in)
	if err != nil {
		cancel()
		return errors.Join(fmt.Errorf("terminal: %w", err), t.restore())
	}
	var joined sync.WaitGroup
	joined.Go(func() { t.pump(ctx, from) })
	t.pumping = func() {
		cancel()
		joined.Wait()
		release()
	}
	return nil
}

// suspend ends that, and leaves the terminal as it was.
func (t *terminal) suspend() error {
	t.pumping()
	return t.restore()
}

func (t *terminal) restore() error { return term.Restore(int(t.in.Fd()), t.was) }

// pump takes what is typed until ctx ends, or the terminal is gone.
func (t *terminal) pump(ctx context.Context, from io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		typed := []byte(otherKeys.Replace(string(b[:n])))
		if at := bytes.LastIndexByte(typed, readline.CharInterrupt); at >= 0 && !t.editing.Load() {
			typed = typed[at+1:]
			t.keys.clear()
			t.interrupt()
		}
		t.keys.put(ctx, typed)
		if err != nil {
			if ctx.Err() == nil {
				t.keys.end()
			}
			return
		}
	}
}

// interrupt interrupts what is done.
func (t *terminal) interrupt() {
	if p := t.interrupter.Load(); p != nil {
		(*p).interrupt()
	}
}

// ctrlC is a Ctrl-C that came as a signal.
func (t *terminal) ctrlC() {
	if t.editing.Load() {
		t.keys.put(context.Background(), []byte{readline.CharInterrupt})
		return
	}
	if t.screen.plain {
		t.screen.show([]byte("\n")) // after the ^C that it shows
	}
	t.keys.clear()
	t.interrupt()
}

// resized says that the screen may have another width.
func (t *terminal) resized() {
	t.widened.Store(true)
	if t.editing.Load() {
		t.keys.show()
	}
}

// rewidth tells readline of another width.
func (t *terminal) rewidth() {
	if t.widened.Swap(false) && t.rl != nil {
		t.widen()
	}
}

// readLine reads a line that is typed. Its error is errInterrupted for a
// Ctrl-C, io.EOF for a Ctrl-D on an empty line, and for a terminal that is gone.
func (t *terminal) readLine(prompt string) (string, error) {
	if t.over.Load() {
		return "", io.EOF
	}
	t.editing.Store(true)
	t.rewidth()
	t.screen.edit(t.keys.open)
	line, err := t.readline(prompt)
	t.screen.back()
	t.editing.Store(false)
	switch {
	case err == readline.ErrInterrupt:
		return "", errInterrupted
	case t.over.Load():
		return "", io.EOF // also with half a line: nobody has ended it
	}
	return line, err
}

func (t *terminal) readline(prompt string) (string, error) {
	if t.rl != nil {
		t.rl.SetPrompt(prompt)
		return t.rl.Readline()
	}
	_, _ = io.WriteString(t.screen, prompt)
	var line []byte
	b := make([]byte, 4096)
	for {
		n, err := t.keys.Read(b)
		if err != nil {
			t.over.Store(true)
			return "", io.EOF
		}
		switch part := b[:n]; {
		case string(part) == string(wakeRune):
			if p := t.screen.waiting(); len(p) > 0 {
				_, _ = fmt.Fprintf(t.screen, "\n%s%s", p, prompt)
			}
		case part[n-1] == readline.CharInterrupt:
			_, _ = io.WriteString(t.screen, "\n")
			return "", readline.ErrInterrupt
		case part[n-1] == '\n':
			return string(append(line, part[:n-1]...)), nil
		default:
			line = append(line, part...)
		}
	}
}

// ask asks a question, and gives what was typed.
func (t *terminal) ask(question string) (string, error) {
	if columns, _ := t.screen.size(); text.StringWidth(question) > columns-20 { // there is to be room for the answer
		t.screen.print([]byte(question + "\n"))
		question = "? "
	}
	t.asking = true
	defer func() { t.asking = false }()
	return t.readLine(question)
}

// filter sees each key before readline works on it, and says whether it does.
func (t *terminal) filter(r rune) (rune, bool) {
	op := t.rl.Operation
	ends := false // the line
	switch r {
	case 0:
		t.over.Store(true)
		return r, true
	case wakeRune:
		t.rewidth()
		if p := t.screen.waiting(); len(p) > 0 {
			_, _ = t.rl.Write(p)
		}
		return r, false
	case readline.CharEnter, readline.CharCtrlJ:
		ends = true
	case readline.CharInterrupt:
		ends = !op.IsSearchMode()
	case readline.CharDelete:
		ends = t.length == 0 && op.IsNormalMode()
	case deleteRune:
		return readline.CharDelete, t.length > 0
	case readline.CharPrev, readline.CharNext, readline.CharBckSearch, readline.CharTab:
		return r, !t.asking
	case readline.CharLineStart, readline.CharBackward, readline.CharLineEnd, readline.CharForward, readline.CharBell,
		readline.CharCtrlH, readline.CharKill, readline.CharCtrlL, readline.CharTranspose, readline.CharCtrlU,
		readline.CharCtrlW, readline.CharCtrlY, readline.CharBackspace,
		readline.MetaBackward, readline.MetaForward, readline.MetaDelete, readline.MetaBackspace:
		return r, true
	default:
		// Also Ctrl-Z and Ctrl-S: a shell that others use is not to stop.
		return r, r > 0 && !unicode.IsControl(r)
	}
	if !ends {
		t.keys.open()
	}
	return r, true
}

// remember keeps a line that was typed.
func (t *terminal) remember(line string) error {
	err := t.history.add(line)
	t.recall()
	return err
}

// recall gives readline the history anew: it leaves traces of a search in it.
func (t *terminal) recall() {
	if t.rl == nil {
		return
	}
	t.rl.ResetHistory()
	_ = t.rl.SaveHistory("") // it cannot search in none
	for _, l := range t.history.lines {
		_ = t.rl.SaveHistory(l)
	}
}

// typedInterrupt is a Ctrl-C that was typed ahead of what has just begun.
func (t *terminal) typedInterrupt() {
	if t.keys.interrupted() {
		t.interrupt()
	}
}

// attend gives the terminal what the system signals of it, until stop is called.
func (t *terminal) attend() (stop func()) {
	came := make(chan os.Signal, 8)
	// Ctrl-Z is caught for that it does nothing: a shell that others use is not to stop.
	signal.Notify(came, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGTSTP)
	ended := make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() {
		for {
			select {
			case s := <-came:
				switch s {
				case syscall.SIGINT:
					t.ctrlC()
				case syscall.SIGWINCH:
					t.resized()
				}
			case <-ended:
				return
			}
		}
	})
	return func() {
		signal.Stop(came)
		close(ended)
		joined.Wait()
	}
}
