package blaster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestResponses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	many := strings.Repeat("X-Many: "+long[:1000]+"\r\n", 70)
	type want struct {
		status int
		keep   bool
		err    string // of the answer; "" is none
		left   int    // bytes that were not read
	}
	for name, c := range map[string]struct {
		in   string
		want want
	}{
		"relay's own":                       {"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 41\r\ndate: Mon\r\n\r\n{\"id\":\"0123456789abcdef0123456789abcdef\"}", want{status: 200, keep: true}},
		"empty":                             {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", want{status: 503, keep: true}},
		"no reason":                         {"HTTP/1.1 429\r\nContent-Length: 0\r\n\r\n", want{status: 429, keep: true}},
		"line feeds only":                   {"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", want{status: 200, keep: true}},
		"close":                             {"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nhi", want{status: 200}},
		"close among others":                {"HTTP/1.1 200 OK\r\nConnection: foo, close\r\nContent-Length: 2\r\n\r\nhi", want{status: 200}},
		"old":                               {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", want{status: 200}},
		"old and kept":                      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", want{status: 200, keep: true}},
		"until the end":                     {"HTTP/1.1 200 OK\r\n\r\nhi", want{status: 200}},
		"204":                               {"HTTP/1.1 204 No Content\r\n\r\n", want{status: 204, keep: true}},
		"304 with a length":                 {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", want{status: 304, keep: true}},
		"interim":                           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", want{status: 200, keep: true}},
		"interim close is not the answer's": {"HTTP/1.1 100 Continue\r\nConnection: close\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", want{status: 200, keep: true}},
		"chunked":                           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", want{status: 200, keep: true}},
		"chunked wins":                      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", want{status: 200, keep: true}},
		"equal lengths":                     {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", want{status: 200, keep: true}},
		"body over the buffer":              {"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + long, want{status: 200, keep: true}},
		"chunk over the buffer":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + long + "\r\n0\r\n\r\n", want{status: 200, keep: true}},
		"more than was asked for":           {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP", want{status: 200, left: 4}},

		"nothing":              {"", want{err: "EOF"}},
		"half a status line":   {"HTTP/1.1 2", want{err: "EOF"}},
		"half a head":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", want{err: "EOF"}},
		"half a body":          {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi", want{err: "EOF"}},
		"half a chunk":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhi", want{err: "EOF"}},
		"no last chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", want{err: "EOF"}},
		"garbage":              {"SSH-2.0-OpenSSH_9.6\r\n", want{err: "status line"}},
		"HTTP/2":               {"HTTP/2.0 200 OK\r\n\r\n", want{err: "status line"}},
		"status of letters":    {"HTTP/1.1 2x0 OK\r\n\r\n", want{err: "status line"}},
		"status of four":       {"HTTP/1.1 2000 OK\r\n\r\n", want{err: "status line"}},
		"status 0":             {"HTTP/1.1 099 OK\r\n\r\n", want{err: "status line"}},
		"upgrade":              {"HTTP/1.1 101 Switching Protocols\r\n\r\n", want{err: "change of protocol"}},
		"no colon":             {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", want{err: "header line"}},
		"folded":               {"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n", want{err: "header line"}},
		"negative length":      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", want{err: "content length"}},
		"length twice":         {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi", want{err: "content length"}},
		"length too large":     {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhi", want{err: "content length"}},
		"other encoding":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", want{err: "transfer encoding"}},
		"chunks in HTTP/1.0":   {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", want{err: "transfer encoding"}},
		"chunk of no size":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", want{err: "chunk size"}},
		"chunk of no end":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n", want{err: "chunk end"}},
		"header line too long": {"HTTP/1.1 200 OK\r\nX: " + long + "\r\n\r\n", want{err: "line too long"}},
		"head too long":        {"HTTP/1.1 200 OK\r\n" + many + "\r\n", want{err: "too long"}},
		"endless interim":      {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 3000), want{err: "too long"}},
		"body too long":        {"HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n", want{err: "too long"}},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"whole":        func(r io.Reader) io.Reader { return r },
			"byte by byte": iotest.OneByteReader,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				var p responses
				p.reset(reader(strings.NewReader(c.in)))
				var got want
				var err error
				got.status, got.keep, err = p.next()
				got.left = p.w - p.r
				if how == "byte by byte" && c.want.left > 0 {
					t.Skip("what follows has not been read")
				}
				if c.want.err != "" {
					var m malformed
					if err == nil || !strings.Contains(err.Error(), c.want.err) || errors.As(err, &m) != (c.want.err != "EOF") {
						t.Fatalf("got status %d, error %v, want an error with %q", got.status, err, c.want.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		}
	}
}

// Endless bodies must be given up, in any framing.
func TestResponsesEndless(t *testing.T) {
	for name, head := range map[string]string{
		"until the end": "HTTP/1.1 200 OK\r\n\r\n",
		"chunks":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"header":        "HTTP/1.1 200 OK\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var p responses
			p.reset(io.MultiReader(strings.NewReader(head), repeat("1\r\n:\r\n")))
			_, _, err := p.next()
			var m malformed
			if !errors.As(err, &m) {
				t.Errorf("got error %v, want a malformed one", err)
			}
		})
	}
}

// repeat reads as its text over and over again.
type repeat string

func (r repeat) Read(p []byte) (int, error) {
	n := 0
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	if n == 0 {
		n = copy(p, r)
	}
	return n, nil
}

func TestResponsesInARow(t *testing.T) {
	var in strings.Builder
	for i := range 300 {
		fmt.Fprintf(&in, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", 200+i, i, strings.Repeat("b", i))
	}
	var p responses
	p.reset(strings.NewReader(in.String()))
	for i := range 300 {
		status, _, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if want := 200 + i; status != want {
			t.Fatalf("got status %d, want %d", status, want)
		}
		if status == 204 || status == 304 {
			p.skip(int64(i)) // they have no body, whatever their length says
		}
	}
}

// FuzzResponses lays the reader beside net/http's: where both take the bytes,
// they must read the same status and end at the same byte.
func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 X\r\nConnection: close\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nhi\r\n0\r\nT: r\r\n\r\n",
		"HTTP/1.0 200 \nTransfer-Encoding: chunked\n\n00\n\n0",
		"HTTP/1.0 304 X\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<12 {
			t.Skip()
		}
		var p responses
		src := bytes.NewReader(in)
		p.reset(src)
		status, keep, err := p.next()
		if err != nil {
			if status != 0 || keep {
				t.Fatalf("got status %d, kept %t, with error %v", status, keep, err)
			}
			return
		}
		if status < 200 || status > 999 {
			t.Fatalf("got status %d", status)
		}
		theirs := bytes.NewReader(in)
		buffered := bufio.NewReader(theirs)
		for {
			r, err := http.ReadResponse(buffered, &http.Request{Method: "POST"})
			if err != nil {
				return
			}
			if r.StatusCode < 200 {
				continue
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			if r.StatusCode != status {
				t.Errorf("got status %d, net/http's is %d", status, r.StatusCode)
			}
			if got, want := src.Len()+p.w-p.r, theirs.Len()+buffered.Buffered(); got != want {
				t.Errorf("got %d bytes left, net/http leaves %d", got, want)
			}
			return
		}
	})
}

func BenchmarkResponses(b *testing.B) {
	in := []byte("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 41\r\ndate: Mon, 30 Nov 2026 16:00:00 GMT\r\n\r\n{\"id\":\"0123456789abcdef0123456789abcdef\"}")
	src := bytes.NewReader(in)
	var p responses
	p.reset(src)
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(in)
		if status, _, err := p.next(); status != 200 {
			b.Fatal(status, err)
		}
	}
}
