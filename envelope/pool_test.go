package envelope

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func parsed(t testing.TB, body []byte) *Envelope {
	t.Helper()
	var e Envelope
	if err := e.Parse(body); err != nil {
		t.Fatalf("%v in %.200q", err, body)
	}
	return &e
}

// decoded is JSON as Go values.
func decoded(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at is the value at a path of keys and array indexes.
func at(t testing.TB, v any, path ...any) any {
	t.Helper()
	for _, key := range path {
		switch k := key.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[k] == nil {
				t.Fatalf("no %v of %v", k, path)
			}
			v = m[k]
		case int:
			l, ok := v.([]any)
			if !ok || k >= len(l) {
				t.Fatalf("no %v of %v", k, path)
			}
			v = l[k]
		}
	}
	return v
}

func TestPoolKeepsTheMix(t *testing.T) {
	for _, c := range []struct {
		mix  string
		size int
		want map[string]int
	}{
		{"errors=3,logs=1", 100, map[string]int{"errors": 75, "logs": 25}},
		{"errors=3,logs=1", 10, map[string]int{"errors": 8, "logs": 2}},
		{"errors=1,sessions=1,checkins=1", 10, map[string]int{"errors": 4, "sessions": 3, "checkins": 3}},
		{"sessions=999,logs=1", 1000, map[string]int{"sessions": 999, "logs": 1}},
		{"checkins", 3, map[string]int{"checkins": 3}},
	} {
		p := testPool(t, c.mix, c.size, Shape{})
		for round := range uint64(2) {
			got := map[string]int{}
			for i := range uint64(c.size) {
				got[p.Kinds()[p.Kind(round*uint64(c.size)+i)].Name]++
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s of %d, round %d: got %v, want %v", c.mix, c.size, round, got, c.want)
			}
		}
		var order []int
		for i := range uint64(c.size) {
			order = append(order, p.Kind(i))
		}
		if len(c.want) > 1 && c.size >= 100 && slices.IsSorted(order) {
			t.Errorf("%s: kinds are not mixed", c.mix)
		}
	}
}

func TestNewPoolErrors(t *testing.T) {
	mix, err := ParseMix(Kinds, "sessions=999,logs=1")
	if err != nil {
		t.Fatal(err)
	}
	good := PoolConfig{Mix: mix, Size: 1000, Projects: 1, Epoch: epoch}
	for _, c := range []struct {
		name   string
		change func(*PoolConfig)
		want   string
	}{
		{"too small", func(c *PoolConfig) { c.Size = 100 }, "pool: 100 envelopes are too few for mix sessions=999,logs=1: none of logs"},
		{"of none", func(c *PoolConfig) { c.Size = 0 }, "pool: 0 envelopes are too few for mix sessions=999,logs=1: none of sessions"},
		{"no mix", func(c *PoolConfig) { c.Mix = Mix{} }, "pool: mix of another table of kinds"},
		{"no project", func(c *PoolConfig) { c.Projects = 0 }, "pool: 0 projects"},
		{"zipf", func(c *PoolConfig) { c.Zipf = math.NaN() }, "pool: zipf exponent NaN"},
		{"frames", func(c *PoolConfig) { c.Shape.Frames = -1 }, "pool: shape of -1 frames and 0 to 0 spans"},
		{"spans", func(c *PoolConfig) { c.Shape.SpansMin = 2 }, "pool: shape of 0 frames and 2 to 0 spans"},
		{"agents", func(c *PoolConfig) { c.Shape.UserAgents = MaxAgents + 1 }, "pool: 1000001 user agents: 1 to 1000000"},
		{"unique", func(c *PoolConfig) { c.Shape.Unique, c.Size = true, MaxAgents+1 }, "pool: 1000001 envelopes, and 1000000 different user agents"},
		{"unique and filtered", func(c *PoolConfig) { c.Shape.Unique, c.Shape.Filtered = true, 0.1 }, "pool: user agents that are filtered are few: not each envelope has one of its own"},
		{"filtered", func(c *PoolConfig) { c.Shape.Filtered = 1.5 }, "pool: filtered share 1.5: 0 to 1"},
	} {
		config := good
		c.change(&config)
		if _, err := NewPool(config); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// What is patched in a send says what the pool says of the send.
func TestAppend(t *testing.T) {
	const size = 60
	p := testPool(t, Mixed, size, DefaultShape())
	bodies := map[string]uint64{}
	for _, first := range []uint64{0, 12345, 1 << 40} {
		for seq := first; seq < first+size; seq++ {
			due := int64(seq%100_000) * 1_000_000
			kind := p.Kinds()[p.Kind(seq)]
			body := p.Append([]byte("before"), seq, due)[len("before"):]
			if len(body) != p.Size(seq) {
				t.Fatalf("send %d: %d bytes, Size says %d", seq, len(body), p.Size(seq))
			}
			if bytes.Contains(body, []byte(placeMark)) {
				t.Fatalf("send %d: a place is not filled in", seq)
			}
			if other, seen := bodies[string(body)]; seen {
				t.Fatalf("sends %d and %d are equal", seq, other)
			}
			bodies[string(body)] = seq
			e := parsed(t, body)
			if !e.Stamped || e.Stamp.Seq != seq || e.Stamp.Due != due || e.Stamp.Warm || string(e.Stamp.Kind) != kind.Name {
				t.Fatalf("send %d: stamp %+v", seq, e.Stamp)
			}
			if want := `{"` + StampKey + `":"`; !bytes.HasPrefix(body, []byte(want)) {
				t.Fatalf("send %d begins with %.40q, want the stamp first", seq, body)
			}
			head := decoded(t, e.Header)
			if got, want := head["sent_at"], epoch.Add(time.Duration(due)).Format("2006-01-02T15:04:05.000Z"); got != want {
				t.Fatalf("send %d: sent at %v, want %s", seq, got, want)
			}
			elements := 0
			for _, it := range e.Items {
				elements += kind.Elements(it)
			}
			if elements != p.Elements(seq) {
				t.Fatalf("send %d: %d elements, Elements says %d", seq, elements, p.Elements(seq))
			}
			payload := decoded(t, e.Items[0].Payload)
			switch kind.Name {
			case "errors", "transactions":
				if payload["event_id"] != string(e.EventID) {
					t.Errorf("send %d: event ids %v and %s", seq, payload["event_id"], e.EventID)
				}
				trace := at(t, head, "trace", "trace_id")
				if got := at(t, payload, "contexts", "trace", "trace_id"); got != trace {
					t.Errorf("send %d: trace ids %v and %v", seq, got, trace)
				}
				if kind.Name == "transactions" {
					if got := at(t, payload, "spans", 0, "trace_id"); got != trace {
						t.Errorf("send %d: trace id of span %v, want %v", seq, got, trace)
					}
					if got, want := at(t, payload, "spans", 0, "parent_span_id"), at(t, payload, "contexts", "trace", "span_id"); got != want {
						t.Errorf("send %d: the first span hangs on %v, want %v", seq, got, want)
					}
				}
				fallthrough
			case "checkins":
				project, ok := ProjectOf(at(t, head, "trace", "public_key").(string))
				if !ok || project != p.Project(seq) {
					t.Errorf("send %d: key of project %d, %t, want %d", seq, project, ok, p.Project(seq))
				}
			case "logs":
				if got := len(at(t, payload, "items").([]any)); got != e.Items[0].Count || got != elements {
					t.Errorf("send %d: %d logs, item_count %d, %d elements", seq, got, e.Items[0].Count, elements)
				}
			}
			if again := p.Append(nil, seq, due); !bytes.Equal(again, body) {
				t.Errorf("send %d is not the same a second time", seq)
			}
		}
	}
}

// Ids are valid, distinct in all sends, and warm-up's are not the run's.
func TestIDs(t *testing.T) {
	p := testPool(t, "errors=1,checkins=1,sessions=1", 6, Shape{})
	seen := map[string]bool{}
	id := func(text string) {
		t.Helper()
		if len(text) != 32 || text[12] != '4' || !strings.Contains("89ab", text[16:17]) {
			t.Fatalf("id %q is no random UUID", text)
		}
		if _, err := hex.DecodeString(text); err != nil {
			t.Fatal(err)
		}
		if seen[text] {
			t.Fatalf("id %q comes again", text)
		}
		seen[text] = true
	}
	check := func(body []byte) {
		t.Helper()
		e := parsed(t, body)
		if e.EventID != nil {
			id(string(e.EventID))
		}
		payload := decoded(t, e.Items[0].Payload)
		switch string(e.Items[0].Type) {
		case "session":
			sid := payload["sid"].(string)
			if sid[8] != '-' || sid[13] != '-' || sid[18] != '-' || sid[23] != '-' {
				t.Fatalf("sid %q is no UUID", sid)
			}
			id(strings.ReplaceAll(sid, "-", ""))
		case "check_in":
			id(payload["check_in_id"].(string))
		}
	}
	var body []byte
	for seq := range uint64(600) {
		body = p.Append(body[:0], seq, 0)
		check(body)
		body = p.Append(body[:0], seq<<32|1<<63, 0)
		check(body)
		for _, kind := range []string{"errors", "sessions", "checkins"} {
			body, _ = p.AppendWarm(body[:0], 3*seq+uint64(len(kind)%3), 0, kind, 0)
			if kind == "errors" {
				check(body)
			}
		}
	}
}

// putUUID keeps all that distinguishes its numbers.
func TestUUIDsStayDistinct(t *testing.T) {
	seen := map[string]bool{}
	var text [32]byte
	for bit := range 64 {
		for _, v := range []uint64{0, 1<<64 - 1, 0x0123456789abcdef} {
			putUUID(text[:], v^1<<bit)
			seen[string(text[:])] = true
		}
	}
	if got, want := len(seen), 3*64; got != want {
		t.Errorf("%d ids of %d numbers", got, want)
	}
	for i := range uint64(1 << 16) { // the four bits that give way to the version, and others
		putUUID(text[:], i<<8)
		seen[string(text[:])] = true
	}
	if got, want := len(seen), 3*64+1<<16-1; got < want-20 {
		t.Errorf("%d ids, want about %d", got, want)
	}
}

func TestPutTime(t *testing.T) {
	var text [timeLen]byte
	for _, day := range []int64{0, 1, 58, 59, 60, 364, 365, 11016, 11017, 19782, 20787, 24836, 47540, -1, -719162, 2932896} {
		for _, ms := range []int64{0, 1, 999, 86_399_999, 43_200_123} {
			at := time.UnixMilli(day*86_400_000 + ms).UTC()
			putTime(text[:], at.UnixMilli())
			if got, want := string(text[:]), at.Format("2006-01-02T15:04:05.000Z"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

func TestAppendWarm(t *testing.T) {
	p := testPool(t, "sessions", 2, Shape{Filtered: 1})
	for _, k := range Kinds {
		body, agent := p.AppendWarm(nil, 5, 42, k.Name, 17)
		e := parsed(t, body)
		if s := e.Stamp; !e.Stamped || !s.Warm || s.Seq != 5 || s.Due != 42 || string(s.Kind) != k.Name {
			t.Errorf("%s: stamp %+v", k.Name, s)
		}
		if !slices.Contains(agents, string(agent)) {
			t.Errorf("%s: user agent %q", k.Name, agent)
		}
		head := decoded(t, e.Header)
		if trace, ok := head["trace"].(map[string]any); ok && trace["public_key"] != Key(17) {
			t.Errorf("%s: key %v, want that of project 17", k.Name, trace["public_key"])
		}
	}
	if body, agent := p.AppendWarm([]byte("x"), 0, 0, "potatoes", 0); string(body) != "x" || agent != nil {
		t.Errorf("of an unknown kind: %q, %q", body, agent)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	for i := range Encodings {
		p := encodedPool(t, Encodings[i].Name, Mixed, 40)
		dst := make([]byte, 0, 1<<20)
		seq := uint64(0)
		got := testing.AllocsPerRun(200, func() {
			dst = p.Append(dst[:0], seq, int64(seq))
			dst, _ = p.AppendWarm(dst[:0], seq, int64(seq), "logs", 3)
			_, _, _, _, _ = p.Project(seq), p.Kind(seq), p.Elements(seq), p.UserAgent(seq), p.Size(seq)
			_ = p.Encoding()
			seq++
		})
		if got != 0 {
			t.Errorf("%s: %v allocations a send, want none", p.Encoding(), got)
		}
	}
}

func TestManySendersAtOnce(t *testing.T) {
	const sends = 200
	p := testPool(t, Mixed, 20, Shape{})
	want := make([][]byte, sends)
	for seq := range want {
		want[seq] = p.Append(nil, uint64(seq), int64(seq))
	}
	var senders sync.WaitGroup
	for first := range 4 {
		senders.Go(func() {
			var body []byte
			for seq := first; seq < sends; seq += 4 {
				if body = p.Append(body[:0], uint64(seq), int64(seq)); !bytes.Equal(body, want[seq]) {
					t.Errorf("send %d differs", seq)
				}
			}
		})
	}
	senders.Wait()
}

// The same config gives the same pool; another seed another one, of the same kinds.
func TestPoolDependsOnItsConfig(t *testing.T) {
	mix, err := ParseMix(Kinds, Mixed)
	if err != nil {
		t.Fatal(err)
	}
	build := func(change func(*PoolConfig)) string {
		c := PoolConfig{Mix: mix, Seed: 7, Size: 20, Projects: 10, Zipf: 1, Shape: DefaultShape(), Epoch: epoch}
		change(&c)
		p, err := NewPool(c)
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for seq := range uint64(20) {
			all = p.Append(all, seq, 0)
		}
		return string(all)
	}
	first := build(func(*PoolConfig) {})
	if first != build(func(*PoolConfig) {}) {
		t.Error("one config, two pools")
	}
	for name, change := range map[string]func(*PoolConfig){
		"seed":     func(c *PoolConfig) { c.Seed++ },
		"epoch":    func(c *PoolConfig) { c.Epoch = c.Epoch.Add(time.Second) },
		"frames":   func(c *PoolConfig) { c.Shape.Frames++ },
		"projects": func(c *PoolConfig) { c.Projects = 1 },
	} {
		if first == build(change) {
			t.Errorf("another %s, the same pool", name)
		}
	}
}

func TestNoTwoEnvelopesAreEqual(t *testing.T) {
	for _, k := range Kinds {
		size := 200
		p := testPool(t, k.Name, size, Shape{Frames: 1, SpansMax: 2})
		seen := map[string]bool{}
		for i := range p.entries {
			seen[string(p.entries[i].body)] = true
		}
		if got := len(seen); got != size {
			t.Errorf("%s: %d different envelopes of %d", k.Name, got, size)
		}
	}
}

// withAttachment is an injected kind of two items.
func withAttachment() Kind {
	return Kind{
		Name: "crashes", Weight: 1, Items: []string{"event", "attachment"}, Category: 1, Unit: "item", Elements: One,
		Make: func(m *Maker) error {
			if err := makeError(m); err != nil {
				return err
			}
			m.AddItem("attachment", []byte("of event "+m.EventID()+"\n▶\n"), "filename", "log.txt", "content_type", "text/plain")
			return nil
		},
	}
}

func TestInjectedKind(t *testing.T) {
	kinds := append(slices.Clone(Kinds), withAttachment())
	mix, err := ParseMix(kinds, "crashes=1,logs=1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(PoolConfig{Kinds: kinds, Mix: mix, Size: 4, Projects: 1, Shape: DefaultShape(), Epoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(8) {
		e := parsed(t, p.Append(nil, seq, 0))
		if p.Kinds()[p.Kind(seq)].Name != "crashes" {
			continue
		}
		if got := p.Elements(seq); got != 1 || len(e.Items) != 2 {
			t.Errorf("send %d: %d elements in %d items, want 1 in 2", seq, got, len(e.Items))
		}
		if got, want := string(e.Items[1].Payload), "of event "+string(e.EventID)+"\n▶\n"; got != want {
			t.Errorf("send %d: attachment %q, want %q", seq, got, want)
		}
	}
}

// An envelope with an item that belongs to an event carries an event id, so that
// builds of Relay that no longer make one up get the same work.
func TestItemsOfEventsBringAnID(t *testing.T) {
	for typ := range eventTypes {
		k := Kind{Name: "k", Weight: 1, Items: []string{typ}, Elements: One, Make: func(m *Maker) error { m.AddItem(typ, nil); return nil }}
		mix, err := ParseMix([]Kind{k}, "k")
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPool(PoolConfig{Kinds: []Kind{k}, Mix: mix, Size: 1, Projects: 1, Epoch: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if e := parsed(t, p.Append(nil, 0, 0)); len(e.EventID) != 32 {
			t.Errorf("%s: event id %q", typ, e.EventID)
		}
	}
}

func TestBadKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*Maker) error
		want string
	}{
		{"error", func(*Maker) error { return fmt.Errorf("no paper") }, "pool: k: no paper"},
		{"other item", func(m *Maker) error { m.AddItem("b", nil); return nil }, `pool: k: item "b" is none of the kind's ["a"]`},
		{"no JSON", func(m *Maker) error { m.AddJSON("a", math.NaN()); return nil }, "pool: k: json: unsupported value: NaN"},
		{"ids", func(m *Maker) error {
			for range maxSlots {
				m.ID()
			}
			return nil
		}, "pool: k: more than 999 ids"},
	} {
		kinds := []Kind{{Name: "k", Weight: 1, Items: []string{"a"}, Elements: One, Make: c.make}}
		mix, err := ParseMix(kinds, "k")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewPool(PoolConfig{Kinds: kinds, Mix: mix, Size: 1, Projects: 1, Epoch: epoch}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, mix := range append([]string{Mixed}, names(Kinds)...) {
		b.Run(mix, func(b *testing.B) {
			p := testPool(b, mix, 100, DefaultShape())
			dst := make([]byte, 0, 1<<20)
			b.ReportAllocs()
			seq := uint64(0)
			for b.Loop() {
				dst = p.Append(dst[:0], seq, int64(seq))
				seq++
			}
		})
	}
}

func names(kinds []Kind) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

func BenchmarkNewPool(b *testing.B) {
	for b.Loop() {
		testPool(b, Mixed, 1000, DefaultShape())
	}
}
