package store_test

import (
	"sync/atomic"
	"testing"

	"relaybench/store"
)

func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100} {
		times := make([]atomic.Int64, n)
		store.Parallel(n, func(i int) { times[i].Add(1) })
		for i := range times {
			if got := times[i].Load(); got != 1 {
				t.Errorf("%d of %d: done %d times", i, n, got)
			}
		}
	}
	defer func() {
		if p := recover(); p != "seventh" {
			t.Errorf("got panic %v", p)
		}
	}()
	store.Parallel(10, func(i int) {
		if i == 7 {
			panic("seventh")
		}
	})
}
