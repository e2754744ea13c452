package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"relaybench/commands"
)

const (
	// welcomePatience is how long a server may take to answer a hello.
	welcomePatience = 10 * time.Second
	// wordsPatience is how long a completion is waited for.
	wordsPatience = time.Second
)

// link is a connection to the process that holds the store: what it says is
// written where it belongs as it comes, its questions and answers wait for whoever asked.
type link struct {
	conn    net.Conn
	from    *bufio.Reader
	who     string // in errors
	welcome welcome
	prompt  string
	out     io.Writer // standard output
	errs    io.Writer
	jobs    func([]byte)
	draw    func(line string)
	// ask asks the person here; nil: there is none.
	ask func(ctx context.Context, question string) (string, error)

	mu      sync.Mutex // of writing
	busy    bool       // a line is being done
	answers chan frame // to the line that is being done: questions, and that it is done
	words   chan frame // completions
	ended   chan struct{}
	err     error // why, once ended is closed
}

// dial connects to a shared shell: of the store at a path, or at a TCP address
// where there is one.
func dial(ctx context.Context, db, addr string) (net.Conn, string, error) {
	if addr == "" {
		conn, err := dialLocal(db)
		return conn, "the shell of " + db, err
	}
	d := net.Dialer{Timeout: welcomePatience}
	conn, err := d.DialContext(ctx, "tcp", addr)
	return conn, addr, bareAddress(err)
}

// isAbsent says of an error of dialLocal that nobody serves a shell there.
func isAbsent(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// greet says hello, and waits for the welcome. Its error is what the server says
// against it, if it does.
func greet(conn net.Conn, who string, h hello) (*link, error) {
	l := &link{conn: conn, who: who, out: io.Discard, errs: io.Discard, jobs: func([]byte) {}, draw: func(string) {},
		answers: make(chan frame, 1), words: make(chan frame, 1), ended: make(chan struct{})}
	b := appendFrame([]byte(greeting+"\n"), jsonFrame(frameHello, h))
	if err := conn.SetDeadline(time.Now().Add(welcomePatience)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(b); err != nil {
		return nil, bareAddress(err)
	}
	r := bufio.NewReader(conn)
	f, err := readFrame(r)
	switch {
	case err == nil && f.kind == frameBye:
		return nil, errors.New(string(f.data))
	case err == nil && f.kind == frameWelcome:
		err = json.Unmarshal(f.data, &l.welcome)
	case err == io.EOF:
		err = errors.New("it has just ended")
	case err == nil || !errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.New("what answers there is not relaybench")
	}
	if err != nil {
		return nil, err
	}
	l.prompt = l.welcome.Prompt
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	l.from = r
	return l, nil
}

// start begins to hear what the server says. Close ends that.
func (l *link) start() { go l.hear(l.from) }

// Close ends the connection.
func (l *link) Close() {
	_ = l.conn.Close()
	for {
		select {
		case <-l.answers: // nobody waits for it any more
		case <-l.ended:
			return
		}
	}
}

// hear writes what comes where it belongs, until the connection ends.
func (l *link) hear(r *bufio.Reader) {
	defer close(l.ended)
	why := ""
	for {
		f, err := readFrame(r)
		if err != nil {
			switch {
			case why != "":
				l.err = errors.New(why)
			case err == io.EOF:
				l.err = fmt.Errorf("%s has ended", l.who)
			default:
				l.err = fmt.Errorf("connection to %s: %w", l.who, bareAddress(err))
			}
			return
		}
		switch f.kind {
		case frameOut:
			_, _ = l.out.Write(f.data)
		case frameErr:
			_, _ = l.errs.Write(f.data)
		case frameJobs:
			l.jobs(f.data)
		case frameProgress:
			l.draw(string(f.data))
		case frameBye:
			why = string(f.data)
		case frameQuestion, frameDone:
			l.answers <- f
		case frameWords:
			select {
			case l.words <- f:
			default: // the one before it was given up too
			}
		}
	}
}

// send sends a frame. That it could not is known when hear ends.
func (l *link) send(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.conn.Write(appendFrame(nil, f))
}

// line has a line done, and answers what is asked about it. begun is called
// when it can be interrupted; ctx's end interrupts it, once. The error says that the
// connection has ended.
func (l *link) line(ctx context.Context, text, at string, begun func()) (done, error) {
	var d done
	if len(text) > commands.MaxLine { // it is refused, also when it is cut
		text = text[:commands.MaxLine+1]
	}
	l.setBusy(true)
	defer l.setBusy(false)
	l.send(frame{frameLine, []byte(at + "\x00" + text)})
	begun()
	ended := ctx.Done()
	for {
		select {
		case f := <-l.answers:
			switch f.kind {
			case frameQuestion:
				l.answer(ctx, string(f.data))
			case frameDone:
				if err := json.Unmarshal(f.data, &d); err != nil {
					return d, fmt.Errorf("%s: %w", l.who, err)
				}
				l.prompt = d.Prompt
				return d, nil
			}
		case <-ended:
			ended = nil
			l.interrupt(by(context.Cause(ctx)))
		case <-l.ended:
			return d, l.err
		}
	}
}

// setBusy says whether a line is being done.
func (l *link) setBusy(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = busy
}

// answer asks the person here, and sends what they say.
func (l *link) answer(ctx context.Context, question string) {
	if l.ask == nil {
		l.send(frame{kind: frameNoAnswer})
		return
	}
	text, err := l.ask(ctx, question)
	switch {
	case err == nil:
		l.send(frame{frameAnswer, []byte(text)})
	case ctx.Err() != nil: // line says so
	case errors.Is(err, commands.ErrInterrupted):
		l.interrupt(by(err))
	default:
		l.send(frame{kind: frameNoAnswer})
	}
}

// by is who interrupted, of the error that says so.
func by(err error) string {
	_, who, _ := strings.Cut(fmt.Sprint(err), " by ")
	return who
}

// interrupt interrupts the line that is being done, if one is.
func (l *link) interrupt(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		_, _ = l.conn.Write(appendFrame(nil, frame{frameInterrupt, []byte(who)}))
	}
}

// through is a script's session in the process that holds the store.
type through struct {
	*link
	tell teller
	kill <-chan struct{}
}

func (s through) do(ctx context.Context, text, at string) (commands.Code, bool) {
	finished := make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() {
		select {
		case <-s.kill:
			s.interrupt("")
		case <-finished:
		}
	})
	d, err := s.line(ctx, text, at, func() {})
	close(finished)
	joined.Wait()
	if err != nil {
		s.tell.tell(&commands.Failure{Err: err, Code: commands.CouldNot}, at)
		return commands.CouldNot, false
	}
	return commands.Code(d.Code), d.More
}

// visitor is a person at the terminal of another process than the one that
// holds the store.
type visitor struct {
	*link
	t     *terminal
	left  int // jobs of theirs that go on when they leave
	asked int // completions
}

func (v *visitor) do(ctx context.Context, line string) (leave bool) {
	d, err := v.line(context.WithoutCancel(ctx), line, "", v.t.typedInterrupt) // whoever leaves cancels nothing
	v.left = d.Jobs
	v.t.screen.draw("")
	return err != nil || d.Quit // an error ends what ctx is of
}

func (v *visitor) interrupt() { v.link.interrupt("Ctrl-C") }

func (v *visitor) complete(line string, pos int) (int, []string) {
	v.asked++
	v.send(frame{frameComplete, fmt.Appendf(nil, "%d %d\x00%s", v.asked, pos, line)})
	patience := time.NewTimer(wordsPatience)
	defer patience.Stop()
	for {
		select {
		case f := <-v.words:
			var w words
			if err := json.Unmarshal(f.data, &w); err == nil && w.Asked == v.asked {
				return w.Start, w.Words
			}
		case <-patience.C:
			return 0, nil
		case <-v.ended:
			return 0, nil
		}
	}
}

func (v *visitor) prompt() string { return v.link.prompt }

func (v *visitor) resize(columns int) {
	v.send(frame{frameWidth, []byte(strconv.Itoa(columns))})
}

func (v *visitor) parting() (question, remark string) {
	switch v.left {
	case 0:
		return "", ""
	case 1:
		return "", "your job goes on"
	}
	return "", fmt.Sprintf("your %d jobs go on", v.left)
}
