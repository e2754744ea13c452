package perf

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// recording is a recording of so many samples, and of others that were lost.
func recording(samples, lost int) []byte {
	var data []byte
	record := func(kind uint32, body ...byte) {
		data = binary.LittleEndian.AppendUint32(data, kind)
		data = binary.LittleEndian.AppendUint16(data, 0)
		data = append(binary.LittleEndian.AppendUint16(data, uint16(8+len(body))), body...)
	}
	record(1, make([]byte, 40)...) // mmap
	for range samples {
		record(recordSample, make([]byte, 24)...)
	}
	record(recordLost, binary.LittleEndian.AppendUint64(make([]byte, 8), uint64(lost-lost/2))...)
	record(recordLostSamples, binary.LittleEndian.AppendUint64(nil, uint64(lost/2))...)
	record(68) // a record of perf's own, without a body
	head := make([]byte, 104)
	copy(head, "PERFILE2")
	binary.LittleEndian.PutUint64(head[40:], uint64(len(head)))
	binary.LittleEndian.PutUint64(head[48:], uint64(len(data)))
	return append(head, data...)
}

func TestReadData(t *testing.T) {
	whole := recording(5, 3)
	if got, err := readData(bytes.NewReader(whole)); err != nil || got != (tally{5, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	for name, data := range map[string][]byte{"empty": nil, "of another sort": bytes.Repeat([]byte("x"), 200), "cut off": whole[:len(whole)-12], "no length": append(whole[:110:110], make([]byte, 1000)...)} {
		if got, err := readData(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzReadData(f *testing.F) {
	f.Add(recording(2, 1))
	f.Add(recording(0, 0)[:110])
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readData(bytes.NewReader(data))
		if err == nil && got.samples > uint64(len(data)/8) {
			t.Errorf("%d samples in %d bytes", got.samples, len(data))
		}
	})
}
