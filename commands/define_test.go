package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relaybench/envelope"
	"relaybench/store/storetest"
)

// The example of hey-apm's README, word for word in our terms.
func TestReadmeOfHeyAPM(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	for _, line := range []string{"define co relay switch -fb $", "define ones test 30s --rate 100 --mix errors", "define do co ; ones"} {
		if code, said := ann.does(t.Context(), line); code != Fine {
			t.Errorf("%s: code %d, %q", line, code, said)
		}
	}
	same(t, "define", ann.says("define ?o*"), "name  origin  words\nco    own     relay switch -fb $\ndo    own     co ; ones\n")
	wants(t, ann.says("define"), "ones    own       test 30s --rate 100 --mix errors\n", "peak    built in  test 20s --rate max ")
	const does = "relay switch -fb main\ntest 30s --rate 100 --mix errors\nrelay switch -fb perf/ua-prefilter\ntest 30s --rate 100 --mix errors\n"
	code, said := ann.does(t.Context(), "explain 'do ; do main perf/ua-prefilter'")
	if !strings.HasPrefix(said, does) {
		t.Errorf("explain: code %d,\n%s", code, said)
	}
	same(t, "as JSON", ann.says("explain --json 'do ; do main x'"), "[\n  {\n    \"line\": \"relay switch -fb main\"\n  },\n  {\n    \"line\": \"test 30s --rate 100 --mix errors\"\n  },\n"+
		"  {\n    \"line\": \"relay switch -fb x\"\n  },\n  {\n    \"line\": \"test 30s --rate 100 --mix errors\"\n  }\n]\n")
	same(t, "one word short", ann.says("explain 'do ; do main'"), "error: explain: \"co\" needs a word for its $, and the line has too few\nhint: define NAME shows what a name stands for\n")
	same(t, "one word short", ann.says("do ; do main"), "error: \"co\" needs a word for its $, and the line has too few\nhint: define NAME shows what a name stands for\n")
	wants(t, ann.says("ones --seed 7"), "j1 queued")
	if v := b.queue.views(); len(v) != 1 || v[0].Line != "test 30s --rate 100 --mix errors --seed 7" {
		t.Errorf("jobs %+v", v)
	}
	ann.says("cancel; wait")
}

// What is built in is explained, changed and taken back as any other definition.
func TestBuiltIn(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	runs := map[string]int{"peak": 36, "kinds": len(envelope.Kinds), "rates": 3, "agents": 3}
	for name, words := range builtIn {
		if ann.reserved(name) || !isName(name) {
			t.Errorf("%s cannot be defined", name)
		}
		same(t, "define "+name, strings.ReplaceAll(ann.says("define --csv "+name), `"`, ""), "name,origin,words\n"+name+",built in,"+words+"\n")
		code, said := ann.does(t.Context(), "explain "+name)
		if want := fmt.Sprintf("\n%d runs, each with a fresh relay and upstream", runs[name]); code != Fine || !strings.HasPrefix(said, words+"\n\n") || !strings.Contains(said, want) {
			t.Errorf("explain %s: code %d, want %q in\n%s", name, code, want, said)
		}
		// Its test's flags, after it, count more.
		wants(t, ann.says("explain "+name+" --duration 7s --repeat 2"), fmt.Sprintf("\n%d runs, each", min(2*runs[name], 24)), "\nduration          7s\n")
	}
	for _, knobs := range []string{"connections  config", "1            tuned", "4x128        default", "rate              max"} {
		wants(t, ann.says("explain peak"), knobs)
	}
	wants(t, ann.says("explain agents"), "user-agents", "unique")
	wants(t, ann.says("help define"), "\n  rates   test 20s --rate 200,500,1000 --mix mixed\n")

	for _, tt := range []struct{ line, want string }{
		{"define rm peak", "error: define: \"peak\" is built in, and stands for what it always does\nhint: define peak WORDS gives it other words\n"},
		{"define mine peak ; rates", "mine stands for: peak ; rates\n"},
		{"define peak mine", "error: define: \"peak\" would lead back to itself: peak → mine → peak\nhint: nothing was defined\n"},
		{"define peak help codes", "peak stands for: help codes\n"},
		{"define p*", "name  origin   words\npeak  changed  help codes\n"},
		{"define rates peak", "rates stands for: peak\n"},
		{"define rm peak", "peak is what is built in again: " + builtIn["peak"] + "\n"},
		{"define rm paek", "error: define: \"paek\" is not defined\nhint: did you mean peak?\n"},
		{"define peak rates", "error: define: \"peak\" would lead back to itself: peak → rates → peak\nhint: nothing was defined\n"},
		{"define rm rates; status", "error: define: \"rates; status\" is not one name\nhint: \n"},
		{"paek", "error: unknown command \"paek\"\nhint: did you mean peak?\n"},
	} {
		same(t, tt.line, ann.says(tt.line), tt.want)
	}
	if _, found := ann.Complete("pe", 2); !slices.Contains(found, "peak") {
		t.Errorf("completion of pe: %q", found)
	}
	if _, found := ann.Complete("peak --rep", 10); !slices.Contains(found, "--repeat") {
		t.Errorf("completion of a flag: %q", found)
	}
	if len(states(b)) > 0 {
		t.Error("something was queued")
	}
}

// What one client defines is at once in effect for all, and after a restart.
func TestDefineIsForAll(t *testing.T) {
	db := storetest.Open(t)
	b := desk(t, db)
	ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
	wants(t, bob.says("codes"), "error: unknown command \"codes\"")
	same(t, "define", ann.says("define codes help codes"), "codes stands for: help codes\n")
	wants(t, bob.says("codes"), "could not run")
	same(t, "again", bob.says("define codes help marks # of reports"), "codes stands for: help marks # of reports\n")
	wants(t, ann.says("codes"), "A mark is derived")
	next := arrives(t, desk(t, db), "next", false)
	wants(t, next.says("codes"), "A mark is derived")
	same(t, "rm", ann.says("define rm codes"), "codes stands for nothing any more\n")
	wants(t, bob.says("codes"), "error: unknown command \"codes\"")
}

func TestDefine(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	for _, tt := range []struct{ line, want string }{
		{"define ?", "no definition's name has ? in it\n"},
		{"define x", "no definition's name has x in it\n"},
		{"define a status ; help codes # both", "a stands for: status ; help codes # both\n"},
		{"  define 'b' reports mix=errors 'rate>=200' -n $", "b stands for: reports mix=errors 'rate>=200' -n $\n"},
		{`define c explain test 1s --label '$1;' --seed $1 --label \$`, "c stands for: explain test 1s --label '$1;' --seed $1 --label \\$\n"},
		{"define d -- status", "d stands for: -- status\n"},
		{"define --csv ?", "name,origin,words\na,own,status ; help codes # both\nb,own,reports mix=errors 'rate>=200' -n $\nc,own,explain test 1s --label '$1;' --seed $1 --label \\$\nd,own,-- status\n"},
		{"define ?", "name  origin  words\na     own     status ; help codes # both\nb     own     reports mix=errors 'rate>=200' -n $\nc     own     explain test 1s --label '$1;' --seed $1 --label \\$\nd     own     -- status\n"},
		{"define b", "name  origin  words\nb     own     reports mix=errors 'rate>=200' -n $\n"},
		{"define [", "no definition's name has [ in it\n"},
		{"define rm", "error: define: NAME is missing after rm\nhint: \n"},
		{"define rm elephant", "error: define: \"elephant\" is not defined\nhint: define lists what is\n"},
		{"define rm ä", "error: define: \"ä\" is not defined\nhint: did you mean a?\n"},
		{"define rm a b", "error: define: \"a b\" is not one name\nhint: \n"},
		{"define rm d # it is of no use", "d stands for nothing any more\n"},
		{"define # list", "name    origin    words\na       own       status ; help codes # both\nagents  built in  test 20s "},
		{"b 5", "no report\n"},

		// Names.
		{"define status help", "error: define: \"status\" is a command\nhint: choose another name\n"},
		{"define relay help", "error: define: \"relay\" is a command\nhint: choose another name\n"},
		{"define db help", "error: define: \"db\" is a command\nhint: choose another name\n"},
		{"define 'a b' help", "error: define: \"a b\" is no name"},
		{"define '' help", "no definition's name has '' help in it\n"},
		{"define '$' help", "error: define: \"$\" is no name"},
		{"define " + strings.Repeat("x", 65) + " help", "error: define: \"xxx"},
		{"define ä\u00a0ö help", "error: define: \"ä\\u00a0ö\" is no name"},

		// Words.
		{"define e x 'y", "error: define: quote ' is not closed: 'y\nhint: \n"},
		{"define e ;", "error: define: definition is empty: \";\"\nhint: \n"},
		{"define e x $0", "error: define: $0 is no word"},
		{"define e status; define f x", "error: define: define stands first in its line, and not in a definition\nhint: \n"},
		{"status; define e x", "error: define stands first in its line: what follows is its own, to the line's end\nhint: \n"},

		// Circles.
		{"define e e", "error: define: \"e\" would lead back to itself: e → e\nhint: nothing was defined\n"},
		{"define e status; f 'x'", "e stands for: status; f 'x'\n"},
		{"define g x ; e", "g stands for: x ; e\n"},
		{"define f status ; 'g'", "error: define: \"f\" would lead back to itself: f → g → e → f\nhint: nothing was defined\n"},
		{"f", "error: unknown command \"f\""},
	} {
		got := ann.says(tt.line)
		if whole := strings.HasSuffix(tt.want, "\n"); whole && got != tt.want || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%.60s:\n got %q\nwant %q", tt.line, got, tt.want)
		}
	}
}

// Definitions that double each other are looked through once.
func TestCircleIsFoundSoon(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	ann.says("define a0 status")
	for i := range 40 {
		if said := ann.says(fmt.Sprintf("define a%d a%d; a%d", i+1, i, i)); strings.HasPrefix(said, "error") {
			t.Fatal(said)
		}
	}
	wants(t, ann.says("a40"), "error: line uses definitions more than 1000 times")
	wants(t, ann.says("define a0 a40"), "\"a0\" would lead back to itself: a0 → a40 → a39")
}

// Where the store is held by another, what needs no definition still works, and what may need one says so.
func TestDefinitionsOfAStoreThatIsHeld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relaybench.db")
	holder := NewBench(Config{DB: path})
	if err := holder.Open(); err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	ann := &person{t: t}
	ann.Session = NewBench(Config{DB: path}).NewSession(Client{Out: ann})
	wants(t, ann.says("help codes"), "could not run")
	wants(t, ann.says("mine"), "error: unknown command \"mine\"\nhint: ", "definitions cannot be looked up: store ", "is held by process")
}

func TestExplain(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	ann.says("define three test 1s --rate $1 ; test 2s --rate $2; status")
	code, said := ann.does(t.Context(), "explain three 5 7")
	if !strings.HasPrefix(said, "test 1s --rate 5\ntest 2s --rate 7\nstatus\n\ntest 1s --rate 5\n1 run, against stand-in: 1s of load") || strings.Count(said, "1 run, ") != 2 || code != Fine {
		t.Errorf("code %d:\n%s", code, said)
	}
	for line, want := range map[string]string{
		"explain status":             "status\n",
		"explain show":               "show\nerror: explain: show: REPORT is missing\nhint: \n",
		"explain statsu":             "statsu\nerror: explain: unknown command \"statsu\"\nhint: did you mean status?\n",
		"explain explain test 1s":    "explain test 1s\n",
		"explain 'help; quit'":       "help\nquit\n",
		"explain \"name 'a;b'\"":     "name 'a;b'\n",
		"explain 'x'\\''y'":          "error: explain: quote ' is not closed: 'y\nhint: \n",
		"explain test 1s --rat 5":    "error: explain: test: unknown flag --rat\nhint: did you mean --rate?\n",
		"explain define x 'a;b'":     "define x 'a;b'\n",
		"explain define x a; status": "define x a\nrelay ",
	} {
		if got := ann.says(line); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", line, got, want)
		}
	}
	if ann.Quit() || len(states(b)) > 0 {
		t.Error("something was done")
	}
	var plans []map[string]any
	if said := ann.says("explain test 1s --rate 5,6 --json"); json.Unmarshal([]byte(said), &plans) != nil || len(plans) != 2 || plans[1]["rate"] != "6" {
		t.Errorf("plans %v of %q", plans, said)
	}
}

func TestSessionsOwn(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	for _, tt := range []struct{ line, want string }{
		{"set", "format  text\ncolor   off\nwidth   100\n"},
		{"set format json; set format; set", "json\nformat  json\ncolor   off\nwidth   100\n"},
		{"set format text; set color on; set color; set width 80; set width", "on\n80\n"},
		{"set width off; set width; set color off", "off\n"},
		{"set format xml", "error: set: format \"xml\" is not text, json, csv or markdown\nhint: \n"},
		{"set color blue", "error: set: color \"blue\" is not on or off\nhint: \n"},
		{"set width 5", "error: set: width \"5\" is not 20 to 1000, or off\nhint: \n"},
		{"set width -5", "error: set: unknown flag -5"},
		{"set fromat json", "error: set: no setting \"fromat\"\nhint: did you mean format?\n"},
		{"name bob the  builder", ""},
		{"name ''", "error: name: name \"\" is not of 1 to 40 characters that can be seen\nhint: \n"},
		{"name 'a\x1b[2Jb'", "error: name: name \"a\\x1b[2Jb\" is not of"},
		{"name " + strings.Repeat("ä", 41), "error: name: name "},
		{" name secret", ""},
		{"history -n 2", "name " + strings.Repeat("ä", 41) + "\nhistory -n 2\n"},
		{"history -n 0", "error: history: -n 0 is not 1 or more\nhint: \n"},
		{"history -n 1 --json", "[\n  {\n    \"line\": \"history -n 1 --json\"\n  }\n]\n"},
	} {
		if got := ann.says(tt.line); got != tt.want && (strings.HasSuffix(tt.want, "\n") || tt.want == "" || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%.40s:\n got %q\nwant %q", tt.line, got, tt.want)
		}
	}
	same(t, "name", ann.Name(), "secret")
	if said := ann.says("history"); strings.Contains(said, "secret") || strings.Count(said, "\n") != 17 {
		t.Errorf("history %q", said)
	}

	// The screen's width counts until one is set.
	ann.Resize(40)
	if got := ann.client.Width; got != 0 {
		t.Errorf("width %d, want what was set, 0", got)
	}
	eve := arrives(t, b, "eve", true)
	eve.Resize(40)
	if got := eve.client.Width; got != 40 {
		t.Errorf("width %d, want 40", got)
	}
	for range 2 * maxLines {
		eve.says("name eve")
	}
	if n := len(eve.lines); n != maxLines {
		t.Errorf("%d lines are kept, want %d", n, maxLines)
	}
	eve.Do(context.Background(), "quit; status", func(*Failure) bool { return true })
	if !eve.Quit() || eve.hears() != "" {
		t.Error("did not quit")
	}
}

func TestBanner(t *testing.T) {
	t.Parallel()
	b := NewBench(Config{DB: filepath.Join(t.TempDir(), "r.db")})
	defer b.Close()
	banner := b.Banner()
	if len(banner) != 3 {
		t.Fatalf("%q", banner)
	}
	wants(t, banner[0], "relaybench ", "r.db")
	wants(t, banner[1], "relay in use: stand-in")
	wants(t, banner[2], "help", "test 10s")
	held := NewBench(b.config)
	if b := held.Banner(); len(b) != 3 || !strings.Contains(b[0], "could not be opened") {
		t.Errorf("of a store that is held: %q", b)
	}
}
