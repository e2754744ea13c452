package shell

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chzyer/readline"
)

// What keys hands over that nobody types.
const (
	wakeRune   = '\U0010FFFE' // there is something to show
	deleteRune = '\U0010FFFF' // the key, which readline takes for Ctrl-D
)

// otherKeys are what terminals send that readline does not know, as what it knows.
// Source: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, and tmux.
var otherKeys = strings.NewReplacer(
	"\x1b[3~", string(deleteRune),
	"\x1b[1~", "\x01", "\x1b[7~", "\x01", "\x1b[4~", "\x05", "\x1b[8~", "\x05", // Home, End
	"\x1b[1;5D", "\x1bb", "\x1b[1;5C", "\x1bf", // Ctrl-Left, Ctrl-Right
	"\x00", "", // readline takes a NUL for the end
)

// keys is what was typed at a terminal and not used yet, in order: readline's
// standard input. It hands over no more than one line at a time, so that what is
// typed ahead stays here, and it wakes readline when there is something to show.
type keys struct {
	mu      sync.Mutex
	changed sync.Cond
	typed   []byte
	held    bool // until open: what ends a line was handed over
	wake    bool
	ended   bool
	// What was handed over last: an escape, the beginning of a key's sequence, a
	// character of which so many bytes are missing. Nothing must get into these.
	escape, sequence bool
	missing          int
}

func newKeys() *keys {
	k := &keys{held: true}
	k.changed.L = &k.mu
	return k
}

// maxKeys is how much may be typed ahead, in bytes; beyond that the terminal waits.
const maxKeys = 1 << 20

// put adds what was typed, once there is room or ctx has ended.
func (k *keys) put(ctx context.Context, b []byte) {
	defer context.AfterFunc(ctx, func() { k.set(func() {}) })()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.typed) > maxKeys && !k.ended && ctx.Err() == nil {
		k.changed.Wait()
	}
	k.typed = append(k.typed, b...)
	k.changed.Broadcast()
}

// interrupted says whether a Ctrl-C was typed ahead; it goes, with all before it.
func (k *keys) interrupted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := bytes.LastIndexByte(k.typed, readline.CharInterrupt)
	k.typed = k.typed[at+1:]
	k.changed.Broadcast()
	return at >= 0
}

// clear drops what was typed ahead.
func (k *keys) clear() { k.set(func() { k.typed = nil }) }

// open lets the next line be handed over.
func (k *keys) open() { k.set(func() { k.held = false }) }

// show lets wakeRune be handed over, as soon as a line is read.
func (k *keys) show() { k.set(func() { k.wake = true }) }

// end says that there is no more, also of what is there.
func (k *keys) end() { k.set(func() { k.ended, k.typed, k.held = true, nil, false }) }

func (k *keys) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	k.changed.Broadcast()
}

// Read implements [io.Reader], for one goroutine.
func (k *keys) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		switch {
		case k.ended:
			return 0, io.EOF
		case k.held:
		case k.wake && k.missing == 0 && !k.sequence:
			k.wake = false
			return utf8.EncodeRune(p[:utf8.UTFMax], wakeRune), nil
		case len(k.typed) > 0:
			n := copy(p, k.typed[:k.cutAt(len(p))])
			k.typed = k.typed[n:]
			k.changed.Broadcast()
			return n, nil
		}
		k.changed.Wait()
	}
}

// Close implements [io.Closer].
func (k *keys) Close() error { return nil }

// cutAt is how much of what was typed may be handed over at once, at most so many bytes: up to
// and with a key that may end a line, which nothing may follow until it is
// known whether it did.
func (k *keys) cutAt(most int) int {
	most = min(most, len(k.typed))
	for i, b := range k.typed[:most] {
		switch {
		case k.missing > 0 && !utf8.RuneStart(b):
			k.missing--
		case k.sequence && (b == ';' || '0' <= b && b <= '9'):
		default:
			k.sequence = k.escape && (b == '[' || b == 'O')
			k.escape = b == readline.CharEsc
			k.missing = following(b)
		}
		switch b {
		case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt, readline.CharDelete:
			k.held = true
			return i + 1
		}
	}
	return most
}

// following is how many bytes follow the first one of a character in UTF-8.
func following(b byte) int {
	switch {
	case b >= 0xF0:
		return 3
	case b >= 0xE0:
		return 2
	case b >= 0xC0:
		return 1
	}
	return 0
}
