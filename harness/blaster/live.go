package blaster

import "sync/atomic"

// Live are counts of a load while it runs, for samples and progress. The zero
// value is ready for one load. Read with Counts.
type Live struct {
	load atomic.Pointer[liveLoad]
}

type liveLoad struct {
	cells []cell
	due   func() uint64
}

// cell are the counts of one thread's senders, who alone add to them, on cache lines of its own.
type cell struct {
	sent, accepted, refused, failed atomic.Uint64
	late                            atomic.Int64
	_                               [128 - 5*8]byte
}

// Counts are sends so far.
type Counts struct {
	Due      uint64 `json:"due"`
	Sent     uint64 `json:"sent"`
	Accepted uint64 `json:"accepted"`
	Refused  uint64 `json:"refused"`
	Failed   uint64 `json:"failed"`      // those for which no connection could be had included, which are not in Sent
	LateMax  int64  `json:"late_max_ns"` // nanoseconds: the largest lateness since Counts was last read
}

func (l *Live) begin(cells []cell, due func() uint64) { l.load.Store(&liveLoad{cells, due}) }

// Counts reads the counts; one goroutine at a time.
func (l *Live) Counts() Counts {
	load := l.load.Load()
	if load == nil {
		return Counts{}
	}
	c := Counts{}
	for i := range load.cells {
		e := &load.cells[i]
		c.Sent += e.sent.Load()
		c.Accepted += e.accepted.Load()
		c.Refused += e.refused.Load()
		c.Failed += e.failed.Load()
		c.LateMax = max(c.LateMax, e.late.Swap(0))
	}
	c.Due = load.due() // read last: never less than what was sent of it
	return c
}

// tardy notes a lateness. The reader takes the largest away in between; what
// is lost by that was no larger than what it took.
func (c *cell) tardy(ns int64) {
	if ns > c.late.Load() {
		c.late.Store(ns)
	}
}

// set makes the counts those of c, of senders in another process.
func (c *cell) set(n Counts) {
	c.sent.Store(n.Sent)
	c.accepted.Store(n.Accepted)
	c.refused.Store(n.Refused)
	c.failed.Store(n.Failed)
	c.tardy(n.LateMax)
}
