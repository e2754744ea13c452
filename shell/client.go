package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/commands"
)

const (
	// promptAfter is how long a client that sends lines must have had nothing to
	// say to be shown a prompt: what is piped in never sees one.
	promptAfter = 100 * time.Millisecond
	// pipedPatience is how long a client may be silent that sent its first line before it was shown anything:
	// a pipe into an nc that does not tell when it has come to its end. Others are kept.
	pipedPatience = 3 * time.Second
	// readPatience is how long a command waits for a client that does not read what it prints.
	readPatience = 10 * time.Second
	// partPatience is how long a client that is left may take to read the rest.
	partPatience = time.Second
	// wrongTokenWait is how long a client that sent a wrong token waits for its answer.
	wrongTokenWait = time.Second
)

// client is a connection to the shared shell.
type client struct {
	server *server
	conn   net.Conn
	name   string // where it comes from
	remote bool
	out    *outbox
	typed  *inbox
	turns  turns

	script bool          // its queued commands are waited for
	waited bool          // it has said nothing before it was shown a prompt
	frames atomic.Bool   // it speaks in frames
	heard  chan struct{} // closed when it says no more
	reads  atomic.Int64  // how often something came from it

	mu       sync.Mutex
	prompted bool          // the last that it was sent is a prompt
	broken   bool          // a line was broken off: a prompt is to begin another
	again    chan struct{} // the prompt is to come again
}

// newClient is a client of a connection, which run serves.
func newClient(s *server, conn net.Conn, remote bool) *client {
	c := &client{server: s, conn: conn, remote: remote, name: "this machine", typed: newInbox(), heard: make(chan struct{}), again: make(chan struct{}, 1)}
	if remote {
		c.name = conn.RemoteAddr().String()
	}
	c.out = startOutbox(conn, c.lost, func() {
		s.log("%s: reads nothing: what is printed for it is dropped, until it reads again", c.name)
	})
	return c
}

// run serves the client until it has nothing more to say, and has read its answers.
func (c *client) run() {
	go func() { // joined below
		defer close(c.heard)
		if err := c.hear(); err != nil {
			c.gone()
		}
		c.typed.end()
	}()
	c.talk(c.server.ctx)
	c.server.talking.Done()
	if c.server.ctx.Err() != nil {
		<-c.server.last // its jobs may have something to say
	}
	if s := c.turns.session; s != nil {
		s.Close()
	}
	c.part()
	<-c.heard
}

// part closes the connection once the client has read everything, or its time to do so is over.
func (c *client) part() {
	c.typed.close()
	c.out.flush(c.patience())
	// To close what has unread bytes would take from the client what it has not read yet.
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && c.out.alive() && half.CloseWrite() == nil {
		select {
		case <-c.heard:
		case <-time.After(partPatience):
		}
	}
	c.out.Close()
}

// patience is how long what is printed waits for the client to read; 0: for
// ever, as a pipe would. What a script's job prints holds up the queue, and so waits for nobody that long.
func (c *client) patience() time.Duration {
	if c.remote || c.script && len(c.turns.session.Jobs()) > 0 {
		return c.server.patience
	}
	return 0
}

// gone says that the client is not there any more.
func (c *client) gone() {
	c.typed.close()
	c.turns.abandon()
}

// hear takes what comes until its end. An error says that the client is gone;
// at the end of what it sends it may still read.
func (c *client) hear() error {
	r := bufio.NewReader(counted{c.conn, &c.reads})
	if b, err := r.Peek(1); err == nil && b[0] == tlsHandshake {
		c.typed.put(frame{frameLine, []byte{tlsHandshake}})
		return discard(r)
	}
	var t telnet
	for first := true; ; {
		b, err := r.ReadByte()
		if err != nil {
			if rest := t.rest(); rest != "" && err == io.EOF {
				c.typed.put(frame{frameLine, []byte(rest)})
			}
			return bareEnd(err)
		}
		switch t.hear(b) {
		case heardLine:
			c.typed.put(frame{frameLine, bytes.Clone(t.line)})
			if first {
				switch opening(t.line) {
				case opensWeb:
					return discard(r)
				case opensFrames:
					return c.hearFrames(r)
				}
				first = false
			}
		case heardInterrupt:
			c.interrupt("Ctrl-C")
		case heardAnswer:
			c.out.reply(t.answer[:])
		case heardQuit:
			c.typed.end()
			return discard(r)
		}
	}
}

// counted counts the reads of a reader.
type counted struct {
	io.Reader
	reads *atomic.Int64
}

func (r counted) Read(p []byte) (int, error) {
	r.reads.Add(1)
	return r.Reader.Read(p)
}

// interrupt is a Ctrl-C: what was typed ahead is taken back too.
func (c *client) interrupt(by string) {
	c.typed.clear()
	if c.turns.interrupt(by) {
		return
	}
	// Nothing is sent now: telnet throws away what comes before the answer to its timing mark.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompted, c.broken = false, true
	nudge(c.again)
}

// discard reads what is not wanted any more.
func discard(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return bareEnd(err)
}

// bareEnd is the error of a connection, nil where it has come to its end.
func bareEnd(err error) error {
	if err == io.EOF || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// How a client may open its conversation.
type opener int

const (
	opensShell opener = iota
	opensFrames
	opensWeb
)

// tlsHandshake is the first byte of a TLS connection, which is none of ours.
// Source: RFC 8446, section 5.1.
const tlsHandshake = 0x16

// webRequest is the first line of an HTTP request, whatever its method, and
// longRequest the beginning of one that is too long.
var (
	webRequest  = regexp.MustCompile(` HTTP/[0-9](\.[0-9])?$`)
	longRequest = regexp.MustCompile(`^[!-~]+ (/|\*|https?:)`)
)

// opening says what the first line of a connection is. A web page can make a
// browser send nearly anything after that line: so that it can run nothing
// here, what begins as a request is nothing else.
func opening(line []byte) opener {
	switch {
	case len(line) > 0 && line[0] == tlsHandshake, webRequest.Match(line), len(line) > commands.MaxLine && longRequest.Match(line):
		return opensWeb
	case bytes.HasPrefix(line, []byte(greetingPrefix)):
		return opensFrames
	}
	return opensShell
}

// webAnswer is what a browser is told.
const webAnswer = "HTTP/1.0 400 relaybench is a shell, for telnet and nc, and not for the web: nothing was run\r\n"

// talk does what the client says.
func (c *client) talk(ctx context.Context) {
	first, err := c.next(ctx, 3*c.server.pause, c.invite) // on its way, a first line takes longer than those after it
	if err != nil {
		return
	}
	switch opening(first) {
	case opensWeb:
		c.server.log("%s: sent a web request: closed", c.name)
		c.out.reply([]byte(webAnswer))
		return
	case opensFrames:
		c.talkFrames(ctx, string(first))
		return
	}
	if c.demanded() {
		if !c.admit(ctx, string(first)) {
			c.bye("wrong token")
			return
		}
		c.unprompt()
		if first, err = c.next(ctx, c.server.pause, c.welcome); err != nil {
			return
		}
	}
	c.open()
	tell := teller{to: writer(c.print)}
	for {
		c.unprompt()
		tell.json = c.turns.session.Format() == commands.JSON
		c.turns.do(ctx, string(first), func() {}, func(f *commands.Failure) bool {
			tell.tell(f, "")
			return false
		})
		if c.turns.session.Quit() {
			return
		}
		if first, err = c.next(ctx, c.server.pause, c.prompt); err == errSilent {
			c.bye(silentEnd)
		}
		if err != nil {
			return
		}
	}
}

// errSilent says that nothing more comes from a client that piped its lines in.
var errSilent = errors.New("nothing more came")

// silentEnd is what such a client is told.
const silentEnd = "ended, as no more lines came: nc -N would have said so at once, and who waits for the prompt before the first line is kept"

// next waits for the client's next line, and prompts for it once that takes so long.
func (c *client) next(ctx context.Context, silence time.Duration, prompt func() string) ([]byte, error) {
	pause, piped := time.NewTimer(silence), time.NewTicker(c.server.silence/2)
	defer pause.Stop()
	defer piped.Stop()
	begun := c.turns.session != nil // a line was done
	reads := int64(-1)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f, err := c.typed.take()
		if err != errEmpty {
			return f.data, err
		}
		select {
		case <-c.typed.more:
		case <-c.again:
			pause.Reset(silence)
		case <-pause.C:
			c.waited = c.waited || !begun
			c.showPrompt(prompt())
		case <-piped.C:
			before := reads
			reads = c.reads.Load()
			if begun && !c.waited && reads == before && len(c.turns.session.Jobs()) == 0 {
				return nil, errSilent
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// showPrompt sends a prompt, unless the last that the client was sent is one.
func (c *client) showPrompt(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompted {
		return
	}
	if c.broken {
		text = "\n" + text
	}
	c.prompted, c.broken = true, false
	c.out.offer(escaped([]byte(text)))
}

// demanded says whether the client must send a token first.
func (c *client) demanded() bool { return c.remote && c.server.token != nil }

// admit says whether a token is the right one, and takes its time to say no.
func (c *client) admit(ctx context.Context, sent string) bool {
	if c.server.token.is(sent) {
		return true
	}
	c.server.log("%s: sent a wrong token", c.name)
	select {
	case <-time.After(wrongTokenWait):
	case <-ctx.Done():
	}
	return false
}

// open begins the session of a client that sends lines.
func (c *client) open() {
	if c.turns.session != nil {
		return
	}
	c.turns.session = c.server.bench.NewSession(commands.Client{
		Name: c.name, Remote: c.remote, Background: true,
		Out: writer(c.print), Notes: writer(c.print), Jobs: writer(c.say),
		Ask: func(ctx context.Context, question string) (string, error) {
			c.print([]byte(question))
			f, err := c.typed.next(ctx)
			return string(f.data), err
		},
	})
}

// invite is what a client sees before it has said anything.
func (c *client) invite() string {
	if c.demanded() {
		return "token: "
	}
	return c.welcome()
}

// welcome is what a client sees before its first line.
func (c *client) welcome() string {
	c.open()
	return strings.Join(append(c.server.bench.Banner(), c.prompt()), "\n")
}

func (c *client) prompt() string { return c.turns.session.Prompt() }

// unprompt says that what the client was sent is not a prompt any more.
func (c *client) unprompt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompted, c.broken = false, false
}

// print sends what a command prints, once the client has room for it.
func (c *client) print(p []byte) {
	for left := p; len(left) > 0; {
		part := left[:min(len(left), piece)]
		c.out.write(escaped(part), c.patience())
		left = left[len(part):]
	}
}

// say sends whole lines that the client did not ask for, if there is room for
// them: in a line of their own, before another prompt.
func (c *client) say(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompted {
		p = append([]byte("\n"), p...)
		c.prompted = false
		nudge(c.again)
	}
	c.out.offer(escaped(p))
}

// escaped is text as telnet has it.
func escaped(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte{telnetIAC}, []byte{telnetIAC, telnetIAC})
}

// bye tells the client, whatever it speaks, why there is no more.
func (c *client) bye(why string) {
	if c.frames.Load() {
		c.out.reply(appendFrame(nil, frame{frameBye, []byte(why)}))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := "relaybench: " + why + "\n"
	if c.prompted {
		text = "\n" + text
	}
	c.prompted = false
	c.out.reply([]byte(text))
}

// lost tells the client that it has missed some output.
func (c *client) lost(n int) []byte {
	text := fmt.Sprintf("\nrelaybench: %d bytes were dropped here, as nothing was read\n", n)
	if c.frames.Load() {
		return appendFrame(nil, frame{frameErr, []byte(text)})
	}
	return []byte(text)
}
