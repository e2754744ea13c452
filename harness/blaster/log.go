package blaster

import (
	"bytes"
	"sync/atomic"

	"relaybench/harness/result"
)

const (
	partSize = 1 << 20
	maxParts = 1 << 12
	// maxNumbers bounds the numbers of a share: each costs a byte.
	maxNumbers = maxParts * partSize
)

// answerLog is how the numbers of a share were answered, a byte each, written by
// all senders at once without a lock: no two write the same byte. Where their
// number is not known beforehand they lie in parts that are made as needed.
type answerLog struct {
	whole []byte
	parts [maxParts]atomic.Pointer[[partSize]byte]
}

func (l *answerLog) put(i uint64, a result.Answer) {
	if l.whole != nil {
		l.whole[i] = byte(a)
		return
	}
	at := &l.parts[i/partSize]
	part := at.Load()
	if part == nil {
		at.CompareAndSwap(nil, new([partSize]byte))
		part = at.Load()
	}
	part[i%partSize] = byte(a)
}

// bytes are the answers of the first n numbers; no sender may be running any more.
func (l *answerLog) bytes(n uint64) []byte {
	if l.whole != nil {
		return l.whole[:n:n]
	}
	b := make([]byte, n)
	for at := uint64(0); at < n; at += partSize {
		if part := l.parts[at/partSize].Load(); part != nil {
			copy(b[at:], part[:])
		}
	}
	return b
}

// used is one more than the index of the last number of a known many that was answered in any way.
func (l *answerLog) used() uint64 {
	return uint64(len(bytes.TrimRight(l.whole, "\x00")))
}
