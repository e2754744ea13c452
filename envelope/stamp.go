package envelope

import "bytes"

// StampKey is the key of the envelope header under which a stamp stands. Relay
// keeps header keys that it does not know, for every kind of envelope, and in
// each part when it splits one.
const StampKey = "relaybench"

// Stamp is what a send carries in its envelope header, so that the upstream
// recognises it behind Relay without a table shared with the senders.
type Stamp struct {
	// Seq is the send's number: from 0 in the run's schedule, and from 0 in a
	// space of its own for warm-up sends.
	Seq uint64
	// Due is when the send was due, in nanoseconds of [Now] since the run's zero.
	Due int64
	// Warm marks a warm-up send: it is not counted and no fault touches it.
	Warm bool
	// Kind is the name of the kind. A parsed stamp's Kind aliases the parsed bytes.
	Kind []byte
}

// stampFixed is the length of a stamp's text up to its kind:
// 16 hex digits of Seq, 16 of Due, one of Warm, each followed by a dash.
const stampFixed = 16 + 1 + 16 + 1 + 1 + 1

const hexDigits = "0123456789abcdef"

func putHex(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = hexDigits[v&15]
		v >>= 4
	}
}

// PutStamp writes the fixed part of s over dst, which must be a stamp's text
// already: its length depends on the kind alone, so a stamp is patched in place.
func PutStamp(dst []byte, s Stamp) {
	_ = dst[stampFixed-1]
	putHex(dst[:16], s.Seq)
	dst[16] = '-'
	putHex(dst[17:33], uint64(s.Due))
	dst[33] = '-'
	dst[34] = '0'
	if s.Warm {
		dst[34] = '1'
	}
	dst[35] = '-'
}

// AppendStamp appends the text of s.
func AppendStamp(dst []byte, s Stamp) []byte {
	n := len(dst)
	dst = append(dst, "0000000000000000-0000000000000000-0-"...)
	PutStamp(dst[n:], s)
	return append(dst, s.Kind...)
}

// ParseStamp reads the text of a stamp; ok is false when it is none.
func ParseStamp(b []byte) (s Stamp, ok bool) {
	if len(b) <= stampFixed || b[16] != '-' || b[33] != '-' || b[35] != '-' {
		return s, false
	}
	seq, ok1 := parseHex(b[:16])
	due, ok2 := parseHex(b[17:33])
	if !ok1 || !ok2 || b[34] != '0' && b[34] != '1' {
		return s, false
	}
	return Stamp{Seq: seq, Due: int64(due), Warm: b[34] == '1', Kind: b[stampFixed:]}, true
}

func parseHex(b []byte) (v uint64, ok bool) {
	for _, c := range b {
		d := bytes.IndexByte([]byte(hexDigits), c)
		if d < 0 {
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}
