package store

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel does something with each number below n, several at once, and returns
// when all is done. Where one panics, so does Parallel, when the others have ended.
func Parallel(n int, do func(i int)) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.CompareAndSwap(nil, &p)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}
