package envelope

import (
	"bytes"
	"strconv"
	"time"
)

// recording is an envelope of a [Folder], made ready to be sent again: with a
// stamp, and with places for what is new in each send.
type recording struct {
	kind     int // in the folder's table
	elements int
	body     []byte
	patches  []patch
	times    []int // where times stand in body: what is moved are the whole seconds
	recorded int64 // when it was made, seconds since 1970; 0: it says nothing of it
}

// timeKeys are the fields of payloads in which the protocol has times. Relay
// moves, cuts off or drops what is too old by them.
// Source: https://develop.sentry.dev/sdk/, event payloads, sessions, logs, spans, check-ins and replays.
var timeKeys = map[string]bool{"timestamp": true, "start_timestamp": true, "end_timestamp": true, "started": true, "replay_start_timestamp": true}

// newRecording makes the envelope ready. In its header, the stamp is put
// first, event id, sent_at and the trace's public_key become places; dsn is left out,
// as a send says to which project it goes. In its items the event id becomes the
// same place. All else stays as it is, byte for byte.
func newRecording(e *Envelope, k *Kind) (recording, error) {
	var r recording
	head := headerOf(e, k, &r)
	var items bytes.Buffer
	for _, it := range e.Items {
		items.Write(it.Header)
		items.WriteByte('\n')
		if p := bytes.TrimSpace(it.Payload); len(p) > 0 && (p[0] == '{' || p[0] == '[') && string(it.Type) != "attachment" {
			for _, at := range timesOf(it.Payload) {
				r.times = append(r.times, len(head)+items.Len()+at)
			}
		}
		items.Write(it.Payload)
		items.WriteByte('\n')
		if string(it.Type) == k.Items[0] {
			r.elements += k.Elements(it)
		}
	}
	r.body = append(head, items.Bytes()...)
	if plain, dashed, ok := idForms(e.EventID); ok {
		replaceID(r.body[len(head):], plain, placeholder(placeHex, 0))
		replaceID(r.body[len(head):], dashed, placeholder(placeUUID, 0))
	}
	r.patches = patches(r.body)
	if r.recorded == 0 {
		for _, at := range r.times {
			t, _ := wholeSeconds(r.body[at:])
			r.recorded = max(r.recorded, t)
		}
	}
	// What comes out must be an envelope still, with the same items.
	sample := entry{body: r.body, patches: r.patches}
	var again Envelope
	if err := again.Parse(sample.fill(nil, Stamp{}, saltID, 0, 0, 0)); err != nil {
		return r, err
	}
	return r, nil
}

// headerOf is the new header line, and its newline.
func headerOf(e *Envelope, k *Kind, r *recording) []byte {
	head := []byte(`{"` + StampKey + `":"` + placeholder(placeStamp, 0) + k.Name + `"`)
	id := ""
	for i := range e.Items {
		if eventTypes[string(e.Items[i].Type)] {
			id = placeholder(placeHex, 0)
		}
	}
	if len(e.EventID) == 36 {
		id = placeholder(placeUUID, 0)
	} else if len(e.EventID) > 0 {
		id = placeholder(placeHex, 0)
	}
	if id != "" {
		head = append(head, `,"event_id":"`+id+`"`...)
	}
	s := scanner{line: e.Header}
	_ = s.object("envelope header", func(key []byte, start int) { // Parse has checked it
		value := s.line[start:s.at]
		switch string(key) {
		case StampKey, "event_id", "dsn":
			return
		case "sent_at":
			if t, err := time.Parse(time.RFC3339Nano, string(bytes.Trim(value, `"`))); err == nil {
				r.recorded = t.Unix()
			}
			value = []byte(`"` + placeholder(placeSent, 0) + `"`)
		case "trace":
			value = withKey(value)
		}
		head = append(append(append(append(head, `,"`...), key...), `":`...), value...)
	})
	return append(head, "}\n"...)
}

// withKey is a trace with the key of the project that a send goes to.
func withKey(trace []byte) []byte {
	s := scanner{line: trace}
	out := trace
	_ = s.object("trace", func(key []byte, start int) {
		if string(key) == "public_key" {
			out = append(append(bytes.Clone(trace[:start]), `"`+placeholder(placeKey, 0)+`"`...), trace[s.at:]...)
		}
	})
	return out
}

// idForms are the two forms of an event id, 32 hex digits and with dashes; ok is false where it is none.
func idForms(id []byte) (plain, dashed []byte, ok bool) {
	plain = bytes.ReplaceAll(id, []byte("-"), nil)
	if len(plain) != 32 {
		return nil, nil, false
	}
	for _, c := range plain {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return nil, nil, false
		}
	}
	return plain, bytes.Join([][]byte{plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]}, []byte("-")), true
}

// replaceID puts place over each place of an id, which is as long.
func replaceID(body, id []byte, place string) {
	for at := 0; ; at += len(id) {
		next := bytes.Index(body[at:], id)
		if next < 0 {
			return
		}
		at += next
		copy(body[at:], place)
	}
}

// timesOf are the places of times in a payload, where it is JSON: of the whole seconds that [wholeSeconds] reads.
func timesOf(payload []byte) (at []int) {
	s := scanner{line: payload}
	s.nested = func(key []byte, start int) {
		if !timeKeys[string(key)] {
			return
		}
		value := s.line[start:s.at]
		if value[0] == '"' {
			value, start = value[1:len(value)-1], start+1
		} else if len(value) > 10 && value[10] != '.' {
			return // not seconds
		}
		if _, n := wholeSeconds(value); n > 0 && n <= len(value) {
			at = append(at, start)
		}
	}
	s.space()
	if s.value(0); s.err != nil {
		return nil
	}
	return at
}

// dateLayout is the part of a time in RFC 3339 that is moved.
const dateLayout = "2006-01-02T15:04:05"

// wholeSeconds reads the time that b begins with, a number of ten digits or a
// date, without what is behind its whole seconds (a fraction, a zone); n is how
// many bytes that is, 0 where it is none.
func wholeSeconds(b []byte) (seconds int64, n int) {
	if len(b) >= len(dateLayout) && b[4] == '-' {
		text := []byte(dateLayout)
		copy(text, b)
		if text[10] == ' ' {
			text[10] = 'T'
		}
		t, err := time.Parse(dateLayout, string(text))
		if err != nil {
			return 0, 0
		}
		return t.Unix(), len(dateLayout)
	}
	if len(b) < 10 || b[0] == '0' {
		return 0, 0
	}
	for _, c := range b[:10] {
		if !isDigit(c) {
			return 0, 0
		}
	}
	seconds, _ = strconv.ParseInt(string(b[:10]), 10, 64)
	return seconds, 10
}

// moved is the body with its times as if it had been made at epoch.
func (r *recording) moved(epoch time.Time) []byte {
	body := bytes.Clone(r.body)
	if r.recorded == 0 {
		return body
	}
	by := epoch.Unix() - r.recorded
	for _, at := range r.times {
		t, n := wholeSeconds(body[at:])
		switch t += by; {
		case n == 10 && t >= 1e9 && t < 1e10:
			strconv.AppendInt(body[at:at], t, 10)
		case n == len(dateLayout):
			between := body[at+10]
			if y := time.Unix(t, 0).UTC().Year(); y > 999 && y <= 9999 {
				time.Unix(t, 0).UTC().AppendFormat(body[at:at], dateLayout)
				body[at+10] = between
			}
		}
	}
	return body
}
