package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"relaybench/commands"
)

// maxWords is how many words a completion has at most.
const maxWords = 1000

// maxColumns is the width of the widest screen that is believed in.
const maxColumns = 10_000

// inRange is n, or the nearest number to it from 0 to most: what came from outside may be any.
func inRange(n, most int) int { return min(max(n, 0), most) }

// hearFrames takes the frames that come until their end. A client of frames
// that says no more has left.
func (c *client) hearFrames(r *bufio.Reader) error {
	for {
		f, err := readFrame(r)
		switch {
		case err != nil:
			return fmt.Errorf("frames: %w", err)
		case f.kind == frameInterrupt:
			c.turns.interrupt(interrupter(string(f.data)))
		default:
			c.typed.put(f)
		}
	}
}

// interrupter is who interrupts: a signal that the other process got, or a key.
func interrupter(name string) string {
	for _, s := range signals {
		if name == signalName(s) {
			return name
		}
	}
	return "Ctrl-C"
}

// talkFrames does what a client says that speaks in frames.
func (c *client) talkFrames(ctx context.Context, greeted string) {
	c.frames.Store(true)
	if greeted != greeting {
		c.bye(fmt.Sprintf("this is a relaybench that greets with %q: take one of the same version", greeting))
		return
	}
	f, err := c.typed.next(ctx)
	if err != nil {
		return
	}
	var h hello
	if err := json.Unmarshal(f.data, &h); f.kind != frameHello || err != nil {
		c.bye("no hello came")
		return
	}
	switch {
	case c.demanded() && h.Token == "":
		c.bye("a token is demanded here: relaybench -connect ADDR -token-file FILE")
		return
	case c.demanded() && !c.admit(ctx, h.Token):
		c.bye("wrong token")
		return
	}
	c.openFrames(h)
	w := welcome{PID: os.Getpid(), Prompt: c.prompt()}
	if !h.Script {
		w.Banner = c.server.bench.Banner()
	}
	c.send(jsonFrame(frameWelcome, w))
	tell := teller{to: framed{frameErr, c.write}, json: commands.Format(h.Format) == commands.JSON}
	for {
		f, err := c.typed.next(ctx)
		if err != nil {
			return
		}
		place, text, _ := bytes.Cut(f.data, []byte{0})
		switch f.kind {
		case frameLine:
			code, more := c.turns.do(ctx, string(text), func() {}, func(f *commands.Failure) bool {
				tell.tell(f, string(place))
				return h.KeepGoing
			})
			s := c.turns.session
			c.send(jsonFrame(frameDone, done{Code: int(code), More: more, Quit: s.Quit(), Prompt: s.Prompt(), Jobs: len(s.Jobs())}))
		case frameWidth:
			columns, _ := strconv.Atoi(string(f.data))
			c.turns.session.Resize(inRange(columns, maxColumns))
		case frameComplete:
			c.send(jsonFrame(frameWords, c.complete(string(place), string(text))))
		default:
			c.bye(fmt.Sprintf("a frame %q is not for here", f.kind))
			return
		}
	}
}

// complete are the words that may stand at a place of a line, so many as are of use.
func (c *client) complete(place, line string) words {
	var w words
	at := 0
	if _, err := fmt.Sscan(place, &w.Asked, &at); err != nil {
		return w
	}
	w.Start, w.Words = c.turns.session.Complete(line, inRange(at, len(line)))
	size := 0
	for i, word := range w.Words {
		// As JSON it may be six times as long.
		if size += len(word) + lineCost; i == maxWords || size > maxFrame/8 {
			w.Words = w.Words[:i]
			break
		}
	}
	return w
}

// write sends what a command prints, once there is room for it.
func (c *client) write(b []byte) { c.out.write(b, c.patience()) }

// send sends what must not be missed.
func (c *client) send(f frame) { c.out.reply(appendFrame(nil, f)) }

// openFrames begins the session of a client that speaks in frames.
func (c *client) openFrames(h hello) {
	its := commands.Client{
		Name: c.name, Remote: c.remote, Background: !h.Script,
		Out: framed{frameOut, c.write}, Notes: framed{frameErr, c.write}, Live: inRange(h.Live, maxColumns),
		Format: commands.Format(h.Format), Color: h.Color, Width: inRange(h.Width, maxColumns),
	}
	if !c.remote {
		its.Name, its.Dir = "terminal", h.Dir
		if h.Script {
			its.Name = "script"
		}
	}
	c.script = h.Script
	if !h.Script {
		its.Jobs = framed{frameJobs, c.out.offer}
		its.Progress = func(line string) { c.out.offer(appendFrame(nil, frame{frameProgress, []byte(line)})) }
	}
	if h.Asks {
		its.Ask = func(ctx context.Context, question string) (string, error) {
			c.send(frame{frameQuestion, []byte(question)})
			f, err := c.typed.next(ctx)
			switch {
			case err != nil:
				return "", err
			case f.kind != frameAnswer:
				return "", io.EOF
			}
			return string(f.data), nil
		}
	}
	c.turns.session = c.server.bench.NewSession(its)
}
