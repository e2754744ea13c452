package blaster

import (
	"sync"
	"testing"

	"relaybench/harness/result"
)

// Answers are written by many at once, and none is lost, whether or not their number is known.
func TestAnswerLog(t *testing.T) {
	const n = 2*partSize + 100
	answer := func(i uint64) result.Answer { return result.Answer(1 + i%5) }
	for name, log := range map[string]*answerLog{"known": {whole: make([]byte, n+7)}, "unknown": {}} {
		var all sync.WaitGroup
		for first := range uint64(4) {
			all.Go(func() {
				for i := first; i < n; i += 4 {
					log.put(i, answer(i))
				}
			})
		}
		all.Wait()
		b := log.bytes(n)
		if len(b) != n {
			t.Fatalf("%s: got %d answers, want %d", name, len(b), n)
		}
		for i := range b {
			if got, want := result.Answer(b[i]), answer(uint64(i)); got != want {
				t.Fatalf("%s: number %d: got %v, want %v", name, i, got, want)
			}
		}
		if log.whole != nil && log.used() != n {
			t.Errorf("%s: got %d used, want %d", name, log.used(), n)
		}
	}
	gap := &answerLog{}
	gap.put(partSize+1, result.Accepted)
	if b := gap.bytes(partSize + 2); result.Answer(b[0]) != result.NotSent || result.Answer(b[partSize+1]) != result.Accepted {
		t.Error("a part that was never written to is not all not sent")
	}
}
