package commands

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// ear is where a client hears of a job: nothing any more, once it has left.
type ear struct {
	left *atomic.Bool
	to   io.Writer
}

// Write never fails: a client that does not hear harms no job.
func (e *ear) Write(p []byte) (int, error) {
	if !e.left.Load() {
		_, _ = e.to.Write(p)
	}
	return len(p), nil
}

// turns is a writer of several goroutines.
type turns struct {
	mu sync.Mutex
	to io.Writer
}

func (t *turns) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}

// maxSaid is how many bytes that a job says are kept for one who is slow to take them.
const maxSaid = 256 << 10

// voice is what a job says: it goes to the job's owner and to who follows,
// line by line. Its zero value has neither.
type voice struct {
	owner io.Writer
	part  []byte // of a line; of the goroutine that writes

	mu        sync.Mutex
	held      *bytes.Buffer // what the owner hears later
	followers map[*follower]bool
	now       string // how the job goes
}

// Write never fails, and waits for nobody but an owner who waits for the job.
func (v *voice) Write(p []byte) (int, error) {
	v.part = append(v.part, p...)
	if end := bytes.LastIndexByte(v.part, '\n') + 1; end > 0 {
		v.say(v.part[:end])
		v.part = append(v.part[:0], v.part[end:]...)
	}
	return len(p), nil
}

// flush says what has no line's end yet.
func (v *voice) flush() {
	if len(v.part) > 0 {
		v.say(append(v.part, '\n'))
		v.part = nil
	}
}

func (v *voice) say(lines []byte) {
	v.mu.Lock()
	for f := range v.followers {
		f.hear(lines)
	}
	v.mu.Unlock()
	v.tell(lines)
}

// tell says lines to the owner alone.
func (v *voice) tell(lines []byte) {
	v.mu.Lock()
	if v.held != nil {
		if v.held.Len()+len(lines) <= maxSaid {
			v.held.Write(lines)
		}
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	if v.owner != nil {
		_, _ = v.owner.Write(lines)
	}
}

// hold keeps from the owner what is said, until release: it has to hear first that it has a job.
func (v *voice) hold() { v.held = new(bytes.Buffer) }

func (v *voice) release() {
	for {
		v.mu.Lock()
		lines := bytes.Clone(v.held.Bytes())
		v.held.Reset()
		if len(lines) == 0 {
			v.held = nil
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
		_, _ = v.owner.Write(lines)
	}
}

// goes says how the job goes, in a line, to who follows.
func (v *voice) goes(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = line
	for f := range v.followers {
		f.see(line)
	}
}

// follow makes one who follows.
func (v *voice) follow() *follower {
	f := &follower{wake: make(chan struct{}, 1)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.followers == nil {
		v.followers = map[*follower]bool{}
	}
	v.followers[f] = true
	if v.now != "" {
		f.see(v.now)
	}
	return f
}

func (v *voice) unfollow(f *follower) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.followers, f)
}

// follower takes what a job says, and never holds it up.
type follower struct {
	wake chan struct{} // of one: there is more

	mu      sync.Mutex
	said    []byte
	dropped int // lines
	now     string
}

func (f *follower) hear(lines []byte) {
	f.mu.Lock()
	if len(f.said)+len(lines) > maxSaid {
		f.dropped += bytes.Count(lines, []byte("\n"))
	} else {
		f.said = append(f.said, lines...)
	}
	f.mu.Unlock()
	f.nudge()
}

func (f *follower) see(line string) {
	f.mu.Lock()
	f.now = line
	f.mu.Unlock()
	f.nudge()
}

func (f *follower) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// seen is how the job goes now.
func (f *follower) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// take gives what was said since the last time, and how the job goes now.
func (f *follower) take() (said []byte, now string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	said, now = f.said, f.now
	f.said = nil
	if f.dropped > 0 {
		said = fmt.Appendf(said, "… %s lines were dropped: they were not taken in time\n", count(f.dropped))
		f.dropped = 0
	}
	return said, now
}
