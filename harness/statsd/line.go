package statsd

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"relaybench/harness/result"
)

// line is one line of DogStatsD:
//
//	NAME:VALUE[:VALUE…]|TYPE[|@RATE][|#TAG,TAG…][|T<unix seconds>][|…]
//
// Fields that are not known are ignored, as clients add some with each version
// of the protocol. Its slices are of the text that it was parsed from.
// Source: Datadog's DogStatsD protocol 1.0 to 1.3.
type line struct {
	name   []byte
	kind   string // result.Timer, result.Counter or result.Gauge
	values []byte // with colons between them; each of them is a number
	rate   float64
	tags   []byte // with commas between them
	stamp  int64  // 0: none
}

// errIgnored is of lines of the protocol that are not kept: sets, events and service checks.
var errIgnored = errors.New("not kept")

// kinds are the types of metrics; of the empty ones nothing is kept.
var kinds = map[string]string{"c": result.Counter, "g": result.Gauge, "ms": result.Timer, "h": result.Timer, "d": result.Timer, "s": ""}

// parse reads a line, which is not empty. Its error is errIgnored, or says what is wrong.
func parse(text []byte) (l line, err error) {
	l.rate = 1
	if bytes.HasPrefix(text, []byte("_e{")) || bytes.HasPrefix(text, []byte("_sc|")) {
		return l, errIgnored
	}
	head, rest, _ := bytes.Cut(text, []byte("|"))
	kind, rest, more := bytes.Cut(rest, []byte("|"))
	var ok bool
	if l.name, l.values, ok = bytes.Cut(head, []byte(":")); !ok {
		return l, errors.New("no value")
	}
	if len(l.name) == 0 {
		return l, errors.New("no name")
	}
	if l.kind, ok = kinds[string(kind)]; !ok {
		return l, fmt.Errorf("no type %q", clip(kind))
	}
	if !utf8.Valid(text) {
		return l, errors.New("not UTF-8")
	}
	if l.kind == "" {
		return l, errIgnored
	}
	for v := range bytes.SplitSeq(l.values, []byte(":")) {
		if _, ok := number(v); !ok {
			return l, fmt.Errorf("value %q", clip(v))
		}
	}
	for more {
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte("|"))
		if len(field) == 0 {
			continue
		}
		switch said := field[1:]; field[0] {
		case '@':
			if l.rate, ok = number(said); !ok || !(l.rate >= 1/result.MaxStandsFor && l.rate <= 1) {
				return l, fmt.Errorf("rate %q", clip(said))
			}
		case '#':
			l.tags = said
		case 'T':
			if at, err := strconv.ParseInt(string(said), 10, 64); err == nil && at > 0 {
				l.stamp = at
			}
		}
	}
	return l, nil
}

// number reads a finite number that sums can be made of.
func number(text []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && math.Abs(v) <= result.MaxValue
}

// clip is the beginning of a text from outside.
func clip(text []byte) string { return string(text[:min(len(text), 100)]) }
