package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Maker is what a kind's Make builds one envelope with: header fields, items,
// and the ids that are patched anew in each send.
//
// An id, a key or a time of sending that a Maker hands out is a placeholder of
// the right length. It may be used in any number of places, in JSON strings
// and in plain text; the pool finds the places once and overwrites them in
// each send. So a payload must hold it as it is: not compressed, not cut, not in upper case.
type Maker struct {
	// Rand is the one source of chance; it depends on the pool's seed, the
	// kind and the envelope's number within its kind.
	Rand *rand.Rand
	// N is the envelope's number within its kind, from 0.
	N int
	// Shape is the pool's.
	Shape Shape
	// Epoch is the run's start.
	Epoch time.Time
	// Agent is the user agent of the envelope's send.
	Agent string

	kind    string
	words   map[string][]string
	slots   int
	eventID string
	header  bytes.Buffer
	items   bytes.Buffer
	err     error
}

// Placeholders begin with placeMark, a letter that says what they stand for
// and three digits of the id's slot; mark and letter are no hex digits, and the
// rest is placePad up to the length. Slot 0 is the event id's.
const (
	placeMark  = "zzzz"
	placePad   = "z"
	placeUUID  = 'u'
	placeHex   = 'i'
	placeSpan  = 's'
	placeKey   = 'k'
	placeSent  = 't'
	placeStamp = 'p'
	maxSlots   = 1000
)

// placeLens is the length of each sort of placeholder.
var placeLens = map[byte]int{placeUUID: 36, placeHex: 32, placeSpan: 16, placeKey: KeyLen, placeSent: timeLen, placeStamp: stampFixed}

// placeNames say what each sort that is no id stands for.
var placeNames = map[byte]string{placeKey: "the project's key", placeSent: "the time of sending", placeStamp: "the stamp"}

func placeholder(sort byte, slot int) string {
	text := fmt.Sprintf("%s%c%03d", placeMark, sort, slot)
	return text + strings.Repeat(placePad, placeLens[sort]-len(text))
}

func (m *Maker) place(sort byte) string {
	if m.slots++; m.slots >= maxSlots {
		m.fail(fmt.Errorf("more than %d ids", maxSlots-1))
		return placeholder(sort, 0)
	}
	return placeholder(sort, m.slots)
}

func (m *Maker) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// EventID is the envelope's event id, 32 hex digits, distinct in every send. The
// first call also puts it into the envelope header.
func (m *Maker) EventID() string {
	if m.eventID == "" {
		m.eventID = placeholder(placeHex, 0)
		m.Header("event_id", m.eventID)
	}
	return m.eventID
}

// ID is a new id of 32 hex digits (a random UUID), distinct in every send.
func (m *Maker) ID() string { return m.place(placeHex) }

// UUID is a new id in the form of a UUID with dashes, distinct in every send.
func (m *Maker) UUID() string { return m.place(placeUUID) }

// SpanID is a new id of 16 hex digits, distinct in every send.
func (m *Maker) SpanID() string { return m.place(placeSpan) }

// Key is the public key of the project that a send goes to.
func (m *Maker) Key() string { return placeholder(placeKey, 0) }

// SentAt is the time at which a send is due (RFC 3339, UTC, milliseconds): what SDKs
// put as sent_at into the envelope header.
//
// Note: it is patched in each send. With a fixed one Relay would add a pass
// that corrects the clock to all envelopes of a run once 55 minutes had passed
// (MINIMUM_CLOCK_DRIFT in relay-server/src/services/processor.rs), and without
// one the envelopes would not look like an SDK's.
func (m *Maker) SentAt() string { return placeholder(placeSent, 0) }

// Header adds a field to the envelope header, after the stamp.
func (m *Maker) Header(name string, value any) {
	m.header.WriteByte(',')
	m.member(&m.header, name, value)
}

// eventTypes are the item types that belong to an event. Relay 26.4 gives an
// envelope that holds one and has no event id one of its own, newer builds drop
// some of them: so all envelopes with such an item carry one.
// Source: Item::requires_event in relay-server/src/envelope/item.rs.
var eventTypes = map[string]bool{
	"event": true, "transaction": true, "security": true, "attachment": true, "form_data": true, "raw_security": true,
	"unreal_report": true, "user_report": true, "feedback": true, "replay_event": true, "profile": true,
}

// AddItem adds an item: its type, further fields of its header by name and
// value in turn ("item_count", 10), and its payload. Type and length are not
// among the fields. An item that belongs to an event brings the event id into the envelope header.
func (m *Maker) AddItem(typ string, payload []byte, fields ...any) {
	if eventTypes[typ] {
		m.EventID()
	}
	m.items.WriteByte('{')
	m.member(&m.items, "type", typ)
	for i := 0; i+1 < len(fields); i += 2 {
		m.items.WriteByte(',')
		m.member(&m.items, fmt.Sprint(fields[i]), fields[i+1])
	}
	fmt.Fprintf(&m.items, `,"length":%d}`+"\n", len(payload))
	m.items.Write(payload)
	m.items.WriteByte('\n')
}

// AddJSON is AddItem with the JSON of payload.
func (m *Maker) AddJSON(typ string, payload any, fields ...any) {
	m.AddItem(typ, m.json(payload), fields...)
}

func (m *Maker) member(b *bytes.Buffer, name string, value any) {
	b.Write(m.json(name))
	b.WriteByte(':')
	b.Write(m.json(value))
}

// json is v as JSON, with no more escapes than JSON asks for.
func (m *Maker) json(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		m.fail(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// body is the whole envelope, with placeholders. The stamp stands first, so
// that the one who reads it finds it in the first bytes.
func (m *Maker) body() []byte {
	body := []byte(`{"` + StampKey + `":"` + placeholder(placeStamp, 0) + m.kind + `"`)
	body = append(body, m.header.Bytes()...)
	body = append(body, "}\n"...)
	return append(body, m.items.Bytes()...)
}

// patch is one thing that is written anew in each send, and all its places.
type patch struct {
	sort   byte
	slot   uint64
	length int
	at     []int32
}

// isID says that what is written is an id.
func (p *patch) isID() bool { return placeNames[p.sort] == "" }

// patches finds the placeholders of a body.
func patches(body []byte) []patch {
	var found []patch
	index := map[string]int{}
	for at := 0; ; at++ {
		next := bytes.Index(body[at:], []byte(placeMark))
		if next < 0 {
			return found
		}
		at += next
		length := 0
		if at+len(placeMark) < len(body) {
			length = placeLens[body[at+len(placeMark)]]
		}
		if length == 0 || at+length > len(body) {
			continue
		}
		var slot int
		if _, err := fmt.Sscanf(string(body[at+len(placeMark)+1:at+len(placeMark)+4]), "%03d", &slot); err != nil {
			continue
		}
		text := string(body[at : at+length])
		sort := body[at+len(placeMark)]
		if text != placeholder(sort, slot) {
			continue
		}
		i, seen := index[text]
		if !seen {
			i = len(found)
			index[text] = i
			found = append(found, patch{sort: sort, slot: uint64(slot), length: length})
		}
		found[i].at = append(found[i].at, int32(at))
		at += length - 1
	}
}
