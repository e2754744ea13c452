// Package shell is how relaybench is started and talked to: flags, scripts,
// signals, terminals, exit status.
//
// It knows commands as lines of text that it hands over. It must never know a
// command's flags, what a report is, bbolt or HTTP, and it never parses a line.
package shell

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"relaybench/commands"
)

// options are the flags of the program.
type options struct {
	command   string
	file      string
	keepGoing bool
	db        string
	host      string
	json      bool
	csv       bool
	color     string
	upstream  string
	version   bool
}

// flags is the flag set of the program. Each takes one dash or two.
func flags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("relaybench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.command, "c", "", "run the commands of `TEXT`, separated by ; or line ends")
	fs.StringVar(&o.file, "f", "", "run the script `FILE`: it stops at the first error")
	fs.BoolVar(&o.keepGoing, "keep-going", false, "do not stop at an error")
	fs.StringVar(&o.db, "db", "", "`FILE` of the store (default: in relaybench's folder under the user's data folder)")
	fs.StringVar(&o.host, "host", "", "`NAME` of this machine in reports (default: the system's)")
	fs.BoolVar(&o.json, "json", false, "print JSON, and errors as JSON")
	fs.BoolVar(&o.csv, "csv", false, "print CSV")
	fs.StringVar(&o.color, "color", "auto", "`WHEN` to colour: auto, always or never")
	fs.StringVar(&o.upstream, "upstream", "", "run the fake Sentry alone at `ADDR`, for a Relay started by hand, until interrupted")
	fs.BoolVar(&o.version, "version", false, "print the version")
	return fs
}

// Main runs relaybench with the arguments after its name, and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, errs := &output{to: stdout}, &output{to: stderr}
	defer brokenPipes()()
	code := run(args, stdin, out, errs)
	if err := out.trouble(); err != nil {
		teller{to: errs}.tell(&commands.Failure{Err: fmt.Errorf("write standard output: %w", err), Code: commands.CouldNot}, "")
		code = commands.Gravest(code, commands.CouldNot)
	}
	return int(code)
}

func run(args []string, stdin io.Reader, out, errs *output) commands.Code {
	var o options
	fs := flags(&o)
	tell := teller{to: errs}
	usage := func(err error, hint string) commands.Code {
		tell.tell(&commands.Failure{Err: err, Hint: hint, Code: commands.Usage}, "")
		return commands.Usage
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help(fs))
		return commands.Fine
	} else if err != nil {
		return usage(err, "relaybench -help lists the flags")
	}
	tell.json = o.json
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	color, err := wantColor(o.color, out)
	switch {
	case err != nil:
		return usage(err, "")
	case fs.NArg() > 0:
		return usage(fmt.Errorf("unexpected argument %q", fs.Arg(0)), "commands are given with -c, as in relaybench -c 'test 10s --rate 200'")
	case o.json && o.csv:
		return usage(errors.New("-json and -csv at once"), "")
	case given["c"] && given["f"]:
		return usage(errors.New("-c and -f at once"), "")
	case given["upstream"] && (given["c"] || given["f"]):
		return usage(errors.New("-upstream runs alone, without -c and -f"), "")
	case o.version:
		fmt.Fprintln(out, version())
		return commands.Fine
	}
	format := commands.Text
	switch {
	case o.json:
		format = commands.JSON
	case o.csv:
		format = commands.CSV
	}

	ctx, kill, release := catch(context.Background())
	defer release()
	if given["upstream"] {
		if err := commands.ServeUpstream(ctx, o.upstream, format, out, errs); err != nil {
			tell.tell(&commands.Failure{Command: "upstream", Err: err, Code: commands.CouldNot}, "")
			return commands.CouldNot
		}
		return commands.Fine
	}

	var script *script
	switch {
	case given["c"]:
		script = newScript(strings.NewReader(o.command), "-c")
		script.unnamed = !strings.Contains(o.command, "\n")
	case given["f"]:
		f, err := os.Open(o.file)
		if err != nil {
			tell.tell(&commands.Failure{Err: fmt.Errorf("script: %w", err), Code: commands.CouldNot}, "")
			return commands.CouldNot
		}
		defer f.Close()
		script = newScript(f, o.file)
	case terminal(stdin):
		fmt.Fprint(errs, invitation)
		return commands.Usage
	default:
		input, done, err := interruptible(ctx, stdin)
		if err != nil {
			tell.tell(&commands.Failure{Err: fmt.Errorf("standard input: %w", err), Code: commands.CouldNot}, "")
			return commands.CouldNot
		}
		defer done()
		script = newScript(input, "stdin")
	}

	bench := commands.NewBench(commands.Config{DB: o.db, Host: o.host})
	session := bench.NewSession(commands.Client{Out: out, Notes: errs, Live: width(errs.to), Format: format, Color: color, Width: width(out.to), Ask: asker(stdin, errs), Kill: kill})
	code, empty := script.run(ctx, session, tell, o.keepGoing)
	if err := bench.Close(); err != nil {
		tell.tell(&commands.Failure{Err: err, Code: commands.CouldNot}, "")
		code = commands.Gravest(code, commands.CouldNot)
	}
	if empty && !given["c"] && !given["f"] && code == commands.Fine {
		fmt.Fprint(errs, invitation)
		return commands.Usage
	}
	return code
}

// invitation says what relaybench is and how to start.
const invitation = `relaybench load-tests Sentry's Relay on its own, and accounts for every item that it sends.

  relaybench -c 'test 10s --rate 200'    run a load, against the built-in stand-in
  relaybench -c 'relay use PATH'         from now on against a binary of Relay
  relaybench -c help                     the commands
  relaybench -f FILE, relaybench < FILE  a script of commands
  relaybench -help                       the flags
`

// help is what -help prints.
func help(fs *flag.FlagSet) string {
	var b strings.Builder
	b.WriteString(invitation + "\nflags:\n")
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimRight("-"+f.Name+" "+value, " "), usage)
	})
	b.WriteString("\nexit codes: relaybench -c 'help codes'\n")
	return b.String()
}

func version() string {
	v, revision := commands.Version()
	if v == "" {
		v = "of unknown version"
	}
	if revision != "" {
		v += " (" + revision + ")"
	}
	return "relaybench " + v
}

// wantColor says whether output is coloured; NO_COLOR and a dumb terminal count where it is left to us.
func wantColor(when string, out *output) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return terminal(out.to) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	}
	return false, fmt.Errorf("-color %q: auto, always or never", when)
}

// terminal says whether a reader or writer is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is that of a terminal, 0 of anything else.
func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 0
	case columns <= 0: // a terminal that was not told its size
		return 80
	}
	return columns
}
