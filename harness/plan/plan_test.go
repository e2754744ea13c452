package plan

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
	"relaybench/harness/variable"
)

func TestKnobsTable(t *testing.T) {
	seen := map[string]bool{}
	positional := 0
	for _, k := range Knobs {
		if seen[k.Name] {
			t.Errorf("%s: twice", k.Name)
		}
		seen[k.Name] = true
		if k.Name == "" || strings.ContainsAny(k.Name, ". =_") || strings.ToLower(k.Name) != k.Name {
			t.Errorf("name %q is not one of a flag, or like a config key", k.Name)
		}
		if k.Help == "" || strings.HasSuffix(k.Help, ".") || k.Type.Name() == "" {
			t.Errorf("%s: help %q, type %q", k.Name, k.Help, k.Type.Name())
		}
		for _, text := range []string{k.Default, k.then()} {
			if c, err := k.Canon(text); err != nil || c != text {
				t.Errorf("%s: value %q: canonical %q, %v", k.Name, text, c, err)
			}
		}
		p := Default()
		if got := k.Get(&p); got != k.Default {
			t.Errorf("%s: default: got %q, want %q", k.Name, got, k.Default)
		}
		if k.Positional {
			positional++
		}
		if got := Find(k.Name); got == nil || got.Name != k.Name {
			t.Errorf("%s is not found", k.Name)
		}
	}
	if positional != 1 {
		t.Errorf("positional knobs: got %d, want 1", positional)
	}
	if k := Find("no-such"); k != nil {
		t.Errorf("found %s", k.Name)
	}
	if got, want := len(KnobNames()), len(Knobs); got != want {
		t.Errorf("names: got %d, want %d", got, want)
	}
}

func TestDefault(t *testing.T) {
	want := Plan{Duration: 10 * time.Second, Rate: 200, Mix: "mixed", Connections: 32, Processes: 1, Burst: 1, Projects: 1, Zipf: 1, Pool: 1000, Seed: 1,
		Frames: 10, SpansMin: 20, SpansMax: 100, Encoding: "identity", Timeout: 10 * time.Second, Drain: 10 * time.Second, Statsd: "off", Config: "default"}
	got := Default()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if got.Flat() || !(Plan{}).Flat() {
		t.Error("a rate is flat, or none is not")
	}
	if got, want := got.Shape(), envelope.DefaultShape(); got != want {
		t.Errorf("shape: got %v, want %v", got, want)
	}
}

// Each knob has a field of its own: to set it changes what it gets, and no other.
func TestKnobsAreApart(t *testing.T) {
	for name, text := range others {
		k := Find(name)
		if k == nil {
			t.Errorf("no knob %s", name)
			continue
		}
		p := Default()
		if err := k.Set(&p, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, o := range Knobs {
			want := o.Default
			if o.Name == name {
				want = text
			}
			if got := o.Get(&p); got != want {
				t.Errorf("%s set to %q: %s: got %q, want %q", name, text, o.Name, got, want)
			}
		}
	}
	for _, k := range Knobs {
		if others[k.Name] == "" {
			t.Errorf("%s: give it another value in this test", k.Name)
		}
	}
}

// others are values that are no defaults, in their canonical form.
var others = map[string]string{"reconnect-every": "3", "burst": "50", "upstream-latency": "100ms", "duration": "1m30s", "rate": "max", "mix": "errors", "connections": "4x32", "projects": "7", "zipf": "1.5", "pool": "9",
	"seed": "9223372036854775807", "frames": "250", "spans": "3", "filtered": "0.25", "encoding": "br", "user-agents": "unique", "timeout": "500ms", "drain": "1h", "statsd": "bench1:8125", "profiled": "dwarf@99", "relay-cpus": "0,2-3", "harness-cpus": "1", "mem": "300MiB", "config": "/a/b, c.yml", "label": "a;b # c\n\"ü\""}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Plan)
		want   string // "" is fine
	}{
		{func(p *Plan) { p.Duration = 0 }, "no duration: say how long, as in test 10s"},
		{func(p *Plan) { p.Rate, p.Duration = 1e7, time.Hour }, "36000000000 sends (rate 1e+07 for 1h0m0s) are more than the 2000000000"},
		{func(p *Plan) { p.Rate, p.Duration = 2e6, 1000*time.Second }, ""},
		{func(p *Plan) { p.Rate, p.Duration = 0, 24*time.Hour }, ""},
		{func(p *Plan) { p.Processes, p.Connections = 64, 20_000 }, "1280000 connections are more than 20000"},
		{func(p *Plan) { p.Agents = UniqueAgents }, "user-agents unique: a pool of 1000 would send them again: 2000 sends take --pool 2000"},
		{func(p *Plan) { p.Agents, p.Pool = UniqueAgents, 2000 }, ""},
		{func(p *Plan) { p.Agents, p.Pool, p.Rate = UniqueAgents, 2000, 0 }, "user-agents unique: flat out it is not known"},
		{func(p *Plan) { p.Agents, p.Pool, p.Filtered = UniqueAgents, 2000, 0.1 }, "user-agents unique and filtered exclude each other"},
		{func(p *Plan) { p.Agents, p.Rate = UniqueAgents, 1e6 }, "10000000 sends are more than the 1000000 different ones"},
		{func(p *Plan) { p.Agents = 5000 }, ""},
		{func(p *Plan) { p.Agents, p.Pool, p.Burst = UniqueAgents, 2000, 300 }, "2100 sends take --pool 2100"},
		{func(p *Plan) { p.Pool = 0 }, "pool of 0 envelopes is empty"},
		{func(p *Plan) { p.Rate, p.Burst = 0, 50 }, "a burst of 50 at rate max: a closed loop has no schedule"},
		{func(p *Plan) { p.Rate, p.Burst, p.Duration = 200, 500, 2*time.Second }, "a burst of 500 at 200/s comes every 2.5s: a load of 2s is shorter"},
		{func(p *Plan) { p.Rate, p.Burst, p.Duration = 200, 400, 2*time.Second }, ""},
		{func(p *Plan) { p.Rate, p.Burst = 0, 1 }, ""},
		{func(p *Plan) { p.Settings = []Setting{{"a.b", "1"}, {"a.c", "1"}, {"a.b", "2"}} }, "-E a.b is set twice"},
		{func(p *Plan) { p.Settings = []Setting{{"a.b", "1"}, {"a.c", "1"}} }, ""},
	} {
		p := Default()
		c.change(&p)
		err := p.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestRecord(t *testing.T) {
	p := Default()
	p.Rate, p.Settings = 0, []Setting{{"http.encoding", "zstd"}, {"limits.max_concurrent_requests", ""}}
	r := p.Record()
	for name, want := range map[string]string{"rate": "max", "duration": "10s", "spans": "20-100", "label": "", "http.encoding": "zstd", "limits.max_concurrent_requests": ""} {
		if got, ok := r[name]; !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
	if got, want := len(r), len(Knobs)+2; got != want {
		t.Errorf("entries: got %d, want %d", got, want)
	}
}

// Any plan comes back from its record as it was, but for the text of its config file.
func TestRecordRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		want := randomPlan(rand.New(rand.NewPCG(seed, 0)))
		got, err := FromRecord(want.Record())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		for _, k := range Knobs {
			if c, err := k.Canon(k.Get(&want)); err != nil || c != k.Get(&want) {
				t.Fatalf("seed %d: %s: %q is not canonical: %q, %v", seed, k.Name, k.Get(&want), c, err)
			}
		}
	}
}

func randomPlan(rnd *rand.Rand) Plan {
	p := Plan{Duration: time.Duration(1e6 + rnd.Int64N(8e13)), Mix: []string{"mixed", "errors", "errors=3,logs=1"}[rnd.IntN(3)],
		Connections: 1 + rnd.IntN(300), Processes: 1 + rnd.IntN(64), Reconnect: rnd.IntN(100), Burst: 1 + rnd.IntN(100), Latency: time.Duration(rnd.Int64N(6e10)), Projects: 1 + rnd.IntN(1000), Zipf: 10 * rnd.Float64(), Pool: 1 + rnd.IntN(1000),
		Seed: rnd.Uint64() >> 1, Frames: 1 + rnd.IntN(250), SpansMin: rnd.IntN(100), Filtered: rnd.Float64(), Encoding: []string{"identity", "gzip", "zstd"}[rnd.IntN(3)], Agents: []int{0, UniqueAgents, 1, 5000}[rnd.IntN(4)],
		Timeout: time.Duration(1e6 + rnd.Int64N(3e12)), Drain: time.Duration(1e8 + rnd.Int64N(3e12)), Statsd: []string{"off", "on", "[::1]:8125"}[rnd.IntN(3)], Config: "default", Label: strconv.FormatUint(rnd.Uint64(), 36)}
	p.RelayCPUs, p.HarnessCPUs, p.Memory = randomCPUs(rnd), randomCPUs(rnd), []uint64{0, 16 << 20, 300 << 20, 1e9}[rnd.IntN(4)]
	if rnd.IntN(2) == 0 {
		p.Rate = 0.001 + 1e6*rnd.Float64()
	}
	p.SpansMax = p.SpansMin + rnd.IntN(2)*rnd.IntN(100)
	for i := range rnd.IntN(4) {
		p.Settings = append(p.Settings, Setting{"a.b" + strconv.Itoa(i), strconv.Itoa(rnd.IntN(100))})
	}
	return p
}

func randomCPUs(rnd *rand.Rand) (c variable.CPUs) {
	for n := rnd.IntN(4); n < 1024 && rnd.IntN(5) > 0; n += 1 + rnd.IntN(3) {
		c = append(c, n)
	}
	return c
}

func TestFromRecord(t *testing.T) {
	if got, err := FromRecord(nil); err != nil || cmp.Diff(Default(), got) != "" {
		t.Errorf("an empty record: got %v, %v, want the defaults", got, err)
	}
	for record, want := range map[string]string{
		"no-such=1": `unknown knob "no-such": another version of relaybench made this record`,
		"rate=fast": `knob rate: `, "duration=x": "knob duration: ", "connections=0": "knob connections: ", "spans=x": "knob spans: ",
	} {
		name, value, _ := strings.Cut(record, "=")
		if _, err := FromRecord(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", record, err, want)
		}
	}
}

// A knob that a record lacks had its value of then, where that is not today's default.
func TestThen(t *testing.T) {
	then := &Knob{Name: "x", Default: "new", Then: "old"}
	if got := then.then(); got != "old" {
		t.Errorf("got %q, want old", got)
	}
	then.Then = ""
	if got := then.then(); got != "new" {
		t.Errorf("got %q, want new", got)
	}
	k := Find("frames")
	k.Then = "7"
	defer func() { k.Then = "" }()
	if p, err := FromRecord(map[string]string{}); err != nil || p.Frames != 7 {
		t.Errorf("frames: got %d, %v, want 7", p.Frames, err)
	}
}

// A folder goes to the pool as it was read, and not without.
func TestPoolConfig(t *testing.T) {
	p := Default()
	if c, err := p.PoolConfig(nil, time.Time{}); err != nil || c.Mix.String() != "mixed" || c.Size != 1000 || c.Encoding != envelope.Identity {
		t.Errorf("got %+v, %v", c, err)
	}
	p.Agents = 5000
	if c, err := p.PoolConfig(nil, time.Time{}); err != nil || c.Size != 5000 || c.Shape.UserAgents != 5000 || c.Shape.Unique {
		t.Errorf("of 5000 user agents: got %+v, %v", c, err)
	}
	if p.Agents = UniqueAgents; p.PoolSize() != 1000 || !p.Shape().Unique || p.Shape().UserAgents != 0 {
		t.Errorf("of unique user agents: %+v", p.Shape())
	}
	p.Mix = "./mine"
	if _, err := p.PoolConfig(nil, time.Time{}); err == nil || err.Error() != `folder "./mine" has not been read` {
		t.Errorf("got %v", err)
	}
	p.Folder = new(envelope.Folder)
	if c, err := p.PoolConfig(nil, time.Time{}); err != nil || c.Folder != p.Folder {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestProfiled(t *testing.T) {
	k := Find("profiled")
	for _, text := range []string{"no", "dwarf@99", "fp@499", "lbr@10000"} {
		p := Default()
		if c, err := k.Canon(text); err != nil || c != text {
			t.Errorf("%q: canonical %q, %v", text, c, err)
		}
		if err := k.Set(&p, text); err != nil || p.Profiled.On() != (text != "no") || k.Get(&p) != text {
			t.Errorf("%q: got %+v, %v", text, p.Profiled, err)
		}
	}
	for _, text := range []string{"", "yes", "dwarf", "dwarf@", "dwarf@0", "dwarf@10001", "elf@99", "fp@99,lbr@99"} {
		if c, err := k.Canon(text); err == nil {
			t.Errorf("%q: canonical %q", text, c)
		}
	}
}
