package harness

import (
	"sync"
	"sync/atomic"
	"time"

	"relaybench/harness/result"
)

// through sketches, by kind, the time from when a send was due to when it
// arrived upstream, as the upstream sees them arrive.
type through struct{ kinds []throughKind }

type throughKind struct {
	arrived atomic.Uint64
	mu      sync.Mutex
	sketch  *result.Sketch
	_       [64]byte // two kinds do not share a cache line
}

func newThrough(kinds int) *through {
	t := &through{kinds: make([]throughKind, kinds)}
	for i := range t.kinds {
		t.kinds[i].sketch = result.NewSketch()
		t.kinds[i].sketch.Reserve(int64(10*time.Microsecond), int64(time.Minute))
	}
	return t
}

// add is the upstream's Arrived.
func (t *through) add(kind int, due, at int64) {
	k := &t.kinds[kind]
	k.arrived.Add(1)
	k.mu.Lock()
	k.sketch.Add(at - due)
	k.mu.Unlock()
}

// arrived is how many sends arrived so far.
func (t *through) arrived() (n uint64) {
	for i := range t.kinds {
		n += t.kinds[i].arrived.Load()
	}
	return n
}
