package upstream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/envelope"
)

// sendOf is an envelope of about as many bytes, in text that compresses like JSON does.
func sendOf(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"function":"handle_%d","lineno":%d,"filename":"app/views/%x.py","in_app":true},`, i%37, i*7919%991, i*i*2654435761)
	}
	stamp := envelope.AppendStamp(nil, envelope.Stamp{Kind: []byte("errors")})
	return fmt.Sprintf(`{"event_id":"%032x","relaybench":"%s"}`+"\n"+`{"type":"event","length":%d}`+"\n%s\n", 1, stamp, b.Len(), b.String())
}

// BenchmarkIngest is what a request costs beside HTTP, by content encoding.
func BenchmarkIngest(b *testing.B) {
	for _, enc := range envelope.Encodings {
		b.Run(enc.Name, func(b *testing.B) {
			s := serve(b, Config{})
			plain := sendOf(40_000)
			body := []byte(encode(b, enc.Name, plain))
			var room [128]byte
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, t := s.ingest(room[:0], []byte(enc.Name), body, 1); !t.acknowledges() {
					b.Fatal(t)
				}
			}
			b.ReportMetric(float64(len(body)), "wire-bytes")
		})
	}
}

// BenchmarkServe is the whole of it, over loopback, with the client's part:
// one write and one read, without allocations. The last is what zstd is to be
// held against: as many bytes on the wire, not encoded.
func BenchmarkServe(b *testing.B) {
	for _, enc := range envelope.Encodings {
		b.Run(enc.Name, func(b *testing.B) {
			benchmarkServe(b, enc.Name, encode(b, enc.Name, sendOf(40_000)))
		})
	}
	b.Run("identity-as-small-as-zstd", func(b *testing.B) {
		benchmarkServe(b, "identity", sendOf(len(encode(b, "zstd", sendOf(40_000)))))
	})
}

func benchmarkServe(b *testing.B, encoding, body string) {
	s := serve(b, Config{})
	wire := request("POST", "/api/1/envelope/", encoding, []byte(body))
	c := dial(b, s)
	c.SetDeadline(time.Time{})
	answer := make([]byte, 4096)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(wire); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) {
			b.Fatal(err, string(answer[:n]))
		}
	}
}
