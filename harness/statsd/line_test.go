package statsd

import (
	"errors"
	"os"
	"strings"
	"testing"

	"relaybench/harness/result"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]line{
		"a:3:5:9|d|@0.25|T1796049672": {name: []byte("a"), kind: result.Timer, values: []byte("3:5:9"), rate: 0.25, stamp: 1796049672},
		"b:1|c|c:0123abcd":            {name: []byte("b"), kind: result.Counter, values: []byte("1"), rate: 1},
		"c:1.0|g|#id:relay-system/src/controller.rs:178,file,line:178|T1796049672": {name: []byte("c"), kind: result.Gauge, values: []byte("1.0"), rate: 1,
			tags: []byte("id:relay-system/src/controller.rs:178,file,line:178"), stamp: 1796049672},
		"d:2|c|#x:y|z:new":       {name: []byte("d"), kind: result.Counter, values: []byte("2"), rate: 1, tags: []byte("x:y")},
		"e:1|ms":                 {name: []byte("e"), kind: result.Timer, values: []byte("1"), rate: 1},
		"h:-1e3|h||T-5|#|@1":     {name: []byte("h"), kind: result.Timer, values: []byte("-1e3"), rate: 1, tags: []byte{}},
		"i:1|g|#a:b|Tomorrow|e:": {name: []byte("i"), kind: result.Gauge, values: []byte("1"), rate: 1, tags: []byte("a:b")},
	} {
		got, err := parse([]byte(text))
		if err != nil || string(got.name) != string(want.name) || got.kind != want.kind || string(got.values) != string(want.values) || got.rate != want.rate ||
			string(got.tags) != string(want.tags) || got.stamp != want.stamp {
			t.Errorf("%q: got %q %q %q %v %q %v, %v", text, got.name, got.kind, got.values, got.rate, got.tags, got.stamp, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"f|c": "no value", ":1|c": "no name", "f:|c": `value ""`, "f:1:|c": `value ""`, "f:1::2|d": `value ""`, "f:x|d": `value "x"`, "f:nan|g": `value "nan"`,
		"f:inf|g": `value "inf"`, "f:1e31|d": `value "1e31"`, "f:1": `no type ""`, "f:1|": `no type ""`, "f:1|q": `no type "q"`,
		"f:1|d|@0": `rate "0"`, "f:1|d|@2": `rate "2"`, "f:1|d|@nan": `rate "nan"`, "f:1|d|@-1": `rate "-1"`, "f:1|d|@": `rate ""`, "f:1|d|@1e-13": `rate "1e-13"`,
		"\xff:1|c": "not UTF-8", "f:1|c|#\xff": "not UTF-8", "noise": "no value",
	} {
		if _, err := parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"users:ann|s", "_e{5,4}:title|text", "_sc|name|0"} {
		if _, err := parse([]byte(text)); !errors.Is(err, errIgnored) {
			t.Errorf("%q: got %v, want it to be ignored", text, err)
		}
	}
}

// recording are the datagrams that a release build of Relay 26.4 sent: what it had
// made in 40 s, each after a line of its number and time.
func recording(t testing.TB) (datagrams []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/relay-26.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range strings.Split(string(text), "--- ")[1:] {
		_, lines, _ := strings.Cut(d, "\n")
		datagrams = append(datagrams, lines)
	}
	return datagrams
}

// FuzzParse: whatever comes is a line that adds up, or an error; and none makes
// a result that cannot be written or read.
func FuzzParse(f *testing.F) {
	for _, d := range recording(f)[:3] {
		f.Add(d)
	}
	for _, text := range []string{"a:3:5:9|d|@0.25|T1796049672", "c:1.0|g|#id:relay-system/src/controller.rs:178,file,line:178", "d:2|c|#x:y|z:new\r\n\n:1|c", "f|c", "a:1|d|@1e-12\na:-1e30|d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, datagram string) {
		r := &Receiver{phase: counting, direct: true}
		r.take([]byte(datagram))
		lines, nonempty := r.tally.lines, uint64(0)
		for text := range strings.SplitSeq(datagram, "\n") {
			if text = strings.TrimSuffix(text, "\r"); text != "" {
				nonempty++
			}
		}
		if got := lines + r.tally.malformed + r.tally.ignored; got != nonempty {
			t.Errorf("%d lines, %d of them are accounted for", nonempty, got)
		}
		once := written(t, r.tally.result())
		if again := written(t, read(t, once)); again != once {
			t.Errorf("got %s, then %s", once, again)
		}
	})
}
