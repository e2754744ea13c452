package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"relaybench/commands/line"
	"relaybench/commands/table"
	"relaybench/harness/variable"
)

// The store keeps each definition under its name. What is in effect is the
// bench's: at once, for all clients.
const aliasShelf = "alias/"

const (
	maxAliases  = 1000
	maxNameLen  = 64
	removeAlias = "rm"
)

// builtIn are the definitions that every store has. They are looked at, changed
// and run like any other, so none may be named as a command; words typed after one are its test's.
var builtIn = map[string]string{
	// The cells of sngbench's peak matrix. Note: a peak is of a closed loop, of one machine, and no capacity.
	"peak":  "test 20s --rate max --connections 1,10,50,128,4x32,4x128 --config default --config tuned --repeat 3",
	"kinds": "test 20s --rate 300 --mix each",
	"rates": "test 20s --rate 200,500,1000 --mix mixed",
	// Note: unique ones need a pool of as many envelopes as are sent; the others have the same, for a pool is a condition.
	"agents": "test 20s --rate 200 --user-agents 20,5000,unique --pool 5000",
}

// builtInHelp is a line for each of them.
func builtInHelp() string {
	var b strings.Builder
	for _, name := range sorted(builtIn) {
		fmt.Fprintf(&b, "\n  %-7s %s", name, builtIn[name])
	}
	return b.String()
}

// defineCommand is made by a function, for it looks into the table that it stands in.
func defineCommand() command {
	return command{
		name:    "define",
		summary: "name commands; without WORDS, list such names",
		detail: `WORDS are the rest of the line, to its end, with ; and all: define is always the first of its
line. From then on NAME, as the first word of a command, stands for them, for all clients of
the store. Words typed after NAME are appended, unless WORDS have holes for them:
  $         one of the line's last words: the first $ takes the first of them
  $1 $2 $*  the first word after NAME, the second, all of them
  \$ '$'    a dollar
A definition may use others. explain says what a line expands to. With no word after it, NAME
is a part of names, or a pattern with * and ?, whose definitions are listed. Built in are:` + builtInHelp() + `
Words after them are their test's, as in peak --duration 5s --repeat 1. define gives them other
words, and define rm takes those back.`,
		args: []arg{{name: "NAME|PATTERN|rm", help: "the name; rm NAME removes one", optional: true, values: aliasValues},
			{name: "WORDS", help: "what it stands for; after rm, the name", optional: true}},
		examples: []string{"define ones test 30s --rate 100 --mix errors", "define co relay switch -fb $", "define do co ; ones", "define rm do", "define"},
		store:    true,
		table:    true,
		line:     true,
		rest:     true,
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(_ context.Context, args []string) (Code, error) {
				switch {
				case len(args) == 0:
					return Fine, s.listAliases("")
				case args[0] == removeAlias && len(args) == 1:
					return Fine, usageError(errors.New("NAME is missing after rm"), "")
				case args[0] == removeAlias:
					return Fine, s.undefine(args[1])
				case len(args) == 1:
					return Fine, s.listAliases(args[0])
				}
				return Fine, s.define(args[0], args[1])
			}
		},
	}
}

// definitions are all definitions, by name: the built-in ones, and those that were made. They are not to be changed.
func (b *Bench) definitions() (map[string]string, error) {
	made, err := b.defined()
	if err != nil {
		return nil, err
	}
	return effective(made), nil
}

// effective are all definitions where some were made.
func effective(made map[string]string) map[string]string {
	all := maps.Clone(builtIn)
	maps.Copy(all, made)
	return all
}

// defined are the definitions that were made here, by name. They are not to be changed.
func (b *Bench) defined() (map[string]string, error) {
	if absent, err := b.absent(); absent || err != nil {
		return nil, err
	}
	db, err := b.open()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.aliases == nil {
		shelf, err := db.Settings(aliasShelf)
		if err != nil {
			return nil, fmt.Errorf("definitions: %w", err)
		}
		b.aliases = map[string]string{}
		for k, v := range shelf {
			b.aliases[strings.TrimPrefix(k, aliasShelf)] = v
		}
	}
	return b.aliases, nil
}

// redefine changes what a name stands for, if check of the definitions that were made, as they would then be, has nothing
// against it; words "" removes it.
func (b *Bench) redefine(name, words string, check func(made map[string]string) error) error {
	if _, err := b.defined(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := maps.Clone(b.aliases)
	if changed[name] = words; words == "" {
		delete(changed, name)
	}
	if err := check(changed); err != nil {
		return err
	}
	if err := b.db.SetSetting(aliasShelf+name, words); err != nil {
		return err
	}
	b.aliases = changed
	return nil
}

// alias is what a name stands for in a line. No command's name does, whatever an earlier relaybench allowed.
func (s *Session) alias(name string) (words string, ok bool) {
	if s.reserved(name) {
		return "", false
	}
	all, err := s.bench.definitions()
	if err != nil {
		s.undefined = err
		return "", false
	}
	words, ok = all[name]
	return words, ok
}

// reserved says that a name is a command's, or the first word of one.
func (s *Session) reserved(name string) bool {
	return slices.ContainsFunc(s.commands, func(c command) bool { return c.name == name || strings.HasPrefix(c.name, name+" ") })
}

// define defines a name.
func (s *Session) define(name, words string) error {
	switch {
	case s.reserved(name):
		return usageError(fmt.Errorf("%q is a command", name), "choose another name")
	case len(name) > maxNameLen || !isName(name):
		return usageError(fmt.Errorf("%q is no name: a word of at most %d bytes, without quotes, spaces, $ ; # and \\, that begins with no dash", name, maxNameLen), "")
	}
	calls, err := line.Calls(words)
	if err != nil {
		return usageError(err, "")
	}
	if i := slices.IndexFunc(s.commands, func(c command) bool { return c.rest && slices.Contains(calls, c.name) }); i >= 0 {
		return usageError(fmt.Errorf("%s stands first in its line, and not in a definition", s.commands[i].name), "")
	}
	err = s.bench.redefine(name, words, func(made map[string]string) error {
		if len(made) > maxAliases {
			return hinted(fmt.Errorf("there are %d definitions already", maxAliases), "define rm NAME removes one")
		}
		if way := circle(effective(made), []string{name}, map[string]bool{}); way != nil {
			return usageError(fmt.Errorf("%q would lead back to itself: %s", name, strings.Join(way, " → ")), "nothing was defined")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.say("%s stands for: %s\n", name, table.Clean(words))
}

func isName(name string) bool {
	return name != "" && name[0] != '-' && name != removeAlias && line.Quote(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar })
}

// circle is a way by which the last of some names leads back to the first; nil where there is none. seen are names that lead nowhere.
func circle(all map[string]string, way []string, seen map[string]bool) []string {
	calls, err := line.Calls(all[way[len(way)-1]])
	if err != nil {
		return nil // nothing comes of it
	}
	for _, c := range calls {
		if c == way[0] {
			return append(way, c)
		}
		if _, ok := all[c]; ok && !seen[c] {
			seen[c] = true
			if found := circle(all, append(slices.Clip(way), c), seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// undefine removes definitions.
func (s *Session) undefine(typed string) error {
	all, err := line.Split(typed)
	if err != nil {
		return usageError(err, "")
	}
	if len(all) != 1 || len(all[0]) != 1 {
		return usageError(fmt.Errorf("%q is not one name", typed), "")
	}
	name := all[0][0]
	made, err := s.bench.defined()
	if err != nil {
		return err
	}
	words, isBuiltIn := builtIn[name]
	switch _, ok := made[name]; {
	case !ok && isBuiltIn:
		return usageError(fmt.Errorf("%q is built in, and stands for what it always does", name), "define "+name+" WORDS gives it other words")
	case !ok:
		known := effective(made)
		return usageError(fmt.Errorf("%q is not defined", name), didYouMean(variable.Nearest(name, sorted(known)), "define lists what is"))
	}
	// What is built in uses no definition, so that it closes no circle.
	if err := s.bench.redefine(name, "", func(map[string]string) error { return nil }); err != nil {
		return err
	}
	if isBuiltIn {
		return s.say("%s is what is built in again: %s\n", name, words)
	}
	return s.say("%s stands for nothing any more\n", name)
}

// listAliases prints the definitions whose names match a pattern, or have it in them.
func (s *Session) listAliases(pattern string) error {
	made, err := s.bench.defined()
	if err != nil {
		return err
	}
	all := effective(made)
	t := &table.Table{Columns: []table.Column{{Key: "name"}, {Key: "origin"}, {Key: "words", Wrap: true}}}
	for _, name := range sorted(all) {
		if is, err := path.Match(pattern, name); err == nil && is || strings.Contains(name, pattern) {
			t.Add(table.Text(name), table.Text(origin(name, made)), table.Text(all[name]))
		}
	}
	if s.format == Text && len(t.Rows) == 0 {
		return s.printf("no definition's name has %s in it\n", table.Clean(pattern))
	}
	return s.print(t)
}

// origin says where a definition is from.
func origin(name string, made map[string]string) string {
	_, isBuiltIn := builtIn[name]
	switch _, isMade := made[name]; {
	case isMade && isBuiltIn:
		return "changed"
	case isMade:
		return "own"
	}
	return "built in"
}
