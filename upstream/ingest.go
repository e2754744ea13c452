package upstream

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"relaybench/envelope"
)

// keepBytes is the size of buffer that a reader keeps, in bytes: larger ones are left to the collector.
const keepBytes = 1 << 20

// keepItems is the same for parsed items.
const keepItems = 1 << 12

// plainBytes is the size of buffer that a reader begins with, in bytes: ample
// for what SDKs send, so that none grows while a run is measured.
const plainBytes = 256 << 10

// What decodes to more than so many bytes, and to more than so many times
// itself, is no envelope but a bomb: what SDKs send is a twentieth of its size at best.
const (
	bombBytes = 4 << 20
	bombTimes = 256
)

// A reader is what one body is decoded and parsed with.
type reader struct {
	plain []byte
	env   envelope.Envelope
}

func newReader() *reader { return &reader{plain: make([]byte, 0, plainBytes)} }

// free gives up what a large body made of the reader.
func (r *reader) free() {
	if cap(r.plain) > keepBytes {
		r.plain = make([]byte, 0, plainBytes)
	}
	if cap(r.env.Items) > keepItems {
		r.env = envelope.Envelope{}
	}
}

// refusal is why a body is not counted.
type refusal struct {
	status int
	sort   string // what is logged once
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }

// decode decodes a body of a content encoding into the reader's buffer, where it stays.
func (r *reader) decode(encoding, wire []byte, limit int) ([]byte, *refusal) {
	enc := envelope.FindEncoding(string(encoding))
	if enc == nil {
		return nil, &refusal{fasthttp.StatusUnsupportedMediaType, "encoding",
			fmt.Errorf("unknown content encoding %q", cut(string(encoding)))}
	}
	plain, err := enc.Decode(r.plain[:0], wire, min(limit, max(bombBytes, bombTimes*len(wire))))
	r.plain = plain
	if err != nil {
		status := fasthttp.StatusBadRequest
		if errors.Is(err, envelope.ErrTooLarge) {
			status = fasthttp.StatusRequestEntityTooLarge
		}
		return nil, &refusal{status, "decode " + enc.Name, fmt.Errorf("decode body of %d bytes: %w", len(wire), err)}
	}
	return plain, nil
}

// ingest decodes, parses and counts the body of an envelope request, and says
// how to answer it: the body of the answer, which it appends to dst, and the
// treatment. It waits for a reader.
func (s *Server) ingest(dst, encoding, wire []byte, at int64) ([]byte, Treatment) {
	r := <-s.readers
	defer func() { s.readers <- r }()
	return s.ingestBy(r, dst, encoding, wire, at)
}

// ingestOn does it on a host, where a body that is not large needs no other reader than the host's.
func (s *Server) ingestOn(h host, dst, encoding, wire []byte, at int64) ([]byte, Treatment) {
	r := h.own()
	if r == nil {
		return s.ingest(dst, encoding, wire, at)
	}
	if len(wire) > roomUnit {
		return s.ingestAside(h, encoding, wire, at)
	}
	return s.ingestBy(r, dst, encoding, wire, at)
}

// ingestAside does it beside what else the host serves.
//
// Note: it is not given dst, which would then be on the heap for small bodies too.
func (s *Server) ingestAside(h host, encoding, wire []byte, at int64) (answer []byte, t Treatment) {
	h.await(func() { answer, t = s.ingest(nil, encoding, wire, at) })
	return answer, t
}

func (s *Server) ingestBy(r *reader, dst, encoding, wire []byte, at int64) ([]byte, Treatment) {
	defer r.free()
	plain, refused := r.decode(encoding, wire, s.limits.plain)
	if refused != nil {
		return s.refuse(dst, refused)
	}
	if err := r.env.Parse(plain); err != nil {
		return s.refuse(dst, &refusal{fasthttp.StatusBadRequest, "parse", err})
	}
	t, err := s.count(&r.env, len(wire), len(plain), at)
	if err != nil {
		return s.refuse(dst, &refusal{fasthttp.StatusBadRequest, "stamp", err})
	}
	if !t.acknowledges() {
		return append(dst, `{"detail":"fault"}`...), t
	}
	return appendID(dst, r.env.EventID), t
}

// appendID appends the answer to a good envelope.
func appendID(dst, id []byte) []byte {
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			id = nil
			break
		}
	}
	if len(id) == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"id":"`...)
	dst = append(dst, id...)
	return append(dst, `"}`...)
}

// refuse counts what is malformed, and appends the answer to it.
func (s *Server) refuse(dst []byte, r *refusal) ([]byte, Treatment) {
	s.malformed(r)
	dst = append(dst, `{"detail":`...)
	dst = append(appendJSON(dst, cut(r.Error())), '}')
	return dst, Treatment{Status: r.status}
}

// malformed counts something that could not be understood.
func (s *Server) malformed(r *refusal) {
	s.counts.malformed.Add(1)
	text := cut(r.Error())
	s.counts.malformedFirst.CompareAndSwap(nil, &text)
	s.sayOnce(r.sort, "malformed: %s", text)
}

// serveEnvelope answers a request to /api/{project}/envelope/.
func (s *Server) serveEnvelope(ctx *fasthttp.RequestCtx, at int64) {
	s.counts.requests.Add(1)
	s.counts.open.up()
	defer s.counts.open.down()
	var room [128]byte
	wire := ctx.Request.Body()
	h := hostOf(ctx)
	answer, t := s.ingestOn(h, room[:0], ctx.Request.Header.ContentEncoding(), wire, at)
	if len(wire) > keepBytes {
		ctx.Request.SwapBody(nil)
	}
	if t.Delay > 0 {
		h.sleep(t.Delay)
	}
	if t.Drop {
		s.counts.answers.add([]byte("dropped"), 1)
		ctx.SetConnectionClose()
		ctx.Conn().Close()
		return
	}
	var digits [8]byte
	s.counts.answers.add(strconv.AppendInt(digits[:0], int64(t.status()), 10), 1)
	if t.RateLimits != "" {
		ctx.Response.Header.Set("X-Sentry-Rate-Limits", t.RateLimits)
	}
	reply(ctx, t.status(), answer)
}

// wait waits for d, or until the server is closed.
func (s *Server) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

// reply answers with a body of JSON.
func reply(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.AppendBody(body)
}
