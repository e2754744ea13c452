package upstream

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestBitmap(t *testing.T) {
	var b bitmap
	edges := []uint64{0, 1, 63, 64, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, maxSeq - 1}
	for i, n := range edges {
		if b.has(n) {
			t.Errorf("bit %d is set before it was", n)
		}
		if b.set(n) {
			t.Errorf("set(%d) says that it was set", n)
		}
		if !b.set(n) {
			t.Errorf("set(%d) again says that it was not set", n)
		}
		for j, other := range edges {
			if got, want := b.has(other), j <= i; got != want {
				t.Errorf("after set(%d): has(%d) is %v", n, other, got)
			}
		}
	}
	for _, n := range []uint64{2, 1<<16 + 1, maxSeq, 1<<64 - 1} {
		if b.has(n) {
			t.Errorf("bit %d is set", n)
		}
	}
}

// A number out of nowhere costs little memory.
func TestBitmapSparse(t *testing.T) {
	var b bitmap
	b.set(maxSeq - 1)
	branches, leaves := 0, 0
	for i := range b.root {
		if br := b.root[i].Load(); br != nil {
			branches++
			for j := range br {
				if br[j].Load() != nil {
					leaves++
				}
			}
		}
	}
	if branches != 1 || leaves != 1 {
		t.Errorf("%d branches and %d leaves for one bit, want 1 and 1", branches, leaves)
	}
}

func TestBitmapConcurrent(t *testing.T) {
	const callers, n = 8, 1 << 12
	var b bitmap
	var first atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range uint64(n) {
				if !b.set(i * 97) {
					first.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := first.Load(); got != n {
		t.Errorf("%d callers were told that they were first, want %d", got, n)
	}
}
