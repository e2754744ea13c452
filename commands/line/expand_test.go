package line

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definitions are those of the tests.
var definitions = map[string]string{
	"co":       "relay switch -fb $",
	"ones":     "test 30s --rate 100 --mix errors",
	"do":       "co ; ones",
	"at":       "test 10s --rate $",
	"two":      "a $ ; b $",
	"both":     "test $1 --rate $2",
	"swap":     "x $2 $1",
	"twice":    "x $1 $1",
	"all":      "test 10s $*",
	"marked":   `test 10s --label "run $1 of $*" --seed=$1`,
	"dollar":   `x \$ '$1' "\$2" $1`,
	"main":     "do main",
	"later":    "co ; ones $",
	"trailing": "ones dev",
	"fixed":    "co dev; status",
	"trailer":  "co ; ones dev",
	"ab":       "two $ x ; two",
	"any":      "$ 10s",
	"nothing":  "$*",
	"comment":  "status # it's; $1",
	"quoted":   "x 'a;b' $",
	"half":     "both 10s",
	"bench":    "co $ ; at",
	"onco":     "ones ; co $",
	"more":     "all --mix logs",
	"loop":     "x; lop",
	"lop":      "loop $",
	"broken":   "x 'y",
	"zero":     "x $0",
	"empty":    " ; # nothing",
	"umlaut":   "ä$ö $",
}

func define(name string) (string, bool) {
	d, ok := definitions[name]
	return d, ok
}

func TestExpand(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"status; help test", "status; help test"},
		{"x $ $1 '$*'", "x '$' '$1' '$*'"}, // only a definition has holes
		{"ones", "test 30s --rate 100 --mix errors"},
		{"ones --seed 7", "test 30s --rate 100 --mix errors --seed 7"},
		{"co main", "relay switch -fb main"},
		{"co 'a b;c'", "relay switch -fb 'a b;c'"},
		{"co '$'", "relay switch -fb '$'"},
		{"co -v main", "relay switch -fb main -v"},
		// As in hey-apm's README.
		{"do ; do main perf/ua-prefilter", "relay switch -fb main; test 30s --rate 100 --mix errors; relay switch -fb perf/ua-prefilter; test 30s --rate 100 --mix errors"},
		{"do main", "relay switch -fb main; test 30s --rate 100 --mix errors"},
		{"do --seed 7 main", "relay switch -fb main; test 30s --rate 100 --mix errors --seed 7"},
		{"main", "relay switch -fb main; test 30s --rate 100 --mix errors"},
		{"co ; co ; co a b c", "relay switch -fb a; relay switch -fb b; relay switch -fb c"},
		{"co main ; status", "relay switch -fb main; status"},
		{"co main ; co dev", "relay switch -fb main; relay switch -fb dev"},
		{"co ; ones dev", "relay switch -fb dev; test 30s --rate 100 --mix errors"},
		{"trailer", "relay switch -fb dev; test 30s --rate 100 --mix errors"},
		{"fixed", "relay switch -fb dev; status"},
		{"fixed more", "relay switch -fb dev; status more"},
		{"at 5", "test 10s --rate 5"},
		{"at --mix logs 5", "test 10s --rate 5 --mix logs"},
		{"two 1 2", "a 1; b 2"},
		{"two ; two 1 2 3 4", "a 1; b 2; a 3; b 4"},
		{"ab 1 2 3", "a 1; b x; a 2; b 3"},
		{"both 10s 5", "test 10s --rate 5"},
		{"both 10s 5 --mix logs", "test 10s --rate 5 --mix logs"},
		{"half 5", "test 10s --rate 5"},
		{"bench dev 7", "relay switch -fb dev; test 10s --rate 7"},
		{"bench --mix logs dev 7", "relay switch -fb dev; test 10s --rate 7 --mix logs"},
		{"onco dev", "test 30s --rate 100 --mix errors; relay switch -fb dev"},
		{"later dev", "relay switch -fb dev; test 30s --rate 100 --mix errors"},
		{"more --rate 5", "test 10s --mix logs --rate 5"},
		{"more; status", "test 10s --mix logs; status"},
		{"swap a b", "x b a"},
		{"twice a", "x a a"},
		{"all", "test 10s"},
		{"all --rate 5 --mix logs", "test 10s --rate 5 --mix logs"},
		{"marked a b", "test 10s --label 'run a of a b' --seed=a"},
		{"dollar a", "x '$' '$1' '$2' a"},
		{"any ones", "test 30s --rate 100 --mix errors 10s"}, // what fills a hole may be a name
		{"nothing", ""},
		{"nothing status", "status"},
		{"nothing ones", "test 30s --rate 100 --mix errors"},
		{"comment", "status"},
		{"quoted y", "x 'a;b' y"},
		{"help ones", "help ones"},
	} {
		if got, err := expanded(tt.text); err != nil || got != tt.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
	if got, err := expanded("umlaut é ß"); err != nil || got != "äéö ß" {
		t.Errorf("in the middle of a word: got %s, %v", got, err)
	}
}

// expanded is a line with definitions expanded, as one line.
func expanded(text string) (string, error) {
	commands, err := Split(text)
	if err != nil {
		return "", err
	}
	out, err := Expand(commands, define)
	var lines []string
	for _, c := range out {
		lines = append(lines, Join(c))
	}
	return strings.Join(lines, "; "), err
}

func TestExpandRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"co", `"co" needs a word for its $, and the line has too few`},
		{"do ; do main", `"co" needs a word for its $`},
		{"co ; status main", `"co" needs a word for its $`},
		{"two 1", `"two" needs a word for its $`},
		{"both", `"both" needs a word for its $1, and has too few after it`},
		{"both 10s", `"both" needs a word for its $2`},
		{"both ; both 10s 5", `"both" needs a word for its $1`},
		{"half", `"half" needs a word for its $1`},
		{"any any", `definition "any" leads back to itself: any → any`},
		{"co ; trailing", `"co" needs a word for its $`}, // a definition's own words are not the line's
		{"loop", `definition "loop" leads back to itself: loop → lop → loop`},
		{"broken", `definition "broken": quote ' is not closed`},
		{"zero", `definition "zero": $0 is no word: the first is $1`},
		{"empty", `definition "empty": definition is empty`},
	} {
		if got, err := expanded(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %s, %v, want an error with %q", tt.text, got, err, tt.want)
		}
	}
}

// However definitions multiply a line, there is an end to it.
func TestExpandIsBounded(t *testing.T) {
	doubling := map[string]string{"a0": "x y"}
	for i := range 60 {
		doubling[fmt.Sprint("a", i+1)] = fmt.Sprintf("a%d;a%d", i, i)
	}
	long := strings.Repeat("y", 10_000)
	for name, tt := range map[string]struct {
		define map[string]string
		words  []string
	}{
		"doubling": {doubling, []string{"a60"}},
		"all":      {map[string]string{"a": strings.Repeat("$* ", 10_000)}, []string{"a", long}},
		"numbered": {map[string]string{"a": strings.Repeat("$1 ", 10_000)}, []string{"a", long}},
		"in words": {map[string]string{"a": strings.Repeat("$*", 10_000)}, []string{"a", long}},
		"borrowed": {map[string]string{"a": "b ; c $", "b": strings.Repeat("$ ", 10_000), "c": "x"}, []string{"a", long}},
	} {
		_, err := Expand([][]string{tt.words}, func(n string) (string, bool) { d, ok := tt.define[n]; return d, ok })
		if err == nil || !strings.HasPrefix(err.Error(), "definitions make more than") && !strings.HasPrefix(err.Error(), "line uses definitions more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCalls(t *testing.T) {
	got, err := Calls("co ; $ x; test 'a; b' ; \"ones\" 5 # no")
	if want := []string{"co", "test", "ones"}; !cmp.Equal(got, want) || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, wrong := range []string{"", "x 'y", "x $0", "x $99999999999999999999", "\xff", "x \x00", strings.Repeat("x", Max+1)} {
		if got, err := Calls(wrong); err == nil {
			t.Errorf("%.20q: got %q, want an error", wrong, got)
		}
	}
}

func TestFirst(t *testing.T) {
	for _, tt := range []struct{ text, word, after string }{
		{"", "", ""},
		{"  define co relay switch ; x", "define", " co relay switch ; x"},
		{"define", "define", ""},
		{"de'fi'ne x", "define", " x"},
		{"define;x", "define", ";x"},
		{"define#x y", "define#x", " y"},
		{"# define", "", "# define"},
		{"'a b' c", "a b", " c"},
		{"'a b", "", "'a b"},
		{"; x", "", "; x"},
		{"ä\tö", "ä", "\tö"},
	} {
		if word, after := First(tt.text); word != tt.word || after != tt.after {
			t.Errorf("First(%q) = %q, %q, want %q, %q", tt.text, word, after, tt.word, tt.after)
		}
	}
}

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		text  string
		words []string
		start int
		last  string
		ok    bool
	}{
		{"", nil, 0, "", true},
		{"te", nil, 0, "te", true},
		{"test ", []string{"test"}, 5, "", true},
		{"status; test 10s --mi", []string{"test", "10s"}, 17, "--mi", true},
		{"status;te", nil, 7, "te", true},
		{"status;", nil, 7, "", true},
		{"x 'a b", []string{"x"}, 2, "a b", true},
		{`x "a;b" 'c;`, []string{"x", "a;b"}, 8, "c;", true},
		{`x a\ b`, []string{"x"}, 2, "a b", true},
		{`x a\`, []string{"x"}, 2, "a", true},
		{"x ''", []string{"x"}, 2, "", true},
		{"x # y", nil, 5, "", false},
		{"ä ö", []string{"ä"}, 3, "ö", true},
		{"x \xff", nil, 3, "", false},
	} {
		words, start, last, ok := Tail(tt.text)
		if !slices.Equal(words, tt.words) || start != tt.start || last != tt.last || ok != tt.ok {
			t.Errorf("Tail(%q) = %q, %d, %q, %t, want %q, %d, %q, %t", tt.text, words, start, last, ok, tt.words, tt.start, tt.last, tt.ok)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("do ; do main x", "co ; ones", "relay switch $")
	f.Add("a b;c", `b $1 "$*" \$`, "$ '$'")
	f.Add("a", "b", "a")
	f.Add("a 'x", "$*$*", "a $9;;#")
	f.Fuzz(func(t *testing.T, text, one, two string) {
		commands, err := Split(text)
		if err != nil {
			return
		}
		none, err := Expand(commands, func(string) (string, bool) { return "", false })
		if err != nil || len(none) != len(commands) {
			t.Fatalf("without definitions %q becomes %q, %v", commands, none, err)
		}
		defined := map[string]string{"a": one, "b": two, "do": one, "co": two}
		out, err := Expand(commands, func(name string) (string, bool) { d, ok := defined[name]; return d, ok })
		if err != nil {
			if out != nil {
				t.Errorf("commands beside the error %v", err)
			}
			return
		}
		size := 0
		for _, words := range out {
			if len(words) == 0 {
				t.Error("a command without a word")
			}
			for _, w := range words {
				size += len(w) + 1
				if strings.ContainsRune(w, 0) {
					t.Errorf("a word with a mark: %q", w)
				}
			}
		}
		if size > 3*Max {
			t.Errorf("%d bytes of %d", size, len(text))
		}
		// What it gives can be typed.
		for _, words := range out {
			if again, err := Split(Join(words)); len(Join(words)) <= Max && (err != nil || len(again) != 1 || !slices.Equal(again[0], words)) {
				t.Errorf("%q typed is %q, %v", words, again, err)
			}
		}
	})
}

// FuzzTail: of a whole line, the words before the last and the last are those that Split gives.
func FuzzTail(f *testing.F) {
	for _, s := range []string{"", "a b", "a 'b c", `a "b\`, "a; b c # d", "ä\\ ö;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, start, last, ok := Tail(text)
		if start < 0 || start > len(text) {
			t.Fatalf("Tail(%q) begins at %d", text, start)
		}
		word, after := First(text)
		if len(after) > len(text) || word != "" && !strings.HasSuffix(text, after) {
			t.Errorf("First(%q) = %q, %q", text, word, after)
		}
		if _, err := Split(text); err != nil {
			return
		}
		commands, err := Split(text + " x")
		if !ok || err != nil || len(commands) == 0 {
			return
		}
		want := commands[len(commands)-1]
		want = want[:len(want)-1] // the x
		got := words
		if last != "" || start < len(text) {
			got = append(slices.Clone(words), last)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Tail(%q) = %q, %d, %q, want %q", text, words, start, last, want)
		}
	})
}
