package standin

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"relaybench/envelope"
)

// config is what the stand-in runs with.
type config struct {
	upstream string // host:port
	host     string
	port     int

	level       string
	timeout     time.Duration // of an upstream request
	retryDelay  time.Duration
	encoding    *envelope.Encoding
	batch       time.Duration // project keys are collected this long before they are asked for
	global      time.Duration // between two queries for the global config
	requests    int           // upstream requests open at once
	threads     int
	shutdown    time.Duration
	maxEnvelope int // bytes, decoded
	emit        bool
	outcomes    time.Duration // between two outcome requests
	statsd      string        // host:port that its metrics are sent to; "" is nowhere

	behaviour
}

// behaviour is what the keys standin.* set. "Every N" is told by the number in
// the stamp: it strikes the sends N-1, 2N-1, 3N-1, …, so that whoever sends
// knows which. Warm-up sends are spared by all but slowStart and hold.
type behaviour struct {
	cpu          time.Duration
	capacity     float64
	drop         uint64
	repeat       uint64
	delay        time.Duration
	answerDelay  time.Duration
	refuse       int
	refuseEvery  uint64
	outcomeEvery uint64
	crashAfter   uint64
	leak         int
	slowStart    time.Duration
	hold         bool
}

// key is one config key: `config show` prints it, and -E may set it because it does.
type key struct {
	name string
	def  any // as config show prints it
	help string
	set  func(*config, any) error // from a YAML scalar
}

// keys are all that the stand-in knows, Relay's own first. What Relay knows and
// the stand-in would ignore is left out on purpose.
var keys = []key{
	text("relay.mode", "managed", "the only mode", func(c *config, v string) error {
		if v != "managed" {
			return fmt.Errorf("mode %q: only managed", v)
		}
		return nil
	}),
	text("relay.upstream", "http://127.0.0.1:9000/", "where it sends", func(c *config, v string) error {
		u, err := url.Parse(v)
		if err != nil || u.Scheme != "http" || u.Port() == "" {
			return fmt.Errorf("upstream %q: expected http://HOST:PORT/", v)
		}
		c.upstream = u.Host
		return nil
	}),
	text("relay.host", "127.0.0.1", "where it listens", func(c *config, v string) error { c.host = v; return nil }),
	whole("relay.port", 3000, 1, 65535, "where it listens", func(c *config, n uint64) { c.port = int(n) }),
	text("logging.level", "info", "error, warn, info, debug or off", func(c *config, v string) error {
		if _, ok := levels[strings.ToUpper(v)]; !ok {
			return fmt.Errorf("level %q: expected error, warn, info, debug or off", v)
		}
		c.level = strings.ToUpper(v)
		return nil
	}),
	seconds("http.timeout", 5, "of an upstream request, s", func(c *config) *time.Duration { return &c.timeout }),
	seconds("http.retry_delay", 1, "until an upstream request that failed is made again, s", func(c *config) *time.Duration { return &c.retryDelay }),
	text("http.encoding", "zstd", "of what it forwards", func(c *config, v string) error {
		if c.encoding = envelope.FindEncoding(v); c.encoding == nil || v == "" {
			return fmt.Errorf("encoding %q: expected identity, deflate, gzip, br or zstd", v)
		}
		return nil
	}),
	millis("cache.batch_interval", 100, "project keys are collected this long before they are asked for, ms", func(c *config) *time.Duration { return &c.batch }),
	seconds("cache.global_config_fetch_interval", 10, "between two queries for the global config, s", func(c *config) *time.Duration { return &c.global }),
	whole("limits.max_concurrent_requests", 100, 1, 1e5, "upstream requests open at once", func(c *config, n uint64) { c.requests = int(n) }),
	whole("limits.max_thread_count", uint64(runtime.NumCPU()), 1, 1e4, "threads that process envelopes", func(c *config, n uint64) { c.threads = int(n) }),
	whole("limits.max_envelope_size", 200<<20, 1, 1<<30, "bytes, decoded; larger ones are answered 413", func(c *config, n uint64) { c.maxEnvelope = int(n) }),
	seconds("limits.shutdown_timeout", 10, "for what is inside after SIGTERM, s", func(c *config) *time.Duration { return &c.shutdown }),
	flag("outcomes.emit_outcomes", true, "whether outcomes are reported", func(c *config, v bool) { c.emit = v }),
	millis("outcomes.batch_interval", 500, "between two reports of outcomes, ms", func(c *config) *time.Duration { return &c.outcomes }),
	text("metrics.statsd", "", "where its few metrics are sent to; empty: nowhere", func(c *config, v string) error { c.statsd = v; return nil }),

	span("standin.cpu", "CPU time spent on each envelope", func(c *config) *time.Duration { return &c.cpu }),
	{"standin.capacity", uint64(0), "envelopes processed a second at most; 0: no limit", func(c *config, v any) error {
		n, ok := number(v)
		if !ok || n < 0 || n > 1e9 {
			return fmt.Errorf("%v: expected a number from 0", v)
		}
		c.capacity = n
		return nil
	}},
	whole("standin.drop", 0, 0, math.MaxInt64, "every Nth is answered 200 and vanishes; 0: none", func(c *config, n uint64) { c.drop = n }),
	whole("standin.repeat", 0, 0, math.MaxInt64, "every Nth is forwarded twice; 0: none", func(c *config, n uint64) { c.repeat = n }),
	span("standin.delay", "from the processing of each envelope until it is forwarded", func(c *config) *time.Duration { return &c.delay }),
	span("standin.answer_delay", "before each answer; the envelope is taken at once", func(c *config) *time.Duration { return &c.answerDelay }),
	{"standin.refuse", uint64(0), "status, 400 to 599, that every Nth (standin.refuse_every) is refused with; 0: none", func(c *config, v any) error {
		n, ok := v.(uint64)
		if !ok || n != 0 && (n < 400 || n > 599) {
			return fmt.Errorf("%v: expected a status from 400 to 599, or 0", v)
		}
		c.refuse = int(n)
		return nil
	}},
	whole("standin.refuse_every", 1, 1, math.MaxInt64, "which ones standin.refuse strikes; 1: all", func(c *config, n uint64) { c.refuseEvery = n }),
	whole("standin.outcome_every", 0, 0, math.MaxInt64, "every Nth is filtered, with an outcome of reason stand-in; 0: none", func(c *config, n uint64) { c.outcomeEvery = n }),
	whole("standin.crash_after", 0, 0, math.MaxInt64, "it exits with status 101 instead of answering the Nth send; 0: never", func(c *config, n uint64) { c.crashAfter = n }),
	whole("standin.leak", 0, 0, 1<<30, "bytes of memory kept for ever for each envelope", func(c *config, n uint64) { c.leak = int(n) }),
	span("standin.slow_start", "from its start until it registers upstream, and so is ready", func(c *config) *time.Duration { return &c.slowStart }),
	flag("standin.hold", false, "takes envelopes and forwards none", func(c *config, v bool) { c.hold = v }),
}

func text(name, def, help string, set func(*config, string) error) key {
	return key{name, def, help, func(c *config, v any) error {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%v: expected a text", v)
		}
		return set(c, s)
	}}
}

func whole(name string, def, least, most uint64, help string, set func(*config, uint64)) key {
	return key{name, def, help, func(c *config, v any) error {
		n, ok := v.(uint64)
		if !ok || n < least || n > most {
			return fmt.Errorf("%v: expected a whole number from %d to %d", v, least, most)
		}
		set(c, n)
		return nil
	}}
}

func seconds(name string, def uint64, help string, at func(*config) *time.Duration) key {
	return whole(name, def, 0, 1e9, help, func(c *config, n uint64) { *at(c) = time.Duration(n) * time.Second })
}

func millis(name string, def uint64, help string, at func(*config) *time.Duration) key {
	return whole(name, def, 0, 1e9, help, func(c *config, n uint64) { *at(c) = time.Duration(n) * time.Millisecond })
}

func flag(name string, def bool, help string, set func(*config, bool)) key {
	return key{name, def, help, func(c *config, v any) error {
		b, ok := v.(bool)
		if !ok {
			return fmt.Errorf("%v: expected true or false", v)
		}
		set(c, b)
		return nil
	}}
}

// span is a key of a duration as Go writes it ("5ms"), or 0.
func span(name, help string, at func(*config) *time.Duration) key {
	return key{name, "0s", help, func(c *config, v any) error {
		if n, ok := v.(uint64); ok && n == 0 {
			v = "0s"
		}
		s, _ := v.(string)
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return fmt.Errorf("%v: expected a duration such as 5ms", v)
		}
		*at(c) = d
		return nil
	}}
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case uint64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n)
	}
	return 0, false
}

// load reads a folder's config.yml. Keys that are not in the table are ignored
// in silence, as Relay does. given is the table's keys with their values.
func load(dir string) (c config, given map[string]any, err error) {
	path := filepath.Join(dir, "config.yml")
	bytes, err := os.ReadFile(path)
	if err != nil {
		return c, nil, fmt.Errorf("could not open config file: %w", err)
	}
	var read map[string]any
	if err := yaml.Unmarshal(bytes, &read); err != nil {
		return c, nil, fmt.Errorf("could not parse yaml config file (file %s): %w", path, err)
	}
	given = map[string]any{}
	for _, k := range keys {
		section, name, _ := strings.Cut(k.name, ".")
		v := k.def
		if below, ok := read[section].(map[string]any); ok {
			if said, ok := below[name]; ok {
				v = said
			}
		}
		if err := k.set(&c, v); err != nil {
			return c, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		given[k.name] = v
	}
	return c, given, nil
}

// show prints the effective config as YAML, each value as it was given.
func show(w io.Writer, given map[string]any) error {
	sections := yaml.MapSlice{}
	for _, k := range keys {
		section, name, _ := strings.Cut(k.name, ".")
		item := yaml.MapItem{Key: name, Value: given[k.name]}
		if n := len(sections); n > 0 && sections[n-1].Key == section {
			sections[n-1].Value = append(sections[n-1].Value.(yaml.MapSlice), item)
		} else {
			sections = append(sections, yaml.MapItem{Key: section, Value: yaml.MapSlice{item}})
		}
	}
	text, err := yaml.Marshal(sections)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// identity is a relay's credentials.
type identity struct {
	id     string
	public string // base64url without padding
	secret ed25519.PrivateKey
}

func loadIdentity(dir string) (identity, error) {
	var file struct {
		SecretKey string `json:"secret_key"`
		PublicKey string `json:"public_key"`
		ID        string `json:"id"`
	}
	bytes, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	if err != nil {
		return identity{}, fmt.Errorf("relay has no credentials: %w", err)
	}
	if err := json.Unmarshal(bytes, &file); err != nil {
		return identity{}, fmt.Errorf("credentials: %w", err)
	}
	seed, err := base64.RawURLEncoding.DecodeString(file.SecretKey)
	if err != nil || len(seed) != ed25519.SeedSize {
		return identity{}, fmt.Errorf("credentials: the secret key is not a seed of %d bytes in base64url", ed25519.SeedSize)
	}
	return identity{id: file.ID, public: file.PublicKey, secret: ed25519.NewKeyFromSeed(seed)}, nil
}
