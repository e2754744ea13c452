package store_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/plan"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// known is a report of which everything is known.
func known(t testing.TB) *store.Report {
	t.Helper()
	r := storetest.Report(10)
	r.ID, r.Own = "20261130-164502-3f9a1c", true
	fill(reflect.ValueOf(&r.Provenance).Elem())
	p, err := plan.FromRecord(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	r.Plan = p.Record()
	return r
}

// fill gives each field that is zero a value.
func fill(v reflect.Value) {
	for _, l := range leaves("", v) {
		if l.value.IsZero() {
			l.change()
		}
	}
}

// leaf is a field that holds no further ones.
type leaf struct {
	path  string
	value reflect.Value
}

func leaves(path string, v reflect.Value) (all []leaf) {
	if _, instant := v.Interface().(time.Time); v.Kind() != reflect.Struct || instant {
		return []leaf{{path, v}}
	}
	for i := range v.NumField() {
		all = append(all, leaves(path+"."+v.Type().Field(i).Name, v.Field(i))...)
	}
	return all
}

// change gives it another value, of those that it may have.
func (l leaf) change() {
	switch v := l.value.Addr().Interface().(type) {
	case *time.Time:
		*v = v.Add(1000 * time.Hour)
	case *string:
		*v += "abc"
	case *bool:
		*v = !*v
	case *int:
		*v++
	case *int64:
		*v += 1 << 20
	case *uint64:
		*v += 1 << 30
	case *float64:
		*v++
	default:
		panic(fmt.Sprintf("%s: a %T", l.path, v))
	}
}

func TestVariablesTable(t *testing.T) {
	seen := map[string]bool{}
	names := store.VariableNames()
	var occasions []string
	for _, v := range store.Variables {
		switch {
		case v.Name == "" || v.Help == "" || v.Type == nil || v.Of == nil:
			t.Errorf("%q: no name, help, type or value", v.Name)
		case seen[v.Name]:
			t.Errorf("%s is there twice", v.Name)
		case store.FindMetric(v.Name) != nil:
			t.Errorf("%s is a metric too", v.Name)
		case strings.Trim(v.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			t.Errorf("%s: a name of other letters; one with a dot would be a config key's", v.Name)
		case v.Role != store.Condition && v.Role != store.Follows && v.Role != store.Occasion:
			t.Errorf("%s: %v", v.Name, v.Role)
		case (v.Role == store.Follows) != (len(v.After) > 0):
			t.Errorf("%s: %v, after %q", v.Name, v.Role, v.After)
		}
		seen[v.Name] = true
		for _, after := range v.After {
			if after != store.AnySetting && !slices.Contains(names, after) || after == v.Name {
				t.Errorf("%s comes after %q", v.Name, after)
			}
		}
		if v.Role == store.Occasion {
			occasions = append(occasions, v.Name)
		}
	}
	for _, k := range plan.Knobs {
		if v, ok := store.FindVariable(k.Name); !ok || (v.Role == store.Occasion) != k.Occasion {
			t.Errorf("knob %s: got %v, %v", k.Name, v, ok)
		}
	}
	// Whatever else is added splits groups, unless it is said here that it does not.
	want := []string{"label", "series", "series-position", "series-of", "series-round", "series-side", "relay-path", "relay-image", "relay-rustc", "relay-upstream",
		"bench-version", "bench-revision", "bench-go", "bench-sha256", "host-uname", "host-release", "host-sockets", "host-cores", "host-threads", "host-turbo", "host-load", "report-id", "report-date", "started", "ended", "imported"}
	if d := cmp.Diff(want, occasions); d != "" {
		t.Errorf("variables of occasion (-want +got):\n%s", d)
	}
}

// Each value of a whole report is canonical for its variable's type, and is itself found by a filter for it.
func TestVariablesAreCanonical(t *testing.T) {
	r := known(t)
	values := store.VariablesOf(r)
	for _, v := range store.Variables {
		value, ok := values[v.Name]
		if !ok && v.Name != "label" {
			t.Errorf("%s is unknown of a report of which all is known", v.Name)
			continue
		}
		if !ok {
			continue
		}
		if c, err := v.Canon(value); err != nil || c != value || v.Compare(value, c) != 0 {
			t.Errorf("%s: canonical form of %q is %q, %v", v.Name, value, c, err)
		}
		for _, f := range filters(t, v.Name+"="+value, v.Name+"!=", v.Name+"~"+value[:1]) {
			if !f.Match(store.EntryOf(r)) {
				t.Errorf("%s does not match", f)
			}
		}
	}
}

// Two reports that differ in one thing fall into different groups if it is a
// condition, or follows from one that is not named, and in nothing else.
func TestEachConditionSplits(t *testing.T) {
	changes := map[string]func(*store.Report){
		"id":          func(r *store.Report) { r.ID = "20261130-164502-3f9a1d" },
		"own":         func(r *store.Report) { r.Own = false },
		"config hash": func(r *store.Report) { r.Result.Relay.ConfigHash += "0" },
		"form":        func(r *store.Report) { r.Provenance.Relay.Form = "stand-in" },
		"profile":     func(r *store.Report) { r.Provenance.Relay.Profile = "debug" },
		"new key":     func(r *store.Report) { r.Plan["http.timeout"] = "5" },
		"key":         func(r *store.Report) { r.Plan["http.encoding"] = "gzip" },
		"no key":      func(r *store.Report) { delete(r.Plan, "http.encoding") },
		"empty key":   func(r *store.Report) { r.Plan["http.timeout"] = "" },
		"newer knob":  func(r *store.Report) { r.Plan["knob-of-tomorrow"] = "1" },
	}
	for _, root := range []string{"Provenance", "Result"} {
		r := reflect.ValueOf(known(t)).Elem().FieldByName(root)
		for _, l := range leaves(root, reflect.Indirect(r)) {
			path := l.path
			if root == "Result" && path != "Result.Started" && path != "Result.Ended" {
				continue // observed, and no variable
			}
			changes[path] = func(r *store.Report) {
				for _, l := range leaves(root, reflect.Indirect(reflect.ValueOf(r).Elem().FieldByName(root))) {
					if l.path == path {
						l.change()
					}
				}
			}
		}
	}
	for _, k := range plan.Knobs {
		changes["knob "+k.Name] = func(r *store.Report) { r.Plan[k.Name] = another(t, k, r.Plan[k.Name]) }
	}

	split := map[string]bool{}
	for _, what := range slices.Sorted(maps.Keys(changes)) {
		a, b := known(t), known(t)
		changes[what](b)
		was, is := store.VariablesOf(a), store.VariablesOf(b)
		var changed []string
		apart := false
		for _, name := range store.InOrder(was, is) {
			before, known := was[name]
			if after, still := is[name]; before == after && known == still {
				continue
			}
			changed = append(changed, name)
			if v, ok := store.FindVariable(name); !ok || v.Role != store.Occasion {
				apart = true
				split[name] = true
			}
		}
		if len(changed) == 0 {
			t.Errorf("%s: no variable tells of it", what)
			continue
		}
		if got := group(t, a) != group(t, b); got != apart {
			t.Errorf("%s changes %q: fall apart: got %v, want %v", what, changed, got, apart)
		}
		if group(t, a, changed[0]) != group(t, b, changed[0]) {
			t.Errorf("%s changes %q: fall apart by the first of them", what, changed)
		}
		if apart && group(t, a, "seed") == group(t, b, "seed") && what != "knob seed" {
			t.Errorf("%s changes %q: one group by another variable", what, changed)
		}
	}
	for _, v := range store.Variables {
		if v.Role != store.Occasion && !split[v.Name] {
			t.Errorf("%s: nothing here changes it", v.Name)
		}
	}
}

// another is a canonical value of a knob other than the one given.
func another(t *testing.T, k plan.Knob, value string) string {
	for _, text := range []string{"7", "8", "0.25", "0.5", "7s", "8s", "3-4", "errors", "logs", "gzip", "on", "fp@499", "dwarf@99", "300MiB", "a text"} {
		if c, err := k.Canon(text); err == nil && c != value {
			return c
		}
	}
	t.Fatalf("knob %s: no other value than %q", k.Name, value)
	return ""
}

// group is the group of a report, which is the same by its variables and by its entry.
func group(t *testing.T, r *store.Report, named ...string) string {
	t.Helper()
	key := store.GroupKey(store.VariablesOf(r), named...)
	if got := store.EntryOf(r).Group(named...); got != key {
		t.Errorf("group by %q: got %q by its entry, %q by its variables", named, got, key)
	}
	return key
}

// What follows a variable varies with it, and with nothing else.
func TestFollows(t *testing.T) {
	build := func(r *store.Report) {
		b := &r.Provenance.Relay
		b.Branch, b.Revision, b.Version, b.SHA256, b.Size = "perf", "0123", "26.5.0", "4567", 1
		b.RevisionDate, b.Dirty = b.RevisionDate.Add(time.Hour), false
		r.Result.Relay.ConfigHash = "89ab"
	}
	host := func(r *store.Report) {
		r.Provenance.Host = result.Host{Name: "bench2", CPU: "Another", CPUs: 64, Memory: 1 << 38, OS: "linux", Kernel: "7.0"}
		r.Result.Relay.ConfigHash = "89ab"
	}
	config := func(r *store.Report) {
		r.Plan["config"], r.Provenance.ConfigText = "tuned.yml", "limits: {}\n"
		r.Result.Relay.ConfigHash = "89ab"
	}
	folder := func(r *store.Report) {
		r.Plan["mix"], r.Provenance.MixSHA256 = "/mine", "0123"
	}
	key := func(r *store.Report) { r.Plan["http.encoding"], r.Result.Relay.ConfigHash = "gzip", "89ab" }
	profile := func(r *store.Report) { r.Provenance.Relay.Profile = "debug" }
	for _, c := range []struct {
		name   string
		change func(*store.Report)
		by     []string
		same   bool
	}{
		{"build", build, []string{"relay-branch"}, true},
		{"build", build, []string{"relay-revision"}, true},
		{"build", build, []string{"relay-version"}, true},
		{"build", build, []string{"relay-sha256"}, true},
		{"build", build, []string{"host"}, false},
		{"build", build, []string{"rate"}, false},
		{"build", build, []string{"http.encoding"}, false},
		{"host", host, []string{"host"}, true},
		{"host", host, []string{"host-cpu"}, false},
		{"host", host, []string{"relay-branch"}, false},
		{"host and build", func(r *store.Report) { host(r); build(r) }, []string{"host", "relay-branch"}, true},
		{"host and build", func(r *store.Report) { host(r); build(r) }, []string{"host"}, false},
		{"config", config, []string{"config"}, true},
		{"config", config, []string{"config-sha256"}, false},
		{"folder", folder, []string{"mix"}, true},
		{"folder", folder, []string{"mix-sha256"}, false},
		{"folder", func(r *store.Report) { r.Provenance.MixSHA256 = "0123" }, nil, false},
		{"key", key, []string{"http.encoding"}, true},
		{"key", key, []string{"http.timeout"}, false},
		{"key", key, []string{"config"}, false},
		{"profile", profile, []string{"relay-branch"}, false},
		{"profile", profile, []string{"relay-profile"}, true},
		{"profile", profile, []string{"debug-build"}, true},
		{"hash", func(r *store.Report) { r.Result = nil }, []string{"config-hash"}, true},
	} {
		a, b := known(t), known(t)
		c.change(b)
		if got := group(t, a, c.by...) == group(t, b, c.by...); got != c.same {
			t.Errorf("another %s by %q: one group: got %v, want %v", c.name, c.by, got, c.same)
		}
	}
}

// The first version's golden file and the report that relaybench makes of the same plan today are of one group.
func TestFirstAndNewestAreOneGroup(t *testing.T) {
	numbers, _ := store.Versions()
	for _, number := range numbers {
		text, err := os.ReadFile(golden(number))
		if err != nil {
			t.Fatal(err)
		}
		first, err := store.DecodeJSON(number, text)
		if err != nil {
			t.Fatal(err)
		}
		newest := storetest.Report(3)
		p, err := plan.FromRecord(newest.Plan)
		if err != nil {
			t.Fatal(err)
		}
		p.Label = "another occasion"
		newest.Plan = p.Record()
		newest.ID, newest.Own = "20991231-235959-000000", true
		bench := &newest.Provenance.Bench
		bench.Version, bench.Revision, bench.Go = "v9.0.0", "0123456", "go1.99"
		newest.Provenance.Series = result.Series{ID: "a", Position: 1, Of: 2, Round: 1}
		newest.Provenance.Host.Load1 = 1.5
		if a, b := store.VariablesOf(first), store.VariablesOf(newest); group(t, first) != group(t, newest) {
			t.Errorf("record version %d and today's fall apart (-first +today):\n%s", number, cmp.Diff(a, b))
		}
	}
}

func TestFindVariable(t *testing.T) {
	for name, want := range map[string]bool{
		"rate": true, "relay-branch": true, "http.encoding": true, "a.b.c": true,
		"": false, "ratte": false, ".": false, "a.": false, ".a": false, "a..b": false, "a. b": false, "cpu-per-envelope": false, "through-p99.9": false,
	} {
		v, ok := store.FindVariable(name)
		if ok != want || ok && v.Name != name {
			t.Errorf("%q: got %v, %v, want %v", name, v, ok, want)
		}
	}
	v, _ := store.FindVariable("http.encoding")
	if got, ok := v.Of(known(t)); got != "zstd" || !ok || v.Role != store.Condition {
		t.Errorf("http.encoding: got %q, %v, %v", got, ok, v.Role)
	}
	if got, ok := v.Of(&store.Report{}); ok {
		t.Errorf("http.encoding of a plan without it: got %q", got)
	}
}

func TestInOrder(t *testing.T) {
	got := store.InOrder(map[string]string{"z.b": "", "host": "", "z.a": ""}, map[string]string{"rate": "", "host": "", "new": ""})
	if want := []string{"rate", "host", "new", "z.a", "z.b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Values that look like the bounds of others do not make groups equal.
func TestGroupKeyIsNotFooled(t *testing.T) {
	a := map[string]string{"a.a": "1", "b.b": "2"}
	for _, b := range []map[string]string{{"a.a": "1b.b2"}, {"a.a": "1", "b.b": ""}, {"a.a1b.b": "2"}, {"a.a": "1\x03b.b\x012"}, {}} {
		if store.GroupKey(a) == store.GroupKey(b) {
			t.Errorf("%q and %q are one group", a, b)
		}
	}
}
