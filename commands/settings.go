package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"relaybench/commands/line"
	"relaybench/commands/table"
	"relaybench/harness/variable"
)

// quitCommand is the command that leaves, by one of its names.
func quitCommand(name string) command {
	return command{
		name:    name,
		summary: "leave",
		detail:  "In a script, the lines after it are not run.",
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) {
				s.done = true
				return Fine, nil
			}
		},
	}
}

// maxLines is how many lines of a session are remembered.
const maxLines = 1000

// remember keeps a line that was typed, unless it begins with a blank.
func (s *Session) remember(text string) {
	text = strings.TrimRight(text, "\r\n")
	if strings.TrimSpace(text) == "" || unicode.IsSpace(rune(text[0])) || len(text) > line.Max || !utf8.ValidString(text) {
		return
	}
	if s.lines = append(s.lines, text); len(s.lines) > maxLines {
		s.lines = s.lines[len(s.lines)-maxLines:]
	}
}

var historyCommand = command{
	name:     "history",
	summary:  "the lines of this session",
	detail:   "A line that begins with a blank is not kept.",
	examples: []string{"history", "history -n 20"},
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		n := fs.IntP("number", "n", maxLines, "the newest `N`")
		return func(context.Context, []string) (Code, error) {
			if *n < 1 {
				return Fine, usageError(fmt.Errorf("-n %d is not 1 or more", *n), "")
			}
			lines := s.lines[max(0, len(s.lines)-*n):]
			t := &table.Table{Columns: []table.Column{{Key: "line"}}}
			for _, l := range lines {
				if s.format == Text {
					if err := s.printf("%s\n", table.Clean(l)); err != nil {
						return Fine, err
					}
				}
				t.Add(table.Text(l))
			}
			if s.format == Text {
				return Fine, nil
			}
			return Fine, s.print(t)
		}
	},
}

const maxClientName = 40

var nameCommand = command{
	name:     "name",
	summary:  "say who you are: status says whose a job is",
	args:     []arg{{name: "TEXT", help: "of at most 40 characters", many: true}},
	examples: []string{"name bob", "name nightly run"},
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(_ context.Context, args []string) (Code, error) {
			name := strings.TrimSpace(strings.Join(args, " "))
			if n := utf8.RuneCountInString(name); n < 1 || n > maxClientName || table.Clean(name) != name {
				return Fine, usageError(fmt.Errorf("name %q is not of 1 to %d characters that can be seen", name, maxClientName), "")
			}
			s.name = name
			return Fine, nil
		}
	},
}

// choice is something that a client says of its output.
type choice struct {
	name, values, help string
	get                func(*Session) string
	set                func(*Session, string) bool // whether the value is one
	offer              []string
}

// formatNames are the formats by name.
var formatNames = map[string]Format{"text": Text, "json": JSON, "csv": CSV, "markdown": Markdown}

var choices = []choice{
	{"format", "text, json, csv or markdown", "the form of all output", func(s *Session) string {
		for name, f := range formatNames {
			if f == s.client.Format {
				return name
			}
		}
		return ""
	}, func(s *Session, v string) bool {
		f, ok := formatNames[v]
		if ok {
			s.client.Format, s.format = f, f
		}
		return ok
	}, []string{"text", "json", "csv", "markdown"}},
	{"color", "on or off", "whether output is coloured", func(s *Session) string {
		if s.client.Color {
			return "on"
		}
		return "off"
	}, func(s *Session, v string) bool {
		if v != "on" && v != "off" {
			return false
		}
		s.client.Color = v == "on"
		return true
	}, []string{"on", "off"}},
	{"width", "20 to 1000, or off", "columns that tables are to fit into", func(s *Session) string {
		if s.client.Width == 0 {
			return "off"
		}
		return strconv.Itoa(s.client.Width)
	}, func(s *Session, v string) bool {
		n, err := strconv.Atoi(v)
		if v == "off" {
			n, err = 0, nil
		} else if n < 20 || n > 1000 {
			return false
		}
		if err == nil {
			s.client.Width, s.fixed = n, true
		}
		return err == nil
	}, []string{"off", "80", "120"}},
}

func choiceNames() (names []string) {
	for _, t := range choices {
		names = append(names, t.name)
	}
	return names
}

var setCommand = command{
	name:    "set",
	summary: "how output looks to this client",
	detail:  choiceHelp(),
	args: []arg{{name: "NAME", help: strings.Join(choiceNames(), ", "), optional: true, values: fixedValues(choiceNames()...)},
		{name: "VALUE", help: "the value; without one, what it is", optional: true, values: chosenValues}},
	examples: []string{"set", "set format json", "set width 120"},
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(_ context.Context, args []string) (Code, error) {
			if len(args) == 0 {
				for _, t := range choices {
					if err := s.printf("%-8s%s\n", t.name, t.get(s)); err != nil {
						return Fine, err
					}
				}
				return Fine, nil
			}
			for _, t := range choices {
				switch {
				case t.name != args[0]:
				case len(args) == 1:
					return Fine, s.printf("%s\n", t.get(s))
				case !t.set(s, args[1]):
					return Fine, usageError(fmt.Errorf("%s %q is not %s", t.name, args[1], t.values), "")
				default:
					return Fine, nil
				}
			}
			return Fine, usageError(fmt.Errorf("no setting %q", args[0]), didYouMean(variable.Nearest(args[0], choiceNames()), "there is "+oneOf(choiceNames())))
		}
	},
}

func choiceHelp() string {
	var b strings.Builder
	for _, t := range choices {
		fmt.Fprintf(&b, "  %-8s%s: %s\n", t.name, t.values, t.help)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
