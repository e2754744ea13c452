package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
)

// typed reads a line as a shell would have cut it: NAME=TEXT, and E=KEY=VALUE.
func typed(words ...string) Values {
	v := Values{Knobs: map[string][]string{}}
	for _, w := range words {
		name, text, _ := strings.Cut(w, "=")
		if name == "E" {
			v.Settings = append(v.Settings, text)
		} else {
			v.Knobs[name] = append(v.Knobs[name], text)
		}
	}
	return v
}

// differ says in which values the plans of a list differ, in their order.
func differ(plans []Plan) []string {
	var out []string
	for i := range plans {
		r := plans[i].Record()
		var parts []string
		for _, name := range append(KnobNames(), "a.x", "a.y") {
			value, set := r[name]
			if k := Find(name); k != nil && value == k.Default || k == nil && !set {
				continue
			}
			parts = append(parts, name+"="+value)
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{nil, []string{""}},
		{[]string{"rate=500"}, []string{"rate=500"}},
		{[]string{"rate=500.0"}, []string{"rate=500"}},
		{[]string{"rate=200,500,max"}, []string{"", "rate=500", "rate=max"}},
		{[]string{"rate=500,100"}, []string{"rate=500", "rate=100"}},
		{[]string{"rate=500", "rate=100"}, []string{"rate=100"}},
		{[]string{"rate=1,2", "rate=3,4"}, []string{"rate=3", "rate=4"}},
		{[]string{"connections=1,4x32,1x128"}, []string{"connections=1", "connections=4x32", "connections=128"}},
		{[]string{"spans=1-2,5"}, []string{"spans=1-2", "spans=5"}},
		{[]string{"duration=60s"}, []string{"duration=1m"}},
		{[]string{"mix=errors=3,logs=1"}, []string{"mix=errors=3,logs=1"}},
		{[]string{"mix=logs=2,errors=6"}, []string{"mix=errors=3,logs=1"}},
		{[]string{"mix=errors", "mix=logs=1"}, []string{"mix=errors", "mix=logs"}},
		{[]string{"user-agents=20,5000,unique", "pool=2000"}, []string{"pool=2000 user-agents=20", "pool=2000 user-agents=5000", "pool=2000 user-agents=unique"}},
		{[]string{"relay-cpus=2-3,0,1", "relay-cpus=1", "mem=256m,none,1g"}, []string{"relay-cpus=0-3 mem=256MiB", "relay-cpus=0-3", "relay-cpus=0-3 mem=1GiB", "relay-cpus=1 mem=256MiB", "relay-cpus=1", "relay-cpus=1 mem=1GiB"}},
		{[]string{"harness-cpus= 3, 1 ", "harness-cpus=any"}, []string{"harness-cpus=1,3", ""}},
		{[]string{"statsd=off,on"}, []string{"", "statsd=on"}},
		{[]string{"statsd=udp://127.0.0.1:08125,bench1:1,[::1]:2"}, []string{"statsd=127.0.0.1:8125", "statsd=bench1:1", "statsd=[::1]:2"}},
		{[]string{"mix=./mine//"}, []string{"mix=./mine"}},
		{[]string{"mix=/"}, []string{"mix=/"}},
		{[]string{"mix=../a,b=1/c", "mix=errors"}, []string{"mix=../a,b=1/c", "mix=errors"}},
		{[]string{"encoding=gzip,identity"}, []string{"encoding=gzip", ""}},
		{[]string{"mix=each"}, each("")},
		{[]string{"mix=each", "mix=errors=1,logs=1"}, append(each(""), "mix=errors=1,logs=1")},
		{[]string{"mix=each", "rate=100"}, each("rate=100 ")},
		{[]string{"label=a,b", "label=c"}, []string{"label=a,b", "label=c"}},
		// The last knob of the table varies fastest, however they are typed.
		{[]string{"frames=1,2", "rate=100,max"}, []string{"rate=100 frames=1", "rate=100 frames=2", "rate=max frames=1", "rate=max frames=2"}},
		{[]string{"E=a.x=1"}, []string{"a.x=1"}},
		{[]string{"E=a.x="}, []string{"a.x="}},
		{[]string{"E=a.x=1=2"}, []string{"a.x=1=2"}},
		{[]string{"E=a.x=zstd,gzip"}, []string{"a.x=zstd", "a.x=gzip"}},
		{[]string{`E=a.x="b,c",d,'e,f'`}, []string{`a.x="b,c"`, "a.x=d", "a.x='e,f'"}},
		{[]string{`E=a.x="it's, so",2`}, []string{`a.x="it's, so"`, "a.x=2"}},
		{[]string{"E=a.x=1,2", "E=a.x=3"}, []string{"a.x=3"}},
		{[]string{"E=a.y=1,2", "E=a.x=3,4"}, []string{"a.x=3 a.y=1", "a.x=4 a.y=1", "a.x=3 a.y=2", "a.x=4 a.y=2"}},
		{[]string{"E=a.x=3,4", "rate=1,2"}, []string{"rate=1 a.x=3", "rate=1 a.x=4", "rate=2 a.x=3", "rate=2 a.x=4"}},
	} {
		plans, err := Expand(typed(c.words...))
		if err != nil {
			t.Errorf("%q: %v", c.words, err)
			continue
		}
		if d := cmp.Diff(c.want, differ(plans)); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.words, d)
		}
	}
}

func each(before string) (plans []string) {
	for _, k := range envelope.Kinds {
		plans = append(plans, before+"mix="+k.Name)
	}
	return plans
}

func TestExpandRefuses(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"relay-cpus="}, "relay-cpus: the list of CPUs is empty: give some, such as 0,2-3, or any"},
		{[]string{"relay-cpus=x"}, `relay-cpus: "x" is not a list of CPUs such as 0,2-3`},
		{[]string{"harness-cpus=0,"}, `harness-cpus: "0," is not a list of CPUs`},
		{[]string{"harness-cpus=3-1"}, `harness-cpus: "3-1" is not a list of CPUs`},
		{[]string{"harness-cpus=0-9999"}, "harness-cpus: CPU 9999 is more than 1023"},
		{[]string{"relay-cpus=0,1", "relay-cpus=0-1"}, `relay-cpus: "0-1" is in the list twice`},
		{[]string{"mem=much"}, `mem: "much" is not a size such as 256m or 1g, nor none`},
		{[]string{"mem=1m"}, "mem: 1m is not between 16MiB and 1024TiB"},
		{[]string{"rat=1"}, `unknown knob "rat": did you mean "rate"?`},
		{[]string{"a=1", "zzzzzz=1"}, `unknown knob "a"`},
		{[]string{"mix=./a", "frames=3"}, "frames 3 does nothing to the envelopes of a folder"},
		{[]string{"mix=./a", "mix=./a/"}, `mix: "./a" is in the list twice`},
		{[]string{"mix=./\x00"}, "is not a text in UTF-8"},
		{[]string{"user-agents=many"}, `user-agents: "many" is not a number of user agents, nor builtin or unique`},
		{[]string{"user-agents=0"}, "user-agents: 0 is not between 1 and 1000000 user agents"},
		{[]string{"user-agents=5,05"}, `user-agents: "5" is in the list twice`},
		{[]string{"user-agents=20,unique"}, "user-agents unique: a pool of 1000 would send them again: 2000 sends take --pool 2000"},
		{[]string{"rate=fast"}, `rate: "fast" is not a rate`},
		{[]string{"statsd=yes"}, `statsd: "yes" is not off, on, or where a server receives UDP, such as 127.0.0.1:8125`},
		{[]string{"statsd=:8125"}, "statsd: "}, {[]string{"statsd=a:0"}, "statsd: "}, {[]string{"statsd=a:65536"}, "statsd: "},
		{[]string{"statsd=unix:///tmp/x"}, "statsd: "}, {[]string{"statsd=a b:1"}, "statsd: "}, {[]string{"statsd=${X}:1"}, "statsd: "},
		{[]string{"rate=200,,300"}, `rate: "" is not a rate`},
		{[]string{"rate="}, `rate: "" is not a rate`},
		{[]string{"rate=200,2e2"}, `rate: "200" is in the list twice`},
		{[]string{"rate=max,max"}, `rate: "max" is in the list twice`},
		{[]string{"duration=1m,60s"}, `duration: "1m" is in the list twice`},
		{[]string{"duration=10"}, `duration: "10" is not a duration`},
		{[]string{"connections=0"}, "connections: 0 is not between 1 and 20000 connections"},
		{[]string{"connections=x4"}, `connections: "x4" is not a number of connections`},
		{[]string{"connections=4x"}, `connections: "4x" is not a number of connections`},
		{[]string{"connections=65x1"}, "in at most 64 sender processes"},
		{[]string{"connections=4x4611686018427387904"}, "is not between 1 and 20000"},
		{[]string{"connections=64x313"}, "is not between 1 and 20000"},
		{[]string{"mix=errrors"}, `mix "errrors": unknown kind`},
		{[]string{"mix=each", "mix=errors"}, `mix: "errors" is in the list twice`},
		{[]string{"mix=errors=1", "mix=errors=5"}, `mix: "errors" is in the list twice`},
		{[]string{"spans=100-20"}, "spans: range 100-20 ends before it begins"},
		{[]string{"label=\x00"}, "label: "},
		{[]string{"seed=-1"}, "seed: "},
		{[]string{"E=a.x"}, `-E "a.x" is not KEY=VALUE with a key of the relay's config`},
		{[]string{"E=ax=1"}, `-E "ax=1" is not`},
		{[]string{"E=.x=1"}, `-E ".x=1" is not`},
		{[]string{"E=a..x=1"}, `-E "a..x=1" is not`},
		{[]string{"E=a x.y=1"}, `-E "a x.y=1" is not`},
		{[]string{"E="}, `-E "" is not`},
		{[]string{"E=a.x=\xff"}, `is not`},
		{[]string{"E=a.x=1,2,1"}, `-E a.x: "1" is in the list twice`},
		{[]string{"rate=1e7", "duration=24h"}, "are more than the 2000000000 that a run can account for"},
		{[]string{"seed=" + numbers(200), "frames=" + numbers(100)}, "frames: 20000 runs are more than the 10000 that one line may ask for"},
		{[]string{"seed=" + numbers(200), "E=a.x=" + numbers(100)}, "-E a.x: 20000 runs are more than"},
	} {
		plans, err := Expand(typed(c.words...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: got %d plans, %v, want error %q", c.words, len(plans), err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "mix: mix") {
			t.Errorf("%q: %v: named twice", c.words, err)
		}
	}
}

// numbers is the list 1,2,…,n.
func numbers(n int) string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprint(i+1))
	}
	return strings.Join(texts, ",")
}

// Plans of one line share nothing that one of them could change for another.
func TestExpandedPlansAreApart(t *testing.T) {
	plans, err := Expand(typed("rate=1,2", "E=a.x=1,2", "E=a.y=1"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range plans {
		plans[i].Settings[0].Value = fmt.Sprint("of ", i)
	}
	for i, p := range plans {
		if got, want := p.Settings[0].Value, fmt.Sprint("of ", i); got != want {
			t.Errorf("plan %d: got %q, want %q", i, got, want)
		}
	}
}

// A flag that is there without a value, as in a map made by hand, is none.
func TestExpandOfNothingTyped(t *testing.T) {
	plans, err := Expand(Values{Knobs: map[string][]string{"rate": nil}})
	if err != nil || len(plans) != 1 || cmp.Diff(Default(), plans[0]) != "" {
		t.Errorf("got %v, %v, want the default plan", plans, err)
	}
}

// For each knob, what was taken is kept: Set and Get give the canonical form back.
func FuzzKnobs(f *testing.F) {
	for _, s := range []string{"", "1", "max", "errors=3,logs=1", "mixed", "each", "4x32", "1x7", "20-100", "10s", "0.50", "default", "a,b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range Knobs {
			c, err := k.Canon(text)
			if err != nil {
				continue
			}
			if again, err := k.Canon(c); err != nil || again != c {
				t.Errorf("%s %q: canonical %q becomes %q, %v", k.Name, text, c, again, err)
			}
			p := Default()
			if err := k.Set(&p, c); err != nil {
				t.Errorf("%s: set %q: %v", k.Name, c, err)
			}
			if got := k.Get(&p); got != c {
				t.Errorf("%s: set %q: got %q", k.Name, c, got)
			}
		}
	})
}

// FuzzExpand: whatever is typed is an error, or plans that come back from their records.
func FuzzExpand(f *testing.F) {
	f.Add("rate", "1,2", "a.x=1,2")
	f.Add("mix", "each", `a.b="c,d",'e'`)
	f.Add("label", "ü", "a.=1")
	f.Fuzz(func(t *testing.T, name, text, setting string) {
		plans, err := Expand(Values{Knobs: map[string][]string{name: {text}}, Settings: []string{setting}})
		if err != nil {
			return
		}
		for _, p := range plans {
			got, err := FromRecord(p.Record())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(p, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if !slices.IsSortedFunc(p.Settings, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) }) {
				t.Errorf("settings out of order: %v", p.Settings)
			}
		}
	})
}
