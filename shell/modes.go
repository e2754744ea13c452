package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"relaybench/commands"
)

// serve begins a shared shell of a bench: beside its store, and at the address
// of -listen. untaken is why it is not at that address.
func (p *program) serve(bench *commands.Bench, log func(format string, a ...any)) (s *server, untaken, err error) {
	var t *token
	if p.tokenFile != "" {
		line, err := tokenLine(p.tokenFile)
		if err != nil {
			return nil, nil, fmt.Errorf("token: %w", err)
		}
		t = newToken(line)
	}
	path, err := bench.Path()
	if err != nil {
		return nil, nil, err
	}
	s = newServer(bench, t, log)
	if err := s.listenLocal(path); err != nil {
		log("socket beside the store: %v: -connect, and -c elsewhere, will not find this process", err)
	}
	if p.listen != "off" {
		untaken = s.listen(p.listen)
	}
	return s, untaken, nil
}

// end ends a shared shell in its order: no more lines, no more jobs, no more
// clients. kill, when closed, ends at once what takes its time.
func end(s *server, bench *commands.Bench, why error, kill <-chan struct{}) error {
	ended := make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() {
		select {
		case <-kill:
			bench.Kill()
		case <-ended:
		}
	})
	defer joined.Wait()
	defer close(ended)
	if s != nil {
		s.Stop(why)
	}
	err := bench.Close()
	if s != nil {
		s.Close()
	}
	return err
}

// runService serves a shared shell until ctx ends.
func (p *program) runService() commands.Code {
	ctx, kill, release := catch(context.Background(), signals...)
	defer release()
	log := func(format string, a ...any) { fmt.Fprintf(p.errs, "relaybench: "+format+"\n", a...) }
	bench := commands.NewBench(p.config(p.errs))
	if err := bench.Open(); err != nil {
		return p.fail(err, commands.CouldNot, "")
	}
	bench.Start(ctx)
	for _, l := range bench.News() {
		log("%s", l)
	}
	s, untaken, err := p.serve(bench, log)
	code := commands.Fine
	switch {
	case err != nil:
		code = p.fail(err, commands.CouldNot, "")
	case untaken != nil:
		code = p.fail(untaken, commands.CouldNot, "")
	default:
		log("a shared shell at %s", s.addr)
		<-ctx.Done()
		log("ends: %s", by(context.Cause(ctx)))
	}
	if err := end(s, bench, cause(ctx), kill); err != nil {
		code = commands.Gravest(code, p.fail(err, commands.CouldNot, ""))
	}
	return code
}

// cause is why ctx has ended, or is to end where it has not.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w by quit", commands.ErrInterrupted)
}

// runInteractive gives a prompt at this terminal, and serves a shared shell.
func (p *program) runInteractive() commands.Code {
	ctx, kill, release := catch(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	ctx, quit := context.WithCancelCause(ctx)
	defer quit(nil)

	var t *terminal // before anything writes to it
	log := func(format string, a ...any) { t.screen.say(fmt.Appendf(nil, "relaybench: "+format+"\n", a...)) }
	bench := commands.NewBench(p.config(writer(func(b []byte) { t.screen.say(b) })))
	if err := bench.Open(); err != nil {
		return p.fail(err, commands.CouldNot, "")
	}
	var err error
	if t, err = p.openTerminal(); err != nil {
		return commands.Gravest(p.fail(err, commands.CouldNot, ""), p.closed(bench.Close()))
	}
	bench.Start(ctx)
	for _, l := range append(bench.Banner(), bench.News()...) {
		t.screen.say([]byte(l + "\n"))
	}
	left := false
	s, untaken, err := p.serve(bench, log)
	if err == nil {
		switch {
		case untaken != nil:
			log("%v", untaken)
		case p.given["listen"] && s.addr != "":
			log("a shared shell at %s", s.addr)
		}
		left = p.runHost(ctx, t, s, bench, kill)
	}
	why := cause(ctx)
	quit(why)
	ended := end(s, bench, why, kill)
	if err := t.Close(); err != nil && !errors.Is(err, syscall.EIO) {
		p.fail(err, commands.CouldNot, "")
	}
	code := p.closed(ended)
	switch {
	case err != nil:
		code = commands.Gravest(code, p.fail(err, commands.CouldNot, ""))
	case !left:
		code = commands.Gravest(code, commands.Interrupted)
	}
	return code
}

// closed tells why a bench was not closed well, if it was not.
func (p *program) closed(err error) commands.Code {
	if err != nil {
		return p.fail(err, commands.CouldNot, "")
	}
	return commands.Fine
}

// openTerminal begins to read from the terminal, with this user's history.
func (p *program) openTerminal() (*terminal, error) {
	h, err := openHistory(historyFile())
	if err != nil {
		fmt.Fprintf(p.errs, "relaybench: the history is not kept: %v\n", err)
	}
	return openTerminal(p.stdin.(*os.File), p.out.to.(*os.File), h)
}

// runHost lets the person at the terminal use a session of this process; left
// says that they left, and were not sent away.
func (p *program) runHost(ctx context.Context, t *terminal, s *server, bench *commands.Bench, kill <-chan struct{}) (left bool) {
	h := &host{t: t, server: s}
	columns, _ := t.screen.size()
	its := commands.Client{Name: "terminal", Background: true, Format: p.format, Color: p.color, Width: columns, Kill: kill,
		Out: writer(t.screen.print), Notes: writer(t.screen.show), Jobs: writer(t.screen.say),
		Ask: func(_ context.Context, question string) (string, error) { return t.ask(question) },
	}
	if !t.screen.plain {
		its.Progress = t.screen.draw
	}
	h.session = bench.NewSession(its)
	return converse(ctx, t, h)
}

// runConnect talks to a shell that another process serves.
func (p *program) runConnect() commands.Code {
	ctx, _, release := catch(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	conn, who, err := p.dial(ctx, commands.NewBench(p.config(nil)))
	if err != nil {
		return p.fail(err, commands.CouldNot, "")
	}
	t, err := p.openTerminal()
	if err != nil {
		conn.Close()
		return p.fail(err, commands.CouldNot, "")
	}
	columns, _ := t.screen.size()
	l, err := p.greet(conn, who, hello{Width: columns, Asks: true})
	if err == nil {
		for _, line := range l.welcome.Banner {
			t.screen.say([]byte(line + "\n"))
		}
		err = visit(ctx, t, l)
	}
	if e := t.Close(); e != nil && !errors.Is(e, syscall.EIO) {
		p.fail(e, commands.CouldNot, "")
	}
	switch {
	case ctx.Err() != nil:
		return commands.Interrupted
	case err != nil:
		return p.fail(err, commands.CouldNot, "")
	}
	return commands.Fine
}

// visit talks through a link until the person leaves. Its error is that of the link, if that ended first.
func visit(ctx context.Context, t *terminal, l *link) error {
	l.out, l.errs, l.jobs, l.draw = writer(t.screen.print), writer(t.screen.show), t.screen.say, t.screen.draw
	l.ask = func(_ context.Context, question string) (string, error) { return t.ask(question) }
	ctx, leave := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { l.conn.Close() })()
	l.start()
	var joined sync.WaitGroup
	joined.Go(func() {
		<-l.ended
		leave()
	})
	left := converse(ctx, t, &visitor{link: l, t: t})
	l.Close()
	joined.Wait()
	if left {
		return nil
	}
	return l.err
}
