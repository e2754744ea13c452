// Package commands is the shell's language: the table of commands, the session
// that runs them, and what they print.
//
// It knows the store, the engine and the formats of output. It must never know
// the prompt, the terminal, bbolt, or Relay's protocol.
package commands

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// work does a command: args are its arguments, as many as its record says. Its
// code counts where there is no error.
type work func(ctx context.Context, args []string) (Code, error)

// prepare checks what was typed for a queued command, when it is queued, and says what it is to do in its turn.
type prepare func(ctx context.Context, args []string) (task, error)

// asked binds flags, and gives what reads what was typed for them.
type asked[Q any] func(fs *pflag.FlagSet) func(ctx context.Context, s *Session, args []string) (Q, error)

// inTurn is how a command is queued that asks for a Q: about how long that
// takes, and what is done when it is its turn.
func inTurn[Q any](bind asked[Q], about func(*Session, Q) (time.Duration, error), do func(*Session, context.Context, Q) (Code, error)) func(*Session, *pflag.FlagSet) prepare {
	return func(s *Session, fs *pflag.FlagSet) prepare {
		read := bind(fs)
		return func(ctx context.Context, args []string) (task, error) {
			q, err := read(ctx, s, args)
			if err != nil {
				return task{}, err
			}
			took, err := about(s, q)
			return task{about: took, do: func(ctx context.Context, s *Session) (Code, error) { return do(s, ctx, q) }}, err
		}
	}
}

// foretold is how such a command says what it would do instead.
func foretold[Q any](bind asked[Q], say func(*Session, context.Context, Q) error) func(*Session, *pflag.FlagSet) work {
	return func(s *Session, fs *pflag.FlagSet) work {
		read := bind(fs)
		return func(ctx context.Context, args []string) (Code, error) {
			q, err := read(ctx, s, args)
			if err != nil {
				return Fine, err
			}
			return Fine, say(s, ctx, q)
		}
	}
}

// arg is a positional argument of a command.
type arg struct {
	name     string // in usage lines: DURATION
	help     string // one line
	optional bool
	many     bool   // the last one: as many as there are
	path     names  // it may be a path: see the gate; nil: it is none
	values   values // for completion; nil: nothing is offered beside paths
}

// command is the record of a command: all else that is known of it (parsing,
// help, usage errors, the README check) is computed from it.
type command struct {
	name     string // of one word or two: "test", "relay use"
	group    string // of commands, under which help lists it
	summary  string // one line
	detail   string // what help COMMAND says beside it
	args     []arg
	examples []string // lines that parse
	store    bool     // needs the store
	table    bool     // prints what --json, --csv and --markdown can have too
	line     bool     // its arguments are a line: flags after the first are that line's
	inner    string   // of one that takes a line: the command that its line begins with, before which its own flags and arguments stand
	rest     bool     // its last argument is the rest of the line as it was typed, to its end: it stands first in its line
	// setup binds the command's flags and gives what does it. It is called
	// afresh for each line, so that no flag survives its line.
	setup func(*Session, *pflag.FlagSet) work
	// queue is there instead of setup where the command takes the machine: in a queue with all others that do.
	queue func(*Session, *pflag.FlagSet) prepare
	// explain is setup for a command that says what it would do instead; nil where there is no such.
	explain func(*Session, *pflag.FlagSet) work
}

// groups are the groups of commands, in the order in which help lists them.
var groups = []struct{ name, summary string }{
	{"run", "make runs: one, a list, in turns, or in search of a rate"},
	{"relay", "which relay is tested: a binary, a branch's build; its config and log"},
	{"queue", "jobs, of which one runs at a time, for all clients"},
	{"results", "look at reports, compare them, publish them"},
	{"store", "reports in and out, and the file that they are kept in"},
	{"shell", "this client, names of your own, help"},
}

// commandTable is the table of commands, in the order in which help lists them, group by group.
func commandTable() []command {
	var all []command
	group := func(name string, commands ...command) {
		for _, c := range commands {
			c.group = name
			all = append(all, c)
		}
	}
	group("run", testCommand, abCommand, searchCommand, noiseCommand, costCommand, explainCommand())
	group("relay", relayUseCommand, relaySwitchCommand, relayListCommand, relayPruneCommand, relayTailCommand, relayConfigCommand)
	group("queue", statusCommand, waitCommand, followCommand, cancelCommand)
	group("results", reportsCommand, showCommand, collateCommand, verifyCommand, diffCommand, publishCommand, deleteCommand)
	group("store", exportCommand, importCommand, dbInfoCommand, dbCheckCommand, dbCompactCommand, dbBackupCommand, dumpCommand)
	group("shell", defineCommand(), setCommand, nameCommand, historyCommand, helpCommand(), quitCommand("quit"), quitCommand("exit"))
	return all
}

// brief is how the command is typed, without its flags.
func (c *command) brief() string {
	parts := []string{c.name}
	for _, a := range c.args {
		parts = append(parts, a.usage())
	}
	return strings.Join(parts, " ")
}

// usage is the line that says how the command is typed.
func (c *command) usage() string {
	parts := []string{c.name}
	flags := c.flags(nil).HasFlags()
	if flags && c.line && c.inner == "" {
		parts = append(parts, "[flags]")
	}
	for i, a := range c.args {
		if flags && c.inner != "" && i == len(c.args)-1 {
			parts = append(parts, "[flags]")
		}
		parts = append(parts, a.usage())
	}
	if flags && !c.line {
		parts = append(parts, "[flags]")
	}
	return strings.Join(parts, " ")
}

func (a arg) usage() string {
	name := a.name
	if a.many {
		name += "…"
	}
	if a.optional {
		name = "[" + name + "]"
	}
	return name
}

// flags is a flag set of the command with nothing set; s may be nil where it is only read.
func (c *command) flags(s *Session) *pflag.FlagSet {
	fs, _ := c.bind(s)
	return fs
}

// arg is the record of an argument by its number; c takes that many.
func (c *command) arg(i int) arg { return c.args[min(i, len(c.args)-1)] }

// bind makes the command's flag set, and what does it once that is parsed.
func (c *command) bind(s *Session) (*pflag.FlagSet, work) {
	fs := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {} // --help is a help of ours
	fs.SetInterspersed(!c.line || c.inner != "")
	var do work
	if c.queue == nil {
		do = c.setup(s, fs)
	} else {
		prepared := c.queue(s, fs)
		do = func(ctx context.Context, args []string) (Code, error) {
			t, err := prepared(ctx, args)
			if err != nil {
				return Fine, err
			}
			if t.now != nil {
				return t.now()
			}
			return s.enqueue(ctx, c, t)
		}
	}
	if c.table {
		fs.Bool("json", false, "print JSON")
		fs.Bool("csv", false, "print CSV")
		fs.Bool("markdown", false, "print Markdown")
	}
	return fs, do
}
