package relay_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/harness/relay"
	"relaybench/upstream"
)

// real is the Relay that RELAY_BIN names.
func real(t *testing.T) relay.Program {
	t.Helper()
	path := os.Getenv("RELAY_BIN")
	if path == "" {
		t.Skip("NOT TESTED against a real Relay: set RELAY_BIN=/path/to/relay")
	}
	return find(t, path)
}

func startUpstream(t *testing.T) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(upstream.Config{})
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

func TestRealLife(t *testing.T) {
	p := real(t)
	t.Logf("%v", p)
	if p.Version == "" || len(p.SHA256) != 64 || p.Size == 0 || p.Rustc == "" {
		t.Errorf("got %+v, want version, sha256, size and rustc", p)
	}
	up := startUpstream(t)
	dir := t.TempDir()
	began := time.Now()
	r := start(t, p, relay.Setup{Upstream: up.Addr(), Dir: dir})
	wait(t, "ready", func() bool { return r.Ready(t.Context()) == nil })
	t.Logf("ready after %v", time.Since(began))
	wait(t, "a global config query", func() bool { return up.Stats().GlobalQueries > 0 })
	if r.PID() == 0 {
		t.Error("the owner of its port is unknown")
	}
	e := r.Effective()
	if len(e.Hash) != 64 || !strings.Contains(e.YAML, "upstream: http://"+up.Addr()+"/") || len(e.Ignored) > 0 {
		t.Errorf("effective config: hash %q, ignored %q:\n%s", e.Hash, e.Ignored, e.YAML)
	}
	t.Logf("messages of its start: %v", r.Messages())
	r.ResetMessages()
	if tail := r.Tail(1000); !strings.Contains(strings.Join(tail, "\n"), "successfully registered") {
		t.Errorf("its log: %q", tail)
	}
	got := r.Stop(20 * time.Second)
	t.Logf("stopped: %+v", got)
	if got.Status != "" || got.Killed || got.Took > 10*time.Second {
		t.Errorf("Stop: got %+v, want exit status 0 in about 2s", got)
	}
	if m := r.Messages(); len(m) > 0 {
		t.Errorf("messages: %v", m)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRealKill(t *testing.T) {
	r := start(t, real(t), relay.Setup{})
	listens(t, r)
	if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("Ready without an upstream: got %v, want 503", err)
	}
	if got := r.Stop(0); got.Status != "signal: killed" || !got.Killed {
		t.Errorf("got %+v, want that it was killed", got)
	}
}

// Each setting takes, or is refused: none is ignored in silence.
func TestRealSettings(t *testing.T) {
	p := real(t)
	hash := map[string]string{}
	for _, c := range []struct{ key, value, want string }{
		{"limits.max_concurrent_requests", "50", ""},
		{"limits.max_concurrent_requests", `"50"`, "string"},
		{"limits.max_event_size", "1500000", ""},
		{"limits.max_event_size", "1048576", ""},
		{"limits.max_event_size", "1.5MB", ""},
		{"limits.max_event_size", "4KB", ""},
		{"limits.max_event_size", "0", ""},
		{"limits.max_thread_count", "1", ""},
		{"limits.max_event_size", "5 parsecs", "data size"},
		{"limits.idle_timeout", "7", ""},
		{"http.encoding", "gzip", ""},
		{"http.encoding", "identity", ""},
		{"http.encoding", "lzma", "lzma"},
		{"http.encodign", "gzip", "nearest is http.encoding"},
		{"http.timeout", "9", ""},
		{"http.host_header", "sentry.example", ""},
		{"http.global_metrics", "true", ""},
		{"http.global_metrics", `"true"`, "string"},
		{"http.auth_interval", "null", ""},
		{"spool.envelopes.path", "/tmp/relaybench-no-such-spool.db", ""},
		{"spool.envelopes.partitions", "2", ""},
		{"spool.envelopes.max_backpressure_memory_percent", "0.7", ""},
		{"health.max_memory_percent", "0.9", ""},
		{"health.max_memory_percent", "1", ""},
		{"health.max_memory_bytes", "2GB", ""},
		{"cache.batch_interval", "10", ""},
		{"cache.project_refresh_interval", "310", ""},
		{"cache.envelope_buffer_size", "10", "no effect"},
		{"cache.event_buffer_size", "10", "no such key"},
		{"auth.ready", "authenticated", ""},
		{"auth.ready", "always", ""},
		{"relay.override_project_ids", "true", ""},
		{"relay.override_project_ids", "false", ""},
		{"relay.instance", "canary", ""},
		{"logging.level", "WARN", ""},
		{"metrics.default_tags.a", "b", ""},
		{"metrics.default_tags.a", `"1"`, ""},
		{"metrics.prefix", "x", ""},
		{"processing.max_secs_in_future", "61", ""},
		{"normalization.level", "full", ""},
		{"aggregator.bucket_interval", "11", ""},
		{"aggregator.bucket_intervall", "11", "nearest is aggregator.bucket_interval"},
		{"routing.accept_unknown_items", "false", ""},
		{"standin.drop", "1", "no such key"},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			r, err := relay.Start(t.Context(), p, relay.Setup{Upstream: "127.0.0.1:1", Dir: t.TempDir(), Set: []relay.Setting{{Key: c.key, Value: c.value}}})
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			defer r.Stop(0)
			if c.want != "" {
				t.Errorf("it took, want %q", c.want)
			}
			hash[c.key+"="+c.value] = r.Effective().Hash
		})
	}
	if a, b := hash["limits.max_concurrent_requests=50"], hash["http.encoding=gzip"]; a == b {
		t.Errorf("two configs have the same hash %s", a)
	}
	// Note: auth.ready=authenticated is none: a config with a section auth has another auth.signature_max_age (26.4.0).
	if a, b := hash["limits.max_event_size=1048576"], hash["relay.override_project_ids=false"]; a != b {
		t.Errorf("the default config has two hashes, %s and %s: another port or folder counted", a, b)
	}
}

// A config as a production Relay has it: what the run owns is overridden, what
// this Relay does not know is told.
func TestRealBase(t *testing.T) {
	up := startUpstream(t)
	r := start(t, real(t), relay.Setup{Upstream: up.Addr(), Base: `
relay:
  mode: managed
  upstream: https://sentry.example/
  host: 0.0.0.0
  port: 3000
  tls_port: 3443
logging: {level: warn, format: pretty}
processing:
  enabled: true
  kafka_config:
    - {name: bootstrap.servers, value: "kafka:9092"}
  redis: redis://redis:6379
outcomes: {emit_outcomes: as_client_reports, emit_client_outcomes: true}
http: {encoding: gzip}
`})
	wait(t, "ready", func() bool { return r.Ready(t.Context()) == nil })
	e := r.Effective()
	if len(e.Ignored) != 1 || e.Ignored[0] != "outcomes.emit_client_outcomes" {
		t.Errorf("ignored: got %q, want outcomes.emit_client_outcomes", e.Ignored)
	}
	if !strings.Contains(e.YAML, "encoding: gzip") {
		t.Error("http.encoding of the base did not take")
	}
	if got := r.Stop(20 * time.Second); got.Killed {
		t.Errorf("got %+v, want a graceful end", got)
	}
}

// Behind a wrapper it is Relay that is measured and that gets the SIGTERM.
func TestRealWrapper(t *testing.T) {
	needProc(t)
	p, up := real(t), startUpstream(t)
	wrapper := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, wrapper, "#!/bin/sh\n'"+p.Path+"' \"$@\" & wait $!\n")
	r := start(t, find(t, wrapper), relay.Setup{Upstream: up.Addr()})
	wait(t, "ready", func() bool { return r.Ready(t.Context()) == nil })
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.PID()))
	if err != nil || exe != p.Path {
		t.Errorf("process %d is %s (%v), want %s", r.PID(), exe, err, p.Path)
	}
	if got := r.Stop(20 * time.Second); got.Killed || got.Status != "" {
		t.Errorf("got %+v, want a graceful end", got)
	}
	if !gone(r.PID()) {
		t.Error("Relay is left")
	}
}

// The Relay of RELAY_BIN in a container, where an engine answers, of an image that is made here of it.
func TestRealContainer(t *testing.T) {
	p := real(t)
	for _, cli := range []string{"docker", "podman"} {
		t.Run(cli, func(t *testing.T) {
			name := realImage(t, p.Path, cli)
			only := t.TempDir() // the other CLI is not there
			path, err := exec.LookPath(cli)
			if err != nil {
				t.Fatal(err)
			}
			writeExecutable(t, filepath.Join(only, cli), "#!/bin/sh\nPATH='"+os.Getenv("PATH")+"' exec '"+path+"' \"$@\"\n")
			t.Setenv("PATH", only)
			image := find(t, relay.ImageRef(name))
			t.Logf("%v", image)
			if image.Version != p.Version || image.Engine != cli || len(image.SHA256) != 64 {
				t.Errorf("got %+v, want version %s of %s", image, p.Version, cli)
			}
			up, dir := startUpstream(t), t.TempDir()
			r := start(t, image, relay.Setup{Upstream: up.Addr(), Dir: dir, Set: []relay.Setting{{Key: "limits.max_thread_count", Value: "1"}}})
			wait(t, "ready", func() bool { return r.Ready(t.Context()) == nil })
			if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", r.PID())); err != nil || string(comm) != "relay\n" {
				t.Errorf("process %d is %q (%v), want relay", r.PID(), comm, err)
			}
			got := r.Stop(20 * time.Second)
			if t.Logf("stopped: %+v", got); got.Status != "" || got.Killed {
				t.Errorf("got %+v, want a graceful end", got)
			}
			if tail := r.Tail(100); !strings.Contains(strings.Join(tail, "\n"), "shutdown complete") {
				t.Errorf("its log: %q", tail)
			}
			said, err := exec.Command(path, "ps", "--all", "--quiet", "--filter", "label=relaybench", "--filter", "ancestor="+name).Output()
			if left, _ := os.ReadDir(dir); err != nil || len(said) > 0 || len(left) > 0 {
				t.Errorf("left: %s, %v, %v", said, left, err)
			}
		})
	}
}

// realImage makes an image of a binary and the libraries that it needs.
func realImage(t *testing.T, binary, cli string) string {
	t.Helper()
	if said, err := exec.Command("timeout", "20", cli, "info").CombinedOutput(); err != nil || strings.Contains(string(said), "Cannot connect") {
		t.Skipf("NOT TESTED with %s: it does not answer", cli)
	}
	name := fmt.Sprintf("relaybench-test-%d", os.Getpid())
	// Links are followed, and ldd prints each library's path.
	make := exec.Command("sh", "-c", `ldd "$1" | grep -o '/[^ ]*' | tar -c -h -P --transform "s|^$1\$|bin/relay|" -T - "$1" |
		"$2" import --change 'ENTRYPOINT ["/bin/relay"]' --change 'USER 10001' - "$3"`, "sh", binary, cli, name)
	if said, err := make.CombinedOutput(); err != nil {
		t.Fatalf("import: %v\n%s", err, said)
	}
	t.Cleanup(func() {
		if said, err := exec.Command(cli, "rmi", "--force", name).CombinedOutput(); err != nil {
			t.Errorf("rmi: %v: %s", err, said)
		}
	})
	if said, err := exec.Command(cli, "run", "--rm", name, "--version").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED with %s: it runs no container: %s", cli, said)
	}
	return name
}
