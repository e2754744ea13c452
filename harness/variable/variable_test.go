package variable

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func types() map[string]Type {
	return map[string]Type{
		"float": Float(0, 10), "more": Float(1, math.MaxFloat64), "int": Int(-5, 100_000), "open": Int(1, math.MaxInt64), "rate": Rate,
		"duration": Duration(time.Millisecond, 24*time.Hour), "long": Duration(0, math.MaxInt64), "text": String, "range": Range(0, 1000), "size": Size(1, 1<<40), "any size": Size(0, math.MaxUint64),
	}
}

func TestCanon(t *testing.T) {
	types := types()
	for _, c := range []struct{ typ, typed, want string }{
		{"float", "1", "1"}, {"float", "1.50", "1.5"}, {"float", "1e1", "10"}, {"float", "-0", "0"}, {"float", "+2", "2"}, {"float", "1e-7", "1e-07"},
		{"int", "007", "7"}, {"int", "+7", "7"}, {"int", "-0", "0"}, {"int", "-5", "-5"}, {"int", "100000", "100000"},
		{"open", "9223372036854775807", "9223372036854775807"},
		{"rate", "max", "max"}, {"rate", "200", "200"}, {"rate", "200.0", "200"}, {"rate", "2e2", "200"}, {"rate", "0.5", "0.5"}, {"rate", "1e7", "10000000"},
		{"duration", "10s", "10s"}, {"duration", "60s", "1m"}, {"duration", "90s", "1m30s"}, {"duration", "3600s", "1h"}, {"duration", "1h0m5s", "1h0m5s"},
		{"duration", "10m", "10m"}, {"duration", "1h10m", "1h10m"}, {"duration", "20h", "20h"}, {"duration", "0.5s", "500ms"}, {"duration", "1500ms", "1.5s"},
		{"long", "0", "0s"}, {"long", "100h0m0s", "100h"},
		{"text", "", ""}, {"text", "a, \"b\"\nü", "a, \"b\"\nü"},
		{"range", "20-100", "20-100"}, {"range", "5", "5"}, {"range", "7-7", "7"}, {"range", "020-0100", "20-100"}, {"range", "0", "0"},
		{"size", "256m", "256MiB"}, {"size", "1g", "1GiB"}, {"size", "1.5G", "1.5GiB"}, {"size", "1000kB", "976.5625KiB"}, {"size", "1k", "1KiB"}, {"size", "1t", "1TiB"},
		{"any size", "0", "0B"}, {"any size", "18446744073709551615", "18446744073709551615B"},
	} {
		if got, err := types[c.typ].Canon(c.typed); err != nil || got != c.want {
			t.Errorf("%s %q: got %q, %v, want %q", c.typ, c.typed, got, err, c.want)
		}
	}
}

func TestCanonRefuses(t *testing.T) {
	types := types()
	for _, c := range []struct{ typ, typed, want string }{
		{"float", "", `"" is not a number`}, {"float", "x", `"x" is not a number`}, {"float", "NaN", "is not a number"}, {"float", "inf", "is not a number"},
		{"float", "1e999", "is not a number"}, {"float", "-1", "-1 is not between 0 and 10"}, {"float", "10.1", "10.1 is not between 0 and 10"},
		{"more", "0", "0 is not 1 or more"},
		{"int", "1.5", `"1.5" is not a whole number`}, {"int", "1e3", "is not a whole number"}, {"int", "", "is not a whole number"},
		{"int", "99999999999999999999", "is not a whole number"}, {"int", "-6", "-6 is not between -5 and 100000"}, {"open", "0", "0 is not 1 or more"},
		{"rate", "", "is not a rate: a number of sends a second, or max"}, {"rate", "fast", `"fast" is not a rate`}, {"rate", "MAX", "is not a rate"},
		{"rate", "0", "0 is not between 0.001 and 10,000,000 a second, nor max"}, {"rate", "-5", "is not between"}, {"rate", "NaN", "is not a rate"},
		{"rate", "+Inf", "is not a rate"}, {"rate", "1e8", "is not between"}, {"rate", "200/s", "is not a rate"},
		{"duration", "10", `"10" is not a duration such as 10s`}, {"duration", "", "is not a duration"}, {"duration", "ten", "is not a duration"},
		{"duration", "0s", "0s is not between 1ms and 24h"}, {"duration", "-1s", "is not between"}, {"duration", "25h", "25h is not between"},
		{"long", "-1s", "-1s is not 0s or more"},
		{"text", "a\x00b", "is not a text"}, {"text", "\xff", "is not a text"},
		{"range", "", "is not a range such as 20-100"}, {"range", "a-b", "is not a range"}, {"range", "-5", "is not a range"}, {"range", "5-", "is not a range"},
		{"range", "1-2-3", "is not a range"}, {"range", "100-20", "range 100-20 ends before it begins"}, {"range", "0-1001", "is not within 0-1000"},
		{"size", "big", `"big" is not a size such as 8GiB`}, {"size", "0", "0 is not between 1B and 1TiB"}, {"size", "1mb", "is not a size"}, {"any size", "-1", "is not a size"},
	} {
		if got, err := types[c.typ].Canon(c.typed); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %q, %v, want error %q", c.typ, c.typed, got, err, c.want)
		}
	}
}

func TestCompareSorts(t *testing.T) {
	types := types()
	for name, sorted := range map[string][]string{
		"float":    {"0", "1e-07", "0.5", "2", "10"},
		"int":      {"-5", "0", "9", "10", "100"},
		"rate":     {"0.5", "9", "10", "200", "10000000", "max"},
		"duration": {"500ms", "1s", "10s", "1m", "1m30s", "1h"},
		"text":     {"", "10", "9", "a"},
		"range":    {"5", "5-9", "5-10", "20-100", "100"},
	} {
		typ := types[name]
		for i, a := range sorted {
			for j, b := range sorted {
				if got, want := typ.Compare(a, b), cmpInt(i, j); got != want {
					t.Errorf("%s: %q to %q: got %d, want %d", name, a, b, got, want)
				}
			}
		}
	}
}

func cmpInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestSplit(t *testing.T) {
	types := types()
	for _, c := range []struct {
		typ, typed string
		want       []string
	}{
		{"rate", "200", []string{"200"}}, {"rate", "200,500,max", []string{"200", "500", "max"}}, {"rate", "200,", []string{"200", ""}}, {"rate", "", []string{""}},
		{"duration", "1s,2s", []string{"1s", "2s"}}, {"int", "1,2", []string{"1", "2"}}, {"range", "1-2,5", []string{"1-2", "5"}},
		{"text", "a,b", []string{"a,b"}},
	} {
		if got := types[c.typ].Split(c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%s %q: got %q, want %q", c.typ, c.typed, got, c.want)
		}
	}
	upper := func(s string) (string, error) { return strings.ToUpper(s), nil }
	if got := New("x", upper, strings.Compare, true).Split("a,b"); len(got) != 1 {
		t.Errorf("a type whose values hold commas: got %q", got)
	}
	own := New("x", upper, strings.Compare, false)
	if got := own.Split("a,b"); len(got) != 2 {
		t.Errorf("a type whose values hold none: got %q", got)
	}
	if got, _ := own.Canon("a"); got != "A" || own.Name() != "x" || own.Compare("a", "b") != -1 {
		t.Errorf("a type of one's own: got %q, %q", got, own.Name())
	}
}

func TestParseRange(t *testing.T) {
	for typed, want := range map[string][2]int{"20-100": {20, 100}, "5": {5, 5}} {
		if lo, hi, err := ParseRange(typed); err != nil || lo != want[0] || hi != want[1] {
			t.Errorf("%s: got %d, %d, %v, want %v", typed, lo, hi, err, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"rate", "mix", "connections", "projects", "timeout", "set", "test", "drain"}
	for typed, want := range map[string]string{
		"rte": "rate", "raet": "rate", "rates": "rate", "mixx": "mix", "mux": "mix", "conections": "connections", "conn": "connections", "project": "projects",
		"x": "", "zzzzz": "", "": "", "dr": "", "timeoutt": "timeout", "connectoins": "connections",
		"tset": "test", "ets": "", "est": "set",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

// A canonical form is its own, is equal to itself, and orders against others one way.
func FuzzCanon(f *testing.F) {
	for _, s := range []string{"", "1", "-0", "1e3", "0x1p-2", "max", "10s", "1h0m0s", "0s", "20-100", "7-7", "a,b", "\xff", "1_0", "9223372036854775807"} {
		f.Add(s, s+"0")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for name, typ := range types() {
			ca, err := typ.Canon(a)
			if err != nil {
				continue
			}
			if again, err := typ.Canon(ca); err != nil || again != ca {
				t.Errorf("%s %q: canonical %q becomes %q, %v", name, a, ca, again, err)
			}
			if got := typ.Compare(ca, ca); got != 0 {
				t.Errorf("%s: %q to itself: got %d", name, ca, got)
			}
			cb, err := typ.Canon(b)
			if err != nil {
				continue
			}
			if got, back := typ.Compare(ca, cb), typ.Compare(cb, ca); got != -back || (got == 0) != (ca == cb) {
				t.Errorf("%s: %q to %q: got %d, and back %d", name, ca, cb, got, back)
			}
			for _, one := range typ.Split(ca) {
				if one != ca {
					t.Errorf("%s: %q splits", name, ca)
				}
			}
		}
	})
}

func TestWord(t *testing.T) {
	w := Word("encoding", "identity", "gzip", "br")
	for text, want := range map[string]string{"gzip": "", "gzpi": `"gzpi" is none of identity, gzip, br: did you mean "gzip"?`, "": `"" is none of identity, gzip, br`, "GZIP": `"GZIP" is none of identity, gzip, br`} {
		got, err := w.Canon(text)
		if want == "" && (err != nil || got != text) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: got %q, %v, want %s", text, got, err, want)
		}
	}
	if w.Compare("identity", "br") >= 0 || w.Compare("br", "gzip") <= 0 || w.Compare("br", "br") != 0 {
		t.Error("words are not in their order")
	}
	if got := len(w.Split("gzip,br")); got != 2 {
		t.Errorf("%d words of two", got)
	}
}

func TestRoughSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 1 << 20: "1MiB", 1<<30 + 1<<28: "1.2GiB", 5 << 40: "5TiB"} {
		if got := RoughSize(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
