package commands

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store/storetest"
)

// What is built in is offered for the knob, and default is what a plan has.
func TestBundledConfigs(t *testing.T) {
	k := plan.Find("config")
	if got, want := append([]string{k.Default}, k.Offers...), bundledNames(); !slices.Equal(got, want) {
		t.Errorf("offered are %q, built in %q", got, want)
	}
	for _, name := range bundledNames() {
		if !strings.Contains(k.Help, name) || configPath(name) {
			t.Errorf("%s: help %q, a path: %t", name, k.Help, configPath(name))
		}
	}
}

// The config that a client says is that of its runs, unless they say theirs, and of clients that come after it.
func TestConfigInUse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.yml")
	if err := os.WriteFile(file, []byte("limits:\n  max_concurrent_requests: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := desk(t, storetest.Open(t))
	var ran []plan.Plan
	ann, bob := arrives(t, b, "ann", false), arrives(t, b, "bob", false)
	uses := func(p *person, line string) string {
		t.Helper()
		ran = nil
		v := plan.Values{Knobs: map[string][]string{}}
		if line != "" {
			v.Knobs["config"] = []string{line}
		}
		plans, err := p.plans(&v, "10s")
		if err != nil {
			t.Fatal(err)
		}
		ran = plans
		return plans[0].Config
	}
	same(t, "at first", uses(ann, ""), "default")
	same(t, "tuned", ann.says("relay config tuned"), "runs use the config tuned\n")
	same(t, "then", uses(ann, ""), "tuned")
	if tuned, _ := relay.FindConfig("tuned"); ran[0].ConfigText != tuned.YAML || tuned.YAML == "" {
		t.Errorf("text %q", ran[0].ConfigText)
	}
	same(t, "by the line", uses(ann, "default"), "default")
	same(t, "by the file", uses(ann, file), file)
	next := arrives(t, b, "next", false)
	same(t, "next", uses(next, ""), "tuned")
	same(t, "bob came before", uses(bob, ""), "tuned")

	bob.says("relay config " + file)
	same(t, "bob's", uses(bob, ""), file)
	same(t, "ann's stays", uses(ann, ""), "tuned")
	remote := &person{t: t}
	remote.Session = b.NewSession(Client{Name: "it", Out: remote, Remote: true})
	same(t, "a remote one has no file", uses(remote, ""), "default")
	wants(t, ann.says("relay config "+file+".no"), "no such file")
	wants(t, ann.says("relay use none; relay config"), "its config is not ours to give")
	wants(t, ann.says("relay use stand-in; relay config"), "# config tuned of stand-in", "\n# hash, without what the run owns: ", "max_concurrent_requests: 1000\n")
	wants(t, bob.says("relay use stand-in; relay config --json"), `"config": "`+file+`"`, "max_concurrent_requests: 7")
	wants(t, ann.says("explain ab config=default config=tuned test 10s --mix sessions"), "config=tuned")
}

func TestTailOfTheLastRun(t *testing.T) {
	db := storetest.Open(t)
	b := desk(t, db)
	ann := arrives(t, b, "ann", false)
	wants(t, ann.says("relay tail"), "error: relay tail: ")
	r := storetest.Report(3)
	r.Result.Relay.Log = []string{
		`{"timestamp":"T1","level":"INFO","message":"one","target":"relay"}`, `{"timestamp":"T2","level":"ERROR","message":"two","target":"relay","error":"why"}`,
		`{"timestamp":"T3","level":"WARN","message":"three","target":"relay"}`, "plain \x1b[31m"}
	r.Result.Relay.Messages = []result.Message{}
	if err := db.Save(r); err != nil {
		t.Fatal(err)
	}
	const of = "of report "
	cut := func(said string) string { // the note's line
		if _, rest, ok := strings.Cut(said, ":\n"); ok && strings.HasPrefix(said, of) {
			return rest
		}
		return said
	}
	same(t, "all", cut(ann.says("relay tail")), "T1 INFO relay: one\nT2 ERROR relay: two error=why\nT3 WARN relay: three\nplain �[31m\n")
	same(t, "-n", cut(ann.says("relay tail -n 1 'ERROR|WARN'")), "T3 WARN relay: three\n")
	same(t, "-f, and no run", cut(ann.says("relay tail -f two")), "T2 ERROR relay: two error=why\n")
	wants(t, ann.says("relay tail --json two"), `"level": "ERROR"`, `"text": "two error=why"`)
	ann.client.Color = true
	said := cut(ann.says("relay tail -n 3"))
	if lines := strings.Split(said, "\n"); !strings.HasPrefix(lines[0], "\x1b[31mT2 ERROR") || !strings.HasPrefix(lines[1], "\x1b[33mT3 WARN") || strings.Contains(lines[2], "\x1b") {
		t.Errorf("coloured: %q", said)
	}
	ann.client.Color = false
	for line, says := range map[string]string{"relay tail '('": "is no regular expression", "relay tail -n -1": "is not 0 or more", "relay tail -f --json": "is text only"} {
		wants(t, ann.says(line), says)
	}
}

// The log of a relay that runs is followed until no job runs any more.
func TestTailOfARun(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", false)
	wants(t, ann.says("test 700ms --rate 20 --mix sessions --pool 10"), "j1 queued")
	said := bob.says("relay tail -f")
	if !strings.Contains(said, " INFO ") || strings.Contains(said, "error: ") {
		t.Errorf("heard %q", said)
	}
	if b.process.Load() != nil || b.queue.head() != nil {
		t.Error("it ended before the run did")
	}
	wants(t, bob.says("relay tail"), "of report ", " INFO ")

	ann.says("test 10s --rate 20 --mix sessions --pool 10")
	ctx, interrupt := interrupted(t)
	bob.came = make(chan struct{}, 1)
	done := make(chan Code)
	go func() {
		code, _ := bob.Do(ctx, "relay tail -f", func(*Failure) bool { return true })
		done <- code
	}()
	bob.until(" INFO ")
	interrupt()
	if code := <-done; code != Fine {
		t.Errorf("after Ctrl-C: code %d", code)
	}
	ann.says("cancel; wait")
}
