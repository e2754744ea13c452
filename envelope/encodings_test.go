package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// encoded is src in an encoding, which must take it.
func encoded(t testing.TB, e *Encoding, src []byte) []byte {
	t.Helper()
	out, err := e.Encode(nil, src)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// samples are bodies to encode: of no bytes, small, large, and of what does not compress.
func samples(t testing.TB) [][]byte {
	p := testPool(t, Mixed, 12, DefaultShape())
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(mix64(uint64(i)))
	}
	all := [][]byte{{}, []byte("{}\n"), noise, bytes.Repeat([]byte("0"), 400_000)}
	for seq := range uint64(12) {
		all = append(all, p.Append(nil, seq, 0))
	}
	return all
}

func TestEncodingsTable(t *testing.T) {
	var names []string
	for _, e := range Encodings {
		names = append(names, e.Name)
		if got := FindEncoding(e.Name); got == nil || got.Name != e.Name {
			t.Errorf("%q is not found", e.Name)
		}
	}
	if want := []string{"identity", "gzip", "deflate", "br", "zstd"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if got := FindEncoding(""); got == nil || got.Name != "identity" {
		t.Errorf("no name is %v, want identity", got)
	}
	if got := FindEncoding("GZIP"); got != nil {
		t.Errorf("an unknown name is %v", got)
	}
}

func TestEncodeDecode(t *testing.T) {
	for i := range Encodings {
		e := &Encodings[i]
		t.Run(e.Name, func(t *testing.T) {
			for n, src := range samples(t) {
				prefix := []byte("before")
				wire, err := e.Encode(slices.Clone(prefix), src)
				if err != nil || !bytes.HasPrefix(wire, prefix) {
					t.Fatalf("sample %d: encode: %v, %.10q", n, err, wire)
				}
				if len(src) == 0 {
					continue // no bytes are no body in any encoding but identity, and zstd makes none of none
				}
				for _, room := range []int{0, 1, len(src) / 2, 2 * len(src)} {
					dst := append(make([]byte, 0, len(prefix)+room), prefix...)
					got, err := e.Decode(dst, wire[len(prefix):], len(src))
					if err != nil || string(got) != string(prefix)+string(src) {
						t.Fatalf("sample %d in room for %d: %d bytes of %d, %v", n, room, len(got)-len(prefix), len(src), err)
					}
				}
				got, err := e.Decode(nil, wire[len(prefix):], len(src)-1)
				if !errors.Is(err, ErrTooLarge) || len(got) > len(src)-1 {
					t.Fatalf("sample %d, limit one less: %d bytes, %v", n, len(got), err)
				}
			}
		})
	}
}

// A body that its compressor had not finished is an error wherever it is cut.
func TestDecodeCut(t *testing.T) {
	body := testPool(t, "sessions", 1, DefaultShape()).Append(nil, 0, 0)
	for i := range Encodings {
		e := &Encodings[i]
		if e.Name == "identity" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			wire := encoded(t, e, body)
			for n := range wire {
				if got, err := e.Decode(nil, wire[:n], 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes of %d: %d bytes, error %v", n, len(wire), len(got), err)
				}
			}
			if got, err := e.Decode(nil, append(slices.Clone(wire), "tail"...), 1<<20); err == nil {
				t.Errorf("bytes after the end: %d bytes and no error", len(got))
			}
			if got, err := e.Decode(nil, wire, 1<<20); err != nil || !bytes.Equal(got, body) {
				t.Errorf("whole, after so many errors: %v", err)
			}
		})
	}
}

func TestDecodeSeveralParts(t *testing.T) {
	head, rest := []byte("{\"event_id\":\""+testID+"\"}\n"), []byte("{\"type\":\"event\"}\n{}\n")
	for _, name := range []string{"gzip", "zstd"} {
		e := FindEncoding(name)
		wire := append(encoded(t, e, head), encoded(t, e, rest)...)
		got, err := e.Decode(nil, wire, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var parsed Envelope
		if err := parsed.Parse(got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := show(&parsed), "id="+testID+` stamped=false | event x1 "{}"`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestDeflateIsZlib(t *testing.T) {
	var raw bytes.Buffer
	w, err := flate.NewWriter(&raw, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("{}\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := FindEncoding("deflate").Decode(nil, raw.Bytes(), 100); err == nil {
		t.Errorf("raw deflate decodes to %q", got)
	}
	if got := encoded(t, FindEncoding("deflate"), []byte("{}\n"))[0]; got != 0x78 {
		t.Errorf("first byte %#x, want zlib's 0x78", got)
	}
}

// A small body that would grow to 30 MB stops at the limit, and costs no more
// memory than a new decoder's windows (brotli's: 12 MB), which the next one reuses.
func TestDecodeBounded(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 30<<20)
	for i := range Encodings {
		e := &Encodings[i]
		t.Run(e.Name, func(t *testing.T) {
			wires := [][]byte{encoded(t, e, zeros)}
			if e.Name == "zstd" {
				wires = append(wires, sized(t, zeros), blocks(t, zeros))
			}
			for _, wire := range wires {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, err := e.Decode(nil, wire, limit)
				runtime.ReadMemStats(&after)
				if !errors.Is(err, ErrTooLarge) || len(got) > limit {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				if got, want := after.TotalAlloc-before.TotalAlloc, uint64(16<<20); got > want {
					t.Errorf("%d bytes allocated, want at most %d", got, want)
				}
			}
		})
	}
}

// sized is a zstd frame that says how long its content is.
func sized(t testing.TB, src []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(src, nil)
}

// blocks is a zstd frame of many blocks that does not say how long its content is.
func blocks(t testing.TB, src []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(src, 1<<14) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZstdFrames(t *testing.T) {
	for n, src := range samples(t)[1:] {
		for name, frame := range map[string][]byte{"sized": sized(t, src), "blocks": blocks(t, src)} {
			got, err := FindEncoding("zstd").Decode(nil, frame, len(src))
			if err != nil || !bytes.Equal(got, src) {
				t.Errorf("sample %d, %s: %d bytes of %d, %v", n, name, len(got), len(src), err)
			}
		}
	}
}

// A frame that asks for a window larger than any encoder of SDKs or Relay uses is refused.
func TestZstdWindow(t *testing.T) {
	wire := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00} // a window of 2^41, one empty last block
	if got, err := FindEncoding("zstd").Decode(nil, wire, 1<<20); err == nil {
		t.Errorf("decoded to %d bytes", len(got))
	}
}

func TestDecodeAtOnce(t *testing.T) {
	bodies := samples(t)[4:]
	for i := range Encodings {
		e := &Encodings[i]
		done := make(chan error)
		for range 4 {
			go func() {
				for _, src := range bodies {
					wire, err := e.Encode(nil, src)
					if err == nil {
						var got []byte
						if got, err = e.Decode(nil, wire, len(src)); err == nil && !bytes.Equal(got, src) {
							err = errors.New("other bytes")
						}
					}
					if err != nil {
						done <- fmt.Errorf("%s: %w", e.Name, err)
						return
					}
				}
				done <- nil
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	body := []byte("{}\n{\"type\":\"event\"}\n{}\n")
	for i := range Encodings {
		f.Add(i, encoded(f, &Encodings[i], body))
	}
	f.Add(4, blocks(f, bytes.Repeat(body, 100)))
	f.Fuzz(func(t *testing.T, i int, wire []byte) {
		const limit = 1 << 16
		e := &Encodings[uint(i)%uint(len(Encodings))]
		got, err := e.Decode(nil, wire, limit)
		if len(got) > limit {
			t.Fatalf("%s: %d bytes", e.Name, len(got))
		}
		if err != nil || e.Name == "identity" {
			return
		}
		again, err := e.Decode(nil, encoded(t, e, got), limit)
		if len(got) > 0 && (err != nil || !bytes.Equal(again, got)) {
			t.Fatalf("%s: %q comes back as %q, %v", e.Name, got, again, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range []string{"errors", "sessions"} {
		body := testPool(b, kind, 1, DefaultShape()).Append(nil, 0, 0)
		for i := range Encodings {
			e := &Encodings[i]
			b.Run(kind+"/"+e.Name, func(b *testing.B) {
				wire := encoded(b, e, body)
				dst := make([]byte, 0, 2*len(body))
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					out, err := e.Decode(dst[:0], wire, 1<<20)
					if err != nil || len(out) != len(body) {
						b.Fatal(len(out), err)
					}
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	body := testPool(b, "errors", 1, DefaultShape()).Append(nil, 0, 0)
	for i := range Encodings {
		e := &Encodings[i]
		b.Run(e.Name, func(b *testing.B) {
			dst := make([]byte, 0, 2*len(body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Encode(dst[:0], body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
