package store

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/harness/variable"
)

// Role is what a variable means for a comparison.
type Role int

// The roles of variables.
const (
	// Condition is one that all reports of a group agree on, unless it is the one that they are compared by.
	Condition Role = iota + 1
	// Follows is a condition that varies with others: where one of those in After is what reports are compared by, it may differ.
	Follows
	// Occasion never splits a group: when, in which order, under which label, how busy the host was.
	Occasion
)

// String is the role in a word.
func (r Role) String() string {
	switch r {
	case Condition:
		return "condition"
	case Follows:
		return "follows"
	case Occasion:
		return "occasion"
	}
	return "no role"
}

// Variable is one entry of the table of variables: a named, typed, independent
// value of a report, a knob of its plan or of its provenance.
type Variable struct {
	Name string
	Unit string // "" where the type says all
	Help string // one line
	variable.Type
	Role  Role
	After []string // of one that follows: with which it varies; [AnySetting] is any config key
	// Of is the value, canonical for Type; ok is false where it is unknown.
	Of func(*Report) (value string, ok bool)
}

// AnySetting, in After, stands for every config key set with -E.
const AnySetting = "-E"

// Variables is the table of variables, in the order in which they are listed:
// the knobs, the relay, the host, relaybench, then what is of the occasion.
// A config key set with -E (a name with a dot) is a variable too, a condition
// that is in no table.
var Variables = slices.Concat(knobVariables(), []Variable{
	{Name: "config-sha256", Help: "of the text of the config file that the plan names", Type: hexType, Role: Follows, After: []string{"config"},
		Of: of(func(r *Report) string { return sha256Of(r.Provenance.ConfigText) })},

	{Name: "mix-sha256", Help: "of the files of the folder that the mix is", Type: hexType, Role: Follows, After: []string{"mix"},
		Of: of(func(r *Report) string { return r.Provenance.MixSHA256 })},

	{Name: "relay-form", Help: "what the relay was: path (a binary), image (in a container), url (somebody else's), stand-in, none", Type: variable.String, Role: Condition,
		Of: relayOf(func(b *result.Relay) string { return b.Form })},
	{Name: "relay-url", Help: "address of somebody else's relay", Type: variable.String, Role: Condition,
		Of: relayOf(func(b *result.Relay) string { return b.URL })},
	{Name: "relay-engine", Help: "what ran the relay's container: docker, podman", Type: variable.String, Role: Condition,
		Of: relayOf(func(b *result.Relay) string { return b.Engine })},
	build("relay-branch", "branch of the checkout that the relay was built from, or the tag that was named for it", variable.String,
		func(b *result.Relay) string { return b.Branch }),
	build("relay-revision", "revision that the relay was built from", hexType,
		func(b *result.Relay) string { return b.Revision }),
	build("revision-date", "when that revision was committed", timeType,
		func(b *result.Relay) string { return timeText(b.RevisionDate) }),
	build("relay-version", "version that the relay gives of itself", versionType,
		func(b *result.Relay) string { return b.Version }),
	build("relay-sha256", "of the relay's binary; of an image, its id", hexType,
		func(b *result.Relay) string { return b.SHA256 }),
	build("relay-size", "of the relay's binary or image", sizeType,
		func(b *result.Relay) string { return sizeText(uint64(max(0, b.Size))) }),
	build("relay-dirty", "whether the checkout had changes that no revision has", boolType,
		func(b *result.Relay) string {
			if b.Revision == "" {
				return ""
			}
			return yesNo(b.Dirty)
		}),
	build("relay-profile", "cargo's profile, as far as the binary's path tells: release or debug", variable.String,
		func(b *result.Relay) string { return b.Profile }, "debug-build"),
	{Name: "debug-build", Help: "whether the relay is known to be built without optimisation", Type: boolType, Role: Follows, After: []string{"relay-profile"},
		Of: relayOf(func(b *result.Relay) string { return yesNo(b.Profile == "debug") })},
	{Name: "config-hash", Help: "of the relay's effective config, without the keys that a run owns", Type: hexType, Role: Follows,
		After: slices.Concat(buildNames, hostNames, []string{"relay-form", "relay-engine", "relay-url", "debug-build", "config", "config-sha256", "relay-cpus", "mem", AnySetting, "bench-version", "bench-revision"}),
		Of:    resultOf(func(r *result.Result) string { return r.Relay.ConfigHash })},

	{Name: "host", Help: "name of the machine (-host, or the system's); what host-… tell of it goes with it", Type: variable.String, Role: Condition,
		Of: hostOf(func(h *result.Host) string { return h.Name })},
	hostPart("host-cpu", "model of its CPU", variable.String, func(h *result.Host) string { return h.CPU }),
	hostPart("host-cpus", "CPUs that relaybench may use", variable.Int(1, math.MaxInt64), func(h *result.Host) string { return count(h.CPUs) }),
	// Note: the same machine has some pages more or less after it has started again.
	hostPart("host-memory", "its memory, to 64 MiB", sizeType, func(h *result.Host) string { return sizeText((h.Memory + 32<<20) / (64 << 20) * (64 << 20)) }),
	hostPart("host-os", "its system", variable.String, func(h *result.Host) string { return h.OS }),
	hostPart("host-kernel", "version of its kernel", versionType, func(h *result.Host) string { return h.Kernel }),
	hostPart("host-distribution", "its distribution", variable.String, func(h *result.Host) string { return h.Distribution }),
	hostPart("host-virtualisation", "what it is virtualised by", variable.String, func(h *result.Host) string { return h.Virtualisation }),
	hostPart("host-governor", "frequency governor of its CPUs", variable.String, func(h *result.Host) string { return h.Governor }),
	hostPart("host-cgroup-cpus", "CPUs that its cgroup allows", variable.Float(0, math.MaxFloat64), func(h *result.Host) string { return number(h.CgroupCPU) }),
	hostPart("host-cgroup-memory", "memory that its cgroup allows", sizeType, func(h *result.Host) string { return sizeText(h.CgroupMemory) }),

	{Name: "payload", Help: "version of the payloads that relaybench makes", Type: variable.Int(0, math.MaxInt64), Role: Condition,
		Of: of(func(r *Report) string { return count(r.Provenance.Bench.Payload) })},

	occasion("series", "line of many runs that the run was one of", variable.String, func(r *Report) string { return r.Provenance.Series.ID }),
	occasion("series-position", "of the run in its series, in time, from 1", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Series.Position) }),
	occasion("series-of", "runs that the series was to have", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Series.Of) }),
	occasion("series-round", "round of the run through the series' list, from 1", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Series.Round) }),
	occasion("series-side", "of the run in a comparison that takes turns: A, B", variable.String, func(r *Report) string { return r.Provenance.Series.Side }),
	occasion("relay-path", "where the relay's binary was", variable.String, func(r *Report) string { return r.Provenance.Relay.Path }),
	occasion("relay-image", "name of the image that the relay was", variable.String, func(r *Report) string { return r.Provenance.Relay.Image }),
	// Note: no condition, though builds differ in it: relay-sha256 says as much, also of reports made before this was known.
	occasion("relay-rustc", "version of the compiler that made the relay's binary", variable.String, func(r *Report) string { return r.Provenance.Relay.Rustc }),
	occasion("relay-upstream", "where somebody else's relay sends to", variable.String, func(r *Report) string { return r.Provenance.Relay.Upstream }),
	occasion("bench-version", "version of relaybench", versionType, func(r *Report) string { return r.Provenance.Bench.Version }),
	occasion("bench-revision", "revision of relaybench", variable.String, func(r *Report) string { return r.Provenance.Bench.Revision }),
	occasion("bench-go", "Go that relaybench was built with", variable.String, func(r *Report) string { return r.Provenance.Bench.Go }),
	occasion("bench-sha256", "of relaybench's binary", hexType, func(r *Report) string { return r.Provenance.Bench.SHA256 }),
	// Note: no conditions, so that reports made before these were known are not apart from others.
	occasion("host-uname", "its kernel, with the build and the architecture", variable.String, func(r *Report) string { return r.Provenance.Host.Uname }),
	occasion("host-release", "its distribution's name in full", variable.String, func(r *Report) string { return r.Provenance.Host.Release }),
	occasion("host-sockets", "its CPU sockets", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Host.Sockets) }),
	occasion("host-cores", "its cores, without SMT", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Host.Cores) }),
	occasion("host-threads", "its hardware threads, with SMT", variable.Int(1, math.MaxInt64), func(r *Report) string { return count(r.Provenance.Host.Threads) }),
	occasion("host-turbo", "whether its CPUs may run above their base frequency: on, off", variable.String, func(r *Report) string { return r.Provenance.Host.Turbo }),
	occasion("host-load", "load average over a minute before the run", variable.Float(0, math.MaxFloat64), func(r *Report) string {
		if r.Provenance.Host.Name == "" {
			return ""
		}
		return strconv.FormatFloat(r.Provenance.Host.Load1, 'g', -1, 64)
	}),
	occasion(reportID, "id of the report", idType, func(r *Report) string { return r.ID }),
	occasion(reportDate, "when it was saved", timeType, func(r *Report) string { return timeText(dateOf(r.ID)) }),
	occasion(started, "when the run began", timeType, func(r *Report) string { return timeText(startOf(r)) }),
	occasion(ended, "when it ended", timeType, func(r *Report) string { return timeText(endOf(r)) }),
	occasion(imported, "whether it came from a file, and was not made here", boolType, func(r *Report) string { return yesNo(!r.Own) }),
})

// Those that an entry of the index has in a form of its own.
const (
	reportID   = "report-id"
	reportDate = "report-date"
	started    = "started"
	ended      = "ended"
	imported   = "imported"
)

// buildNames are the variables of a build: they vary together.
var buildNames = []string{"relay-branch", "relay-revision", "revision-date", "relay-version", "relay-sha256", "relay-size", "relay-dirty", "relay-profile", "relay-rustc"}

// BuildVariables are the names of the variables of a build.
func BuildVariables() []string { return slices.Clone(buildNames) }

// hostNames are the variables of a host: they vary with its name.
var hostNames = []string{"host", "host-cpu", "host-cpus", "host-memory", "host-os", "host-kernel", "host-distribution", "host-virtualisation", "host-governor", "host-cgroup-cpus", "host-cgroup-memory"}

// knobVariables are the knobs of a plan. One that a record lacks had its default of then.
func knobVariables() []Variable {
	var vs []Variable
	for i := range plan.Knobs {
		k := &plan.Knobs[i]
		v := Variable{Name: k.Name, Unit: k.Unit, Help: k.Help, Type: k.Type, Role: Condition}
		if k.Occasion {
			v.Role = Occasion
		}
		then := k.Then
		if then == "" {
			then = k.Default
		}
		v.Of = of(func(r *Report) string {
			text, ok := r.Plan[k.Name]
			if !ok {
				text = then
			}
			if c, err := k.Canon(text); err == nil {
				return c
			}
			return text
		})
		vs = append(vs, v)
	}
	return vs
}

func build(name, help string, typ variable.Type, of func(*result.Relay) string, after ...string) Variable {
	others := slices.DeleteFunc(slices.Clone(buildNames), func(n string) bool { return n == name })
	return Variable{Name: name, Help: help, Type: typ, Role: Follows, After: append(others, after...), Of: relayOf(of)}
}

func hostPart(name, help string, typ variable.Type, of func(*result.Host) string) Variable {
	return Variable{Name: name, Help: help, Type: typ, Role: Follows, After: []string{"host"}, Of: hostOf(of)}
}

func occasion(name, help string, typ variable.Type, text func(*Report) string) Variable {
	return Variable{Name: name, Help: help, Type: typ, Role: Occasion, Of: of(text)}
}

// of derives a variable whose empty text says that it is unknown.
func of(text func(*Report) string) func(*Report) (string, bool) {
	return func(r *Report) (string, bool) {
		if r == nil {
			return "", false
		}
		s := text(r)
		return s, s != ""
	}
}

func relayOf(text func(*result.Relay) string) func(*Report) (string, bool) {
	return of(func(r *Report) string { return text(&r.Provenance.Relay) })
}

func hostOf(text func(*result.Host) string) func(*Report) (string, bool) {
	return of(func(r *Report) string { return text(&r.Provenance.Host) })
}

func resultOf(text func(*result.Result) string) func(*Report) (string, bool) {
	return of(func(r *Report) string {
		if r.Result == nil {
			return ""
		}
		return text(r.Result)
	})
}

func startOf(r *Report) (t time.Time) {
	if r.Result != nil {
		t = r.Result.Started
	}
	return t
}

func endOf(r *Report) (t time.Time) {
	if r.Result != nil {
		t = r.Result.Ended
	}
	return t
}

// dateOf is when a report of that id was saved.
func dateOf(id string) time.Time {
	t, _, ok := parseID(id)
	if !ok {
		return time.Time{}
	}
	return t
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}

func sizeText(n uint64) string {
	if n == 0 {
		return ""
	}
	return variable.FormatSize(n)
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func number(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func sha256Of(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// place is where the variables of the table stand in it.
var place = func() map[string]int {
	m := make(map[string]int, len(Variables))
	for i := range Variables {
		m[Variables[i].Name] = i
	}
	return m
}()

// FindVariable is the variable of that name, of the table or a config key's.
func FindVariable(name string) (*Variable, bool) {
	if i, ok := place[name]; ok {
		return &Variables[i], true
	}
	if !isSetting(name) || FindMetric(name) != nil {
		return nil, false
	}
	return &Variable{Name: name, Help: "config key of the relay, set with -E", Type: settingType, Role: Condition,
		Of: func(r *Report) (string, bool) {
			if r == nil {
				return "", false
			}
			v, ok := r.Plan[plan.SettingName(name)]
			return v, ok
		}}, true
}

// isSetting says whether a name is a config key's: no knob's holds a dot.
func isSetting(name string) bool {
	return strings.Contains(name, ".") && !slices.Contains(strings.Split(name, "."), "") && !strings.ContainsAny(name, " \t\r\n")
}

// VariableNames are the names of the table.
func VariableNames() []string {
	var names []string
	for i := range Variables {
		names = append(names, Variables[i].Name)
	}
	return names
}

// VariablesOf are the values of all variables of a report that are known, by
// name: those of the table and each config key of its plan.
func VariablesOf(r *Report) map[string]string {
	values := map[string]string{}
	for i := range Variables {
		v := &Variables[i]
		if text, ok := v.Of(r); ok {
			values[v.Name] = text
		}
	}
	maps.Copy(values, others(r))
	return values
}

// others are the values of a plan that no variable of the table is of: config
// keys, and knobs of a newer relaybench. All of them are conditions.
func others(r *Report) map[string]string {
	values := map[string]string{}
	if r == nil {
		return values
	}
	for name, text := range r.Plan {
		if _, ok := place[name]; !ok {
			values[name] = text
		}
	}
	return values
}

// InOrder are the names of variables in any of some reports' values: those of
// the table in its order, then the others by name.
func InOrder(values ...map[string]string) []string {
	seen := map[string]bool{}
	for _, vs := range values {
		for name := range vs {
			seen[name] = true
		}
	}
	var names []string
	for i := range Variables {
		if n := Variables[i].Name; seen[n] {
			names = append(names, n)
			delete(seen, n)
		}
	}
	return append(names, slices.Sorted(maps.Keys(seen))...)
}

// GroupKey is a text that is equal for reports that may be compared by the
// named variables: equal in every condition but those, and but what follows
// them. Without a name it is the cell: the report's whole identity.
//
// Note: the hash of the effective config is known after a run only. A plan
// that is not yet run is found among reports by naming "config-hash".
func GroupKey(values map[string]string, named ...string) string {
	get := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	var extra []string
	for name := range values {
		if _, ok := place[name]; !ok {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	return groupKey(get, extra, named)
}

// groupKey is GroupKey of values, with the sorted names of those that are in no table.
func groupKey(get func(name string) (string, bool), extra, named []string) string {
	var key []byte
	add := func(name string) {
		if value, ok := get(name); ok {
			key = appendText(appendText(key, name), value)
		}
	}
	for i := range Variables {
		if v := &Variables[i]; v.Role != Occasion && !v.varies(named) {
			add(v.Name)
		}
	}
	for _, name := range extra {
		if !slices.Contains(named, name) {
			add(name)
		}
	}
	return string(key)
}

// varies says whether a variable may differ among reports that are compared by the named ones.
func (v *Variable) varies(named []string) bool {
	return slices.ContainsFunc(named, func(n string) bool {
		return n == v.Name || slices.Contains(v.After, n) || isSetting(n) && slices.Contains(v.After, AnySetting)
	})
}
