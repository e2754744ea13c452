package plan

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/envelope"
	"relaybench/harness/variable"
)

// Knob is one entry of the table of knobs: one independent value of a plan.
type Knob struct {
	Name    string // of the flag, the variable and the stored record
	Unit    string // "" where the type says all
	Help    string // one line
	Default string
	// Then is the value of records made before the knob was; "" where it is the default of today.
	Then string
	// Positional marks the one that is an argument of test, not a flag.
	Positional bool
	// By are the flags that it is set by where it has none of its own.
	By []string
	// Occasion marks one that never splits a group of reports (a label).
	Occasion bool
	// Words gives the values that one typed word stands for, as "each" does for
	// all kinds; nil where the text is no such word. It may be nil itself.
	Words func(text string) []string
	// Offers are values to offer for completion, beside the default.
	Offers []string
	variable.Type
	Get func(*Plan) string
	Set func(*Plan, string) error // a text that Canon took
}

// Find is the knob of that name, or nil.
func Find(name string) *Knob {
	for i := range Knobs {
		if Knobs[i].Name == name {
			return &Knobs[i]
		}
	}
	return nil
}

// MixType is the type of mixes: a list of them is typed by repeating the flag.
//
// A text with a slash in it is a folder of envelopes instead, see [Plan.Folder].
var MixType = variable.New("mix", func(s string) (string, error) {
	if IsFolder(s) {
		s, err := variable.String.Canon(s)
		if short := strings.TrimRight(s, "/"); short != "" {
			s = short
		}
		if !IsFolder(s) {
			s += "/"
		}
		return s, err
	}
	m, err := envelope.ParseMix(envelope.Kinds, s)
	switch {
	case err != nil && s != "" && !strings.ContainsAny(s, "=,"):
		return "", fmt.Errorf("%w, or a folder such as ./%s", err, s)
	case err != nil:
		return "", err
	}
	return m.String(), nil
}, strings.Compare, true)

// IsFolder says that a mix is a folder: no kind's name and no weight has a slash.
func IsFolder(mix string) bool { return strings.Contains(mix, "/") || mix == "." || mix == ".." }

// eachKind are the mixes that [Each] stands for.
func eachKind(text string) []string {
	if text != Each {
		return nil
	}
	var kinds []string
	for _, k := range envelope.Kinds {
		kinds = append(kinds, k.Name)
	}
	return kinds
}

// encodings are the names of the content encodings.
func encodings() (names []string) {
	for i := range envelope.Encodings {
		names = append(names, envelope.Encodings[i].Name)
	}
	return names
}

// Words for user agents, beside a number.
const (
	builtinAgents = "builtin"
	uniqueAgents  = "unique"
)

// agentsType is a number of user agents, or one of the words; the words stand before and after all numbers.
var agentsType = variable.New("user agents", func(s string) (string, error) {
	n, err := parseAgents(s)
	if err != nil {
		return "", err
	}
	return formatAgents(n), nil
}, func(a, b string) int {
	order := func(s string) int {
		n, _ := parseAgents(s)
		if n == UniqueAgents {
			return math.MaxInt
		}
		return n
	}
	return cmp.Compare(order(a), order(b))
}, false)

func parseAgents(s string) (int, error) {
	switch s {
	case builtinAgents:
		return 0, nil
	case uniqueAgents:
		return UniqueAgents, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of user agents, nor %s or %s", s, builtinAgents, uniqueAgents)
	}
	if n < 1 || n > envelope.MaxAgents {
		return 0, fmt.Errorf("%d is not between 1 and %d user agents", n, envelope.MaxAgents)
	}
	return n, nil
}

func formatAgents(n int) string {
	switch n {
	case 0:
		return builtinAgents
	case UniqueAgents:
		return uniqueAgents
	}
	return strconv.Itoa(n)
}

// profileType is how the relay is profiled.
var profileType = variable.New("profile", func(s string) (string, error) {
	p, err := parseProfile(s)
	return p.String(), err
}, func(a, b string) int {
	pa, _ := parseProfile(a)
	pb, _ := parseProfile(b)
	return cmp.Or(strings.Compare(pa.CallGraph, pb.CallGraph), cmp.Compare(pa.Freq, pb.Freq))
}, false)

// connections is "32", or "4x32": four sender processes of 32.
var connections = variable.New("connections", func(s string) (string, error) {
	g, n, err := parseConnections(s)
	if err != nil {
		return "", err
	}
	return formatConnections(g, n), nil
}, func(a, b string) int {
	ag, an, _ := parseConnections(a)
	bg, bn, _ := parseConnections(b)
	return cmp.Or(cmp.Compare(ag*an, bg*bn), cmp.Compare(ag, bg))
}, false)

func parseConnections(s string) (processes, each int, err error) {
	first, second, two := strings.Cut(s, "x")
	if !two {
		first, second = "1", s
	}
	processes, err = strconv.Atoi(first)
	if err == nil {
		each, err = strconv.Atoi(second)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%q is not a number of connections such as 32, or 4x32 for four sender processes of 32", s)
	}
	if processes < 1 || processes > 64 || each < 1 || each > maxConnections || processes*each > maxConnections {
		return 0, 0, fmt.Errorf("%s is not between 1 and %d connections, in at most 64 sender processes", s, maxConnections)
	}
	return processes, each, nil
}

func formatConnections(processes, each int) string {
	if processes == 1 {
		return strconv.Itoa(each)
	}
	return fmt.Sprintf("%dx%d", processes, each)
}

// What [Plan.Statsd] may be beside the host:port of a server elsewhere.
const (
	StatsdOff = "off"
	StatsdOn  = "on" // relaybench receives it
)

// statsdType is off, on, or where a server receives UDP.
var statsdType = variable.New("statsd", func(s string) (string, error) {
	if s == StatsdOff || s == StatsdOn {
		return s, nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(s, "udp://"))
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || n == 0 || !isHost(host) {
		return "", fmt.Errorf("%q is not %s, %s, or where a server receives UDP, such as 127.0.0.1:8125", s, StatsdOff, StatsdOn)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}, strings.Compare, false)

// isHost says whether a text can be an address or the name of a host.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
}

func durationKnob(at func(*Plan) *time.Duration) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return variable.ShortDuration(*at(p)) }, func(p *Plan, s string) (err error) {
		*at(p), err = time.ParseDuration(s)
		return err
	}
}

func intKnob(at func(*Plan) *int) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return strconv.Itoa(*at(p)) }, func(p *Plan, s string) (err error) {
		*at(p), err = strconv.Atoi(s)
		return err
	}
}

func floatKnob(at func(*Plan) *float64) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return strconv.FormatFloat(*at(p), 'g', -1, 64) }, func(p *Plan, s string) (err error) {
		*at(p), err = strconv.ParseFloat(s, 64)
		return err
	}
}

func textKnob(at func(*Plan) *string) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return *at(p) }, func(p *Plan, s string) error { *at(p) = s; return nil }
}

func knob(k Knob, get func(*Plan) string, set func(*Plan, string) error) Knob {
	k.Get, k.Set = get, set
	return k
}

// Knobs is the table of knobs, in the order in which they are listed.
var Knobs = knobs()

func knobs() []Knob {
	var ks []Knob
	add := func(k Knob, get func(*Plan) string, set func(*Plan, string) error) {
		ks = append(ks, knob(k, get, set))
	}

	get, set := durationKnob(func(p *Plan) *time.Duration { return &p.Duration })
	add(Knob{Name: "duration", Help: "how long the load lasts", Default: "10s", Positional: true,
		Type: variable.Duration(time.Millisecond, 24*time.Hour)}, get, set)

	add(Knob{Name: "rate", Unit: "sends/s", Help: "sends a second, whatever the answers (open loop); max: flat out, each connection sends when it is answered (closed loop)",
		Default: "200", Type: variable.Rate},
		func(p *Plan) string {
			if p.Flat() {
				return "max"
			}
			return strconv.FormatFloat(p.Rate, 'f', -1, 64)
		}, func(p *Plan, s string) (err error) {
			if p.Rate = 0; s != "max" {
				p.Rate, err = strconv.ParseFloat(s, 64)
			}
			return err
		})

	get, set = textKnob(func(p *Plan) *string { return &p.Mix })
	add(Knob{Name: "mix", Help: "kinds of envelope by weight, as in errors=3,logs=1; mixed: all of them, as an organisation sends them; each: one run for each kind; FOLDER, with a slash in it as in ./mine: the envelopes in its files",
		Default: envelope.Mixed, Type: MixType, Words: eachKind}, get, set)

	add(Knob{Name: "connections", Help: "connections that send; 4x32: four sender processes of 32", Default: "32", Type: connections},
		func(p *Plan) string { return formatConnections(p.Processes, p.Connections) },
		func(p *Plan, s string) (err error) {
			p.Processes, p.Connections, err = parseConnections(s)
			return err
		})

	get, set = intKnob(func(p *Plan) *int { return &p.Reconnect })
	add(Knob{Name: "reconnect-every", Unit: "sends", Help: "answered sends after which a sender closes its connection and opens another for its next; 0: never",
		Default: "0", Then: "0", Type: variable.Int(0, 1_000_000_000)}, get, set)

	get, set = intKnob(func(p *Plan) *int { return &p.Burst })
	add(Knob{Name: "burst", Unit: "sends", Help: "sends that are due at once, at the same rate: 50 at 200/s are 50 every 250 ms; 1: evenly spread",
		Default: "1", Then: "1", Type: variable.Int(1, 100_000)}, get, set)

	get, set = intKnob(func(p *Plan) *int { return &p.Projects })
	add(Knob{Name: "projects", Help: "projects that are sent to, each with a key of its own", Default: "1", Type: variable.Int(1, 100_000)}, get, set)

	get, set = floatKnob(func(p *Plan) *float64 { return &p.Zipf })
	add(Knob{Name: "zipf", Help: "exponent of the projects' popularity (Zipf); 0: all alike", Default: "1", Type: variable.Float(0, 10)}, get, set)

	get, set = intKnob(func(p *Plan) *int { return &p.Pool })
	add(Knob{Name: "pool", Unit: "envelopes", Help: "different envelopes that are built before the load, and sent in turn", Default: "1000", Type: variable.Int(1, 1_000_000)}, get, set)

	add(Knob{Name: "seed", Help: "of all that is drawn: the same seed and plan send the same bytes", Default: "1", Type: variable.Int(0, math.MaxInt64)},
		func(p *Plan) string { return strconv.FormatUint(p.Seed, 10) },
		func(p *Plan, s string) (err error) { p.Seed, err = strconv.ParseUint(s, 10, 64); return err })

	get, set = intKnob(func(p *Plan) *int { return &p.Frames })
	add(Knob{Name: "frames", Help: "stack frames of an error", Default: "10", Type: variable.Int(1, 250)}, get, set)

	add(Knob{Name: "spans", Help: "spans of a transaction, drawn between the two numbers", Default: "20-100", Type: variable.Range(0, 1000)},
		func(p *Plan) string {
			if p.SpansMin == p.SpansMax {
				return strconv.Itoa(p.SpansMin)
			}
			return fmt.Sprintf("%d-%d", p.SpansMin, p.SpansMax)
		}, func(p *Plan, s string) (err error) { p.SpansMin, p.SpansMax, err = variable.ParseRange(s); return err })

	get, set = floatKnob(func(p *Plan) *float64 { return &p.Filtered })
	add(Knob{Name: "filtered", Help: "share of envelopes, 0 to 1, whose user agent Relay's inbound filters drop", Default: "0", Type: variable.Float(0, 1)}, get, set)

	add(Knob{Name: "user-agents", Help: fmt.Sprintf("%s: the %d built-in ones in turn; N: drawn from N by Zipf, by a pool of N envelopes or more; %s: another one in each send, for which the pool must be as large", builtinAgents, envelope.UserAgents(), uniqueAgents),
		Default: builtinAgents, Then: builtinAgents, Type: agentsType, Offers: []string{uniqueAgents}},
		func(p *Plan) string { return formatAgents(p.Agents) }, func(p *Plan, s string) (err error) { p.Agents, err = parseAgents(s); return err })

	get, set = textKnob(func(p *Plan) *string { return &p.Encoding })
	add(Knob{Name: "encoding", Help: "content encoding of what is sent to the relay, made before the load: " + strings.Join(encodings(), ", "),
		Default: envelope.Identity, Then: envelope.Identity, Type: variable.Word("encoding", encodings()...), Offers: encodings()}, get, set)

	get, set = durationKnob(func(p *Plan) *time.Duration { return &p.Timeout })
	add(Knob{Name: "timeout", Help: "how long a sender waits for an answer", Default: "10s", Type: variable.Duration(time.Millisecond, time.Hour)}, get, set)

	get, set = durationKnob(func(p *Plan) *time.Duration { return &p.Drain })
	add(Knob{Name: "drain", Help: "after the load, how long nothing new must have come before the run is over", Default: "10s", Type: variable.Duration(100*time.Millisecond, time.Hour)}, get, set)

	get, set = durationKnob(func(p *Plan) *time.Duration { return &p.Latency })
	add(Knob{Name: "upstream-latency", Help: "how long after its arrival the upstream answers an envelope; it is counted when it arrives. Relay has limits.max_concurrent_requests open at once, and gives one up after http.timeout",
		Default: "0s", Then: "0s", Type: variable.Duration(0, time.Minute)}, get, set)

	get, set = textKnob(func(p *Plan) *string { return &p.Statsd })
	add(Knob{Name: "statsd", Help: "the relay's own timers, counters and gauges: on keeps them in the report (show REPORT timers), which takes up to half a minute longer; HOST:PORT sends them to a server of yours instead; it costs the relay CPU",
		Default: StatsdOff, Then: StatsdOff, Type: statsdType, Offers: []string{StatsdOn}}, get, set)

	get, set = textKnob(func(p *Plan) *string { return &p.Config })
	add(Knob{Name: "config", Help: "the relay's config: default, tuned, or a YAML file", Default: "default", Offers: []string{"tuned"}, Type: variable.String}, get, set)

	add(Knob{Name: "profiled", By: []string{"perf", "call-graph", "perf-freq"}, Help: "whether the relay was profiled by perf, which costs it CPU: no, or the call graph and the samples a second of CPU, as in dwarf@99",
		Default: notProfiled, Then: notProfiled, Type: profileType},
		func(p *Plan) string { return p.Profiled.String() }, func(p *Plan, s string) (err error) { p.Profiled, err = parseProfile(s); return err })

	get, set = cpusKnob(func(p *Plan) *variable.CPUs { return &p.RelayCPUs })
	add(Knob{Name: "relay-cpus", Help: "the CPUs that the relay runs on, from its start, as in 0,2-3: the relay sees as many and makes its threads accordingly; any: the system says. Repeat the flag for a list of runs",
		Default: anyCPUs, Then: anyCPUs, Type: cpusType}, get, set)

	get, set = cpusKnob(func(p *Plan) *variable.CPUs { return &p.HarnessCPUs })
	add(Knob{Name: "harness-cpus", Help: "the CPUs that senders and upstream run on, as in 1,3; any: the system says. Repeat the flag for a list of runs",
		Default: anyCPUs, Then: anyCPUs, Type: cpusType}, get, set)

	add(Knob{Name: "mem", Help: "the memory that the relay may have, as in 256m or 1g: a container's limit, else a cgroup's of its own, else where none may be made Relay's health.max_memory_bytes, above which it refuses; none: no limit",
		Default: noLimit, Then: noLimit, Type: memoryType},
		func(p *Plan) string { return formatMemory(p.Memory) }, func(p *Plan, s string) (err error) { p.Memory, err = parseMemory(s); return err })

	get, set = textKnob(func(p *Plan) *string { return &p.Label })
	add(Knob{Name: "label", Help: "a text of your own to find the run by", Type: variable.String, Occasion: true}, get, set)
	return ks
}

// then is the value in a record that lacks the knob.
func (k *Knob) then() string {
	if k.Then != "" {
		return k.Then
	}
	return k.Default
}

// sortSettings puts settings into their one order.
func sortSettings(s []Setting) {
	slices.SortFunc(s, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
}
