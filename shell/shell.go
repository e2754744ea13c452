// Package shell is how relaybench is started and talked to: flags, scripts,
// signals, terminals, exit status.
//
// It knows commands as lines of text that it hands over. It must never know a
// command's flags, what a report is, bbolt or HTTP, and it never parses a line.
package shell

import (
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
	markdown  bool
	color     string
	upstream  string
	version   bool

	interactive bool
	listen      string
	connect     optional
	tokenFile   string
	allowPaths  bool
	pprof       string
}

// optional is the value of a flag that may be given without one.
type optional string

func (o *optional) String() string   { return string(*o) }
func (o *optional) IsBoolFlag() bool { return true }

func (o *optional) Set(text string) error {
	if text != "true" { // as the flag package has it for a flag without a value
		*o = optional(text)
	}
	return nil
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
	fs.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	fs.StringVar(&o.color, "color", "auto", "`WHEN` to colour: auto, always or never")
	fs.StringVar(&o.upstream, "upstream", "", "run the fake Sentry alone at `ADDR`, for a Relay started by hand, until interrupted")
	fs.BoolVar(&o.version, "version", false, "print the version")
	fs.BoolVar(&o.interactive, "interactive", false, "a prompt at this terminal, and a shared shell")
	fs.StringVar(&o.listen, "listen", defaultListen, "`ADDR` of the shared shell, or off; without -interactive, a shared shell alone")
	fs.Var(&o.connect, "connect", "this terminal, or a script, into a running shell: that of the store, or at an `ADDR`")
	fs.StringVar(&o.tokenFile, "token-file", "", "`FILE` whose first line a client must send before anything else, or is to be sent with -connect")
	fs.BoolVar(&o.allowPaths, "allow-paths", false, "clients of the shared shell may name files of this host: to be read, written and run")
	fs.StringVar(&o.pprof, "pprof", "", "serve profiles of relaybench itself at a loopback `ADDR`, for go tool pprof http://ADDR/debug/pprof/profile")
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
	p := &program{stdin: stdin, out: out, errs: errs, tell: teller{to: errs}}
	fs := flags(&p.options)
	if err := p.parse(fs, args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help(fs))
		return commands.Fine
	} else if err != nil {
		return p.fail(err, commands.Usage, "relaybench -help lists the flags")
	}
	p.tell.json = p.options.json
	if err := p.check(fs); err != nil {
		return p.fail(err, commands.Usage, "")
	}
	return p.run()
}

// invitation says what relaybench is and how to start.
const invitation = `relaybench load-tests Sentry's Relay on its own, and accounts for every item that it sends.

  relaybench -interactive                a shell: type help there
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
		return isTerminal(out.to) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	}
	return false, fmt.Errorf("-color %q: auto, always or never", when)
}

// isTerminal says whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
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
