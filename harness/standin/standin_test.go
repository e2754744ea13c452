package standin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"relaybench/envelope"
)

func folder(t testing.TB, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func call(args ...string) (int, string, string) {
	var stdout, stderr bytes.Buffer
	status := Main(context.Background(), args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestCommandLine(t *testing.T) {
	dir := folder(t, "{}")
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"--version"}, 0, "relay stand-in-1\n", ""},
		{nil, 2, "", usage},
		{[]string{"run"}, 2, "", usage},
		{[]string{"-c", dir, "dance"}, 2, "", usage},
		{[]string{"-c", dir + "/no", "run"}, 1, "", "error: could not open config file"},
		{[]string{"-c", folder(t, "*a"), "run"}, 1, "", "error: could not parse yaml config file"},
		{[]string{"-c", dir, "run"}, 1, "", "error: relay has no credentials"},
		{[]string{"-c", dir, "config", "show"}, 0, "standin:\n  cpu: 0s\n", ""},
	} {
		status, stdout, stderr := call(c.args...)
		if status != c.status || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%q: got %d, %q, %q, want %d, %q, %q", c.args, status, stdout, stderr, c.status, c.stdout, c.stderr)
		}
	}
}

// The table: each key has a help, its default is accepted, and what is shown is read again as it was.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys {
		if k.help == "" || seen[k.name] || strings.Count(k.name, ".") != 1 {
			t.Errorf("%s: no help, no section, or twice", k.name)
		}
		seen[k.name] = true
	}
	_, first, _ := call("-c", folder(t, "{}"), "config", "show")
	_, second, _ := call("-c", folder(t, first), "config", "show")
	if first != second || first == "" {
		t.Errorf("shown and read again, it is\n%s, and was\n%s", second, first)
	}
	for _, k := range keys {
		if !strings.Contains(first, "  "+strings.SplitN(k.name, ".", 2)[1]+":") {
			t.Errorf("%s: not shown", k.name)
		}
	}
}

func TestKeyValues(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"relay.mode", "proxy", "only managed"},
		{"relay.upstream", "https://sentry.io/", "expected http://HOST:PORT/"},
		{"relay.port", "0", "from 1 to 65535"},
		{"relay.port", "a", "expected a whole number"},
		{"logging.level", "loud", "expected error"},
		{"logging.level", "WARN", ""},
		{"http.encoding", "lzma", "expected identity"},
		{"http.encoding", "''", "expected identity"},
		{"http.encoding", "5", "expected a text"},
		{"http.timeout", "1.5", "expected a whole number"},
		{"standin.cpu", "5", "expected a duration"},
		{"standin.cpu", "0", ""},
		{"standin.cpu", "5ms", ""},
		{"standin.cpu", "-5ms", "expected a duration"},
		{"standin.capacity", "0.5", ""},
		{"standin.capacity", "-1", "expected a number"},
		{"standin.refuse", "503", ""},
		{"standin.refuse", "200", "expected a status"},
		{"standin.refuse_every", "0", "from 1"},
		{"standin.hold", "yes", "expected true or false"},
		{"standin.hold", "true", ""},
	} {
		section, name, _ := strings.Cut(c.key, ".")
		dir := folder(t, fmt.Sprintf("%s: {%s: %s}", section, name, c.value))
		status, stdout, stderr := call("-c", dir, "config", "show")
		if c.want == "" {
			if status != 0 || !strings.Contains(stdout, "  "+name+": "+c.value+"\n") {
				t.Errorf("%s=%s: got %d, %s, want it shown", c.key, c.value, status, stderr)
			}
		} else if status != 1 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, c.key) {
			t.Errorf("%s=%s: got %d, %s, want %q", c.key, c.value, status, stderr, c.want)
		}
	}
}

func TestQueueKeepsItsOrder(t *testing.T) {
	q := newQueue()
	all := make([]*job, 1000)
	next := 0
	for i := range all {
		all[i] = &job{seq: uint64(i)}
		q.push(all[i])
		if i%3 != 0 {
			if got := q.pop(); got != all[next] {
				t.Fatalf("got job %d, want %d", got.seq, next)
			}
			next++
		}
	}
	for ; next < len(all); next++ {
		if got := q.pop(); got != all[next] {
			t.Fatalf("got job %d, want %d", got.seq, next)
		}
	}
	if n := cap(q.jobs); n > 1024 {
		t.Errorf("its memory grew to %d jobs, though it never held more than 340", n)
	}
	waiting := make(chan *job)
	go func() { waiting <- q.pop() }()
	q.close()
	if got := <-waiting; got != nil {
		t.Errorf("closed: got %v, want nil", got)
	}
	q.push(&job{})
	if got := q.pop(); got != nil {
		t.Errorf("closed, with a job in it: got %v, want nil", got)
	}
}

func TestBurnsCPUTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const d = 20 * time.Millisecond
	began := time.Now()
	burn(d)
	if took := time.Since(began); took < d {
		t.Errorf("spent %v in %v", d, took)
	}
}

func TestPace(t *testing.T) {
	p := pace{every: 5 * time.Millisecond}
	began := time.Now()
	for range 11 {
		p.wait(t.Context())
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("11 in %v, want 50ms at least", took)
	}
}

// FuzzIngest: whatever comes, it is answered, and only what is an envelope gets in.
func FuzzIngest(f *testing.F) {
	f.Add("/api/1/envelope/", "Sentry sentry_key="+envelope.Key(0), "", []byte("{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n{\"type\":\"event\"}\n{}\n"))
	f.Add("/api/1/envelope/?sentry_key="+envelope.Key(1), "", "", []byte("{\"relaybench\":\"0000000000000005-0000000000000007-0-logs\"}\n{\"type\":\"log\",\"item_count\":4}\n{}"))
	f.Add("/api/1/envelope/", "", "gzip", []byte("{\"dsn\":\"http://a@b/1\"}\n"))
	f.Add("/api/relay/healthcheck/ready/", "x", "x", []byte(nil))
	dir := folder(f, "limits: {max_envelope_size: 100000}")
	c, _, err := load(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, uri, auth, encoding string, body []byte) {
		r := newRelay(t.Context(), c, identity{}, newLogger(&bytes.Buffer{}, "INFO"))
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI(uri)
		ctx.Request.Header.Set("X-Sentry-Auth", auth)
		ctx.Request.Header.Set("Content-Encoding", encoding)
		ctx.Request.SetBody(body)
		r.handle(&ctx)
		status, inside := ctx.Response.StatusCode(), r.inside.Load()
		if inside > 1 || inside == 1 && status != 200 {
			t.Errorf("status %d, and %d jobs inside", status, inside)
		}
		if inside == 0 {
			return
		}
		for _, p := range r.projects.byKey {
			j := p.waiting[0]
			var again envelope.Envelope
			if err := again.Parse(j.rewrite(nil)); err != nil {
				t.Errorf("what would be forwarded: %v", err)
			} else if again.Stamped != j.env.Stamped || again.Stamp.Seq != j.env.Stamp.Seq || len(again.Items) != len(j.env.Items) {
				t.Errorf("what would be forwarded: %+v, came as %+v", again, j.env)
			}
		}
	})
}
