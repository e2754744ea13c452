package upstream

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// otherName is what a tally counts under that has no room for a name of its own.
	otherName = "other"
	// nameLen is the length at which a name from outside is cut, in bytes.
	nameLen = 200
)

// A tally counts by name, where the names come from outside: their number and
// length are bounded, what comes after is counted under otherName. Counting
// under a known name neither locks nor allocates. It may be used concurrently.
type tally struct {
	limit int // distinct names beside otherName
	now   atomic.Pointer[map[string]*atomic.Uint64]
	grow  sync.Mutex // held to replace now
}

func newTally(limit int) *tally {
	t := &tally{limit: limit}
	t.now.Store(&map[string]*atomic.Uint64{})
	return t
}

// add counts n under a name, and says whether it is the first of that name
// (or, once the names are used up, the first of all others).
func (t *tally) add(name []byte, n uint64) (first bool) {
	if c := (*t.now.Load())[string(name)]; c != nil {
		c.Add(n)
		return false
	}
	c, first := t.counter(cut(string(name)))
	c.Add(n)
	return first
}

func (t *tally) counter(name string) (c *atomic.Uint64, first bool) {
	t.grow.Lock()
	defer t.grow.Unlock()
	now := *t.now.Load()
	if now[name] == nil && len(now) >= t.limit {
		name = otherName
	}
	if c := now[name]; c != nil {
		return c, false
	}
	next := maps.Clone(now)
	next[name] = new(atomic.Uint64)
	t.now.Store(&next)
	return next[name], true
}

// len is how many distinct names came, at most limit and one.
func (t *tally) len() int { return len(*t.now.Load()) }

// counts is a copy of the counts so far.
func (t *tally) counts() map[string]uint64 {
	m := map[string]uint64{}
	for name, c := range *t.now.Load() {
		m[name] = c.Load()
	}
	return m
}

// cut bounds a text from outside, and makes it fit for JSON and a log line.
func cut(text string) string {
	if len(text) > nameLen {
		text = text[:nameLen]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
