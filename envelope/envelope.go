package envelope

import (
	"bytes"
	"fmt"
)

// Item is one item of a parsed envelope. Its slices alias the parsed bytes.
type Item struct {
	// Type is the header's type.
	Type []byte
	// Count is the header's item_count, 1 where it has none.
	Count int
	// Header is the item's header line, without its newline.
	Header []byte
	// Payload is the item's body.
	Payload []byte
}

// Envelope is a parsed envelope. Parse may be called again and again on one
// value, which then reuses its memory. All slices alias the bytes parsed.
type Envelope struct {
	// Header is the first line, without its newline.
	Header []byte
	// EventID is the header's event_id, nil where it has none.
	EventID []byte
	// Stamp is the header's stamp, if Stamped.
	Stamp   Stamp
	Stamped bool
	Items   []Item
}

// SyntaxError is what is wrong with an envelope's bytes, and where.
type SyntaxError struct {
	Offset int // of the byte at which it was noticed, from 0
	What   string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("envelope: byte %d: %s", e.Offset, e.What)
}

// Parse reads one envelope, strictly: every byte belongs to a header or to a
// payload, or the error is a *SyntaxError that says where not. It never
// panics, and nothing of a bad envelope is to be counted.
//
// The format is a header line, then items of a header line and a payload of
// the header's length in bytes, or up to the newline where it has no length.
// A newline ends each header and payload; the last one may be missing.
// Source: https://develop.sentry.dev/sdk/data-model/envelopes/, and
// relay-server/src/envelope of Relay 26.4.0.
//
// Note: Relay's parser skips white space, and so blank lines, before a header
// and lets a header's JSON run over several lines. The format allows neither,
// nor does Relay write it; here both are errors.
func (e *Envelope) Parse(body []byte) error {
	*e = Envelope{Items: e.Items[:0]}
	line := lineAt(body, 0)
	var head envelopeHeader
	if err := head.read(line, 0); err != nil {
		return err
	}
	e.Header, e.EventID = line, head.eventID
	if head.stamp != nil {
		stamp, ok := ParseStamp(head.stamp)
		if !ok {
			return &SyntaxError{head.stampAt, "no stamp: " + StampKey}
		}
		e.Stamp, e.Stamped = stamp, true
	}
	for at := len(line) + 1; at < len(body); {
		line := lineAt(body, at)
		var head itemHeader
		if err := head.read(line, at); err != nil {
			e.Items = e.Items[:0]
			return err
		}
		start := min(at+len(line)+1, len(body))
		end := start + len(lineAt(body, start))
		if head.sized {
			end = start + head.length
			if head.length > len(body)-start {
				e.Items = e.Items[:0]
				return &SyntaxError{len(body), "payload ends before its length"}
			}
			if end < len(body) && body[end] != '\n' {
				e.Items = e.Items[:0]
				return &SyntaxError{end, "no newline after payload"}
			}
		}
		e.Items = append(e.Items, Item{Type: head.typ, Count: head.count, Header: line, Payload: body[start:end:end]})
		at = end + 1
	}
	return nil
}

// lineAt is the line that begins at byte at, without its newline.
func lineAt(body []byte, at int) []byte {
	end := bytes.IndexByte(body[at:], '\n')
	if end < 0 {
		return body[at:len(body):len(body)]
	}
	return body[at : at+end : at+end]
}
