package upstream

import "sync/atomic"

// maxSeq bounds the numbers of sends: those from it on do not fit the bitmaps.
// At 100,000 sends a second it takes 11 hours to get there.
const maxSeq = 1 << 32

// A bitmap has maxSeq bits in a tree of two levels, allocated as bits are set:
// a run's numbers are dense and cost a bit each, and a number out of nowhere
// costs one leaf and one branch, 10 KB. All of it is 512 MB.
// Its zero value is empty; it may be used concurrently.
type bitmap struct {
	root [1 << rootBits]atomic.Pointer[branch]
}

type (
	branch [1 << branchBits]atomic.Pointer[leaf]
	leaf   [1 << (leafBits - 6)]atomic.Uint64
)

const (
	leafBits   = 16
	branchBits = 8
	rootBits   = 8
)

// set sets bit n, which is below maxSeq, and says whether it was set before:
// of any number of callers at once, one is told false.
func (b *bitmap) set(n uint64) (was bool) {
	l := grow(&grow(&b.root[n>>(leafBits+branchBits)])[n>>leafBits&(1<<branchBits-1)])
	bit := uint64(1) << (n & 63)
	return l[n&(1<<leafBits-1)>>6].Or(bit)&bit != 0
}

// has says whether bit n is set; those from maxSeq on never are.
func (b *bitmap) has(n uint64) bool {
	if n >= maxSeq {
		return false
	}
	br := b.root[n>>(leafBits+branchBits)].Load()
	if br == nil {
		return false
	}
	l := br[n>>leafBits&(1<<branchBits-1)].Load()
	return l != nil && l[n&(1<<leafBits-1)>>6].Load()&(1<<(n&63)) != 0
}

func grow[T any](p *atomic.Pointer[T]) *T {
	if v := p.Load(); v != nil {
		return v
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}
