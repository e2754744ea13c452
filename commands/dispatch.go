package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/line"
	"relaybench/harness/variable"
)

// MaxLine is the length of the longest line that is taken, in bytes.
const MaxLine = line.Max

// Do runs the commands of a line, one after another. Each that could not be
// done is told to failed, which says whether to go on with the next; nothing
// goes on once ctx has ended. It returns the gravest code, and whether there
// is more to do: false where the line quit, or was stopped.
//
// A ctx that ends with a cause that is [ErrInterrupted] is the client's
// Ctrl-C: it cancels the job that Do waits for or follows, and Do returns once
// that has stopped. With any other cause, such as [ErrLeft], the job goes on.
func (s *Session) Do(ctx context.Context, text string, failed func(*Failure) (goOn bool)) (code Code, more bool) {
	fail := func(f *Failure) bool {
		code = Gravest(code, f.Code)
		return failed(f) && ctx.Err() == nil
	}
	s.remember(text)
	s.undefined = nil
	all, err := s.split(text)
	if err != nil {
		f := failure(nil, err)
		f.JSON = s.format == JSON
		return f.Code, failed(f)
	}
	for _, words := range all {
		if ctx.Err() != nil {
			fail(failure(nil, context.Cause(ctx)))
			return code, false
		}
		c, f := s.command(ctx, words)
		if code = Gravest(code, c); f != nil && !fail(f) {
			return code, false
		}
		if s.done {
			return code, false
		}
	}
	return code, ctx.Err() == nil
}

// split is the commands of a line, with definitions expanded.
func (s *Session) split(text string) ([][]string, error) {
	if words := s.whole(text); words != nil {
		return [][]string{words}, nil
	}
	all, err := line.Split(text)
	if err != nil {
		return nil, usageError(err, "")
	}
	for _, words := range all {
		if c, _, err := lookup(s.commands, words); err == nil && c.rest {
			return nil, usageError(fmt.Errorf("%s stands first in its line: what follows is its own, to the line's end", c.name), "")
		}
	}
	if all, err = line.Expand(all, s.alias); err != nil {
		return nil, usageError(err, "define NAME shows what a name stands for")
	}
	return all, nil
}

// whole is the words of a line that is one command to its end, the last of
// them as it was typed; nil where the line is none of that sort.
func (s *Session) whole(text string) []string {
	name, after := line.First(text)
	i := slices.IndexFunc(s.commands, func(c command) bool { return c.rest && c.name == name })
	if i < 0 || len(text) > line.Max {
		return nil
	}
	words := []string{name}
	for n := len(s.commands[i].args) - 1; n > 0; {
		w, rest := line.First(after)
		if w == "" {
			break
		}
		words, after = append(words, w), rest
		if !strings.HasPrefix(w, "-") {
			n--
		}
	}
	if raw := strings.TrimSpace(after); raw != "" && raw[0] != '#' {
		words = append(words, raw)
	}
	return words
}

// command runs one command. A panic in it is an error of its own, and harms nothing else.
func (s *Session) command(ctx context.Context, words []string) (code Code, f *Failure) {
	defer func() { s.format = s.client.Format }()
	c, rest, err := lookup(s.commands, words)
	if err != nil && s.undefined == nil {
		c, rest, err = lookup(s.commands, words, aliasValues(s, nil, "")...)
	}
	if err != nil && s.undefined != nil { // it may be a definition's name
		err = hinted(err, "definitions cannot be looked up: "+s.undefined.Error())
	}
	if err == nil {
		s.typed = line.Join(words)
		code, err = s.guarded(func() (Code, error) {
			do, args, err := s.parse(c, rest)
			if err != nil {
				return Fine, err
			}
			if c.store {
				if _, err := s.bench.open(); err != nil {
					return Fine, err
				}
			}
			return do(ctx, args)
		})
	}
	if err != nil {
		f := failure(c, err)
		f.JSON = s.format == JSON
		return f.Code, f
	}
	return code, nil
}

// guarded makes of a panic an error.
func (s *Session) guarded(do func() (Code, error)) (code Code, err error) {
	defer func() {
		if r := recover(); r != nil {
			code, err = Fine, s.bench.fault(r)
		}
	}()
	return do()
}

// lookup finds the command that words name, and gives the words after its name.
// Where there is none, the nearest name is told, more among them.
func lookup(table []command, words []string, more ...string) (*command, []string, error) {
	first := false
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		for i := range table {
			if table[i].name == name {
				return &table[i], words[n:], nil
			}
			first = first || strings.HasPrefix(table[i].name, words[0]+" ")
		}
	}
	name := words[0]
	names, near := slices.Clone(more), []string(nil)
	for _, c := range table {
		names = append(names, c.name)
		if strings.HasPrefix(c.name, words[0]+" ") {
			near = append(near, c.name)
		}
	}
	if first {
		if len(words) == 1 {
			return nil, nil, usageError(fmt.Errorf("%q is not a command by itself", name), "there is "+oneOf(near))
		}
		name = words[0] + " " + words[1]
		return nil, nil, usageError(fmt.Errorf("unknown command %q", name), "there is "+oneOf(near))
	}
	return nil, nil, usageError(fmt.Errorf("unknown command %q", name),
		didYouMean(variable.Nearest(name, names), "help lists the commands"))
}

// parse reads a command's flags and arguments, and gives what does it.
func (s *Session) parse(c *command, words []string) (work, []string, error) {
	fs, do := c.bind(s)
	own := words[:c.innerAt(fs, words)]
	err := fs.Parse(secondDashes(fs, own, c.line && c.inner == ""))
	if errors.Is(err, pflag.ErrHelp) {
		return func(context.Context, []string) (Code, error) { return Fine, s.helpOn(c) }, nil, nil
	}
	if err != nil {
		return nil, nil, flagError(fs, err)
	}
	if c.table {
		var as []string
		for _, name := range []string{"json", "csv", "markdown"} {
			if is, _ := fs.GetBool(name); is {
				as, s.format = append(as, "--"+name), formatNames[name]
			}
		}
		if len(as) > 1 {
			return nil, nil, usageError(errors.New(strings.Join(as, " and ")+" at once"), "")
		}
	}
	args := append(fs.Args(), words[len(own):]...)
	least, most := 0, len(c.args)
	for _, a := range c.args {
		if !a.optional {
			least++
		}
		if a.many {
			most = len(args)
		}
	}
	switch {
	case len(args) < least:
		return nil, nil, usageError(fmt.Errorf("%s is missing", c.args[len(args)].name), "")
	case len(args) > most:
		return nil, nil, usageError(fmt.Errorf("%q is one word too many", args[most]), "")
	}
	return do, args, s.gate(c, fs, args)
}

// innerAt is where the line of a command begins that takes one and has a word
// for its beginning; else, and where that word is missing, behind all words.
func (c *command) innerAt(fs *pflag.FlagSet, words []string) int {
	for i := 0; c.inner != "" && i < len(words); i++ {
		w := words[i]
		if w == c.inner {
			return i
		}
		if f := flagOf(fs, w); strings.HasPrefix(w, "-") && f != nil && f.NoOptDefVal == "" && !strings.Contains(w, "=") {
			i++ // its value
		}
	}
	return len(words)
}

// secondDashes gives each whole long name its second dash: pflag takes -json
// for the letters j, s, o, n.
func secondDashes(fs *pflag.FlagSet, words []string, first bool) []string {
	out := make([]string, 0, len(words))
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" || first && !strings.HasPrefix(w, "-") {
			return append(out, words[i:]...)
		}
		name, _, valued := strings.Cut(strings.TrimLeft(w, "-"), "=")
		f := fs.Lookup(name)
		long := f != nil && len(w) > 1 && w[0] == '-' && (len(name) > 1 || w[1] == '-')
		if long && w[1] != '-' {
			w = "-" + w
		}
		out = append(out, w)
		takes := long && f.NoOptDefVal == "" && !valued
		if !long && len(w) == 2 && w[0] == '-' {
			f = fs.ShorthandLookup(w[1:])
			takes = f != nil && f.NoOptDefVal == ""
		}
		if takes && i+1 < len(words) { // its value, whatever it looks like
			i++
			out = append(out, words[i])
		}
	}
	return out
}

// flagError is what pflag says, in the words of this program.
func flagError(fs *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	var valueless *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if d, err := time.ParseDuration(unknown.GetSpecifiedShortnames()); err == nil && d != 0 {
			return usageError(fmt.Errorf("-%s: a duration cannot be negative", unknown.GetSpecifiedShortnames()), "")
		}
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			name = short
		}
		var names []string
		fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		near := variable.Nearest(name, names)
		if near != "" {
			near = dashed(fs.Lookup(near))
		}
		return usageError(fmt.Errorf("unknown flag %s", dashes(name)), didYouMean(near, "help "+fs.Name()+" lists the flags"))
	case errors.As(err, &valueless):
		return usageError(fmt.Errorf("%s needs a value", dashed(valueless.GetFlag())), "")
	case errors.As(err, &invalid):
		return usageError(fmt.Errorf("%s: %w", dashed(invalid.GetFlag()), invalid.Unwrap()), "")
	}
	return usageError(err, "")
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func dashed(f *pflag.Flag) string { return dashes(f.Name) }
