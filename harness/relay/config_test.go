package relay

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shownConfig is what Relay 26.4.0 printed.
func shownConfig(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/config-show.yml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sub is the recorded config with one line replaced.
func sub(t testing.TB, from, to string) string {
	t.Helper()
	text := shownConfig(t)
	if strings.Count(text, from) != 1 {
		t.Fatalf("%q stands %d times in the recorded config", from, strings.Count(text, from))
	}
	return strings.Replace(text, from, to, 1)
}

func TestSettingsThatTook(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		shown            string
		want             string // part of the error, "" for none
	}{
		{"as shown", "limits.max_concurrent_requests", "100", "", ""},
		{"not taken", "limits.max_concurrent_requests", "50", "", `set "limits.max_concurrent_requests" to "50": this relay has 100 there`},
		{"size in bytes", "limits.max_event_size", "1048576", "", ""},
		{"size rewritten", "limits.max_event_size", "1500000", sub(t, "max_event_size: 1MiB", "max_event_size: 1500kB"), ""},
		{"size in another unit", "limits.max_container_size", "12288KiB", "", ""},
		{"size in a unit with a capital", "limits.max_client_reports_size", "4KB", "", ""},
		{"size of another size", "limits.max_event_size", "1MB", "", `this relay has "1MiB" there`},
		{"float", "health.max_memory_percent", "0.95", "", ""},
		{"float of 32 bits", "health.max_memory_percent", "0.9", sub(t, "max_memory_percent: 0.95", "max_memory_percent: 0.900000001"), ""},
		{"whole float", "logging.traces_sample_rate", "0", "", ""},
		{"word", "http.encoding", "zstd", "", ""},
		{"word in another case", "logging.level", "INFO", "", ""},
		{"quoted word", "http.encoding", `"zstd"`, "", ""},
		{"a text is no bool", "http.forward", `"true"`, "", `to "\"true\"": this relay has true there`},
		{"a bool is no text", "http.encoding", "true", "", `this relay has "zstd" there`},
		{"null", "cache.project_refresh_interval", "null", "", ""},
		{"nothing is null", "cache.project_refresh_interval", "", "", ""},
		{"null that is not", "http.timeout", "~", "", "this relay has 5 there"},
		{"deep", "spool.envelopes.partitions", "1", "", ""},
		{"of an empty map", "metrics.default_tags.a", "b", sub(t, "prefix: sentry.relay\n  default_tags: {}", "prefix: sentry.relay\n  default_tags:\n    a: b"), ""},
		{"variable", "metrics.prefix", "${HOME}", "", ""},
		{"misspelt", "http.encodign", "gzip", "", `set "http.encodign": this relay knows no such key: nearest is http.encoding`},
		{"wrong section", "http.max_concurrent_requests", "1", "", "nearest is limits.max_concurrent_requests"},
		{"far from all", "zzz.qqq", "1", "", "this relay knows no such key"},
		{"section", "spool.envelopes", "1", "", `set "spool.envelopes": a section, no key`},
		{"below a value", "http.timeout.ms", "1", "", "knows no such key: nearest is http.timeout"},
		{"dead", "cache.envelope_buffer_size", "1000", "", `set "cache.envelope_buffer_size": it has had no effect`},
		{"left out by habit", "auth.ready", "authenticated", "", ""},
		{"left out by habit too", "relay.override_project_ids", "false", "", ""},
		{"left out, not the default", "relay.override_project_ids", "true", "", "knows no such key"},
		{"shown, not the default", "relay.override_project_ids", "true", sub(t, "  port: 3000", "  port: 3000\n  override_project_ids: true"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := parseSettings([]Setting{{c.key, c.value}})
			if err != nil {
				t.Fatal(err)
			}
			shown := c.shown
			if shown == "" {
				shown = shownConfig(t)
			}
			_, err = checkShown(shown, set, tree{})
			if got := errText(err); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"relay.port", "1", `set "relay.port": the run chooses a free port`},
		{"relay.tls_port", "1", "TLS"},
		{"outcomes.emit_outcomes", "false", "the ledger needs every outcome"},
		{"outcomes.aggregator.bucket_interval", "0", "the ledger needs outcomes"},
		{"sentry.enabled", "true", "must not report to Sentry"},
		{"processing.enabled", "true", "Kafka"},
		{"logging.format", "pretty", "reads the log"},
		{"limits.shutdown_timeout", "10", "drained"},
		{"metrics.statsd", "127.0.0.1:8125", "statsd"},
		{"encoding", "gzip", "give SECTION.KEY"},
		{"", "gzip", "give SECTION.KEY"},
		{".encoding", "gzip", "give SECTION.KEY"},
		{"http.", "gzip", "give SECTION.KEY"},
		{"http..encoding", "gzip", "give SECTION.KEY"},
		{"http.encoding", "[gzip]", "a YAML scalar is expected"},
		{"http.encoding", "a: b", "a YAML scalar is expected"},
		{"http.encoding", "- gzip", "a YAML scalar is expected"},
		{"http.encoding", `"gzip`, "not YAML"},
		{"http.encoding", "*a", "not YAML"},
	} {
		_, err := parseSettings([]Setting{{c.key, c.value}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.want)
		}
	}
	for _, key := range []string{"relay.instance", "relay.portal", "limits.max_event_size", "outcomes.batch_size", "metrics.statsd_buffer_size", "processing.max_secs_in_future"} {
		if got := Owned(key); got != "" {
			t.Errorf("Owned(%q): got %q, want none", key, got)
		}
	}
}

func TestLastSettingCounts(t *testing.T) {
	got, err := parseSettings([]Setting{{"http.timeout", "1"}, {"http.encoding", "gzip"}, {"http.timeout", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []setting{{"http.encoding", "gzip", "gzip"}, {"http.timeout", "2", uint64(2)}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(setting{})); d != "" {
		t.Error(d)
	}
}

func TestMakeConfig(t *testing.T) {
	base, err := parseTree(`
relay: {mode: proxy, upstream: "https://sentry.io/", port: 9, host: 0.0.0.0, tls_port: 1, internal_port: 2, instance: canary}
logging: {level: debug, format: pretty}
outcomes: {emit_outcomes: as_client_reports, batch_size: 7, aggregator: {bucket_interval: 60}}
metrics: {statsd: "10.0.0.1:8125", prefix: x}
sentry: {enabled: true, dsn: "https://a@b/1"}
processing: {enabled: true, max_secs_in_future: 5}
http: {encoding: gzip, timeout: 9}
`)
	if err != nil {
		t.Fatal(err)
	}
	set, err := parseSettings([]Setting{{"http.encoding", "br"}, {"limits.max_event_size", "2MiB"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeConfig(dir, makeConfig(base, set, "127.0.0.1:7", netip.MustParseAddrPort("127.0.0.1:8"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.yml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseTree(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseTree(`
relay: {mode: managed, upstream: "http://127.0.0.1:7/", port: 8, host: 127.0.0.1, instance: canary}
logging: {level: debug, format: json}
outcomes: {emit_outcomes: true, batch_size: 7, batch_interval: 100, aggregator: {bucket_interval: 1, flush_interval: 1}}
metrics: {prefix: x}
sentry: {enabled: false}
processing: {enabled: false, kafka_config: [], max_secs_in_future: 5}
http: {encoding: br, timeout: 9, auth_interval: 86400}
limits: {max_event_size: 2MiB, shutdown_timeout: 1}
health: {refresh_interval_ms: 100}
`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("config (-want +got):\n%s", d)
	}
	for name, mode := range map[string]os.FileMode{"config.yml": 0o600, "credentials.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("%s: got mode %o, want %o", name, got, mode)
		}
	}
}

// What is written is what was parsed, whatever it looks like.
func TestConfigKeepsTypes(t *testing.T) {
	for _, value := range []string{"true", `"true"`, "1", `"1"`, "1.0", "1e3", "null", `"null"`, "~", `""`, "yes", "0x10", "'0x10'", "a: b"[:1], `"a\tb\n\"c\\"`, "ä", "${VAR}", "-5", "18446744073709551615"} {
		v, err := parseScalar(value)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := writeConfig(dir, tree{"a": tree{"b": v}}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "config.yml"))
		if err != nil {
			t.Fatal(err)
		}
		read, err := parseTree(string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, _ := read.get("a.b"); got != v {
			t.Errorf("%s: got %#v, want %#v", value, got, v)
		}
	}
}

func TestCredentials(t *testing.T) {
	a, err := newCredentials()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newCredentials()
	if err != nil {
		t.Fatal(err)
	}
	if a.ID == b.ID || a.SecretKey == b.SecretKey {
		t.Error("two relays got the same credentials")
	}
	if len(a.SecretKey) != 43 || len(a.PublicKey) != 43 || len(a.ID) != 36 || a.ID[14] != '4' {
		t.Errorf("got %+v, want keys of 32 bytes in base64url without padding and a UUID", a)
	}
}

func TestHashIsOfWhatTheRunDoesNotOwn(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		e, err := checkShown(text, nil, tree{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Hash
	}
	whole := hash(shownConfig(t))
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"  port: 3000", "  port: 3001", true},
		{"upstream: http://127.0.0.1:7899/", "upstream: http://127.0.0.1:1/", true},
		{"statsd: 127.0.0.1:8125", "statsd: null", true},
		{"server_name: null", "server_name: box", true},
		{"encoding: zstd", "encoding: gzip", false},
		{"max_event_size: 1MiB", "max_event_size: 2MiB", false},
		{"  enabled: false\n  geoip_path: null", "  geoip_path: null\n  enabled: false", true},
	} {
		if got := hash(sub(t, c.from, c.to)) == whole; got != c.same {
			t.Errorf("%q for %q: same hash %v, want %v", c.to, c.from, got, c.same)
		}
	}
}

func TestIgnoredKeysOfTheBase(t *testing.T) {
	base, err := parseTree("http: {encodign: gzip, timeout: 5}\nrelay: {tls_port: 1, override_project_ids: false}\nnew: {}\noutcomes: {emit_client_outcomes: true}")
	if err != nil {
		t.Fatal(err)
	}
	e, err := checkShown(shownConfig(t), nil, base)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"http.encodign", "new", "outcomes.emit_client_outcomes"}, e.Ignored); d != "" {
		t.Error(d)
	}
	if e.YAML != shownConfig(t) {
		t.Error("the effective config is not what was printed")
	}
}

// Every owned key is one that Relay knows, or it protects from nothing.
func TestOwnedKeysAreKnown(t *testing.T) {
	shown, err := parseTree(shownConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range owned {
		if _, ok := shown.get(o.key); !ok && !strings.HasPrefix(o.key, "relay.tls_") {
			t.Errorf("%s: not in Relay's config", o.key)
		}
	}
	for _, d := range defaults {
		if _, ok := shown.get(d.key); !ok || Owned(d.key) != "" {
			t.Errorf("%s: not in Relay's config, or owned", d.key)
		}
	}
	for key := range dead {
		if _, ok := shown.get(key); !ok {
			t.Errorf("%s: not in Relay's config", key)
		}
	}
}

func TestScrubbed(t *testing.T) {
	got := scrubbed([]string{"PATH=/bin", "RELAY_PORT=1", "relay_port=1", "RUST_LOG=debug", "SENTRY_DSN=x", "HTTP_PROXY=x", "no_proxy=x",
		"SHUTDOWN_TIMEOUT=9", "HOSTNAME=box", "MIMALLOC_VERBOSE=1", "TOKIO_WORKER_THREADS=1", "RELAYBENCH_ROLE=keeper", "HOME=/root", "RELAYS=1"})
	if d := cmp.Diff([]string{"PATH=/bin", "HOME=/root", "RELAYS=1"}, got); d != "" {
		t.Error(d)
	}
}

// FuzzCheckShown: whatever a program prints as its config, the check ends with
// a result that can be stored, or with an error of one line.
func FuzzCheckShown(f *testing.F) {
	f.Add("relay:\n  port: 3000\nhttp:\n  encoding: zstd\n  host_header: null\n", "http.encoding", "zstd")
	f.Add("a: {b: .nan, c: [1, .inf]}", "a.b", ".nan")
	f.Add("a: &x {b: *x}", "a.b.b", "1")
	f.Add("? [a]: b", "a.b", "1")
	f.Add("- a", "a.b", "")
	f.Add("a: 1500kB", "a.a", "1500000")
	f.Add("\x00", "a.b", "\x00")
	f.Fuzz(func(t *testing.T, shown, key, value string) {
		set, err := parseSettings([]Setting{{key, value}})
		if err != nil {
			return
		}
		e, err := checkShown(shown, set, tree{})
		if err != nil {
			return
		}
		if _, err := json.Marshal(e); err != nil || len(e.Hash) != 64 {
			t.Errorf("hash %q: %v", e.Hash, err)
		}
		if v, ok := mustTree(t, shown).get(key); !ok && unshown[key] == nil {
			t.Errorf("%s=%s passed, and is not there", key, value)
		} else if _, section := child(v); section {
			t.Errorf("%s=%s passed, and is a section", key, value)
		}
	})
}

func mustTree(t *testing.T, text string) tree {
	t.Helper()
	parsed, err := parseTree(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
