package harness

import (
	"context"
	"hash/crc32"
	"time"
)

// calibrate times a fixed piece of work that takes about 0.3 s: when it
// differs between two runs, so did the machine. In nanoseconds; 0 when ctx ended.
//
// Note: the race detector would make it take 20 times as long, in every run of every test.
//
//go:norace
func calibrate(ctx context.Context, rounds int) int64 {
	const size = 1 << 14
	var buf [size]byte
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	from := time.Now()
	for i := range rounds {
		if i%64 == 0 && ctx.Err() != nil {
			return 0
		}
		// The table-driven form: the hardware's own instruction would finish too soon.
		sum := uint32(i)
		for _, b := range buf {
			sum = calibrateTable[byte(sum)^b] ^ sum>>8
		}
		buf[i%size] = byte(sum) // the work is not to be optimised away
	}
	return max(1, time.Since(from).Nanoseconds())
}

// calibrateRounds make about 0.3 s.
const calibrateRounds = 7200

var calibrateTable = crc32.MakeTable(crc32.Koopman)
