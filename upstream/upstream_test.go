package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/envelope"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 20 * time.Second

// testKinds are kinds with one wire type, with a container, and with two wire types.
var testKinds = []envelope.Kind{
	{Name: "errors", Items: []string{"event"}, Elements: envelope.One, Features: []string{"f:errors"}},
	{Name: "logs", Items: []string{"log"}, Elements: envelope.Contained, Features: []string{"f:logs"}},
	{Name: "pairs", Items: []string{"replay_event", "replay_recording"}, Elements: envelope.One},
}

// notes collects texts.
type notes struct {
	mu    sync.Mutex
	texts []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, text)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.texts...)
}

// serve starts an upstream for the time of a test.
func serve(t testing.TB, c Config) *Server {
	t.Helper()
	return serveLimited(t, c, defaultLimits())
}

func serveLimited(t testing.TB, c Config, l limits) *Server {
	t.Helper()
	if c.Kinds == nil {
		c.Kinds = testKinds
	}
	s, err := start(c, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial opens a connection of a test.
func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// answer is what was answered to a request.
type answer struct {
	status int
	head   http.Header
	body   string
}

// exchange sends a request as it is, on a connection of its own.
func exchange(t testing.TB, s *Server, request []byte) (answer, error) {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return answer{}, err
	}
	return readAnswer(bufio.NewReader(c))
}

func readAnswer(r *bufio.Reader) (answer, error) {
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// request is the bytes of a request.
func request(method, path, encoding string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", method, path, len(body))
	if encoding != "" {
		fmt.Fprintf(&b, "Content-Encoding: %s\r\n", encoding)
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// do sends a request that is to be answered.
func do(t testing.TB, s *Server, method, path, encoding, body string) answer {
	t.Helper()
	a, err := exchange(t, s, request(method, path, encoding, []byte(body)))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// post sends an envelope that is to be answered.
func post(t testing.TB, s *Server, body string) answer {
	t.Helper()
	return do(t, s, "POST", "/api/42/envelope/", "", body)
}

// envelopeOf is an envelope with a stamp, with an item of each type.
func envelopeOf(stamp envelope.Stamp, types ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"event_id":"%032x","relaybench":"%s"}`+"\n", stamp.Seq, envelope.AppendStamp(nil, stamp))
	for _, typ := range types {
		count := ""
		if typ == "log" {
			count = `,"item_count":10`
		}
		fmt.Fprintf(&b, `{"type":"%s","length":2%s}`+"\n{}\n", typ, count)
	}
	return b.String()
}

// send is an envelope of the run, of the kind that an item type is of.
func send(seq uint64, types ...string) string {
	kind := map[string]string{"log": "logs", "replay_event": "pairs", "replay_recording": "pairs"}[types[0]]
	if kind == "" {
		kind = "errors"
	}
	return envelopeOf(envelope.Stamp{Seq: seq, Due: int64(seq), Kind: []byte(kind)}, types...)
}

// unmarshal reads JSON.
func unmarshal(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %.200q", err, text)
	}
}

// encode is a text in a content encoding.
func encode(t testing.TB, encoding, text string) string {
	t.Helper()
	b, err := envelope.FindEncoding(encoding).Encode(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
