package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"relaybench/commands"
)

// partner is whom a person at the terminal talks to: a session of this process,
// or one of the process that holds the store.
type partner interface {
	// do does a line, and says whether to leave.
	do(ctx context.Context, line string) (leave bool)
	// interrupt is a Ctrl-C while a line is done. It may be called at any time.
	interrupt()
	complete(line string, pos int) (start int, words []string)
	prompt() string
	resize(columns int)
	// parting is what to ask before leaving, and what to say; each may be empty.
	parting() (question, remark string)
}

// converse lets a person talk to a partner until they leave, or ctx ends: left
// says which.
func converse(ctx context.Context, t *terminal, p partner) (left bool) {
	t.complete = p.complete
	t.interrupter.Store(&p)
	defer context.AfterFunc(ctx, t.keys.end)()
	columns, _ := t.screen.size()
	for {
		if now, _ := t.screen.size(); now != columns {
			columns = now
			p.resize(columns)
		}
		line, err := t.readLine(p.prompt())
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errInterrupted):
			continue
		case err != nil:
			if t.leaves(p) {
				return true
			}
			continue
		case strings.TrimSpace(line) == "":
			continue
		}
		if err := t.remember(line); err != nil {
			t.screen.say(fmt.Appendf(nil, "relaybench: the history is not kept any more: %v\n", err))
		}
		t.screen.begin()
		leave := p.do(ctx, line)
		if long := t.screen.finish(); long != nil {
			if err := t.page(ctx, long); err != nil {
				return true // there is no terminal any more
			}
		}
		if leave {
			return ctx.Err() == nil
		}
	}
}

// leaves says whether somebody who typed Ctrl-D leaves.
func (t *terminal) leaves(p partner) bool {
	question, remark := p.parting()
	if question != "" && !t.over.Load() {
		answer, err := t.ask(question + " y/N ")
		answer = strings.ToLower(strings.TrimSpace(answer))
		if !t.over.Load() && (err != nil || answer != "y" && answer != "yes") {
			return false
		}
	}
	if remark != "" {
		t.screen.say([]byte(remark + "\n"))
	}
	return true
}

// host is a person at the terminal of the process that holds the store.
type host struct {
	turns
	t      *terminal
	server *server
}

func (h *host) do(ctx context.Context, line string) bool {
	tell := teller{to: writer(h.t.screen.show), json: h.session.Format() == commands.JSON}
	h.turns.do(ctx, line, h.t.typedInterrupt, func(f *commands.Failure) bool {
		tell.tell(f, "")
		return false
	})
	return h.session.Quit()
}

func (h *host) interrupt() { h.turns.interrupt("Ctrl-C") }

func (h *host) complete(line string, pos int) (int, []string) { return h.session.Complete(line, pos) }

func (h *host) prompt() string { return h.session.Prompt() }

func (h *host) resize(columns int) { h.session.Resize(columns) }

func (h *host) parting() (question, remark string) {
	var why []string
	for _, j := range h.session.Jobs() {
		why = append(why, fmt.Sprintf("%s (%s) is %s", j.ID, j.Line, j.State))
	}
	if n := h.server.count(); n > 0 {
		why = append(why, fmt.Sprintf("others are connected: %d", n))
	}
	if len(why) == 0 {
		return "", ""
	}
	return strings.Join(why, ", ") + ": leave, and end that?", ""
}
