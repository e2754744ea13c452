package perf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// tally is what a recording says of itself.
type tally struct {
	samples uint64
	lost    uint64 // samples that did not fit into perf's buffer
}

// The numbers of records, from the kernel's include/uapi/linux/perf_event.h.
const (
	recordLost        = 2
	recordSample      = 9
	recordLostSamples = 13
)

// readData counts the samples of a recording, a file in perf's own format.
// `perf script` says of those that were lost only when they are many.
// Source: tools/perf/Documentation/perf.data-file-format.txt: a header with
// the section of data at byte 40; records begin with type, misc and size.
func readData(f io.ReadSeeker) (t tally, err error) {
	var head [104]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:8]) != "PERFILE2" {
		return t, errors.New("is no recording of perf")
	}
	from, size := binary.LittleEndian.Uint64(head[40:]), binary.LittleEndian.Uint64(head[48:])
	if from > 1<<62 || size > 1<<62 {
		return t, errors.New("is damaged: its data is nowhere")
	}
	if _, err := f.Seek(int64(from), io.SeekStart); err != nil {
		return t, err
	}
	r := bufio.NewReaderSize(io.LimitReader(f, int64(size)), 64<<10)
	for {
		var h [8]byte
		if _, err := io.ReadFull(r, h[:]); err == io.EOF {
			return t, nil
		} else if err != nil {
			return t, errors.New("is cut off")
		}
		kind, length := binary.LittleEndian.Uint32(h[:]), int(binary.LittleEndian.Uint16(h[6:]))
		if length < len(h) {
			return t, errors.New("is damaged: a record has no length")
		}
		length -= len(h)
		body, err := r.Peek(min(length, 16))
		if err != nil {
			return t, errors.New("is cut off")
		}
		switch {
		case kind == recordSample:
			t.samples++
		case kind == recordLost && len(body) == 16: // an id, and how many
			t.lost += binary.LittleEndian.Uint64(body[8:])
		case kind == recordLostSamples && len(body) >= 8:
			t.lost += binary.LittleEndian.Uint64(body)
		}
		if _, err := r.Discard(length); err != nil {
			return t, errors.New("is cut off")
		}
	}
}
