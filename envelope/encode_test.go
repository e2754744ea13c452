package envelope

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// encodedPool is a pool of size envelopes of the mix, sent in an encoding.
func encodedPool(t testing.TB, encoding, mix string, size int) *Pool {
	t.Helper()
	m, err := ParseMix(Kinds, mix)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(PoolConfig{Mix: m, Seed: 1, Size: size, Projects: 100, Zipf: 1, Shape: DefaultShape(), Epoch: epoch, Encoding: encoding})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A pool's first round is the same envelopes in every encoding, byte for byte. In
// later rounds the header is a send's own, and the items are those of the first.
func TestEncodedPool(t *testing.T) {
	const size = 40
	as := testPool(t, Mixed, size, DefaultShape())
	for i := range Encodings {
		name := Encodings[i].Name
		t.Run(name, func(t *testing.T) {
			p := encodedPool(t, name, Mixed, size)
			if p.Encoding() != name {
				t.Errorf("encoding %s", p.Encoding())
			}
			ids := map[string]bool{}
			for seq := range uint64(3 * size) {
				due := int64(seq) * int64(time.Millisecond)
				body := p.Append(nil, seq, due)
				if len(body) != p.Size(seq) {
					t.Fatalf("send %d: %d bytes, Size says %d", seq, len(body), p.Size(seq))
				}
				if name != Identity && len(body) >= as.Size(seq) && as.Size(seq) > 1000 {
					t.Errorf("send %d: %d bytes of %d", seq, len(body), as.Size(seq))
				}
				got, want := plain(t, name, body), as.Append(nil, seq, due)
				if p.Kind(seq) != as.Kind(seq) || p.Elements(seq) != as.Elements(seq) {
					t.Fatalf("send %d: kind %d of %d elements, want %d of %d", seq, p.Kind(seq), p.Elements(seq), as.Kind(seq), as.Elements(seq))
				}
				if seq < size && !bytes.Equal(got, want) {
					t.Fatalf("send %d:\n%s\nwant\n%s", seq, got, want)
				}
				e, w := parsed(t, got), parsed(t, want)
				if e.Stamp.Seq != seq || e.Stamp.Due != due || !bytes.Equal(e.EventID, w.EventID) {
					t.Fatalf("send %d: stamp %+v, event id %s, want %s", seq, e.Stamp, e.EventID, w.EventID)
				}
				if e.EventID != nil && ids[string(e.EventID)] {
					t.Fatalf("send %d: event id %s again", seq, e.EventID)
				}
				ids[string(e.EventID)] = true
				head, payload := decoded(t, e.Header), decoded(t, e.Items[0].Payload)
				if head["sent_at"] != decoded(t, w.Header)["sent_at"] {
					t.Errorf("send %d: sent at %v", seq, head["sent_at"])
				}
				switch kind := p.Kinds()[p.Kind(seq)].Name; kind {
				case "errors", "transactions", "checkins":
					if got, want := at(t, head, "trace", "trace_id"), at(t, payload, "contexts", "trace", "trace_id"); got != want {
						t.Errorf("send %d: trace ids %v and %v", seq, got, want)
					}
					if project, ok := ProjectOf(at(t, head, "trace", "public_key").(string)); !ok || project != p.Project(seq) {
						t.Errorf("send %d: key of project %d", seq, project)
					}
				}
			}
			for _, k := range Kinds {
				body, _ := p.AppendWarm(nil, 5, 42, k.Name, 17)
				if s := parsed(t, plain(t, name, body)).Stamp; !s.Warm || s.Seq != 5 || s.Due != 42 || string(s.Kind) != k.Name {
					t.Errorf("%s: stamp %+v", k.Name, s)
				}
			}
		})
	}
}

// What is a send's own cannot stand in an encoded item.
func TestEncodedItems(t *testing.T) {
	for want, place := range map[string]func(*Maker) string{"the project's key": (*Maker).Key, "the time of sending": (*Maker).SentAt, "": (*Maker).ID} {
		kinds := []Kind{{Name: "k", Weight: 1, Items: []string{"a"}, Elements: One, Make: func(m *Maker) error { m.AddItem("a", []byte(place(m))); return nil }}}
		mix, err := ParseMix(kinds, "k")
		if err != nil {
			t.Fatal(err)
		}
		c := PoolConfig{Kinds: kinds, Mix: mix, Size: 1, Projects: 1, Epoch: epoch, Encoding: "gzip"}
		switch _, err := NewPool(c); {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "pool: k: "+want+" stands in an item")):
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := NewPool(PoolConfig{Encoding: "lzw"}); err == nil || err.Error() != `pool: unknown encoding "lzw"` {
		t.Error(err)
	}
}

func BenchmarkAppendEncoded(b *testing.B) {
	for i := range Encodings {
		b.Run(Encodings[i].Name, func(b *testing.B) {
			p := encodedPool(b, Encodings[i].Name, "errors", 20)
			dst := slices.Grow([]byte(nil), 1<<16)
			seq := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				dst = p.Append(dst[:0], seq, int64(seq))
				seq++
			}
		})
	}
}
