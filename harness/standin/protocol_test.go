package standin_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/upstream"
)

// sentry is an upstream that believes nothing: it verifies each signature, and
// holds back what it is told to.
type sentry struct {
	t *testing.T

	mu         sync.Mutex
	key        ed25519.PublicKey
	global     string // answer to a query for the global config
	configs    func(keys []string) string
	challenges int
	seen       map[string]int
	envelopes  []received
}

type received struct {
	path   string
	header http.Header
	body   []byte
}

func (s *sentry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[r.URL.Path]++
	signed := body
	if strings.HasSuffix(r.URL.Path, "/envelope/") {
		s.envelopes = append(s.envelopes, received{r.URL.Path, r.Header, body})
		signed = nil
	}
	if r.URL.Path == "/api/0/relays/register/challenge/" {
		var hello struct {
			RelayID   string `json:"relay_id"`
			PublicKey string `json:"public_key"`
			Version   string `json:"version"`
		}
		if err := json.Unmarshal(body, &hello); err != nil || hello.Version == "" || hello.RelayID != r.Header.Get("X-Sentry-Relay-Id") {
			s.t.Errorf("challenge: %s, %v", body, err)
		}
		if s.key, err = base64.RawURLEncoding.DecodeString(hello.PublicKey); err != nil || len(s.key) != ed25519.PublicKeySize {
			s.t.Errorf("public key %q: %v", hello.PublicKey, err)
			return
		}
	}
	s.verify(r, signed)
	switch r.URL.Path {
	case "/api/0/relays/register/challenge/":
		if s.challenges++; s.challenges == 1 {
			w.WriteHeader(403) // not yet: it tries again
			return
		}
		io.WriteString(w, `{"relay_id":"x","token":"abc"}`)
	case "/api/0/relays/register/response/":
		if !bytes.Contains(body, []byte(`"token":"abc"`)) {
			s.t.Errorf("response: %s", body)
		}
		io.WriteString(w, `{"relay_id":"x"}`)
	case "/api/0/relays/projectconfigs/":
		var ask struct {
			Global     bool     `json:"global"`
			PublicKeys []string `json:"publicKeys"`
		}
		if err := json.Unmarshal(body, &ask); err != nil {
			s.t.Errorf("configs: %s: %v", body, err)
		}
		if ask.Global {
			io.WriteString(w, s.global)
		} else {
			io.WriteString(w, s.configs(ask.PublicKeys))
		}
	default:
		io.WriteString(w, `{}`)
	}
}

// verify checks a signature over its header, a NUL and the body.
func (s *sentry) verify(r *http.Request, body []byte) {
	signature, header, _ := strings.Cut(r.Header.Get("X-Sentry-Relay-Signature"), ".")
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		s.t.Errorf("%s: signature: %v", r.URL.Path, err)
		return
	}
	plain, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		s.t.Errorf("%s: signature's header: %v", r.URL.Path, err)
		return
	}
	var at struct {
		T time.Time `json:"t"`
	}
	if err := json.Unmarshal(plain, &at); err != nil || time.Since(at.T) > time.Minute {
		s.t.Errorf("%s: signature's header %s: %v", r.URL.Path, plain, err)
	}
	if !ed25519.Verify(s.key, append(append(plain, 0), body...), sig) {
		s.t.Errorf("%s: the signature does not verify", r.URL.Path)
	}
}

func (s *sentry) get(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func startSentry(t *testing.T, configs func(keys []string) string) (*sentry, string) {
	t.Helper()
	s := &sentry{t: t, global: `{"configs":{},"global":{},"globalStatus":"pending"}`, configs: configs, seen: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, strings.TrimPrefix(server.URL, "http://")
}

// oneConfig serves every project key as project 1.
func oneConfig(keys []string) string {
	configs := map[string]any{}
	for _, key := range keys {
		configs[key] = map[string]any{
			"projectId": 1, "organizationId": 7, "disabled": false,
			"publicKeys": []any{map[string]any{"publicKey": key, "numericId": 9}},
			"config":     map[string]any{"features": []string{"organizations:ourlogs-ingestion"}},
		}
	}
	answer, err := json.Marshal(map[string]any{"configs": configs})
	if err != nil {
		return err.Error()
	}
	return string(answer)
}

func TestForwardedEnvelope(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"zstd", "gzip", "deflate", "br", "identity"} {
		t.Run(encoding, func(t *testing.T) {
			s, addr := startSentry(t, oneConfig)
			b := launch(t, addr, "http.encoding="+encoding, "cache.global_config_fetch_interval=0")
			b.wait("ready", func() bool { return b.run.Ready(t.Context()) == nil })
			const head = `{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc","sent_at":"2020-01-01T00:00:00Z","dsn":"x","relaybench":"0000000000000005-0000000000000007-0-errors","trace":{"sent_at":"kept","é":"\u00e9\n"}}`
			const rest = "\n" + `{"type":"event","length":2}` + "\n{}\n"
			status, answer := b.post(0, []byte(head+rest), "Origin", "http://origin")
			if status != 200 || answer != `{"id":"9ec79c33ec9942ab8353589fcb2e04dc"}` {
				t.Fatalf("got %d %s", status, answer)
			}
			// It is answered and stays inside: the global config is pending.
			b.wait("a second global config query", func() bool {
				n := 0
				s.get(func() { n = s.seen["/api/0/relays/projectconfigs/"] })
				return n > 2
			})
			var got received
			s.get(func() {
				if len(s.envelopes) > 0 {
					t.Error("an envelope came before the global config")
				}
				s.global = `{"global":{}}`
			})
			b.wait("the envelope", func() bool {
				n := 0
				s.get(func() {
					if n = len(s.envelopes); n > 0 {
						got = s.envelopes[0]
					}
				})
				return n > 0
			})
			if got.path != "/api/1/envelope/" {
				t.Errorf("path: %s", got.path)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/x-sentry-envelope", "User-Agent": "agent/1", "Origin": "http://origin", "X-Forwarded-For": "127.0.0.1",
				"X-Sentry-Auth":    "Sentry sentry_key=" + envelope.Key(0) + ", sentry_version=7, sentry_client=test/1",
				"Content-Encoding": strings.TrimPrefix(encoding, "identity"),
			} {
				if value := got.header.Get(name); value != want {
					t.Errorf("%s: got %q, want %q", name, value, want)
				}
			}
			plain, err := envelope.FindEncoding(encoding).Decode(nil, got.body, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var parsed envelope.Envelope
			if err := parsed.Parse(plain); err != nil {
				t.Fatalf("%v: %s", err, plain)
			}
			if !parsed.Stamped || parsed.Stamp.Seq != 5 || parsed.Stamp.Due != 7 || string(parsed.Stamp.Kind) != "errors" {
				t.Errorf("stamp: %+v", parsed.Stamp)
			}
			var header struct {
				SentAt time.Time         `json:"sent_at"`
				DSN    string            `json:"dsn"`
				Trace  map[string]string `json:"trace"`
			}
			if err := json.Unmarshal(parsed.Header, &header); err != nil {
				t.Fatal(err)
			}
			if time.Since(header.SentAt) > time.Minute || header.DSN != "x" || header.Trace["sent_at"] != "kept" || header.Trace["é"] != "é\n" {
				t.Errorf("header: %s", parsed.Header)
			}
			if tail := plain[len(parsed.Header):]; string(tail) != rest {
				t.Errorf("items: got %q, want %q", tail, rest)
			}
		})
	}
}

func TestDisabledAndPendingProjects(t *testing.T) {
	t.Parallel()
	pending := true
	s, addr := startSentry(t, func(keys []string) string {
		switch {
		case keys[0] == envelope.Key(1) && pending:
			pending = false
			return `{"pending":["` + keys[0] + `"]}`
		case keys[0] == envelope.Key(2):
			return `{"configs":{"` + keys[0] + `":null}}`
		case keys[0] == envelope.Key(3):
			return `{"configs":{}}`
		}
		return oneConfig(keys)
	})
	s.global = `{"global":{},"globalStatus":"ready"}`
	b := launch(t, addr, "cache.batch_interval=0", "limits.max_thread_count=1")
	b.wait("ready", func() bool { return b.run.Ready(t.Context()) == nil })
	body := func(project int) []byte {
		return []byte(`{"relaybench":"0000000000000005-0000000000000007-0-logs"}` + "\n" + `{"type":"log","item_count":4,"length":2}` + "\n{}\n")
	}
	// Project 0 is served as 1, its own id; 1 as 1, which is not its id, 2; 2 is null, 3 absent.
	for project := range 4 {
		if status, _ := b.post(project, body(project)); status != 200 {
			t.Errorf("project %d: got %d before its config is known, want 200", project, status)
		}
	}
	for project := 1; project < 4; project++ {
		b.wait("403", func() bool { status, _ := b.post(project, body(project)); return status == 403 })
	}
	if status, _ := b.post(0, body(0)); status != 200 {
		t.Errorf("project 0: got %d, want 200", status)
	}
	b.wait("two envelopes", func() bool {
		n := 0
		s.get(func() { n = len(s.envelopes) })
		return n == 2
	})
	b.run.Stop(20 * time.Second)
	s.get(func() {
		if s.seen["/api/0/relays/outcomes/"] == 0 || len(s.envelopes) != 2 {
			t.Errorf("requests: %v, envelopes: %d", s.seen, len(s.envelopes))
		}
	})
}

func TestDenied(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(403)
		io.WriteString(w, `{"relay":"stop"}`)
	}))
	defer server.Close()
	b := launch(t, strings.TrimPrefix(server.URL, "http://"))
	b.wait("its last word", func() bool { return strings.Contains(strings.Join(b.run.Tail(10), "\n"), "told this relay to stop") })
	if err := b.run.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("Ready: got %v, want 503", err)
	}
	if b.run.Exit().Ended {
		t.Error("it ended: Relay lives on")
	}
}

// What Relay answers at ingest, from recordings of 26.4.0 where there is one.
func TestIngestAnswers(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{})
	good := "{\"event_id\":\"9ec79c33-ec99-42ab-8353-589fcb2e04dc\"}\n{\"type\":\"event\",\"length\":2}\n{}\n"
	encoded := func(name string) string {
		body, err := envelope.FindEncoding(name).Encode(nil, []byte(good))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	const id = `{"id":"9ec79c33ec9942ab8353589fcb2e04dc"}`
	for _, c := range []struct {
		name, body string
		header     []string
		status     int
		answer     string // part of it
	}{
		{"good", good, nil, 200, id},
		{"no event id", "{}\n{\"type\":\"event\",\"length\":2}\n{}\n", nil, 200, "{}"},
		{"no items", "{}\n", nil, 200, "{}"},
		{"gzip", encoded("gzip"), []string{"Content-Encoding", "gzip"}, 200, id},
		{"deflate", encoded("deflate"), []string{"Content-Encoding", "deflate"}, 200, id},
		{"br", encoded("br"), []string{"Content-Encoding", "br"}, 200, id},
		{"zstd", encoded("zstd"), []string{"Content-Encoding", "zstd"}, 200, id},
		{"unknown encoding", good, []string{"Content-Encoding", "lzma"}, 415, "content encoding"},
		{"cut gzip", encoded("gzip")[:20], []string{"Content-Encoding", "gzip"}, 400, "request body"},
		{"not gzip", good, []string{"Content-Encoding", "gzip"}, 400, "request body"},
		{"empty", "", nil, 400, "empty"},
		{"no envelope", "banana", nil, 400, "invalid event envelope"},
		{"cut item", good[:len(good)-3], nil, 400, "byte"},
		{"no auth", good, []string{"X-Sentry-Auth", ""}, 401, "missing"},
		{"by query", good, []string{"X-Sentry-Auth", "", "query", "sentry_version=7&sentry_key=" + envelope.Key(0)}, 200, id},
		{"by dsn", strings.Replace(good, "{", `{"dsn":"http://`+envelope.Key(0)+`:x@h/1",`, 1), []string{"X-Sentry-Auth", ""}, 200, id},
		{"by Authorization", good, []string{"X-Sentry-Auth", "", "Authorization", "Sentry sentry_key=" + envelope.Key(0)}, 200, id},
		{"two ways", good, []string{"query", "sentry_key=" + envelope.Key(0)}, 401, "multiple"},
		{"bad key", good, []string{"X-Sentry-Auth", "Sentry sentry_key=abc"}, 400, "key"},
		{"key in capitals", good, []string{"X-Sentry-Auth", "Sentry sentry_key=" + strings.ToUpper(envelope.Key(0))}, 400, "key"},
		{"GET", "", []string{"method", "GET"}, 405, "POST"},
		{"project 0", good, []string{"path", "/api/0/envelope/"}, 404, ""},
		{"no slash at the end", good, []string{"path", "/api/1/envelope"}, 200, id},
		{"another route", good, []string{"path", "/api/1/store/"}, 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := b.post(0, []byte(c.body), c.header...)
			if status != c.status || !strings.Contains(answer, c.answer) || !json.Valid([]byte(answer)) {
				t.Errorf("got %d %s, want %d with %q", status, answer, c.status, c.answer)
			}
		})
	}
	b.run.Stop(20 * time.Second)
	if s := b.up.Stats(); s.Malformed != 0 || s.Unstamped != s.Envelopes || s.Envelopes == 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{}, "limits.max_envelope_size=1000")
	big := []byte("{}\n{\"type\":\"event\"}\n{\"a\":\"" + strings.Repeat("a", 2000) + "\"}\n")
	packed, err := envelope.FindEncoding("gzip").Encode(nil, big)
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := b.post(0, packed, "Content-Encoding", "gzip"); status != 413 {
		t.Errorf("decoded too large: got %d %s, want 413", status, answer)
	}
	if status, answer := b.post(0, big); status != 413 {
		t.Errorf("sent too large: got %d %s, want 413", status, answer)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	b := begin(t, upstream.Config{})
	if _, err := net.Listen("tcp", b.run.Addr()); err == nil {
		t.Error("its port can be had twice")
	}
}
