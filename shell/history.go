package shell

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// maxHistory is how many lines a history keeps.
const maxHistory = 10_000

// history is the lines that were typed at a terminal, the oldest first and no
// line twice, in a file that only its user can read. Several terminals may
// write to it.
type history struct {
	path  string // empty: it is not kept
	lines []string
}

// openHistory reads a history; there may be none yet. It is of use with an error too.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.path = ""
		return h, err
	}
	h.lines = historyLines(string(text))
	return h, nil
}

// historyLines are the lines of a history's text, the last of equal ones.
func historyLines(text string) []string {
	all := strings.Split(text, "\n")
	seen := make(map[string]bool, len(all))
	var lines []string
	for _, l := range slices.Backward(all) {
		if keeps(l) && !seen[l] {
			seen[l] = true
			lines = append(lines, l)
		}
	}
	slices.Reverse(lines)
	return lines[max(0, len(lines)-maxHistory):]
}

// keeps says whether a line is for the history: one that begins with a blank is not.
func keeps(line string) bool {
	return line != "" && !unicode.IsSpace([]rune(line)[0])
}

// add adds a line that was typed, and what other terminals have added. After an
// error it is not kept in its file any more.
func (h *history) add(line string) error {
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	if !keeps(line) {
		return nil
	}
	h.lines = historyLines(strings.Join(append(h.lines, line), "\n"))
	if h.path == "" {
		return nil
	}
	err := h.keep(line)
	if err != nil {
		h.path = ""
	}
	return err
}

// keep adds a line to the file.
func (h *history) keep(line string) error {
	f, err := h.lock()
	if err != nil {
		return err
	}
	defer f.Close() // and with it the lock
	text, err := os.ReadFile(h.path)
	if err != nil {
		return err
	}
	h.lines = historyLines(string(text) + "\n" + line)
	return replaceFile(h.path, strings.Join(h.lines, "\n")+"\n")
}

// lock opens the file, and keeps others from changing it until it is closed.
func (h *history) lock() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(h.path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: h.path, Err: err}
		}
		ours, err := f.Stat()
		if now, e := os.Stat(h.path); err == nil && e == nil && os.SameFile(ours, now) {
			return f, nil
		}
		f.Close() // another terminal has put its own in its place
		if err != nil {
			return nil, err
		}
	}
}

// replaceFile writes a file that only its user can read, whole or not at all.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
