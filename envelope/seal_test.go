package envelope

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"hash/adler32"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decoders are of other authors than our encoders where there are any: those of the standard library.
var decoders = map[string]func(io.Reader) (io.Reader, error){
	Identity:  func(r io.Reader) (io.Reader, error) { return r, nil },
	"gzip":    func(r io.Reader) (io.Reader, error) { return oneMember(gzip.NewReader(r)) },
	"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
	"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
	"zstd":    func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
}

// oneMember stops after the first member, as Relay does.
func oneMember(r *gzip.Reader, err error) (io.Reader, error) {
	if err == nil {
		r.Multistream(false)
	}
	return r, err
}

// plain is a body decoded.
func plain(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	r, err := decoders[encoding](bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", encoding, err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", encoding, err)
	}
	return out
}

// The beginning of a sealed body may be written anew, and all of it is still a good body.
func TestSeal(t *testing.T) {
	heads := [][]byte{[]byte("{}\n"), []byte("x"), []byte("{\"event_id\":\"0123\"}\n"), bytes.Repeat([]byte("head "), 60), bytes.Repeat([]byte("z"), maxHead)}
	rests := samples(t)[:8] // of no bytes, small, noise, zeros, and some envelopes
	for i := range Encodings {
		e := &Encodings[i]
		t.Run(e.Name, func(t *testing.T) {
			for _, head := range heads {
				for n, rest := range rests {
					s, err := e.seal(head, rest)
					if err != nil {
						t.Fatalf("head of %d, sample %d: %v", len(head), n, err)
					}
					if got := plain(t, e.Name, s.body); string(got) != string(head)+string(rest) {
						t.Fatalf("head of %d, sample %d: %d bytes, want %d", len(head), n, len(got), len(head)+len(rest))
					}
					other := bytes.ToUpper(head)
					copy(s.body[s.at:], other)
					if s.mend != nil {
						s.mend(s.body)
					}
					if got := plain(t, e.Name, s.body); string(got) != string(other)+string(rest) {
						t.Fatalf("head of %d, sample %d, written anew: %d bytes, want %d", len(head), n, len(got), len(head)+len(rest))
					}
				}
			}
			for _, n := range []int{0, maxHead + 1} {
				if _, err := e.seal(make([]byte, n), nil); err == nil || !strings.Contains(err.Error(), "can be sent encoded") {
					t.Errorf("head of %d: %v", n, err)
				}
			}
		})
	}
}

// Rest that repeats what stands before it in brotli's stream must not come from there.
func TestSealBrotliNoise(t *testing.T) {
	head := bytes.Repeat([]byte("h"), 200)
	for try := range uint64(3) {
		rest := make([]byte, len(head))
		for i := range rest {
			rest[i] = byte(mix64(try<<32 | uint64(i)))
		}
		s, err := sealBrotli(head, rest)
		if err != nil {
			t.Fatal(err)
		}
		if got := plain(t, "br", s.body); string(got) != string(head)+string(rest) {
			t.Errorf("try %d: other bytes", try)
		}
	}
}

func TestSums(t *testing.T) {
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = byte(mix64(uint64(i)))
	}
	for _, size := range []int{0, 1, 2, 65_520, 65_521, 65_522, len(text)} {
		for _, cut := range []int{0, 1, 36, 512, size / 2, size} {
			if cut > size {
				continue
			}
			a, b, n := text[:cut], text[cut:size], size-cut
			if got, want := crcTimes(crcShift(n), crc32.ChecksumIEEE(a))^crc32.ChecksumIEEE(b), crc32.ChecksumIEEE(text[:size]); got != want {
				t.Errorf("CRC of %d + %d: got %#x, want %#x", cut, n, got, want)
			}
			if got, want := joinAdler(adler32.Checksum(a), adler32.Checksum(b), n), adler32.Checksum(text[:size]); got != want {
				t.Errorf("Adler-32 of %d + %d: got %#x, want %#x", cut, n, got, want)
			}
		}
	}
}
