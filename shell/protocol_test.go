package shell

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

func TestFrame(t *testing.T) {
	frames := []frame{{frameLine, []byte("\x00status")}, {frameNoAnswer, nil}, {frameOut, bytes.Repeat([]byte("x"), maxFrame)}}
	var sent []byte
	for _, f := range frames {
		sent = appendFrame(sent, f)
	}
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(sent))} {
		from := bufio.NewReader(r)
		for _, want := range frames {
			got, err := readFrame(from)
			if err != nil || got.kind != want.kind || !bytes.Equal(got.data, want.data) {
				t.Errorf("%s: frame %c of %d bytes, %v; want %c of %d", name, got.kind, len(got.data), err, want.kind, len(want.data))
			}
		}
		if _, err := readFrame(from); err != io.EOF {
			t.Errorf("%s: %v at the end, want %v", name, err, io.EOF)
		}
	}
	for _, cut := range []int{1, 4, 6} {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(sent[:cut]))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	if _, err := readFrame(bufio.NewReader(bytes.NewReader(appendFrame(nil, frame{frameOut, make([]byte, maxFrame+1)})))); err == nil {
		t.Error("a frame that is too large is taken")
	}
}

// Output comes in frames that may be sent, and comes whole.
func TestFramed(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 20_000)
	var sent []byte
	n, err := framed{frameOut, func(b []byte) { sent = append(sent, b...) }}.Write(text)
	if n != len(text) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	var got []byte
	for r := bufio.NewReader(bytes.NewReader(sent)); ; {
		f, err := readFrame(r)
		if err == io.EOF {
			break
		}
		if err != nil || f.kind != frameOut {
			t.Fatalf("frame %c, %v", f.kind, err)
		}
		got = append(got, f.data...)
	}
	if !bytes.Equal(got, text) {
		t.Errorf("%d bytes came, want %d", len(got), len(text))
	}
}

// What is read as frames is what was sent, and nothing is read that costs more than a frame.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("h\x00\x00\x00\x02{}l\x00\x00\x00\x07\x00status"))
	f.Add([]byte("l\xff\xff\xff\xff"))
	f.Add([]byte("l\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bufio.NewReader(bytes.NewReader(sent))
		var again []byte
		for {
			fr, err := readFrame(r)
			if err != nil {
				break
			}
			if len(fr.data) > maxFrame {
				t.Fatalf("a frame of %d bytes", len(fr.data))
			}
			again = appendFrame(again, fr)
		}
		if !bytes.HasPrefix(sent, again) {
			t.Fatalf("%q was read of %q", again, sent)
		}
	})
}

func TestOpening(t *testing.T) {
	for line, want := range map[string]opener{
		"status": opensShell, "": opensShell, "GET": opensShell, "GET / HTTP/1.1 x": opensShell, "define X GET / HTTP/x": opensShell,
		"status / HTTP/1.1": opensWeb, "get /a%20b HTTP/1.1": opensWeb,
		"GET / HTTP/1.1": opensWeb, "PRI * HTTP/2.0": opensWeb, "M-SEARCH * HTTP/1.1": opensWeb, "\x16\x03": opensWeb,
		greeting: opensFrames, greetingPrefix + "2": opensFrames,
	} {
		if got := opening([]byte(line)); got != want {
			t.Errorf("%q opens as %d, want %d", line, got, want)
		}
	}
}

func TestInRange(t *testing.T) {
	var got []int
	for _, n := range []int{-5, 0, 7, 10, 11} {
		got = append(got, inRange(n, 10))
	}
	if want := []int{0, 0, 7, 10, 10}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
