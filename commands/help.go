package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/variable"
)

// helpCommand is made by a function, for it refers to the table that it stands in.
func helpCommand() command {
	return command{
		name:     "help",
		summary:  "what there is, and how a command is typed",
		args:     []arg{{name: "COMMAND|TOPIC", help: "a command's name, or a topic", optional: true, many: true, values: helpValues}},
		examples: []string{"help", "help test", "help marks"},
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(_ context.Context, args []string) (Code, error) {
				if len(args) == 0 {
					return Fine, s.help()
				}
				name := strings.Join(args, " ")
				var under []string
				var names []string
				for i := range s.commands {
					c := &s.commands[i]
					if c.name == name {
						return Fine, s.helpOn(c)
					}
					if strings.HasPrefix(c.name, name+" ") {
						under = append(under, c.name)
					}
					names = append(names, c.name)
				}
				for _, t := range topics() {
					if t.name == name {
						return Fine, s.helpTopic(t)
					}
					names = append(names, t.name)
				}
				if len(under) > 0 {
					for _, n := range under {
						c, _, err := lookup(s.commands, strings.Fields(n))
						if err != nil {
							return Fine, err
						}
						if err := s.helpOn(c); err != nil {
							return Fine, err
						}
					}
					return Fine, nil
				}
				return Fine, usageError(fmt.Errorf("no help on %q", name),
					didYouMean(variable.Nearest(name, names), "help lists commands and topics"))
			}
		},
	}
}

// help is the one screen that says what there is.
func (s *Session) help() error {
	var b strings.Builder
	b.WriteString("relaybench load-tests Sentry's Relay on its own, and accounts for every item that it sends.\n\n")
	list := &table.Table{Columns: []table.Column{{}, {}, {Wrap: true}}}
	group := ""
	for i := range s.commands {
		c := &s.commands[i]
		head := c.group
		if head == group {
			head = ""
		}
		group = c.group
		list.Add(table.Text(head), table.Text(c.brief()), table.Text(c.summary))
	}
	if err := list.Text(&b, s.width()); err != nil {
		return err
	}
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	b.WriteString("\n" + s.wrap("help COMMAND says more, with flags and examples. help TOPIC, of: "+strings.Join(names, ", ")+".") + "\n")
	b.WriteString("To begin: test 10s --rate 200\n")
	return s.printf("%s", b.String())
}

// listing is a table of names, and what is said of each, without heads.
func listing() *table.Table {
	return &table.Table{Columns: []table.Column{{}, {Wrap: true}}}
}

// helpOn is what there is to say of a command.
func (s *Session) helpOn(c *command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", c.usage(), s.wrap(c.summary))
	if c.detail != "" {
		fmt.Fprintf(&b, "\n%s\n", s.wrap(c.detail))
	}
	if len(c.args) > 0 {
		list := listing()
		for _, a := range c.args {
			list.Add(table.Text("  "+a.usage()), table.Text(a.help))
		}
		b.WriteByte('\n')
		if err := list.Text(&b, s.width()); err != nil {
			return err
		}
	}
	fs := c.flags(s)
	if fs.HasFlags() {
		list := listing()
		fs.VisitAll(func(f *pflag.Flag) {
			name, help := flagHelp(f)
			list.Add(table.Text("  "+name), table.Text(help))
		})
		where := "before or after the arguments"
		if c.line {
			where = "before the arguments"
		}
		b.WriteString("\nflags, " + where + ", with one dash or two:\n")
		if err := list.Text(&b, s.width()); err != nil {
			return err
		}
	}
	if len(c.examples) > 0 {
		fmt.Fprintf(&b, "\nfor example\n  %s\n", strings.Join(c.examples, "\n  "))
	}
	return s.printf("%s", b.String())
}

// flagHelp is how a flag is typed, and what it does.
func flagHelp(f *pflag.Flag) (name, help string) {
	kind, help := pflag.UnquoteUsage(f)
	name = dashed(f)
	if f.Shorthand != "" && f.Shorthand != f.Name {
		name = dashes(f.Shorthand) + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	if d := f.DefValue; d != "" && d != "false" && d != "[]" {
		help += " (default " + d + ")"
	}
	return name, help
}

// proseWidth is how wide prose is where no screen says so.
const proseWidth = 100

// width is how wide prose may be.
func (s *Session) width() int {
	if s.client.Width <= 0 {
		return proseWidth
	}
	return s.client.Width
}

// wrap wraps the lines of a text that are wider than the screen.
func (s *Session) wrap(t string) string {
	width := s.width()
	if text.LongestLineLen(t) <= width {
		return t
	}
	lines := strings.Split(text.WrapSoft(t, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (s *Session) helpTopic(t topic) error {
	said, err := t.say(s)
	if err != nil {
		return err
	}
	return s.printf("%s: %s\n\n%s\n", t.name, t.summary, strings.TrimRight(said, "\n"))
}
