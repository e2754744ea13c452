// Package commands is the shell's language: the table of commands, the session
// that runs them, and what they print.
//
// It knows the store, the engine and the formats of output. It must never know
// the prompt, the terminal, bbolt, or Relay's protocol.
package commands

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
)

// work does a command: args are its arguments, as many as its record says. Its
// code counts where there is no error.
type work func(ctx context.Context, args []string) (Code, error)

// arg is a positional argument of a command.
type arg struct {
	name     string // in usage lines: DURATION
	help     string // one line
	optional bool
	many     bool // the last one: as many as there are
}

// command is the record of a command: all else that is known of it (parsing,
// help, usage errors, the README check) is computed from it.
type command struct {
	name     string // of one word or two: "test", "relay use"
	summary  string // one line
	detail   string // what help COMMAND says beside it
	args     []arg
	examples []string // lines that parse
	queued   bool     // takes the machine: in a queue with all others that do
	store    bool     // needs the store
	table    bool     // prints what --json and --csv can have too
	line     bool     // its arguments are a line: flags after the first are that line's
	// setup binds the command's flags and gives what does it. It is called
	// afresh for each line, so that no flag survives its line.
	setup func(*Session, *pflag.FlagSet) work
	// explain is setup for a command that says what it would do instead; nil where there is no such.
	explain func(*Session, *pflag.FlagSet) work
}

// commandTable is the table of commands, in the order in which help lists them.
func commandTable() []command {
	return []command{
		testCommand,
		explainCommand(),
		reportsCommand,
		showCommand,
		diffCommand,
		deleteCommand,
		relayUseCommand,
		statusCommand,
		dumpCommand,
		dbInfoCommand,
		dbCheckCommand,
		dbCompactCommand,
		dbBackupCommand,
		dbImportCommand,
		helpCommand(),
		quitCommand("quit"),
		quitCommand("exit"),
	}
}

// usage is the line that says how the command is typed.
func (c *command) usage() string {
	parts := []string{c.name}
	flags := c.flags(nil).HasFlags()
	if flags && c.line {
		parts = append(parts, "[flags]")
	}
	for _, a := range c.args {
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

// bind makes the command's flag set, and what does it once that is parsed.
func (c *command) bind(s *Session) (*pflag.FlagSet, work) {
	fs := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {} // --help is a help of ours
	fs.SetInterspersed(!c.line)
	do := c.setup(s, fs)
	if c.table {
		fs.Bool("json", false, "print JSON")
		fs.Bool("csv", false, "print CSV")
	}
	return fs, do
}
