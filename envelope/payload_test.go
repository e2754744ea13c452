package envelope

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// epoch is the run's start in tests.
var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// testPool is a pool of the mix, of size envelopes.
func testPool(t testing.TB, mix string, size int, shape Shape) *Pool {
	t.Helper()
	m, err := ParseMix(Kinds, mix)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(PoolConfig{Mix: m, Seed: 1, Size: size, Projects: 100, Zipf: 1, Shape: shape, Epoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// recordings are the recorded envelopes of each kind, by SDK.
func recordings(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	names := map[string]string{"event": "errors", "transaction": "transactions", "session": "sessions", "check_in": "checkins", "log": "logs"}
	files, err := filepath.Glob("testdata/sdk/*/*.envelope")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string][]byte{}
	for _, file := range files {
		kind := names[strings.TrimSuffix(filepath.Base(file), ".envelope")]
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found[kind] == nil {
			found[kind] = map[string][]byte{}
		}
		found[kind][filepath.Base(filepath.Dir(file))] = body
	}
	return found
}

// paths are the JSON paths of an envelope: of its header, its item headers and
// its payloads. Arrays are folded (a[0].b is a.b), "values" is folded away
// (exception[] and exception.values[] are the same), and the names of HTTP
// headers are in lower case, as they are for HTTP. A free key (a name of a tag, of an
// attribute, of a module) is a path like any other: what two SDKs happen to send under the same
// name is convention, not chance.
func paths(t *testing.T, body []byte) map[string]bool {
	t.Helper()
	var e Envelope
	if err := e.Parse(body); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	add := func(root string, text []byte) {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		fold(found, root, v)
	}
	add("envelope", e.Header)
	for _, it := range e.Items {
		add("item", it.Header)
		add("payload", it.Payload)
	}
	return found
}

func fold(found map[string]bool, path string, v any) {
	found[path] = true
	switch v := v.(type) {
	case map[string]any:
		for k, w := range v {
			switch {
			case k == "values":
				fold(found, path, w)
			case strings.HasSuffix(path, ".request.headers"):
				fold(found, path+"."+strings.ToLower(k), w)
			default:
				fold(found, path+"."+k, w)
			}
		}
	case []any:
		for _, w := range v {
			fold(found, path, w)
		}
	}
}

// Every path that at least two SDKs send for a kind is in each of our
// envelopes of it; of five kinds two are sent by two of the SDKs only, so there by both.
//
// Note: sessions are laid beside single updates that sentry-sdk and @sentry/node send for
// an application's session. Left alone, both send aggregates from a
// server (item type "sessions"), which browsers and phones do not.
func TestPathsOfSDKs(t *testing.T) {
	recorded := recordings(t)
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			senders := map[string]int{}
			if len(recorded[k.Name]) < 2 {
				t.Fatalf("%d recordings", len(recorded[k.Name]))
			}
			for _, body := range recorded[k.Name] {
				for path := range paths(t, body) {
					senders[path]++
				}
			}
			p := testPool(t, k.Name, 40, DefaultShape())
			for seq := range uint64(40) {
				ours := paths(t, p.Append(nil, seq, 0))
				var missing []string
				for path, n := range senders {
					if n >= 2 && !ours[path] {
						missing = append(missing, path)
					}
				}
				if len(missing) > 0 {
					slices.Sort(missing)
					t.Fatalf("send %d lacks %q", seq, missing)
				}
			}
		})
	}
}

func TestSizes(t *testing.T) {
	rec := recordings(t)
	z := FindEncoding("zstd")
	for _, k := range Kinds {
		for s, b := range rec[k.Name] {
			e, _ := z.Encode(nil, b)
			fmt.Printf("%s %s %d ratio %.2f\n", k.Name, s, len(b), float64(len(b))/float64(len(e)))
		}
		p := testPool(t, k.Name, 100, DefaultShape())
		n, c, lo, hi := 0, 0, 1<<30, 0
		for seq := range uint64(100) {
			b := p.Append(nil, seq, 0)
			e, _ := z.Encode(nil, b)
			n += len(b)
			c += len(e)
			lo = min(lo, len(b))
			hi = max(hi, len(b))
		}
		fmt.Printf("%s ours %d (%d-%d) ratio %.2f\n", k.Name, n/100, lo, hi, float64(n)/float64(c))
	}
}
