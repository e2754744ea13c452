package envelope

import (
	"bytes"
	"unicode/utf8"
)

// envelopeHeader is what is read of an envelope's header line.
type envelopeHeader struct {
	eventID []byte
	stamp   []byte
	stampAt int
}

// itemHeader is what is read of an item's header line.
type itemHeader struct {
	typ    []byte
	sized  bool
	length int
	count  int
}

// maxNumber bounds the numbers of a header; no body comes near it.
const maxNumber = 1<<31 - 1

func (h *envelopeHeader) read(line []byte, at int) error {
	s := scanner{line: line, base: at}
	return s.object("envelope header", func(key []byte, start int) {
		switch string(key) {
		case "event_id":
			if !s.null(start) && s.first(h.eventID != nil, "event_id", start) {
				h.eventID = s.text("event_id", start)
			}
		case StampKey:
			if s.first(h.stamp != nil, StampKey, start) {
				h.stamp, h.stampAt = s.text(StampKey, start), at+start
			}
		}
	})
}

func (h *itemHeader) read(line []byte, at int) error {
	h.count = -1
	s := scanner{line: line, base: at}
	err := s.object("item header", func(key []byte, start int) {
		switch string(key) {
		case "type":
			if s.first(h.typ != nil, "type", start) {
				h.typ = s.text("type", start)
			}
		case "length":
			if s.first(h.sized, "length", start) {
				h.sized, h.length = true, s.number("length", start)
			}
		case "item_count":
			if s.first(h.count >= 0, "item_count", start) {
				h.count = s.number("item_count", start)
			}
		}
	})
	if err != nil {
		return err
	}
	if len(h.typ) == 0 {
		return &SyntaxError{at, "item header without a type"}
	}
	if h.count < 0 {
		h.count = 1
	}
	return nil
}

// maxDepth is how deep a header may nest, as in Relay's JSON reader (serde_json).
const maxDepth = 128

// scanner checks a header line, which must be one JSON object (RFC 8259, in
// UTF-8) with nothing before or after it, and hands out the members of that
// object.
//
// Note: written by hand, though JSON libraries abound: what it hands out must
// alias the line, be bounded in depth and cost no allocation, and of the
// libraries at hand each lacks one of the three.
type scanner struct {
	line []byte
	base int // offset of line in the envelope
	at   int
	err  *SyntaxError
	// nested is called for each member of the objects within the line's object; nil: they are passed over.
	nested func(key []byte, start int)
}

// object reads the line and calls member for each member of its object, with
// the key between its quotes and the start of its value; the value ends at s.at.
func (s *scanner) object(what string, member func(key []byte, start int)) error {
	if len(s.line) == 0 || s.line[0] != '{' {
		s.fail(0, what+" is not a JSON object")
	} else if s.members(1, member); s.err == nil && s.at < len(s.line) {
		s.fail(s.at, "bytes after "+what)
	}
	if s.err == nil && !utf8.Valid(s.line) {
		s.fail(0, what+" is not UTF-8")
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// fail keeps the first thing that is wrong.
func (s *scanner) fail(at int, what string) {
	if s.err == nil {
		s.err = &SyntaxError{s.base + at, what}
	}
}

// first fails on a key that was there before.
func (s *scanner) first(again bool, key string, start int) bool {
	if again {
		s.fail(start, "second "+key)
	}
	return !again
}

func (s *scanner) null(start int) bool { return string(s.line[start:s.at]) == "null" }

// text is the value from start as a string, never nil. An escape in it is an
// error: what is read here (types, ids, stamps) needs none and must alias the line.
func (s *scanner) text(key string, start int) []byte {
	v := s.line[start:s.at:s.at]
	switch {
	case v[0] != '"':
		s.fail(start, key+" is not a string")
	case bytes.IndexByte(v, '\\') >= 0:
		s.fail(start, "escape in "+key)
	default:
		return v[1 : len(v)-1 : len(v)-1]
	}
	return []byte{}
}

// number is the value from start as an integer from 0 to maxNumber.
func (s *scanner) number(key string, start int) int {
	n := 0
	for _, c := range s.line[start:s.at] {
		if c < '0' || c > '9' {
			s.fail(start, key+" is not a whole number from 0")
			return 0
		}
		if d := int(c - '0'); n > (maxNumber-d)/10 {
			s.fail(start, key+" is too large")
			return 0
		} else {
			n = 10*n + d
		}
	}
	return n
}

// space moves past white space. A line has no newline; a payload may.
func (s *scanner) space() {
	for s.at < len(s.line) && (s.line[s.at] == ' ' || s.line[s.at] == '\t' || s.line[s.at] == '\r' || s.line[s.at] == '\n') {
		s.at++
	}
}

// take moves past c if it is next.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.line) && s.line[s.at] == c {
		s.at++
		return true
	}
	return false
}

// expect moves past c, or fails.
func (s *scanner) expect(c byte, what string) bool {
	if !s.take(c) {
		s.fail(s.at, what)
	}
	return s.err == nil
}

func (s *scanner) members(depth int, member func(key []byte, start int)) {
	s.at++
	if s.space(); s.take('}') {
		return
	}
	for {
		s.space()
		start := s.at
		s.quoted()
		key := s.at
		if s.space(); s.err != nil || !s.expect(':', "no colon after key") {
			return
		}
		s.space()
		value := s.at
		s.value(depth)
		if s.err != nil {
			return
		}
		if member != nil {
			if member(s.line[start+1:key-1], value); s.err != nil {
				return
			}
		}
		if s.space(); s.take('}') {
			return
		}
		if !s.expect(',', "no comma after member") {
			return
		}
	}
}

func (s *scanner) elements(depth int) {
	s.at++
	if s.space(); s.take(']') {
		return
	}
	for {
		s.space()
		if s.value(depth); s.err != nil {
			return
		}
		if s.space(); s.take(']') {
			return
		}
		if !s.expect(',', "no comma after element") {
			return
		}
	}
}

func (s *scanner) value(depth int) {
	if s.at >= len(s.line) {
		s.fail(s.at, "header ends early")
		return
	}
	switch c := s.line[s.at]; {
	case c == '"':
		s.quoted()
	case c == '{' || c == '[':
		if depth++; depth > maxDepth {
			s.fail(s.at, "header nests too deep")
		} else if c == '{' {
			s.members(depth, s.nested)
		} else {
			s.elements(depth)
		}
	case c == '-' || isDigit(c):
		s.numeral()
	case !s.word("true") && !s.word("false") && !s.word("null"):
		s.fail(s.at, "no JSON value")
	}
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.line[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits moves past digits, of which there must be one.
func (s *scanner) digits() {
	start := s.at
	for s.at < len(s.line) && isDigit(s.line[s.at]) {
		s.at++
	}
	if s.at == start {
		s.fail(s.at, "no digit in number")
	}
}

func (s *scanner) numeral() {
	s.take('-')
	if !s.take('0') {
		s.digits()
	}
	if s.take('.') {
		s.digits()
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		s.digits()
	}
}

func (s *scanner) quoted() {
	if !s.expect('"', "no string") {
		return
	}
	for s.at < len(s.line) {
		switch c := s.line[s.at]; {
		case c == '"':
			s.at++
			return
		case c < 0x20:
			s.fail(s.at, "control character in string")
			return
		case c == '\\':
			if s.escape(); s.err != nil {
				return
			}
		default:
			s.at++
		}
	}
	s.fail(s.at, "string without an end")
}

func (s *scanner) escape() {
	rest := s.line[s.at+1:]
	switch {
	case len(rest) > 0 && bytes.IndexByte([]byte(`"\/bfnrt`), rest[0]) >= 0:
		s.at += 2
		return
	case len(rest) > 4 && rest[0] == 'u':
		for _, c := range rest[1:5] {
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				s.fail(s.at, "bad escape in string")
				return
			}
		}
		s.at += 6
	default:
		s.fail(s.at, "bad escape in string")
	}
}
