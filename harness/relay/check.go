package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
)

// Effective is the config that a relay really runs with.
type Effective struct {
	YAML string `json:"yaml"` // as `config show` prints it
	Hash string `json:"hash"` // sha256 of it without the keys that the run owns (ports, folders, addresses)
	// Ignored are keys of the plan's config that this relay does not know. It
	// says nothing about them itself.
	Ignored []string `json:"ignored,omitempty"`
}

// dead are keys that Relay reads and shows, and that change nothing (26.4.0:
// relay-config/src/config.rs reads neither).
var dead = map[string]string{
	"cache.envelope_buffer_size": "it has had no effect since Relay buffers by memory: see health.max_memory_percent and spool.envelopes",
	"cache.envelope_expiry":      "it has had no effect since Relay 22.8",
}

// unshown are keys that `config show` leaves out while they have their default.
var unshown = map[string]any{
	"relay.override_project_ids": false,
	"auth.ready":                 "authenticated",
}

// showLimit bounds `config show`: it takes 20 ms.
const showLimit = 10 * time.Second

// show asks a program for the config that it has read: with as many threads as it has CPUs.
func (p *Process) show(ctx context.Context, program Program) (said string, err error) {
	if p.container != nil {
		said, err = p.container.ask(ctx, "config", "show")
	} else {
		said, err = question{path: program.Path, args: []string{"-c", p.dir, "config", "show"}, env: program.environ(), dir: p.dir, limit: showLimit, cpus: p.cpus}.ask(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("relay config show: %w", err)
	}
	return said, nil
}

// checkShown compares what `config show` printed with what was to be set. Relay
// ignores keys that it does not know in silence, so a setting that is not
// shown did not take. Those of own are the run's, as the keys of owned are.
func checkShown(text string, set []setting, base tree, own ...setting) (Effective, error) {
	shown, err := parseTree(text)
	if err != nil {
		return Effective{}, fmt.Errorf("relay config show: %w", err)
	}
	for _, s := range slices.Concat(set, own) {
		if err := s.took(shown); err != nil {
			return Effective{}, err
		}
	}
	e := Effective{YAML: text}
	base.paths("", func(path string) {
		if _, ok := shown.get(path); ok || Owned(path) != "" {
			return
		}
		if _, ok := unshown[path]; !ok {
			e.Ignored = append(e.Ignored, path)
		}
	})
	sort.Strings(e.Ignored)
	for _, o := range owned {
		shown.remove(o.key)
	}
	for _, s := range own {
		shown.remove(s.key)
	}
	canonical, err := json.Marshal(printable(map[string]any(shown)))
	if err != nil {
		return Effective{}, fmt.Errorf("relay config show: %w", err)
	}
	sum := sha256.Sum256(canonical)
	e.Hash = hex.EncodeToString(sum[:])
	return e, nil
}

// took is nil when a setting stands in the config that is shown.
func (s setting) took(shown tree) error {
	if why, ok := dead[s.key]; ok {
		return fmt.Errorf("set %q: %s", s.key, why)
	}
	v, ok := shown.get(s.key)
	if !ok {
		if hidden, habit := unshown[s.key]; habit {
			if _, section := shown.get(s.key[:strings.LastIndexByte(s.key, '.')]); section && same(hidden, s.value) {
				return nil
			}
		}
		if near := nearest(s.key, shown); near != "" {
			return fmt.Errorf("set %q: this relay knows no such key: nearest is %s", s.key, near)
		}
		return fmt.Errorf("set %q: this relay knows no such key", s.key)
	}
	if _, section := child(v); section {
		return fmt.Errorf("set %q: a section, no key", s.key)
	}
	if strings.Contains(s.text, "${") || same(v, s.value) {
		return nil
	}
	return fmt.Errorf("set %q to %q: this relay has %v there", s.key, s.text, display(v))
}

func display(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// same compares two YAML scalars by type and value, as Relay rewrites them:
// a size may come back in another unit (1500000 as "1500kB"), a number as
// another kind of number (of 32 bits), a word in another case.
func same(a, b any) bool {
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return x == y || float32(x) == float32(y)
		}
	}
	if x, ok := size(a); ok {
		if y, ok := size(b); ok {
			return x == y
		}
	}
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return ok && strings.EqualFold(x, y)
	}
	switch a.(type) {
	case nil, bool:
		return a == b
	}
	return false
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case uint64:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n)
	}
	return 0, false
}

// units are those of sizes. Source: the crate human-size, as relay-config/src/byte_size.rs tests it.
var units = map[string]float64{
	"": 1, "B": 1,
	"kB": 1000, "MB": 1000 * 1000, "GB": 1000 * 1000 * 1000,
	"KB": 1024, "KiB": 1024, "MiB": 1024 * 1024, "GiB": 1024 * 1024 * 1024,
}

// size is a number of bytes: a whole number, or a text such as "1500kB".
func size(v any) (float64, bool) {
	text, ok := v.(string)
	if !ok {
		n, ok := v.(uint64)
		return float64(n), ok
	}
	digits := strings.TrimRight(text, "BKMGikmg ")
	unit, ok := units[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	return n * unit, ok && err == nil && n >= 0
}

// nearest is the key of a config that was probably meant, "" where none is near.
func nearest(key string, shown tree) string {
	known := make([]string, 0, 256)
	shown.paths("", func(path string) { known = append(known, path) })
	for path := range unshown {
		known = append(known, path)
	}
	sort.Strings(known)
	last := key[strings.LastIndexByte(key, '.')+1:]
	best, least := "", 1+len(key)/3
	for _, path := range known {
		if Owned(path) != "" || dead[path] != "" {
			continue
		}
		if strings.HasSuffix(path, "."+last) {
			return path
		}
		if d := levenshtein.ComputeDistance(key, path); d < least {
			best, least = path, d
		}
	}
	return best
}

// printable is a tree that encoding/json takes: numbers that JSON has not become texts.
func printable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			v[key] = printable(below)
		}
	case []any:
		for i, below := range v {
			v[i] = printable(below)
		}
	case nil, bool, string, uint64, int64:
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	default:
		return fmt.Sprint(v)
	}
	return v
}
