package harness

import (
	"context"
	"hash/crc32"
	"time"
)

// calibrate times a fixed piece of work that takes about 0.3 s: when it
// differs between two runs, so did the machine. In nanoseconds; 0 when ctx ended.
func calibrate(ctx context.Context) int64 {
	const rounds, size = 2400, 1 << 16
	buf := make([]byte, size)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	from := time.Now()
	sum := uint32(0)
	for i := range rounds {
		if i%64 == 0 && ctx.Err() != nil {
			return 0
		}
		// The table-driven form: the hardware's own instruction would finish too soon.
		for _, b := range buf[:size/4] {
			sum = calibrateTable[byte(sum)^b] ^ sum>>8
		}
	}
	buf[0] = byte(sum) // the work is not to be optimised away
	return max(1, time.Since(from).Nanoseconds()+int64(buf[0]&0))
}

var calibrateTable = crc32.MakeTable(crc32.Koopman)
