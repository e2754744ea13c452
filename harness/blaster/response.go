package blaster

import (
	"bytes"
	"io"
	"math"
)

// Bounds of an answer: a relay's have a head of some hundred bytes and a body
// of less.
const (
	maxHead = 64 << 10 // of status lines and header lines, those of interim answers included
	maxBody = 16 << 20 // of a body with its chunk lines
)

// malformed is why bytes are no HTTP response.
type malformed string

func (m malformed) Error() string { return "malformed response: " + string(m) }

// responses reads HTTP/1.1 responses to POST requests, one after the other, as
// far as a send needs them: a status, and whether the connection lives on. The
// rest is checked and dropped.
type responses struct {
	src    io.Reader
	begun  bool // a byte of the present answer has come
	budget int  // bytes that the present head or body may still have
	r, w   int  // buf[r:w] is unread
	buf    [4096]byte
}

// reset makes p read from another connection.
func (p *responses) reset(src io.Reader) { p.src, p.r, p.w = src, 0, 0 }

// framing is how a body's end is found.
type framing struct {
	length  int64 // -1: not given
	chunked bool
	keep    bool
	http10  bool // of an HTTP/1.0 response, which knows no transfer encoding
}

// next reads one answer to its last byte. keep is false when the connection
// must not be used again. What is no HTTP response is a malformed error, any
// other error is the connection's.
func (p *responses) next() (status int, keep bool, err error) {
	p.begun = p.r < p.w
	p.budget = maxHead
	var f framing
	for {
		if status, f.keep, err = p.statusLine(); err != nil {
			return 0, false, err
		}
		f.length, f.chunked, f.http10 = -1, false, !f.keep
		if err = p.header(&f); err != nil {
			return 0, false, err
		}
		if status >= 200 {
			break
		}
		if status == 101 {
			return 0, false, malformed("unasked change of protocol")
		}
	}
	p.budget = maxBody
	switch {
	case status == 204 || status == 304:
	case f.chunked:
		err = p.chunks()
	case f.length >= 0:
		err = p.skip(f.length)
	default:
		err = p.rest()
		f.keep = false
	}
	if err != nil {
		return 0, false, err
	}
	// What follows an answer was not asked for: the next one could not be trusted.
	return status, f.keep && p.r == p.w, nil
}

// fill reads more, behind what is unread.
func (p *responses) fill() error {
	if p.r > 0 {
		p.w = copy(p.buf[:], p.buf[p.r:p.w])
		p.r = 0
	}
	n, err := p.src.Read(p.buf[p.w:])
	if n > 0 {
		p.begun = true
		p.w += n
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// line is the next line without its end, valid until the next read.
func (p *responses) line() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(p.buf[p.r+searched:p.w], '\n'); i >= 0 {
			line := p.buf[p.r : p.r+searched+i]
			p.r += len(line) + 1
			if p.budget -= len(line) + 1; p.budget < 0 {
				return nil, malformed("too long")
			}
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		searched = p.w - p.r
		if searched == len(p.buf) {
			return nil, malformed("line too long")
		}
		if err := p.fill(); err != nil {
			return nil, err
		}
	}
}

func (p *responses) statusLine() (status int, keep bool, err error) {
	line, err := p.line()
	if err != nil {
		return 0, false, err
	}
	const form = "HTTP/1.1 200"
	if len(line) < len(form) || string(line[:7]) != form[:7] || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > len(form) && line[len(form)] != ' ' {
		return 0, false, malformed("status line")
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return 0, false, malformed("status line")
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return 0, false, malformed("status line")
	}
	return status, line[7] == '1', nil
}

func (p *responses) header(f *framing) error {
	for {
		line, err := p.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || line[0] == ' ' || line[0] == '\t' {
			return malformed("header line")
		}
		name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			n, ok := parseNumber(value, 10)
			if !ok || f.length >= 0 && f.length != n {
				return malformed("content length")
			}
			f.length = n
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			// Source: RFC 9112, 6.1: in an HTTP/1.0 message its framing is faulty.
			if f.http10 || f.chunked || !bytes.EqualFold(value, []byte("chunked")) {
				return malformed("transfer encoding")
			}
			f.chunked = true
		case bytes.EqualFold(name, []byte("connection")):
			for token := range bytes.SplitSeq(value, []byte(",")) {
				token = bytes.TrimSpace(token)
				if bytes.EqualFold(token, []byte("close")) {
					f.keep = false
				} else if bytes.EqualFold(token, []byte("keep-alive")) {
					f.keep = true
				}
			}
		}
	}
}

// skip drops n bytes of body.
func (p *responses) skip(n int64) error {
	if n > int64(p.budget) {
		return malformed("too long")
	}
	p.budget -= int(n)
	for {
		have := min(int64(p.w-p.r), n)
		p.r += int(have)
		if n -= have; n == 0 {
			return nil
		}
		if err := p.fill(); err != nil {
			return err
		}
	}
}

func (p *responses) chunks() error {
	for {
		line, err := p.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, ok := parseNumber(bytes.TrimSpace(size), 16)
		if !ok {
			return malformed("chunk size")
		}
		if n == 0 {
			break
		}
		if err := p.skip(n); err != nil {
			return err
		}
		if line, err = p.line(); err != nil {
			return err
		}
		if len(line) > 0 {
			return malformed("chunk end")
		}
	}
	for { // trailers
		line, err := p.line()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// rest drops a body that ends with its connection.
func (p *responses) rest() error {
	for {
		if p.budget -= p.w - p.r; p.budget < 0 {
			return malformed("too long")
		}
		p.r = p.w
		if err := p.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// parseNumber reads digits of base 10 or 16, and nothing else.
func parseNumber(b []byte, base int64) (int64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		d := int64(math.MaxInt64)
		switch {
		case c >= '0' && c <= '9':
			d = int64(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = int64(c|0x20-'a') + 10
		}
		if d >= base || n > math.MaxInt64/base-1 {
			return 0, false
		}
		n = n*base + d
	}
	return n, true
}
