package commands

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/line"
	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/store"
)

// values are what may stand for an argument or a flag, as far as that can be
// listed; before are the arguments before it. Those that do not begin as was typed are left out later.
type values func(s *Session, before []string, typed string) []string

// most is how many candidates are given, and how many values a variable is asked for.
const most = 200

// Complete gives the words that may stand at pos in a line that is being
// typed, counted in bytes as start is: any of them may replace what stands from
// start to pos. They are words as they can be typed, in quotes where they need
// them, and of many there are the first. One that ends in =, > or / may go on.
func (s *Session) Complete(text string, pos int) (start int, candidates []string) {
	defer func() {
		if r := recover(); r != nil { // no keystroke harms anybody
			start, candidates = pos, nil
			if s.bench.config.Log != nil {
				_ = s.bench.fault(r)
			}
		}
	}()
	pos = max(0, min(pos, len(text)))
	words, start, typed, ok := line.Tail(text[:pos])
	if !ok {
		return pos, nil
	}
	seen := map[string]bool{}
	for _, c := range s.candidates(words, typed, 0) {
		if strings.HasPrefix(c, typed) && !seen[c] && len(candidates) < most {
			seen[c] = true
			candidates = append(candidates, line.Quote(c))
		}
	}
	return start, candidates
}

// deepest is how many lines within lines are looked into.
const deepest = 5

// candidates are words that may stand after words of a command; among them are some that do not begin as typed.
func (s *Session) candidates(words []string, typed string, depth int) []string {
	if depth > deepest {
		return nil
	}
	if len(words) > 0 {
		if expanded, err := line.Expand([][]string{words}, s.alias); err == nil && len(expanded) > 0 {
			words = expanded[len(expanded)-1]
		}
	}
	c, rest, err := lookup(s.commands, words0(words))
	if err != nil {
		return s.names(words)
	}
	flags, _ := c.bind(s)
	if at := c.innerAt(flags, rest); at < len(rest) {
		return s.candidates(rest[at:], typed, depth+1)
	}
	var args []string
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		if !strings.HasPrefix(w, "-") || w == "-" {
			if args = append(args, w); c.line && c.inner == "" {
				args = append(args, rest[i+1:]...)
				break
			}
			continue
		}
		f := flagOf(flags, w)
		if f == nil || f.NoOptDefVal != "" || strings.Contains(w, "=") {
			continue
		}
		if i++; i == len(rest) { // its value is being typed
			return s.flagValues(f, typed)
		}
	}
	if c.line && c.inner == "" {
		return s.lineCandidates(c, flags, args, typed, depth)
	}
	if strings.HasPrefix(typed, "-") {
		return s.flagCandidates(flags, typed)
	}
	return s.argCandidates(c, args, typed)
}

// words0 keeps lookup from no word at all.
func words0(words []string) []string {
	if len(words) == 0 {
		return []string{""}
	}
	return words
}

// lineCandidates are those of a command that takes a line.
func (s *Session) lineCandidates(c *command, flags *pflag.FlagSet, args []string, typed string, depth int) []string {
	own := 0 // arguments before the line
	if c.rest {
		own = len(c.args) - 1
	}
	switch {
	case len(args) > 0 && c.rest && args[0] == removeAlias:
		return s.argCandidates(c, nil, typed)
	case len(args) >= own && (len(args) > 0 || !strings.HasPrefix(typed, "-")):
		return s.candidates(args[own:], typed, depth+1)
	case strings.HasPrefix(typed, "-"):
		return s.flagCandidates(flags, typed)
	}
	return s.argCandidates(c, args, typed)
}

// names are the words that commands and definitions begin with, and the second words of commands.
func (s *Session) names(words []string) []string {
	var names []string
	for i := range s.commands {
		first, second, _ := strings.Cut(s.commands[i].name, " ")
		switch {
		case len(words) == 0:
			names = append(names, first)
		case len(words) == 1 && first == words[0] && second != "":
			names = append(names, second)
		}
	}
	if len(words) == 0 {
		names = append(names, aliasValues(s, nil, "")...)
	}
	return names
}

// argCandidates are those for the argument after args.
func (s *Session) argCandidates(c *command, args []string, typed string) []string {
	if len(c.args) == 0 || len(args) >= len(c.args) && !c.args[len(c.args)-1].many {
		return nil
	}
	a := c.arg(len(args))
	var found []string
	if a.values != nil {
		found = a.values(s, args, typed)
	}
	if a.path != nil {
		found = append(found, s.files(typed)...)
	}
	return found
}

// flagOf is the flag that a word names, or nil.
func flagOf(flags *pflag.FlagSet, word string) *pflag.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if f := flags.Lookup(name); f != nil {
		return f
	}
	if len(name) == 1 {
		return flags.ShorthandLookup(name)
	}
	return nil
}

// flagCandidates are flags, or, after NAME=, the values of one.
func (s *Session) flagCandidates(flags *pflag.FlagSet, typed string) []string {
	if name, value, ok := strings.Cut(typed, "="); ok {
		f := flagOf(flags, typed)
		if f == nil {
			return nil
		}
		found := s.flagValues(f, value)
		for i := range found {
			found[i] = name + "=" + found[i]
		}
		return found
	}
	var found []string
	one := !strings.HasPrefix(typed, "--") && typed != "-"
	flags.VisitAll(func(f *pflag.Flag) {
		name := dashed(f)
		if one {
			name = "-" + f.Name
		}
		found = append(found, name)
	})
	return found
}

// flagValues are those for the value of a flag.
func (s *Session) flagValues(f *pflag.Flag, typed string) []string {
	v, ok := f.Value.(*flagValue)
	if !ok {
		return nil
	}
	var found []string
	if v.values != nil {
		found = v.values(s, nil, typed)
	}
	if v.path != nil && (v.path("x") || v.path(typed)) {
		found = append(found, s.files(typed)...)
	}
	return found
}

// offer says what may stand for a flag.
func offer(fs *pflag.FlagSet, name string, v values) { declared(fs, name).values = v }

// fixedValues are always the same.
func fixedValues(texts ...string) values {
	return func(*Session, []string, string) []string { return texts }
}

// stored are the values that reports have of a variable.
func (s *Session) stored(name string) []string {
	db, err := s.bench.open()
	if err != nil {
		return nil
	}
	found, err := db.Values(name, most)
	if err != nil {
		return nil
	}
	return found
}

// knobValues are what is known to be typed for a knob.
func knobValues(k *plan.Knob) values {
	return func(s *Session, _ []string, typed string) []string {
		found := append([]string{k.Default}, k.Offers...)
		if k.Words != nil {
			found = append(found, plan.Each)
		}
		head := ""
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			head = typed[:i+1]
		}
		if k.Type.Name() == plan.MixType.Name() {
			for _, kind := range envelope.Kinds {
				found = append(found, head+kind.Name)
			}
			if head == "" {
				found = append(found, envelope.Mixed)
			}
			return append(found, s.stored(k.Name)...)
		}
		found = append(found, s.stored(k.Name)...)
		if head != "" && len(k.Split("a,b")) == 2 { // a list
			for i := range found {
				found[i] = head + found[i]
			}
		}
		return slices.DeleteFunc(found, func(v string) bool { return v == "" })
	}
}

// settingValues are KEY=VALUE of the relay's config, as reports have them.
func settingValues(s *Session, _ []string, typed string) []string {
	key, _, ok := strings.Cut(typed, "=")
	if !ok {
		db, err := s.bench.open()
		if err != nil {
			return nil
		}
		names, err := db.SettingNames()
		if err != nil {
			return nil
		}
		names = append(names, encodingKey)
		for i := range names {
			names[i] += "="
		}
		return names
	}
	var found []string
	if key == encodingKey {
		for i := range envelope.Encodings {
			found = append(found, envelope.Encodings[i].Name)
		}
	}
	found = append(found, s.stored(key)...)
	for i := range found {
		found[i] = key + "=" + found[i]
	}
	return found
}

// encodingKey is the key of the relay's config that says how it encodes what it forwards.
const encodingKey = "http.encoding"

// thresholdValues are metrics, as a condition begins.
func thresholdValues(*Session, []string, string) []string {
	var found []string
	for i := range store.Metrics {
		found = append(found, store.Metrics[i].Name+">")
	}
	return found
}

// filterValues are names of variables and metrics, or, after an operator, values.
func filterValues(s *Session, _ []string, typed string) []string {
	at := strings.IndexAny(typed, "=!<>~")
	if at < 0 {
		names := store.FilterNames()
		if db, err := s.bench.open(); err == nil {
			if keys, err := db.SettingNames(); err == nil {
				names = append(names, keys...)
			}
		}
		for i := range names {
			names[i] += "="
		}
		return names
	}
	end := at + 1
	for end < len(typed) && typed[end] == '=' {
		end++
	}
	found := s.stored(typed[:at])
	for i := range found {
		found[i] = typed[:end] + found[i]
	}
	return found
}

// reportValues are the newest reports' names.
func reportValues(s *Session, _ []string, typed string) []string {
	found := []string{"last", "last-1", "last-2"}
	if db, err := s.bench.open(); err == nil {
		if ids, err := db.IDs(typed, most); err == nil {
			found = append(found, ids...)
		}
	}
	return found
}

// jobValues are the jobs that are known, those of the queue first.
func jobValues(s *Session, _ []string, _ string) []string {
	var found []string
	for _, j := range s.bench.queue.all() {
		found = append(found, j.id())
	}
	slices.Reverse(found)
	return found
}

// aliasValues are the names of definitions.
func aliasValues(s *Session, _ []string, _ string) []string {
	all, err := s.bench.definitions()
	if err != nil {
		return nil
	}
	return sorted(all)
}

// helpValues are commands, topics and the words of output, word by word.
func helpValues(s *Session, before []string, _ string) []string {
	found := s.names(before)
	if len(before) == 0 {
		found = append(found, allCommands)
		for _, g := range groups {
			found = append(found, g.name)
		}
		for _, t := range topics() {
			found = append(found, t.name)
		}
		for _, w := range helpWords() {
			found = append(found, w.name)
		}
	}
	return found
}

// chosenValues are the values of the setting that was named.
func chosenValues(_ *Session, before []string, _ string) []string {
	for _, t := range choices {
		if t.name == before[0] {
			return t.offer
		}
	}
	return nil
}
