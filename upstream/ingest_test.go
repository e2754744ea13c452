package upstream

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"relaybench/envelope"
)

// A length counted in characters breaks the envelope: nothing of it counts,
// and the answer says where.
func TestLengthInCharacters(t *testing.T) {
	body := func(length int) string {
		return fmt.Sprintf(`{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc"}`+"\n"+
			`{"type":"attachment","length":%d,"filename":"a.txt"}`+"\n▶\n"+`{"type":"event"}`+"\n{}\n", length)
	}
	payload := strings.Index(body(3), "▶")
	for _, test := range []struct {
		length, offset int // offset -1: well-formed
	}{
		{3, -1},
		{1, payload + 1},
		{2, payload + 2},
		{4, payload + 4},
		// It swallows the next header, and what is left has no type. (A digit more moves all by one.)
		{20, payload + 1 + 20 + 1},
	} {
		t.Run(fmt.Sprint(test.length), func(t *testing.T) {
			s := serve(t, Config{})
			a := post(t, s, body(test.length))
			st := s.Stats()
			if test.offset < 0 {
				if diff := cmp.Diff(map[string]uint64{"attachment": 1, "event": 1}, st.Items); a.status != 200 || st.Malformed != 0 || diff != "" {
					t.Errorf("status %d, %d malformed, items (-want +got):\n%s", a.status, st.Malformed, diff)
				}
				return
			}
			if a.status != 400 || st.Malformed != 1 || st.Envelopes != 0 || len(st.Items) > 0 {
				t.Errorf("status %d, %d malformed, %d envelopes, items %v", a.status, st.Malformed, st.Envelopes, st.Items)
			}
			where := fmt.Sprintf("byte %d:", test.offset)
			var detail struct{ Detail string }
			unmarshal(t, a.body, &detail)
			if !strings.Contains(st.MalformedFirst, where) || detail.Detail != st.MalformedFirst {
				t.Errorf("answer %s, first malformed %q; want both to say %s", a.body, st.MalformedFirst, where)
			}
		})
	}
}

// zipped is a text as one gzip member.
func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodiesThatLie(t *testing.T) {
	header, item := `{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc"}`+"\n", `{"type":"event"}`+"\n{}\n"
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	io.WriteString(w, header+item)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := zipped(t, header+item)
	for _, test := range []struct {
		name, encoding, body string
		status               int
		events               uint64
	}{
		{"gzip", "gzip", whole, 200, 1},
		{"gzip, cut", "gzip", whole[:len(whole)-8], 400, 0},
		{"gzip, of two members", "gzip", zipped(t, header) + zipped(t, item), 200, 1},
		{"gzip, second member cut", "gzip", zipped(t, header) + zipped(t, item)[:20], 400, 0},
		{"deflate is zlib's format", "deflate", deflated.String(), 200, 1},
		{"gzip as deflate", "deflate", whole, 400, 0},
		{"not compressed", "gzip", header + item, 400, 0},
		{"compressed, and nobody says so", "", whole, 400, 0},
		{"zeros", "gzip", zipped(t, strings.Repeat("\x00", 3<<20)), 400, 0},
		{"more zeros", "gzip", zipped(t, strings.Repeat("\x00", 30<<20)), 413, 0},
		{"empty", "", "", 400, 0},
		{"empty zstd", "zstd", "", 400, 0},
		{"unknown encoding", "rot13", header + item, 415, 0},
		{"two encodings", "gzip, gzip", header + item, 415, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, Config{})
			a := do(t, s, "POST", "/api/1/envelope/", test.encoding, test.body)
			st := s.Stats()
			if a.status != test.status || st.Items["event"] != test.events || st.Malformed != 1-test.events || st.Envelopes != test.events {
				t.Errorf("status %d, items %v, %d malformed (%s), %d envelopes; want %d, %d events",
					a.status, st.Items, st.Malformed, st.MalformedFirst, st.Envelopes, test.status, test.events)
			}
			if diff := cmp.Diff(map[string]uint64{fmt.Sprint(test.status): 1}, st.Answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodings(t *testing.T) {
	for _, enc := range envelope.Encodings {
		t.Run(enc.Name, func(t *testing.T) {
			s := serve(t, Config{})
			plain := send(5, "log")
			body := encode(t, enc.Name, plain)
			if a := do(t, s, "POST", "/api/1/envelope/", enc.Name, body); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			st := s.Stats()
			if st.Elements["logs"] != 10 || st.WireBytes != uint64(len(body)) || st.PlainBytes != uint64(len(plain)) {
				t.Errorf("%+v", st)
			}
			if a := do(t, s, "POST", "/api/1/envelope/", enc.Name, body[:len(body)-2]); a.status != 400 {
				t.Errorf("cut: %d %s", a.status, a.body)
			}
		})
	}
}

// A body that decodes to more than the limit is refused at little cost.
func TestBombs(t *testing.T) {
	l := defaultLimits()
	l.plain = 1 << 20
	zeros := strings.Repeat("\x00", 16<<20)
	for _, enc := range envelope.Encodings {
		t.Run(enc.Name, func(t *testing.T) {
			s := serveLimited(t, Config{}, l)
			bomb := []byte(encode(t, enc.Name, zeros))
			if enc.Name == "identity" {
				bomb = bomb[:2<<20]
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, treatment := s.ingest(nil, []byte(enc.Name), bomb, 1)
			runtime.ReadMemStats(&after)
			if treatment.Status != 413 {
				t.Errorf("%d %s, want 413", treatment.Status, answer)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 12<<20 {
				t.Errorf("allocated %d MB for a limit of 1", took>>20)
			}
			r := <-s.readers
			if st := s.Stats(); st.Malformed != 1 || cap(r.plain) > keepBytes {
				t.Errorf("%d malformed; kept a buffer of %d bytes", st.Malformed, cap(r.plain))
			}
			s.readers <- r
		})
	}
}

// What is not understood is logged once per sort, however often it comes.
func TestLoggedOnce(t *testing.T) {
	var log notes
	s := serve(t, Config{Log: log.add})
	for range 3 {
		do(t, s, "POST", "/api/1/envelope/", "gzip", "{}")
		do(t, s, "POST", "/api/1/envelope/", "br", "{}")
		do(t, s, "POST", "/api/1/envelope/", "rot13", "{}")
		do(t, s, "POST", "/api/1/envelope/", "", "{")
		do(t, s, "POST", "/api/0/relays/outcomes/", "", "{")
	}
	st := s.Stats()
	if got := log.all(); len(got) != 5 || st.Malformed != 15 {
		t.Errorf("%d malformed, logged %d times, want 15, 5: %q", st.Malformed, len(got), got)
	}
	if !strings.Contains(st.MalformedFirst, "gzip") {
		t.Errorf("first malformed: %q", st.MalformedFirst)
	}
}

// An id that would break the answer's JSON is left out of it.
func TestAnswerIDs(t *testing.T) {
	for id, want := range map[string]string{
		"9ec79c33ec9942ab8353589fcb2e04dc":     `{"id":"9ec79c33ec9942ab8353589fcb2e04dc"}`,
		"9ec79c33-ec99-42ab-8353-589fcb2e04dc": `{"id":"9ec79c33-ec99-42ab-8353-589fcb2e04dc"}`,
		"":                                     `{}`,
		"é":                                    `{}`,
		"<script>":                             `{}`,
	} {
		if got := string(appendID(nil, []byte(id))); got != want {
			t.Errorf("answer to id %q is %s, want %s", id, got, want)
		}
	}
}

// A counted request costs no allocation.
func TestIngestAllocations(t *testing.T) {
	s := serve(t, Config{Kinds: testKinds})
	body := []byte(send(0, "log"))
	at := bytes.Index(body, []byte(`"relaybench":"`)) + len(`"relaybench":"`)
	seq := uint64(0)
	var room [128]byte
	got := testing.AllocsPerRun(1000, func() {
		envelope.PutStamp(body[at:], envelope.Stamp{Seq: seq})
		seq++
		s.ingest(room[:0], []byte("identity"), body, 1)
	})
	if st := s.Stats(); got != 0 || st.Elements["logs"] != 10*seq || st.Repeats != 0 {
		t.Errorf("%v allocations a request; %d elements of %d sends, %d repeats", got, st.Elements["logs"], seq, st.Repeats)
	}
}

// Nor does a request as a whole, from the connection to the answer.
func TestServeAllocations(t *testing.T) {
	s := serve(t, Config{Kinds: testKinds})
	c := dial(t, s)
	wire := request("POST", "/api/1/envelope/", "", []byte(send(0, "log")))
	at := bytes.Index(wire, []byte(`"relaybench":"`)) + len(`"relaybench":"`)
	answer := make([]byte, 4096)
	seq := uint64(0)
	ask := func() {
		envelope.PutStamp(wire[at:], envelope.Stamp{Seq: seq})
		seq++
		if _, err := c.Write(wire); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) {
			t.Fatal(err, string(answer[:n]))
		}
	}
	if got := testing.AllocsPerRun(200, ask); got != 0 {
		t.Errorf("%v allocations a request", got)
	}
}

func FuzzIngest(f *testing.F) {
	for _, enc := range envelope.Encodings {
		for _, body := range []string{send(1, "event"), send(2, "replay_event", "replay_recording"), send(maxSeq, "log"),
			envelopeOf(envelope.Stamp{Seq: 3, Kind: []byte("logs"), Warm: true}, "log"), "{}\n{", ""} {
			f.Add(enc.Name, []byte(encode(f, enc.Name, body)))
		}
	}
	f.Add("rot13", []byte("{}"))
	l := defaultLimits()
	l.plain, l.readers = 1<<20, 1
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		s := serveLimited(t, Config{}, l)
		answer, treatment := s.ingest(nil, []byte(encoding), body, 1)
		var v struct{ Detail, ID string }
		unmarshal(t, string(answer), &v)
		st := s.Stats()
		good := treatment.status() == 200
		if good == (v.Detail != "") || st.Malformed+st.Envelopes+st.WarmUps != 1 || good != (st.Malformed == 0) {
			t.Errorf("status %d, answer %s, stats %+v", treatment.status(), answer, st)
		}
		if !good && !cmp.Equal(st.Items, map[string]uint64{}, cmpopts.EquateEmpty()) {
			t.Errorf("malformed, and counted %v", st.Items)
		}
	})
}
