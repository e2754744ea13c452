// Package plan holds what one run is to do: every knob, with its value, and
// the table of knobs from which flags, help, the stored record and filters are
// computed.
//
// It is a leaf of data. It must never know the engine that executes a plan.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/envelope"
	"relaybench/harness/variable"
)

// Plan is what one run is to do. Its fields are reached by name through the table [Knobs].
type Plan struct {
	Duration    time.Duration
	Rate        float64 // sends a second; 0: flat out, a closed loop
	Mix         string  // canonical, or the path of a folder
	Connections int     // of each sender process
	Processes   int     // sender processes; 1: relaybench itself sends
	Reconnect   int     // answered sends after which a connection is made anew; 0: never
	Burst       int     // sends that are due at once
	Projects    int
	Zipf        float64
	Pool        int
	Seed        uint64
	Frames      int
	SpansMin    int
	SpansMax    int
	Filtered    float64
	Agents      int    // user agents to draw from; 0: the built-in ones in turn; UniqueAgents
	Encoding    string // of bodies, a name of envelope.Encodings
	Timeout     time.Duration
	Drain       time.Duration
	Latency     time.Duration    // of the upstream's answers to envelopes
	Statsd      string           // StatsdOff, StatsdOn, or the host:port of a server elsewhere
	Config      string           // "default", or the file that it came from
	ConfigText  string           // YAML of the file
	Folder      *envelope.Folder // what was read of the mix, where it is a folder
	Profiled    Profile
	RelayCPUs   variable.CPUs // that the relay may run on
	HarnessCPUs variable.CPUs // that relaybench and its sender processes may run on, from before the load to after the drain
	Memory      uint64        // bytes that the relay may have; 0: no limit
	Label       string
	Settings    []Setting // -E, sorted by key, each key once
}

// Profile is how the relay is profiled during the load; the zero value: not at all.
type Profile struct {
	CallGraph string // one of CallGraphs
	Freq      int    // samples a second of CPU
}

// CallGraphs are the ways in which a profiler finds the callers of what runs.
var CallGraphs = []string{"dwarf", "fp", "lbr"}

// MaxProfileFreq bounds [Profile.Freq].
const MaxProfileFreq = 10_000

// String is the profile as a knob's value: no, or CALLGRAPH@FREQ.
func (p Profile) String() string {
	if p.CallGraph == "" {
		return notProfiled
	}
	return fmt.Sprintf("%s@%d", p.CallGraph, p.Freq)
}

// On says whether there is a profile.
func (p Profile) On() bool { return p.CallGraph != "" }

const notProfiled = "no"

func parseProfile(s string) (p Profile, err error) {
	if s == notProfiled {
		return p, nil
	}
	graph, freq, ok := strings.Cut(s, "@")
	if !ok || !slices.Contains(CallGraphs, graph) {
		return p, fmt.Errorf("%q is neither %s nor a call graph and a frequency, such as dwarf@99 (%s)", s, notProfiled, strings.Join(CallGraphs, ", "))
	}
	n, err := strconv.Atoi(freq)
	if err != nil || n < 1 || n > MaxProfileFreq {
		return p, fmt.Errorf("%q is not between 1 and %d samples a second", freq, MaxProfileFreq)
	}
	return Profile{graph, n}, nil
}

// Setting is a config key of the relay, with its value: a YAML scalar's text.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Default is the plan of a bare `test 10s`.
func Default() Plan {
	var p Plan
	for _, k := range Knobs {
		if err := k.Set(&p, k.Default); err != nil {
			panic(fmt.Sprintf("knob %s: default %q: %v", k.Name, k.Default, err)) // the table's own error
		}
	}
	return p
}

// MixSHA256 is of the files of the folder that the mix is, "" where it is none.
func (p Plan) MixSHA256() string {
	if p.Folder == nil {
		return ""
	}
	return p.Folder.SHA256
}

// Flat says that the plan's load is a closed loop: each connection sends as soon as it is answered.
func (p Plan) Flat() bool { return p.Rate == 0 }

// Shape is the shape of the plan's payloads.
func (p Plan) Shape() envelope.Shape {
	s := envelope.Shape{Frames: p.Frames, SpansMin: p.SpansMin, SpansMax: p.SpansMax, Filtered: p.Filtered, UserAgents: p.Agents}
	if p.Agents == UniqueAgents {
		s.UserAgents, s.Unique = 0, true
	}
	return s
}

// UniqueAgents is [Plan.Agents] of a plan in which each send has a user agent of its own.
const UniqueAgents = -1

// PoolSize is how many envelopes the plan's pool has: it is raised to the
// number of user agents, so that each of them may be in it.
func (p Plan) PoolSize() int { return max(p.Pool, p.Agents) }

// PoolConfig is what the plan's pool is built from, for a run that starts at
// epoch; kinds are the table that its mix is of, nil for [envelope.Kinds].
func (p Plan) PoolConfig(kinds []envelope.Kind, epoch time.Time) (envelope.PoolConfig, error) {
	c := envelope.PoolConfig{Kinds: kinds, Seed: p.Seed, Size: p.PoolSize(), Projects: p.Projects, Zipf: p.Zipf,
		Shape: p.Shape(), Epoch: epoch, Encoding: p.Encoding, Folder: p.Folder}
	if IsFolder(p.Mix) {
		if p.Folder == nil {
			return c, fmt.Errorf("folder %q has not been read", p.Mix)
		}
		return c, nil
	}
	if kinds == nil {
		kinds = envelope.Kinds
	}
	var err error
	c.Mix, err = envelope.ParseMix(kinds, p.Mix)
	return c, err
}

// Check says what in the plan cannot be run, though each knob alone may be.
func (p Plan) Check() error {
	if p.Duration <= 0 {
		return fmt.Errorf("no duration: say how long, as in test 10s")
	}
	if !p.Flat() {
		if n := p.Rate * p.Duration.Seconds(); n > maxSends {
			return fmt.Errorf("%.0f sends (rate %g for %v) are more than the %d that a run can account for", n, p.Rate, p.Duration, uint64(maxSends))
		}
	}
	if p.Burst > 1 {
		if p.Flat() {
			return fmt.Errorf("a burst of %d at rate max: a closed loop has no schedule, each connection sends when it is answered", p.Burst)
		}
		if every := float64(p.Burst) / p.Rate; every > p.Duration.Seconds() {
			return fmt.Errorf("a burst of %d at %g/s comes every %gs: a load of %v is shorter than that", p.Burst, p.Rate, every, p.Duration)
		}
	}
	if p.Processes*p.Connections > maxConnections {
		return fmt.Errorf("%d connections are more than %d", p.Processes*p.Connections, maxConnections)
	}
	if p.Pool < 1 {
		return fmt.Errorf("pool of %d envelopes is empty", p.Pool)
	}
	if err := p.checkAgents(); err != nil {
		return err
	}
	if IsFolder(p.Mix) {
		for _, name := range []string{"frames", "spans", "filtered"} {
			if k := Find(name); k.Get(&p) != k.Default {
				return fmt.Errorf("%s %s does nothing to the envelopes of a folder", name, k.Get(&p))
			}
		}
	}
	for i, s := range p.Settings {
		for _, o := range p.Settings[:i] {
			if o.Key == s.Key {
				return fmt.Errorf("-E %s is set twice", s.Key)
			}
		}
	}
	return nil
}

// checkAgents says why not each send can have a user agent of its own, where that is asked for.
func (p Plan) checkAgents() error {
	if p.Agents != UniqueAgents {
		return nil
	}
	burst := float64(max(p.Burst, 1))
	sends := math.Ceil(p.Rate*p.Duration.Seconds()/burst) * burst
	switch {
	case p.Flat():
		return errors.New("user-agents unique: flat out it is not known how many sends there are; give a rate")
	case p.Filtered > 0:
		return errors.New("user-agents unique and filtered exclude each other: user agents that are filtered are few")
	case sends > envelope.MaxAgents:
		return fmt.Errorf("user-agents unique: %.0f sends are more than the %d different ones that there are", sends, envelope.MaxAgents)
	case float64(p.Pool) < sends:
		return fmt.Errorf("user-agents unique: a pool of %d would send them again: %.0f sends take --pool %.0f", p.Pool, sends, sends)
	}
	return nil
}

const (
	maxSends       = 2_000_000_000 // one byte each at the senders, one bit at the upstream
	maxConnections = 20_000
)

// Record is the plan as it is stored: knob name to canonical text, and each -E
// key under its own name. ConfigText is not in it: a result has the config that was in effect.
func (p Plan) Record() map[string]string {
	m := make(map[string]string, len(Knobs)+len(p.Settings))
	for _, k := range Knobs {
		m[k.Name] = k.Get(&p)
	}
	for _, s := range p.Settings {
		m[SettingName(s.Key)] = s.Value
	}
	return m
}

// SettingName is the name in a record of a relay's config key. A key holds a dot, which no knob's name does.
func SettingName(key string) string { return key }

// FromRecord reads a stored plan. A knob that the record lacks had its default
// of then; names with a dot are config keys; other names that this version does not know are an error.
func FromRecord(m map[string]string) (Plan, error) {
	p := Default()
	for _, k := range Knobs {
		text, ok := m[k.Name]
		if !ok {
			text = k.then()
		}
		if err := k.Set(&p, text); err != nil {
			return p, fmt.Errorf("knob %s: %w", k.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if strings.Contains(name, ".") {
			p.Settings = append(p.Settings, Setting{name, m[name]})
		} else if Find(name) == nil {
			return p, fmt.Errorf("unknown knob %q: another version of relaybench made this record", name)
		}
	}
	return p, nil
}
