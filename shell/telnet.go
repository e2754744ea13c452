package shell

import "relaybench/commands"

// Bytes of the telnet protocol that this program knows.
// Source: RFC 854 (commands), RFC 860 (timing mark).
const (
	telnetSE         = 0xF0 // ends a sub-negotiation
	telnetBRK        = 0xF3 // break
	telnetIP         = 0xF4 // interrupt process
	telnetSB         = 0xFA // begins a sub-negotiation
	telnetWILL       = 0xFB
	telnetWONT       = 0xFC
	telnetDO         = 0xFD
	telnetDONT       = 0xFE
	telnetIAC        = 0xFF // begins a command; doubled, it is itself
	telnetTimingMark = 0x06 // an option
)

// heard is what a byte from a telnet client completed.
type heard int

const (
	heardNothing   heard = iota
	heardLine            // a line: see telnet.line
	heardInterrupt       // Ctrl-C
	heardQuit            // the end-of-file character on an empty line
	heardAnswer          // an option that wants an answer: see telnet.answer
)

// telnet makes lines of the bytes that a telnet client, or one that only sends
// lines, has sent. It is a state machine over single bytes, so it does not
// matter in which pieces they come, and it keeps no more than a line.
type telnet struct {
	line   []byte  // so far, or the one that was just heard; at most a byte longer than commands.MaxLine
	answer [3]byte // the last one

	state   func(*telnet, byte) heard // nil: text
	verb    byte                      // of the option to come
	ended   bool                      // by CR: a LF or NUL that follows belongs to it
	heard   bool                      // line was heard: the next byte begins another
	swallow bool                      // the rest of a line that was too long
}

// hear takes the next byte. A line that is too long is heard as soon as it is,
// cut to a byte more than the longest that is taken, and its rest is dropped.
func (t *telnet) hear(b byte) heard {
	if t.heard {
		t.line, t.heard = t.line[:0], false
	}
	if t.state != nil {
		return t.state(t, b)
	}
	if b == telnetIAC {
		t.state = (*telnet).command
		return heardNothing
	}
	return t.text(b)
}

// rest is the last line, which has no end; "" where there is none.
func (t *telnet) rest() string {
	if t.heard || t.swallow {
		return ""
	}
	return string(t.line)
}

// text takes a byte of a line.
func (t *telnet) text(b byte) heard {
	ended := t.ended
	t.ended = b == '\r'
	switch {
	case ended && (b == '\n' || b == 0):
		return heardNothing
	case b == '\r' || b == '\n':
		if t.swallow {
			t.swallow = false
			return heardNothing
		}
		t.heard = true
		return heardLine
	case b == 0x03: // of a terminal that does not turn it into a signal
		return t.interrupt()
	case b == 0x04:
		if len(t.line) == 0 && !t.swallow {
			return heardQuit
		}
		return heardNothing
	case b == 0 || t.swallow: // a NUL does nothing
		return heardNothing
	}
	t.line = append(t.line, b)
	if len(t.line) <= commands.MaxLine {
		return heardNothing
	}
	t.heard, t.swallow = true, true
	return heardLine
}

// interrupt drops the line so far.
func (t *telnet) interrupt() heard {
	t.line, t.swallow = t.line[:0], false
	return heardInterrupt
}

// command takes the byte after IAC.
func (t *telnet) command(b byte) heard {
	t.state = nil
	switch b {
	case telnetIAC:
		return t.text(b)
	case telnetIP, telnetBRK:
		return t.interrupt()
	case telnetSB:
		t.state = (*telnet).sub
	case telnetDO, telnetDONT, telnetWILL, telnetWONT:
		t.verb, t.state = b, (*telnet).option
	}
	return heardNothing
}

// option takes the option of a DO, DONT, WILL or WONT. Whatever is offered or
// asked for is refused, but a timing mark: a telnet that gets no answer to that
// shows nothing from then on. What is refused to us needs no answer.
func (t *telnet) option(b byte) heard {
	t.state = nil
	switch {
	case t.verb == telnetDO && b == telnetTimingMark:
		t.answer = [3]byte{telnetIAC, telnetWILL, b}
	case t.verb == telnetDO:
		t.answer = [3]byte{telnetIAC, telnetWONT, b}
	case t.verb == telnetWILL:
		t.answer = [3]byte{telnetIAC, telnetDONT, b}
	default:
		return heardNothing
	}
	return heardAnswer
}

// sub swallows a sub-negotiation, up to its IAC SE.
func (t *telnet) sub(b byte) heard {
	if b == telnetIAC {
		t.state = (*telnet).subCommand
	}
	return heardNothing
}

// subCommand takes the byte after an IAC in a sub-negotiation.
func (t *telnet) subCommand(b byte) heard {
	t.state = (*telnet).sub
	if b == telnetSE {
		t.state = nil
	}
	return heardNothing
}
