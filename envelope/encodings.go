package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge is the error of a body that decodes to more than the limit.
var ErrTooLarge = errors.New("body larger than the limit")

// Encoding is one entry of the table of content encodings, which pool, upstream and stand-in share.
type Encoding struct {
	// Name is the token of Content-Encoding: "identity", "gzip", "deflate" (zlib's format), "br", "zstd".
	Name string
	// Decode appends the decoded form of src to dst, at most limit bytes of it
	// (ErrTooLarge beyond), with pooled decoders. A body cut short is an error;
	// several gzip members and several zstd frames are decoded whole. Its
	// result is dst with what was decoded, also beside an error.
	Decode func(dst, src []byte, limit int) ([]byte, error)
	// Encode appends the encoded form of src, at the fastest level that SDKs and Relay use.
	Encode func(dst, src []byte) ([]byte, error)
	// sealed is what seal makes, of a head that is neither empty nor too long.
	sealed func(head, rest []byte) (sealed, error)
}

// Encodings is the table of content encodings.
//
// Note: "deflate" is zlib's format, as RFC 9110 section 8.4.1.2 has it, not raw deflate.
var Encodings = []Encoding{
	{Identity, copyWithin, func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }, sealIdentity},
	{"gzip", gzipCodec.decode, gzipCodec.encode, sealGzip},
	{"deflate", zlibCodec.decode, zlibCodec.encode, sealDeflate},
	{"br", brotliCodec.decode, brotliCodec.encode, sealBrotli},
	{"zstd", zstdCodec.decode, zstdCodec.encode, sealZstd},
}

// Identity is the encoding of what is sent as it is.
const Identity = "identity"

// FindEncoding is the encoding of that name ("" is identity), or nil.
func FindEncoding(name string) *Encoding {
	if name == "" {
		name = Identity
	}
	for i := range Encodings {
		if Encodings[i].Name == name {
			return &Encodings[i]
		}
	}
	return nil
}

func copyWithin(dst, src []byte, limit int) ([]byte, error) {
	if len(src) > limit {
		return append(dst, src[:max(limit, 0)]...), ErrTooLarge
	}
	return append(dst, src...), nil
}

// resetReader is a decoder that can be used again.
type resetReader interface {
	io.Reader
	Reset(io.Reader) error
}

// resetWriter is an encoder that can be used again.
type resetWriter interface {
	io.WriteCloser
	Reset(io.Writer)
}

// codec decodes and encodes by streams, which it keeps in pools.
type codec struct {
	name      string
	newReader func(io.Reader) (resetReader, error)
	newWriter func() resetWriter
	readers   sync.Pool
	writers   sync.Pool
}

// source is a decoder with what it reads from.
type source struct {
	bytes.Reader
	decoder resetReader
}

// sink is an encoder with what it writes to.
type sink struct {
	out     []byte
	encoder resetWriter
}

func (s *sink) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

var gzipCodec = &codec{
	name:      "gzip",
	newReader: func(r io.Reader) (resetReader, error) { return gzip.NewReader(r) },
	newWriter: func() resetWriter { w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return w },
}

// zlibReader gives zlib's reader the usual form of Reset.
type zlibReader struct{ io.ReadCloser }

func (z zlibReader) Reset(r io.Reader) error { return z.ReadCloser.(zlib.Resetter).Reset(r, nil) }

var zlibCodec = &codec{
	name: "deflate",
	newReader: func(r io.Reader) (resetReader, error) {
		z, err := zlib.NewReader(r)
		return zlibReader{z}, err
	},
	newWriter: func() resetWriter { w, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed); return w },
}

var brotliCodec = &codec{
	name:      "br",
	newReader: func(r io.Reader) (resetReader, error) { return brotli.NewReader(r), nil },
	newWriter: func() resetWriter { return brotli.NewWriterLevel(nil, brotli.BestSpeed) },
}

// zstdWindow bounds the window that a frame may ask for, and so a decoder's
// memory: what RFC 8878 section 3.1.1.1.2 recommends every decoder to support.
const zstdWindow = 8 << 20

// Note: streams, not DecodeAll and EncodeAll: as fast, but bounded also for
// frames that do not say how long their content is, as Relay's do not. With a
// concurrency of 1 no goroutine starts. The encoder's window is that of zstd's level 1.
var zstdCodec = &codec{
	name: "zstd",
	newReader: func(r io.Reader) (resetReader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	},
	newWriter: func() resetWriter {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<19))
		return w
	},
}

func (c *codec) decode(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 {
		return dst, fmt.Errorf("%s: %w", c.name, io.ErrUnexpectedEOF)
	}
	s, _ := c.readers.Get().(*source)
	if s == nil {
		s = new(source)
	}
	defer func() {
		s.Reader.Reset(nil)
		c.readers.Put(s)
	}()
	s.Reader.Reset(src)
	var err error
	if s.decoder == nil {
		var r resetReader
		if r, err = c.newReader(&s.Reader); err == nil {
			s.decoder = r
		}
	} else {
		err = s.decoder.Reset(&s.Reader)
	}
	if err == nil {
		dst, err = appendAll(dst, s.decoder, limit)
	}
	if err == nil && s.Len() > 0 {
		err = errors.New("bytes after the end")
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != ErrTooLarge {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return dst, err
}

// appendAll appends what r has, at most limit bytes of it, to dst.
func appendAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		free := dst[len(dst):min(cap(dst), start+limit+1)]
		n, err := r.Read(free)
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return dst[:start+limit], ErrTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

func (c *codec) encode(dst, src []byte) ([]byte, error) {
	s, _ := c.writers.Get().(*sink)
	if s == nil {
		s = &sink{encoder: c.newWriter()}
	}
	s.out = dst
	s.encoder.Reset(s)
	_, err := s.encoder.Write(src)
	if err == nil {
		err = s.encoder.Close()
	}
	dst, s.out = s.out, nil
	c.writers.Put(s)
	if err != nil {
		return dst, fmt.Errorf("%s: %w", c.name, err)
	}
	return dst, nil
}
