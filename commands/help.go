package commands

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
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
		args:     []arg{{name: "COMMAND|TOPIC", help: "a command's name, a group of them or all, a topic, or the name of a mark, metric or variable", optional: true, many: true, values: helpValues}},
		examples: []string{"help", "help test", "help marks", "help host-busy"},
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(_ context.Context, args []string) (Code, error) {
				if len(args) == 0 {
					return Fine, s.help()
				}
				name := strings.Join(args, " ")
				if name == allCommands {
					return Fine, s.helpGroup("")
				}
				names := []string{allCommands}
				for _, g := range groups {
					if g.name == name {
						return Fine, s.helpGroup(name)
					}
					names = append(names, g.name)
				}
				var under []string
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
				if said := s.saidOf(name); said != "" {
					return Fine, s.printf("%s", said)
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
				for _, w := range helpWords() {
					names = append(names, w.name)
				}
				return Fine, usageError(fmt.Errorf("no help on %q", name),
					didYouMean(variable.Nearest(name, names), "help lists commands and topics"))
			}
		},
	}
}

// help is the one screen that says what there is: on 24 rows of 80 columns, the commands by their groups.
func (s *Session) help() error {
	list := listing()
	for _, g := range groups {
		var names []string
		for i := range s.commands {
			if s.commands[i].group == g.name {
				names = append(names, s.commands[i].name)
			}
		}
		list.Add(table.Text(g.name), table.Text(g.summary))
		list.Add(table.Text(""), table.Text(strings.Join(names, ", ")))
	}
	var b strings.Builder
	if err := list.Text(&b, s.helpWidth()); err != nil {
		return err
	}
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return s.printf("%s\n\n%s\n%s\nTo begin: test 10s --rate 200\n",
		s.helpText("relaybench load-tests Sentry's Relay on its own, and accounts for every item."), b.String(),
		s.helpText("help COMMAND says more, with flags and examples; help GROUP and help all list commands with what they do. help TOPIC, of: "+strings.Join(names, ", ")+"."))
}

// allCommands stands for all groups.
const allCommands = "all"

// helpGroup is a line for each command of a group, "" for all, without its
// arguments where the screen has no room for them.
func (s *Session) helpGroup(group string) error {
	list, wide := s.helpList(group, (*command).brief)
	if wide > s.helpWidth() {
		list, _ = s.helpList(group, func(c *command) string { return c.name })
	}
	return s.printf("%s", list)
}

// helpList is the commands of a group, "" for all, and how many columns that takes.
func (s *Session) helpList(of string, named func(*command) string) (list string, wide int) {
	t := &table.Table{Columns: []table.Column{{}, {}, {}}}
	group := ""
	for i := range s.commands {
		c := &s.commands[i]
		if of != "" && of != c.group {
			continue
		}
		head := c.group
		if head == group {
			head = ""
		}
		group = c.group
		t.Add(table.Text(head), table.Text(named(c)), table.Text(c.summary))
	}
	var b strings.Builder
	_ = t.Text(&b, 0) // to a builder
	return b.String(), text.LongestLineLen(b.String())
}

// listing is a table of names, and what is said of each, without heads.
func listing() *table.Table {
	return &table.Table{Columns: []table.Column{{}, {Wrap: true}}}
}

// helpOn is what there is to say of a command.
func (s *Session) helpOn(c *command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", c.usage(), s.helpText(c.summary))
	if c.detail != "" {
		fmt.Fprintf(&b, "\n%s\n", s.helpText(c.detail))
	}
	if len(c.args) > 0 {
		list := listing()
		for _, a := range c.args {
			list.Add(table.Text("  "+a.usage()), table.Text(a.help))
		}
		b.WriteByte('\n')
		if err := list.Text(&b, s.helpWidth()); err != nil {
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
		switch {
		case c.inner != "":
			where = "before " + c.inner + ", whose own follow it"
		case c.line:
			where = "before the arguments"
		}
		b.WriteString("\nflags, " + where + ", with one dash or two:\n")
		if err := list.Text(&b, s.helpWidth()); err != nil {
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

// How wide prose is where no screen says so: beside figures, and in help, which
// is read by people, whose screens may have no more.
const (
	proseWidth = 100
	helpWidth  = 80
)

// width is how wide prose may be.
func (s *Session) width() int { return cmp.Or(s.client.Width, proseWidth) }

// helpWidth is how wide help may be.
func (s *Session) helpWidth() int { return cmp.Or(s.client.Width, helpWidth) }

// wrap fits a text into the screen.
func (s *Session) wrap(t string) string { return wrap(t, s.width()) }

// helpText is the same for help.
func (s *Session) helpText(t string) string { return wrap(t, s.helpWidth()) }

// wrap fits a text into a width. Its lines of prose make paragraphs; a line
// with a blank before it, or with two among its words, is a row, whose last column is
// wrapped below itself. A line of blanks up to there goes on with it.
func wrap(t string, width int) string {
	var out []string
	var prose string
	var last row
	end := func() {
		if prose != "" {
			out = append(out, wrapped(prose, "", width)...)
		}
		if last.text != "" {
			out = append(out, last.wrapped(width)...)
		}
		prose, last = "", row{}
	}
	for l := range strings.SplitSeq(t, "\n") {
		r, isRow := rowOf(l)
		switch {
		case l == "":
			end()
			out = append(out, "")
		case isRow && r.head == "" && last.text != "" && r.hang == last.hang:
			last.text += " " + r.text
		case isRow:
			end()
			last = r
		case prose == "":
			end()
			prose = l
		default:
			prose += " " + l
		}
	}
	end()
	return strings.Join(out, "\n")
}

// row is a line of columns: those before the last one, as they are, where the last one begins, and its text.
type row struct {
	head string
	hang int // columns
	text string
}

// columns are what of a line is before its last column.
var columns = regexp.MustCompile(`^( *\S.*?  +| +)`)

// rowOf is a line as a row, if it is one.
func rowOf(l string) (row, bool) {
	before := columns.FindString(l)
	if before == "" {
		return row{}, false
	}
	r := row{head: before, hang: text.StringWidth(before), text: l[len(before):]}
	if strings.TrimSpace(before) == "" {
		r.head = ""
	}
	return r, true
}

func (r row) wrapped(width int) []string {
	blank := strings.Repeat(" ", r.hang)
	lines := wrapped(r.text, blank, width)
	if r.head != "" {
		lines[0] = r.head + strings.TrimPrefix(lines[0], blank)
	}
	return lines
}

// wrapped is prose in lines of a width, with something before each.
func wrapped(prose, before string, width int) []string {
	room := max(width-text.StringWidth(before), 20)
	lines := strings.Split(text.WrapSoft(prose, room), "\n")
	for i := range lines {
		lines[i] = before + strings.TrimRight(lines[i], " ")
	}
	return lines
}

func (s *Session) helpTopic(t topic) error {
	said, err := t.say(s)
	if err != nil {
		return err
	}
	return s.printf("%s: %s\n\n%s\n", t.name, t.summary, strings.TrimRight(said, "\n"))
}
