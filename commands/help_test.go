package commands

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/store"
)

// run gives what a line prints.
func run(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	s := NewBench(Config{DB: t.TempDir() + "/relaybench.db"}).NewSession(Client{Out: &out, Width: 100})
	s.Do(t.Context(), text, func(f *Failure) bool {
		t.Errorf("%s: %s", text, f.Text())
		return true
	})
	return out.String()
}

func TestEveryCommandHasHelp(t *testing.T) {
	all := run(t, "help all")
	seen := map[string]bool{}
	for _, c := range commandTable() {
		if seen[c.name] {
			t.Errorf("%s is in the table twice", c.name)
		}
		seen[c.name] = true
		if c.summary == "" || strings.HasSuffix(c.summary, ".") {
			t.Errorf("%s: summary %q", c.name, c.summary)
		}
		if !strings.Contains(all, "  "+c.brief()+" ") || !strings.Contains(all, c.summary) {
			t.Errorf("help does not list %s", c.name)
		}
		own := run(t, "help "+c.name)
		if !strings.HasPrefix(own, c.usage()+"\n"+c.summary) {
			t.Errorf("help %s begins with %.60q", c.name, own)
		}
		if flag := run(t, c.name+" --help"); flag != own {
			t.Errorf("%s --help is not help %s:\n%s", c.name, c.name, flag)
		}
		for i, a := range c.args {
			if a.help == "" || !strings.Contains(own, a.usage()) {
				t.Errorf("%s: argument %s is without help", c.name, a.name)
			}
			if last := i == len(c.args)-1; a.many && !last || !last && a.optional && !c.args[i+1].optional {
				t.Errorf("%s: argument %s cannot stand there", c.name, a.name)
			}
		}
		c.flags(nil).VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || !strings.Contains(own, dashed(f)) {
				t.Errorf("%s: flag %s is without help", c.name, dashed(f))
			}
			if strings.ContainsAny(f.Name, "_ ") || strings.ToLower(f.Name) != f.Name && len(f.Name) > 1 {
				t.Errorf("%s: flag %s is not lower-case-with-dashes", c.name, f.Name)
			}
		})
	}
}

// helped is what help prints to a client of a width, 0: unknown.
func helped(t *testing.T, width int, line string) string {
	t.Helper()
	var out strings.Builder
	s := NewBench(Config{DB: os.DevNull}).NewSession(Client{Out: &out, Width: width})
	s.Do(t.Context(), line, func(f *Failure) bool { t.Errorf("%s: %s", line, f.Text()); return true })
	return out.String()
}

// The screen that says what there is has every command, and room on the smallest terminal, its prompt included.
func TestHelpIsOneScreen(t *testing.T) {
	screen := helped(t, 80, "help")
	if n := strings.Count(screen, "\n"); n > 23 {
		t.Errorf("%d rows:\n%s", n, screen)
	}
	words := strings.Join(strings.Fields(screen), " ")
	for _, c := range commandTable() {
		i := slices.IndexFunc(groups, func(g struct{ name, summary string }) bool { return g.name == c.group })
		if i < 0 || !strings.Contains(words, groups[i].summary) || !regexp.MustCompile(`[a-z,] `+c.name+`[, ]`).MatchString(words) {
			t.Errorf("%s, of group %q, is not in\n%s", c.name, c.group, screen)
		}
	}
	for _, g := range groups {
		if slices.ContainsFunc(commandTable(), func(c command) bool { return c.name == g.name }) {
			t.Errorf("group %s is a command too: help on it is not to be had", g.name)
		}
	}
}

// The list of all commands has a line for each, and room for it in 80 columns.
func TestHelpOnAll(t *testing.T) {
	for _, width := range []int{80, 120} {
		all := helped(t, width, "help all")
		for _, c := range commandTable() {
			name := c.name
			if width > 100 {
				name = c.brief()
			}
			if !regexp.MustCompile(`(?m)^[a-z ]+  ` + regexp.QuoteMeta(name) + ` +` + regexp.QuoteMeta(c.summary) + `$`).MatchString(all) {
				t.Errorf("in %d columns, no line %q with %q in\n%s", width, name, c.summary, all)
			}
		}
		for l := range strings.Lines(all) {
			if n := len([]rune(l)) - 1; n > width {
				t.Errorf("in %d columns, a line of %d: %q", width, n, l)
			}
		}
	}
}

// Help fits any screen, and keeps rows apart that it has no room for.
func TestHelpWraps(t *testing.T) {
	lines := []string{"help", "help all"}
	for _, g := range groups {
		lines = append(lines, "help "+g.name)
	}
	for _, c := range commandTable() {
		lines = append(lines, "help "+c.name)
	}
	for _, topic := range topics() {
		lines = append(lines, "help "+topic.name)
	}
	for _, w := range helpWords() {
		lines = append(lines, "help "+w.name)
	}
	for width, most := range map[int]int{0: helpWidth, 80: 80, 132: 132} {
		for _, text := range lines {
			for l := range strings.Lines(helped(t, width, text)) {
				if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > most {
					t.Errorf("%s in %d columns: a line of %d: %q", text, width, n, l)
				}
			}
		}
	}
	got := helped(t, 50, "help latency")
	want := `through    from when a send was due to when its
           stamp arrived upstream, behind the
           relay. It alone shows saturation, so it
           comes first
response   from when a send was due to its answer,
`
	if !strings.Contains(got, want) {
		t.Errorf("rows in 50 columns:\n%s", got)
	}
	if got := helped(t, 60, "help line"); !regexp.MustCompile(`(?m)^A line has at most \d+ bytes, and is UTF-8\.$`).MatchString(got) {
		t.Errorf("paragraphs in 60 columns:\n%s", got)
	}
}

// Help says what a word of the output means, by each of its meanings.
func TestHelpOnWords(t *testing.T) {
	got := helped(t, 0, "help unaccounted")
	if !regexp.MustCompile(`(?s)^mark unaccounted: .*a notice\nmetric unaccounted: .*less is better\)\n$`).MatchString(got) {
		t.Errorf("unaccounted: %q", got)
	}
	for _, tt := range []struct{ kind, name string }{{"mark", "host-busy"}, {"metric", "through-p99"}, {"variable", "relay-branch"}, {"kind", "errors"}} {
		if got := helped(t, 0, "help "+tt.name); !strings.HasPrefix(got, tt.kind+" "+tt.name+": ") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// An example is a line that parses.
func TestExamplesParse(t *testing.T) {
	var out strings.Builder
	s := NewBench(Config{DB: os.DevNull}).NewSession(Client{Out: &out})
	for _, c := range commandTable() {
		if len(c.examples) == 0 && len(c.args) > 0 {
			t.Errorf("%s has no example", c.name)
		}
		for _, e := range c.examples {
			all, err := s.split(e)
			if err != nil || len(all) != 1 {
				t.Errorf("example %q: %d commands, %v", e, len(all), err)
				continue
			}
			found, rest, err := lookup(s.commands, all[0])
			if err != nil || found.name != c.name {
				t.Errorf("example %q is not of %s: %v", e, c.name, err)
				continue
			}
			if _, _, err := s.parse(found, rest); err != nil {
				t.Errorf("example %q: %v", e, err)
			}
		}
	}
}

func TestTopics(t *testing.T) {
	all := run(t, "help")
	for _, topic := range topics() {
		if c, _, err := lookup(commandTable(), []string{topic.name}); err == nil {
			t.Errorf("topic %s has the name of command %s", topic.name, c.name)
		}
		if words := strings.Fields(all); !slices.Contains(words, topic.name+",") && !slices.Contains(words, topic.name+".") {
			t.Errorf("help does not list the topic %s", topic.name)
		}
		if said := run(t, "help "+topic.name); len(said) < 100 {
			t.Errorf("help %s says %q", topic.name, said)
		}
	}
	kinds, metrics, marks := run(t, "help kinds"), run(t, "help metrics"), run(t, "help marks")
	for _, k := range envelope.Kinds {
		if !strings.Contains(kinds, k.Name) {
			t.Errorf("help kinds is without %s", k.Name)
		}
	}
	for _, m := range store.Metrics {
		if !strings.Contains(metrics, m.Name) {
			t.Errorf("help metrics is without %s", m.Name)
		}
	}
	for _, m := range store.Marks {
		if !strings.Contains(marks, m.Name) {
			t.Errorf("help marks is without %s", m.Name)
		}
	}
	test := run(t, "help test")
	for _, k := range plan.Knobs {
		if !k.Positional && k.By == nil && !strings.Contains(test, "--"+k.Name) {
			t.Errorf("help test is without --%s", k.Name)
		}
	}
}

func TestHelpOnGroup(t *testing.T) {
	if said := run(t, "help relay"); !strings.Contains(said, "relay use [WHAT]") || strings.Contains(said, "collate") {
		t.Errorf("help relay: %q", said)
	}
	if said := run(t, "help db"); !strings.Contains(said, "db info") || !strings.Contains(said, "db backup FILE") {
		t.Errorf("help db: %q", said)
	}
}

func TestReadmeHasEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commandTable() {
		if !strings.Contains(string(readme), "`"+c.name) {
			t.Errorf("README.md is without the command `%s`", c.name)
		}
	}
}
