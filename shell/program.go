package shell

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"

	"relaybench/commands"
	"relaybench/shell/profiles"
)

// program is relaybench as it was started.
type program struct {
	options
	given     map[string]bool // the flags that were
	stdin     io.Reader
	out, errs *output
	tell      teller
	color     bool
	format    commands.Format
}

// parse reads the arguments. What follows -connect may be an address.
func (p *program) parse(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	p.given = map[string]bool{}
	fs.Visit(func(f *flag.Flag) { p.given[f.Name] = true })
	if err != nil || !p.given["connect"] || p.connect != "" || fs.NArg() == 0 {
		return err
	}
	p.connect = optional(fs.Arg(0))
	err = fs.Parse(fs.Args()[1:])
	fs.Visit(func(f *flag.Flag) { p.given[f.Name] = true })
	return err
}

// check says what of the arguments does not go together.
func (p *program) check(fs *flag.FlagSet) error {
	var err error
	p.color, err = wantColor(p.options.color, p.out)
	switch {
	case err != nil:
		return err
	case fs.NArg() > 0:
		return &usage{fmt.Sprintf("unexpected argument %q", fs.Arg(0)), "commands are given with -c, as in relaybench -c 'test 10s --rate 200'"}
	case p.json && p.csv, p.json && p.markdown, p.csv && p.markdown:
		return errors.New("more than one of -json, -csv and -markdown")
	}
	for _, alone := range [][]string{
		{"c", "f"}, {"c", "interactive"}, {"f", "interactive"}, {"c", "listen"}, {"f", "listen"},
		{"connect", "interactive"}, {"connect", "listen"}, {"connect", "host"}, {"connect", "allow-paths"},
	} {
		if p.given[alone[0]] && p.given[alone[1]] {
			return fmt.Errorf("-%s and -%s at once", alone[0], alone[1])
		}
	}
	serves := p.interactive || p.given["listen"]
	for _, with := range []string{"c", "f", "interactive", "listen", "connect", "token-file", "allow-paths"} {
		if p.given["upstream"] && p.given[with] {
			return fmt.Errorf("-upstream runs alone, without -%s", with)
		}
	}
	switch {
	case p.given["allow-paths"] && !serves, p.given["token-file"] && !serves && !p.given["connect"]:
		return errors.New("-allow-paths and -token-file are for a shared shell: with -interactive or -listen")
	case p.given["listen"] && p.listen == "off" && !p.interactive:
		return errors.New("-listen off, and nothing else to do")
	case serves && p.listen != "off" && !loopback(p.listen) && p.tokenFile == "":
		return &usage{fmt.Sprintf("-listen %s can be reached from other machines: -token-file FILE is needed", p.listen),
			"better, leave it on 127.0.0.1 and come by ssh -L 8234:127.0.0.1:8234"}
	case p.given["pprof"] && !loopback(p.pprof):
		return &usage{fmt.Sprintf("-pprof %q: profiles are served at a loopback address only", p.pprof), "give one with a port, such as -pprof 127.0.0.1:6060"}
	case p.interactive && (!isTerminal(p.stdin) || !isTerminal(p.out.to)):
		return &usage{"-interactive needs a terminal", "relaybench -listen ADDR serves a shell without one; commands come with -c, -f or on standard input"}
	}
	switch {
	case p.json:
		p.format = commands.JSON
	case p.csv:
		p.format = commands.CSV
	case p.markdown:
		p.format = commands.Markdown
	}
	return nil
}

// usage is an error of what was typed, with what to do about it.
type usage struct{ text, hint string }

func (u *usage) Error() string { return u.text }

// fail tells an error of the program's own.
func (p *program) fail(err error, code commands.Code, hint string) commands.Code {
	var u *usage
	if errors.As(err, &u) {
		hint = u.hint
	}
	p.tell.tell(withConnect(&commands.Failure{Err: err, Hint: hint, Code: code}), "")
	return code
}

// withConnect is a failure with how to talk to the process that holds the store, where that is what it is of.
func withConnect(f *commands.Failure) *commands.Failure {
	var held *commands.HeldError
	if errors.As(f.Err, &held) && f.Hint == "" {
		f.Hint = fmt.Sprintf("relaybench -db %s -connect talks to it, where it was started with -interactive or -listen", quoted(held.Path))
	}
	return f
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+,:@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// run does what relaybench was started for.
func (p *program) run() commands.Code {
	switch {
	case p.version:
		fmt.Fprintln(p.out, version())
		return commands.Fine
	case p.given["pprof"]:
		at, stop, err := profiles.Serve(p.pprof, loopback)
		if err != nil {
			return p.fail(fmt.Errorf("pprof: %w", err), commands.CouldNot, "")
		}
		defer stop()
		fmt.Fprintf(p.errs, "relaybench: profiles at http://%s/debug/pprof/\n", at)
	}
	switch {
	case p.interactive:
		return p.runInteractive()
	case p.given["listen"]:
		return p.runService()
	case p.given["connect"] && !p.given["c"] && !p.given["f"] && isTerminal(p.stdin) && isTerminal(p.out.to):
		return p.runConnect()
	}
	ctx, kill, release := catch(context.Background(), signals...)
	defer release()
	if p.given["upstream"] {
		if f := commands.ServeUpstream(ctx, p.upstream, p.format, p.out, p.errs); f != nil {
			p.tell.tell(f, "")
			return f.Code
		}
		return commands.Fine
	}
	return p.runScript(ctx, kill)
}

// config is what the bench is made with.
func (p *program) config(log io.Writer) commands.Config {
	return commands.Config{DB: p.db, Host: p.host, AllowPaths: p.allowPaths, Log: log}
}

// runScript runs the lines of -c, -f or standard input: in the process that
// serves a shell of the store, if there is one, else in this one.
func (p *program) runScript(ctx context.Context, kill <-chan struct{}) commands.Code {
	var script *script
	switch {
	case p.given["c"]:
		script = newScript(strings.NewReader(p.command), "-c")
		script.unnamed = !strings.Contains(p.command, "\n")
	case p.given["f"]:
		f, err := os.Open(p.file)
		if err != nil {
			return p.fail(fmt.Errorf("script: %w", err), commands.CouldNot, "")
		}
		defer f.Close()
		script = newScript(f, p.file)
	case isTerminal(p.stdin):
		fmt.Fprint(p.errs, invitation)
		return commands.Usage
	default:
		input, done, err := interruptible(ctx, p.stdin)
		if err != nil {
			return p.fail(fmt.Errorf("standard input: %w", err), commands.CouldNot, "")
		}
		defer done()
		script = newScript(input, "stdin")
	}

	bench := commands.NewBench(p.config(nil))
	l, code := p.through(ctx, bench)
	if code != commands.Fine {
		return code
	}
	empty := false
	if l != nil {
		code, empty = script.run(ctx, through{l, p.tell, kill}, p.tell)
		l.Close()
	} else {
		bench.Start(ctx)
		session := bench.NewSession(commands.Client{Name: "script", Out: p.out, Notes: p.errs, Live: width(p.errs.to),
			Format: p.format, Color: p.color, Width: width(p.out.to), Ask: asker(p.stdin, p.errs), Kill: kill})
		code, empty = script.run(ctx, own{session, p.tell, p.keepGoing}, p.tell)
		session.Close()
		if bench.Opened() { // a script that needs no store opens none
			for _, l := range bench.News() {
				fmt.Fprintf(p.errs, "relaybench: %s\n", l)
			}
		}
		if err := bench.Close(); err != nil {
			code = commands.Gravest(code, p.fail(err, commands.CouldNot, ""))
		}
	}
	if empty && !p.given["c"] && !p.given["f"] && code == commands.Fine {
		fmt.Fprint(p.errs, invitation)
		return commands.Usage
	}
	return code
}

// through connects a script to the process that serves a shell of the store, or
// the one that is named. link is nil where there is none.
func (p *program) through(ctx context.Context, bench *commands.Bench) (l *link, code commands.Code) {
	conn, who, err := p.dial(ctx, bench)
	switch {
	case conn == nil && err == nil:
		return nil, commands.Fine
	case err != nil:
		return nil, p.fail(err, commands.CouldNot, "")
	case p.given["host"]:
		conn.Close()
		return nil, p.fail(errors.New("-host: the store is held by a process that serves a shell, and the name it was started with counts"), commands.Usage, "")
	}
	ask := asker(p.stdin, p.errs)
	l, err = p.greet(conn, who, hello{Script: true, KeepGoing: p.keepGoing, Live: width(p.errs.to), Width: width(p.out.to), Asks: ask != nil})
	if err != nil {
		return nil, p.fail(err, commands.CouldNot, "")
	}
	l.out, l.errs, l.ask = p.out, p.errs, ask
	l.start()
	return l, commands.Fine
}

// dial connects to where -connect says, or to the process that serves a shell
// of the store: conn is nil where there is none, and none was asked for.
func (p *program) dial(ctx context.Context, bench *commands.Bench) (conn net.Conn, who string, err error) {
	db := ""
	if p.connect == "" {
		if db, err = bench.Path(); err != nil && !p.given["connect"] {
			return nil, "", nil // a script need not use it
		}
	}
	if err == nil {
		conn, who, err = dial(ctx, db, string(p.connect))
	}
	switch {
	case err == nil:
		return conn, who, nil
	case !p.given["connect"] && isAbsent(err):
		return nil, "", nil
	case isAbsent(err) && p.connect == "":
		return nil, who, fmt.Errorf("connect: no process serves a shell of %s: start one with relaybench -interactive or -listen ADDR", db)
	}
	return nil, who, fmt.Errorf("connect: %s: %w", who, err)
}

// greet says hello to who was connected to.
func (p *program) greet(conn net.Conn, who string, h hello) (*link, error) {
	h.Format, h.Color = int(p.format), p.color
	h.Dir, _ = os.Getwd()
	if p.tokenFile != "" {
		token, err := tokenLine(p.tokenFile)
		if err != nil {
			return nil, err
		}
		h.Token = token
	}
	l, err := greet(conn, who, h)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect: %s: %w", who, err)
	}
	return l, nil
}

// historyFile is where this user's history is kept; empty where there is no place for it.
func historyFile() string {
	if _, err := os.UserHomeDir(); err != nil && os.Getenv("XDG_DATA_HOME") == "" {
		return ""
	}
	path, err := xdg.DataFile(filepath.Join("relaybench", "history"))
	if err != nil {
		return ""
	}
	return path
}
