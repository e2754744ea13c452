package relay

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"relaybench/harness/variable"
)

// Setup is what a relay is started with.
type Setup struct {
	Upstream string    // host:port that it forwards to
	Base     string    // YAML text of the config that the plan names; "" is "default"
	Set      []Setting // -E key=value, in order; of one key set twice the last counts
	Statsd   string    // host:port that it sends its own metrics to; "" is nowhere
	Dir      string    // folder in which its own empty folder is made; "" is the system's

	CPUs   variable.CPUs // that it runs on, from its start; none: as relaybench may by itself
	Memory uint64        // bytes that it may have; 0: no limit. See [Process.MemoryLimit]

	noGroup error // for tests: why there is to be no cgroup
}

// Setting is one config key of the relay with its value, a YAML scalar's text.
//
// Note: Relay itself replaces ${NAME} and ${file:PATH} in values by a variable
// of its environment and by a file's content. They pass through here: whoever
// may set a config may read what this user may read.
type Setting struct{ Key, Value string }

// owned are the keys that a run owns, with those below them, and why. What the
// plan's config says about them is overridden; -E may not name them.
var owned = []struct {
	key   string
	value any // what the run sets; nil: the key is taken out
	why   string
}{
	{"relay.mode", "managed", "a run speaks the managed mode's protocol"},
	{"relay.upstream", nil, "the run starts an upstream of its own"},
	{"relay.host", nil, "the run chooses the address"},
	{"relay.port", nil, "the run chooses a free port"},
	{"relay.internal_host", nil, "the run asks for health where it sends"},
	{"relay.internal_port", nil, "the run asks for health where it sends"},
	{"relay.tls_port", nil, "relay refuses to start with TLS"},
	{"relay.tls_identity_path", nil, "relay refuses to start with TLS"},
	{"relay.tls_identity_password", nil, "relay refuses to start with TLS"},
	{"logging.format", "json", "the run reads the log"},
	{"limits.shutdown_timeout", 1, "the run stops a relay that has drained, and a longer one waits for nothing"},
	{"outcomes.emit_outcomes", true, "the ledger needs every outcome"},
	// Note: bucket_interval 0 makes Relay divide by zero at its first outcome (26.4.0).
	{"outcomes.aggregator", map[string]any{"bucket_interval": 1, "flush_interval": 1}, "the ledger needs outcomes before the drain ends"},
	{"outcomes.batch_interval", 100, "the ledger needs outcomes before the drain ends"},
	{"metrics.statsd", nil, "statsd is the run's: --statsd on receives it, --statsd HOST:PORT sends it to a server of yours"},
	{"sentry", map[string]any{"enabled": false}, "a relay under load must not report to Sentry"},
	{"processing.enabled", nil, "processing mode needs Kafka and Redis, which a run has not"},
}

// defaults are the keys that a run sets unless the plan's config or -E say otherwise.
var defaults = []struct {
	key   string
	value any
}{
	{"logging.level", "info"},
	{"health.refresh_interval_ms", 100}, // Relay's 3 s would be waited for at each start
	{"http.auth_interval", 86400},       // no new registration in the middle of a run
}

// Owned says why a config key may not be set with -E: the run owns it. "" for any other key.
func Owned(key string) string {
	for _, o := range owned {
		if key == o.key || strings.HasPrefix(key, o.key+".") {
			return o.why
		}
	}
	return ""
}

// tree is a parsed YAML mapping.
type tree map[string]any

func parseTree(text string) (tree, error) {
	var t tree
	if err := parseYAML(text, &t); err != nil {
		return nil, err
	}
	if t == nil {
		t = tree{}
	}
	return t, nil
}

// parseYAML is yaml.Unmarshal without its pretty, many-lined errors.
func parseYAML(text string, to any) (err error) {
	defer func() {
		// Note: the library panics on some malformed documents.
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML: %v", r)
		}
	}()
	if err := yaml.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("not YAML: %s", firstLines(yaml.FormatError(err, false, false), 1))
	}
	return nil
}

// child is the mapping under a key, whatever map type the library chose for it.
func child(v any) (tree, bool) {
	switch m := v.(type) {
	case tree:
		return m, true
	case map[string]any:
		return m, true
	}
	return nil, false
}

// get is the value at a dotted path.
func (t tree) get(path string) (any, bool) {
	key, rest, deeper := strings.Cut(path, ".")
	v, ok := t[key]
	if !deeper || !ok {
		return v, ok
	}
	below, ok := child(v)
	if !ok {
		return nil, false
	}
	return below.get(rest)
}

// set puts a value at a dotted path; what stands in its way and is no mapping is replaced.
func (t tree) set(path string, value any) {
	key, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		t[key] = value
		return
	}
	below, ok := child(t[key])
	if !ok {
		below = tree{}
		t[key] = below
	}
	below.set(rest, value)
}

// remove takes out what is at a dotted path.
func (t tree) remove(path string) {
	key, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		delete(t, key)
	} else if below, ok := child(t[key]); ok {
		below.remove(rest)
	}
}

// paths calls yield for each leaf with its dotted path. An empty mapping is a leaf.
func (t tree) paths(prefix string, yield func(path string)) {
	for key, v := range t {
		if below, ok := child(v); ok && len(below) > 0 {
			below.paths(prefix+key+".", yield)
		} else {
			yield(prefix + key)
		}
	}
}

// setting is a Setting that was parsed: what Relay is to show.
type setting struct {
	key   string
	text  string
	value any
}

// parseSettings checks what can be known without Relay; the last of each key stays.
func parseSettings(set []Setting) ([]setting, error) {
	var parsed []setting
	for _, s := range set {
		if why := Owned(s.Key); why != "" {
			return nil, fmt.Errorf("set %q: %s", s.Key, why)
		}
		if parts := strings.Split(s.Key, "."); len(parts) < 2 || strings.Contains("."+s.Key+".", "..") {
			return nil, fmt.Errorf("set %q: no config key: give SECTION.KEY, such as limits.max_concurrent_requests", s.Key)
		}
		v, err := parseScalar(s.Value)
		if err != nil {
			return nil, fmt.Errorf("set %q to %q: %w", s.Key, s.Value, err)
		}
		for i := range parsed {
			if parsed[i].key == s.Key {
				parsed = append(parsed[:i], parsed[i+1:]...)
				break
			}
		}
		parsed = append(parsed, setting{s.Key, s.Value, v})
	}
	return parsed, nil
}

// parseScalar reads the text of a YAML scalar: nil, bool, string, uint64, int64 or float64.
func parseScalar(text string) (any, error) {
	var v any
	if err := parseYAML(text, &v); err != nil {
		return nil, err
	}
	switch v.(type) {
	case nil, bool, string, uint64, int64, float64:
		return v, nil
	}
	return nil, errors.New("a YAML scalar is expected, no list and no mapping")
}

// makeConfig is the config that a run gives to its relay: the run's defaults, under
// base, under the settings, under what the run owns.
func makeConfig(base tree, set []setting, upstream string, addr netip.AddrPort) tree {
	config := tree{}
	for _, d := range defaults {
		if _, said := base.get(d.key); !said {
			config.set(d.key, d.value)
		}
	}
	config.merge(base)
	for _, s := range set {
		config.set(s.key, s.value)
	}
	for _, o := range owned {
		if o.value == nil {
			config.remove(o.key)
		} else {
			config.set(o.key, o.value)
		}
	}
	// Note: a section processing without these two is an error to Relay, even
	// where it says nothing of Kafka; without the section, processing is off.
	if processing, ok := child(config["processing"]); ok {
		processing["enabled"] = false
		if _, said := processing["kafka_config"]; !said {
			processing["kafka_config"] = []any{}
		}
	}
	config.set("relay.upstream", "http://"+upstream+"/")
	config.set("relay.host", addr.Addr().String())
	config.set("relay.port", int(addr.Port()))
	return config
}

// merge copies all of o over t.
func (t tree) merge(o tree) {
	for key, v := range o {
		from, ok := child(v)
		if !ok {
			t[key] = v
			continue
		}
		to, ok := child(t[key])
		if !ok {
			to = tree{}
			t[key] = to
		}
		to.merge(from)
	}
}

// credentials are a relay's identity, as credentials.json holds them: keys are
// base64url without padding, the secret one is the seed of 32 bytes.
// Source: relay-config/src/config.rs, Credentials; relay-auth/src/lib.rs, SecretKey.
type credentials struct {
	SecretKey string `json:"secret_key"`
	PublicKey string `json:"public_key"`
	ID        string `json:"id"`
}

func newCredentials() (credentials, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return credentials{}, fmt.Errorf("make credentials: %w", err)
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return credentials{}, fmt.Errorf("make credentials: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return credentials{
		SecretKey: base64.RawURLEncoding.EncodeToString(private.Seed()),
		PublicKey: base64.RawURLEncoding.EncodeToString(public),
		ID:        fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
	}, nil
}

// writeConfig writes config.yml and fresh credentials into a folder.
//
// Note: the YAML is of JSON's style, each string quoted, so that nothing in it
// is read as another type by another YAML version.
func writeConfig(dir string, config tree) error {
	text, err := yaml.MarshalWithOptions(map[string]any(config), yaml.JSON())
	if err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), text, 0o600); err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	made, err := newCredentials()
	if err != nil {
		return err
	}
	text, err = json.Marshal(made)
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "credentials.json"), text, 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}
