package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// folderOf is a folder of some files.
func folderOf(files map[string]string) (*Folder, error) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return ReadFolder(fsys, "/mine")
}

// oneFile is a folder of one envelope.
func oneFile(t testing.TB, text string) *Folder {
	t.Helper()
	f, err := folderOf(map[string]string{"a": text})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// folderPool is a pool of a folder, of at least size envelopes.
func folderPool(t testing.TB, f *Folder, size int, encoding string) *Pool {
	t.Helper()
	p, err := NewPool(PoolConfig{Folder: f, Seed: 1, Size: size, Projects: 3, Zipf: 1, Epoch: epoch, Encoding: encoding})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An SDK's recordings become sends with a stamp of ours, in every encoding: what
// is not moved or new in them is as it was.
func TestFolderOfRecordings(t *testing.T) {
	f, err := ReadFolder(os.DirFS("testdata/sdk"), "testdata/sdk")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"errors": 3, "transactions": 2, "sessions": 2, "checkins": 3, "logs": 3}; !reflect.DeepEqual(f.Files, want) || f.Passed != 1 {
		t.Errorf("files %v, %d passed over, want %v and the README", f.Files, f.Passed, want)
	}
	for i := range Encodings {
		name := Encodings[i].Name
		p := folderPool(t, f, 20, name)
		if p.Len() != 26 {
			t.Fatalf("%d envelopes, want twice the 13 files", p.Len())
		}
		ids := map[string]bool{}
		for seq := range uint64(3 * 26) {
			body := plain(t, name, p.Append(nil, seq, int64(seq)*1e6))
			e := parsed(t, body)
			kind := p.Kinds()[p.Kind(seq)]
			if e.Stamp.Seq != seq || string(e.Stamp.Kind) != kind.Name || string(e.Items[0].Type) != kind.Items[0] {
				t.Fatalf("send %d: stamp %+v of %s", seq, e.Stamp, e.Items[0].Type)
			}
			if id := string(e.EventID); id != "" && ids[id] {
				t.Fatalf("send %d: event id %s comes again", seq, id)
			} else {
				ids[id] = true
			}
			elements := 0
			for _, it := range e.Items {
				elements += kind.Elements(it)
			}
			if elements != p.Elements(seq) {
				t.Errorf("send %d: %d elements, want %d", seq, p.Elements(seq), elements)
			}
			head := decoded(t, e.Header)
			if at, ok := head["sent_at"]; ok && at != epoch.Add(time.Duration(seq)*time.Millisecond).Format("2006-01-02T15:04:05.000Z") {
				t.Errorf("send %d: sent at %v", seq, at)
			}
			if trace, ok := head["trace"].(map[string]any); ok && trace["public_key"] != Key(p.Project(seq)) {
				t.Errorf("send %d: key %v of project %d", seq, trace["public_key"], p.Project(seq))
			}
			if head["dsn"] != nil {
				t.Errorf("send %d: dsn %v", seq, head["dsn"])
			}
			if id := decoded(t, e.Items[0].Payload)["event_id"]; id != nil && name == Identity && id != string(e.EventID) {
				t.Errorf("send %d: event ids %v and %s", seq, id, e.EventID)
			}
			for _, old := range []string{"2025-1", "2026-10", "2026-11-2"} {
				if strings.Contains(string(body), `timestamp":"`+old) {
					t.Errorf("send %d has a time that was not moved: %s", seq, body)
				}
			}
		}
	}
}

// What a pool dumps is, read again, what the pool sends: all but ids and times, to the second.
func TestFolderOfDumped(t *testing.T) {
	const size = 20
	p := testPool(t, Mixed, size, DefaultShape())
	files := map[string]string{"README.md": "of no account"}
	bodies := map[string]bool{}
	for seq := range uint64(size) {
		body := p.Append(nil, seq, 0)
		files[fmt.Sprintf("%02d%s", seq, FolderExt)] = string(body)
		bodies[withoutIDs(t, body)] = true
	}
	f, err := folderOf(files)
	if err != nil {
		t.Fatal(err)
	}
	again := folderPool(t, f, 1, "")
	if again.Len() != size {
		t.Fatalf("%d envelopes, want %d", again.Len(), size)
	}
	kinds := map[string]int{}
	for seq := range uint64(size) {
		body := again.Append(nil, seq, 0)
		kinds[again.Kinds()[again.Kind(seq)].Name]++
		if text := withoutIDs(t, body); !bodies[text] {
			t.Errorf("send %d is none of those that were dumped:\n%s", seq, text)
		}
	}
	if !reflect.DeepEqual(kinds, f.Files) {
		t.Errorf("sent %v of %v", kinds, f.Files)
	}
}

// withoutIDs is an envelope as JSON, without what is new in each send.
func withoutIDs(t *testing.T, body []byte) string {
	e := parsed(t, body)
	head := decoded(t, e.Header)
	for _, key := range []string{StampKey, "event_id"} {
		delete(head, key)
	}
	if trace, ok := head["trace"].(map[string]any); ok {
		delete(trace, "public_key")
	}
	out, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range e.Items {
		out = append(append(out, it.Header...), bytes.ReplaceAll(it.Payload, e.EventID, nil)...)
	}
	return string(out)
}

const oldEvent = `{"event_id":"0123456789abcdef0123456789abcdef","sent_at":"2020-02-28T23:59:58.5Z","dsn":"https://aa@x.io/1","trace":{"public_key":"aa","trace_id":"bb"},"x":{"dsn":1}}
{"type":"event","length":171}
{"event_id":"01234567-89ab-cdef-0123-456789abcdef","timestamp":1582934396.25,"breadcrumbs":[{"timestamp":"2020-02-28T23:59:55.123456+00:00"}],"started":12,"extra":["1582934396"]}
{"type":"attachment","length":33}
0123456789abcdef0123456789abcdef
`

func TestFolderRewrites(t *testing.T) {
	text := strings.Replace(oldEvent, "171", fmt.Sprint(strings.Index(oldEvent, "\n{\"type\":\"attachment\"")-strings.Index(oldEvent, "{\"event_id\":\"01234567-")), 1)
	text = strings.Replace(text, `"length":33`, `"length":32`, 1)
	p := folderPool(t, oneFile(t, text), 1, "")
	e := parsed(t, p.Append(nil, 7, 0))
	id := string(e.EventID)
	dashed := id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
	stamp := string(AppendStamp(nil, Stamp{Seq: 7, Kind: []byte("errors")}))
	if got, want := string(e.Header), `{"relaybench":"`+stamp+`","event_id":"`+id+`","sent_at":"2026-11-30T12:00:00.000Z","trace":{"public_key":"`+Key(p.Project(7))+`","trace_id":"bb"},"x":{"dsn":1}}`; got != want {
		t.Errorf("header\n%s, want\n%s", got, want)
	}
	if got, want := string(e.Items[0].Payload), `{"event_id":"`+dashed+`","timestamp":1796039998.25,"breadcrumbs":[{"timestamp":"2026-11-30T11:59:57.123456+00:00"}],"started":12,"extra":["1582934396"]}`; got != want {
		t.Errorf("event\n%s, want\n%s", got, want)
	}
	if got := string(e.Items[1].Payload); got != id {
		t.Errorf("attachment %q, want the event id %s", got, id)
	}
}

// Without sent_at, the newest time in the payload is when it was recorded; what has no time stays as it is.
func TestFolderTimes(t *testing.T) {
	for text, want := range map[string]string{
		`{"start_timestamp":1582934390,"timestamp":1582934396.9999}`: `{"start_timestamp":1796039994,"timestamp":1796040000.9999}`,
		`{"timestamp":"2020-02-28 23:59:56"}`:                        `{"timestamp":"2026-11-30 12:00:00"}`,
		`{ "a":[ {"timestamp" : 1582934396} ] }`:                     `{ "a":[ {"timestamp" : 1796040000} ] }`,
		`[{"started":1582934396}]`:                                   `[{"started":1796040000}]`,
		`{"timestamp":1582934396000}`:                                `{"timestamp":1582934396000}`,
		`{"timestamp":158293439}`:                                    `{"timestamp":158293439}`,
		`{"timestamp":"2020-02-30T23:59:56Z"}`:                       `{"timestamp":"2020-02-30T23:59:56Z"}`,
		`{"timestamp":"yesterday","timestamp":null}`:                 `{"timestamp":"yesterday","timestamp":null}`,
		`{"timestamp":1582934396`:                                    `{"timestamp":1582934396`,
		`{}`:                                                         `{}`,
		`no JSON`:                                                    `no JSON`,
	} {
		p := folderPool(t, oneFile(t, "{}\n{\"type\":\"session\"}\n"+text), 1, "")
		if got := string(parsed(t, p.Append(nil, 0, 0)).Items[0].Payload); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestFolderKinds(t *testing.T) {
	for _, c := range []struct{ items, kind, err string }{
		{`event`, "errors", ""},
		{`client_report session attachment event`, "sessions", ""},
		{`attachment event`, "errors", ""},
		{`session session session`, "sessions", ""},
		{`sessions`, "aggregates", ""},
		{`span`, "spans", ""},
		{`trace_metric`, "metrics", ""},
		{`feedback attachment`, "feedback", ""},
		{`Potato!`, "item-potato-", ""},
		{`potato carrot`, "item-potato", ""},
		{`potato potato`, "", `it has 2 items "potato", which the relay sends on one by one`},
		{`check_in check_in`, "", `it has 2 items "check_in", which the relay sends on one by one`},
		{`attachment`, "", `an envelope of "attachment" alone cannot be accounted for`},
		{`client_report`, "", `an envelope of "client_report" alone cannot be accounted for`},
		{`replay_event replay_recording`, "", `an envelope of "replay_event" alone cannot be accounted for`},
		{``, "", "it has no items"},
	} {
		text := "{}\n"
		for _, typ := range strings.Fields(c.items) {
			text += `{"type":"` + typ + `"}` + "\n{}\n"
		}
		f, err := folderOf(map[string]string{"a": text})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), `folder "/mine": file "a": `+c.err) {
				t.Errorf("%s: got %v, want %s", c.items, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.items, err)
		default:
			p := folderPool(t, f, 1, "gzip")
			if got := p.Kinds(); len(got) != 1 || got[0].Name != c.kind {
				t.Errorf("%s: kinds %q, want %s", c.items, names(got), c.kind)
			}
			if body, _ := p.AppendWarm(nil, 0, 0, c.kind, 2); !parsed(t, plain(t, "gzip", body)).Stamp.Warm {
				t.Errorf("%s: no warm-up", c.items)
			}
			if body, _ := p.AppendWarm(nil, 0, 0, "sessions", 2); body == nil {
				t.Errorf("%s: no session to warm up a project", c.items)
			}
		}
	}
}

func TestFolderErrors(t *testing.T) {
	good := "{}\n{\"type\":\"session\"}\n{}\n"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{nil, `folder "/mine": no file is in it`},
		{map[string]string{"a.envelope": good, "b.envelope": "hello"}, `folder "/mine": file "b.envelope": envelope: byte 0: envelope header is not a JSON object`},
		{map[string]string{"b": "{}\n{\"type\":\"event\",\"length\":9}\n{}\n"}, `folder "/mine": file "b": envelope: byte 34: payload ends before its length`},
		{map[string]string{"b": ""}, `folder "/mine": file "b": envelope: byte 0: `},
		{map[string]string{"b": "\x1f\x8b\x08"}, `folder "/mine": file "b": it is compressed (gzip): only envelopes as they are can be sent`},
		{map[string]string{"b": "\x28\xb5\x2f\xfd"}, `it is compressed (zstd)`},
	} {
		if _, err := folderOf(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.files, err, c.want)
		}
	}
	if _, err := ReadFolder(fstest.MapFS{"x": {Data: []byte(good), Mode: os.ModeNamedPipe}}, "y"); err == nil || !strings.Contains(err.Error(), `"x" is no file`) {
		t.Errorf("a pipe: %v", err)
	}
	a, err := folderOf(map[string]string{"a": good})
	if err != nil {
		t.Fatal(err)
	}
	b, err := folderOf(map[string]string{"b": good})
	if err != nil || len(a.SHA256) != 64 || a.SHA256 == b.SHA256 {
		t.Errorf("hashes %s and %s of two names, %v", a.SHA256, b.SHA256, err)
	}
	if !slices.Equal(names(a.Kinds), names(Kinds)) {
		t.Errorf("kinds %q", names(a.Kinds))
	}
}

func TestFolderAllocatesNothing(t *testing.T) {
	f, err := ReadFolder(os.DirFS("testdata/sdk"), "testdata/sdk")
	if err != nil {
		t.Fatal(err)
	}
	for i := range Encodings {
		p := folderPool(t, f, 13, Encodings[i].Name)
		dst := make([]byte, 0, 1<<20)
		seq := uint64(0)
		if got := testing.AllocsPerRun(100, func() { dst = p.Append(dst[:0], seq, 0); seq++ }); got != 0 {
			t.Errorf("%s: %v allocations a send, want none", p.Encoding(), got)
		}
	}
}

// Whatever a file holds: it is refused, or sent as an envelope with our stamp and its items.
func FuzzFolder(f *testing.F) {
	f.Add([]byte(oldEvent))
	f.Add([]byte("{}\n{\"type\":\"session\"}\n{\"started\":\"2020-02-28T23:59:56Z\"}"))
	f.Add([]byte("{\"event_id\":null,\"trace\":null}\n{\"type\":\"log\",\"item_count\":3}\n[]"))
	f.Add([]byte("{\"event_id\":\"" + placeholder(placeHex, 0) + "\"}\n{\"type\":\"event\"}\n" + placeholder(placeUUID, 0)))
	for _, k := range Kinds {
		f.Add(testPool(f, k.Name, 1, Shape{}).Append(nil, 0, 0))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		folder, err := folderOf(map[string]string{"a": string(text)})
		if err != nil {
			return
		}
		before := parsed(t, text)
		r := &folder.files[0]
		send := entry{body: r.moved(epoch), patches: r.patches}
		e := parsed(t, send.fill(nil, Stamp{Seq: 5, Due: 6}, saltID, 0, 0, 0))
		if !e.Stamped || e.Stamp.Seq != 5 || e.Stamp.Due != 6 || len(e.Items) != len(before.Items) {
			t.Fatalf("stamp %+v, %d items of %d", e.Stamp, len(e.Items), len(before.Items))
		}
		for i, it := range e.Items {
			if w := before.Items[i]; string(it.Type) != string(w.Type) || it.Count != w.Count || len(it.Payload) != len(w.Payload) {
				t.Fatalf("item %d: %s ×%d of %d bytes, was %s ×%d of %d", i, it.Type, it.Count, len(it.Payload), w.Type, w.Count, len(w.Payload))
			}
		}
	})
}
