package shell

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// greeting is the first line of a client that speaks in frames, with their version.
const greeting = "relaybench-frames 1"

// greetingPrefix begins the greetings of all versions.
const greetingPrefix = "relaybench-frames "

// maxFrame is the size of the largest payload, in bytes: a line, with its place.
const maxFrame = 128 << 10

// frame is a piece of the conversation between a terminal or script and the
// process that holds the store: a byte of kind, four of length, big-endian, a payload.
type frame struct {
	kind frameKind
	data []byte
}

// frameKind says what a frame is.
type frameKind byte

// The kinds, from a client and to it.
const (
	frameHello     frameKind = 'h' // a hello as JSON: the first one
	frameLine      frameKind = 'l' // a line to be done: the place where it stands, NUL, its text
	frameAnswer    frameKind = 'a' // what was typed for a question
	frameNoAnswer  frameKind = 'n' // nobody typed one
	frameInterrupt frameKind = 'i' // Ctrl-C, or the name of a signal
	frameWidth     frameKind = 'w' // the columns of the screen, as a decimal number
	frameComplete  frameKind = 'c' // a completion is asked for: a number, a blank, the place in the line, NUL, the line

	frameWelcome  frameKind = 'W' // a welcome as JSON: the answer to a hello
	frameOut      frameKind = 'O' // standard output
	frameErr      frameKind = 'E' // standard error
	frameJobs     frameKind = 'J' // whole lines that belong to no line that is being done
	frameProgress frameKind = 'P' // a line that is drawn over the last one
	frameQuestion frameKind = 'Q' // an answer is waited for
	frameWords    frameKind = 'C' // words as JSON: a completion
	frameDone     frameKind = 'D' // a done as JSON: the line has been done
	frameBye      frameKind = 'B' // the server ends, or refuses: why
)

// hello is what a client says of itself.
type hello struct {
	Token     string `json:"token,omitempty"`
	Script    bool   `json:"script,omitempty"` // its queued commands are waited for; the others are a terminal's
	KeepGoing bool   `json:"keep_going,omitempty"`
	Format    int    `json:"format,omitempty"`
	Color     bool   `json:"color,omitempty"`
	Width     int    `json:"width,omitempty"` // of standard output
	Live      int    `json:"live,omitempty"`  // of standard error
	Asks      bool   `json:"asks,omitempty"`  // there is somebody to ask
	Dir       string `json:"dir,omitempty"`   // its working folder
}

// welcome is what the server says of itself.
type welcome struct {
	PID    int      `json:"pid"`
	Banner []string `json:"banner,omitempty"`
	Prompt string   `json:"prompt"`
}

// words are a completion.
type words struct {
	Asked int      `json:"asked"` // the number of what was asked
	Start int      `json:"start"`
	Words []string `json:"words"`
}

// done says how a line went.
type done struct {
	Code   int    `json:"code"`
	More   bool   `json:"more"` // lines are to follow, in a script
	Quit   bool   `json:"quit"`
	Prompt string `json:"prompt"`
	Jobs   int    `json:"jobs"` // the client's own that have not ended
}

// appendFrame appends a frame as it is sent.
func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.data)))
	return append(b, f.data...)
}

// jsonFrame is a frame whose payload is JSON: of texts, numbers and truths, so that nothing can go wrong.
func jsonFrame(kind frameKind, v any) frame {
	data, _ := json.Marshal(v)
	return frame{kind, data}
}

// readFrame reads a frame; its error is io.EOF at the end of whole ones.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return frame{}, fmt.Errorf("frame of %d bytes, more than %d", n, maxFrame)
	}
	f := frame{frameKind(head[0]), make([]byte, n)}
	if _, err := io.ReadFull(r, f.data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return f, nil
}

// framed sends what is written to it as frames of a kind.
type framed struct {
	kind frameKind
	send func([]byte)
}

func (w framed) Write(p []byte) (int, error) {
	for left := p; len(left) > 0; {
		part := left[:min(len(left), piece)]
		w.send(appendFrame(nil, frame{w.kind, part}))
		left = left[len(part):]
	}
	return len(p), nil
}
