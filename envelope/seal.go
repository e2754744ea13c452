package envelope

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
)

// sealed is an encoded body whose beginning stands in it as it is, so that a
// send writes it anew without encoding anything.
type sealed struct {
	body []byte
	at   int // where the beginning stands in body
	// mend puts the checksum right after the beginning has been written anew; nil: the encoding has none.
	mend func(body []byte)
}

// maxHead is the longest beginning that can be sealed, in bytes: what a stored block of
// deflate holds, the smallest of the encodings' limits.
const maxHead = 1<<16 - 1

// seal encodes head, which stays as it is, and rest behind it, into one body of this encoding.
func (e *Encoding) seal(head, rest []byte) (sealed, error) {
	if len(head) == 0 || len(head) > maxHead {
		return sealed{}, fmt.Errorf("%s: envelope header of %d bytes: 1 to %d can be sent encoded", e.Name, len(head), maxHead)
	}
	return e.sealed(head, rest)
}

func sealIdentity(head, rest []byte) (sealed, error) {
	return sealed{body: append(bytes.Clone(head), rest...)}, nil
}

// sealZstd makes a first frame of one raw block and, behind it, a second one.
// Source: RFC 8878, sections 3.1.1 and 3.1.1.2.
func sealZstd(head, rest []byte) (sealed, error) {
	const (
		magic         = 0xfd2fb528
		singleSegment = 1 << 5 // no window is declared
		size4         = 2 << 6 // the content's size follows in 4 bytes
	)
	body := binary.LittleEndian.AppendUint32(nil, magic)
	body = append(body, size4|singleSegment)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(head)))
	block := uint32(len(head))<<3 | 0<<1 | 1 // raw, the last
	body = append(body, byte(block), byte(block>>8), byte(block>>16))
	s := sealed{at: len(body)}
	var err error
	s.body, err = zstdCodec.encode(append(body, head...), rest)
	return s, err
}

// stored appends a deflate block that holds head as it is, and the blocks of rest.
// Source: RFC 1951, section 3.2.4.
func stored(body, head, rest []byte) (out []byte, at int, err error) {
	n := uint16(len(head))
	body = append(body, 0) // stored, not the last
	body = binary.LittleEndian.AppendUint16(body, n)
	body = binary.LittleEndian.AppendUint16(body, ^n)
	at = len(body)
	b := bytes.NewBuffer(append(body, head...))
	w, err := flate.NewWriter(b, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(rest)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), at, err
}

// sealGzip makes one member, as Relay reads no second one.
// Source: RFC 1952, section 2.3.
func sealGzip(head, rest []byte) (sealed, error) {
	const bestSpeed, unknownSystem = 4, 255
	body, at, err := stored([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, bestSpeed, unknownSystem}, head, rest)
	if err != nil {
		return sealed{}, err
	}
	crc := len(body)
	body = binary.LittleEndian.AppendUint32(body, 0)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(head)+len(rest)))
	end, shift, tail := at+len(head), crcShift(len(rest)), crc32.ChecksumIEEE(rest)
	s := sealed{body: body, at: at, mend: func(body []byte) {
		sum := crcTimes(shift, crc32.ChecksumIEEE(body[at:end])) ^ tail
		binary.LittleEndian.PutUint32(body[crc:], sum)
	}}
	s.mend(s.body)
	return s, nil
}

// sealDeflate makes a stream of zlib's format.
// Source: RFC 1950, sections 2.2 and 9.
func sealDeflate(head, rest []byte) (sealed, error) {
	body, at, err := stored([]byte{0x78, 0x01}, head, rest)
	if err != nil {
		return sealed{}, err
	}
	sum := len(body)
	body = binary.BigEndian.AppendUint32(body, 0)
	end, n, tail := at+len(head), len(rest), adler32.Checksum(rest)
	s := sealed{body: body, at: at, mend: func(body []byte) {
		binary.BigEndian.PutUint32(body[sum:], joinAdler(adler32.Checksum(body[at:end]), tail, n))
	}}
	s.mend(s.body)
	return s, nil
}

// joinAdler is the Adler-32 of a text of which a is that of the beginning, and b that of the rest of n bytes.
func joinAdler(a, b uint32, n int) uint32 {
	const m = 65521
	low := (a&0xffff + b&0xffff + m - 1) % m
	high := (a>>16 + b>>16 + uint32((uint64(n)%m)*uint64((a&0xffff+m-1)%m)%m)) % m
	return high<<16 | low
}

// crcPolynomial is the IEEE polynomial, bits reversed: 1 is the highest bit.
const crcPolynomial = crc32.IEEE

// crcTimes multiplies two polynomials modulo the CRC's: with one of [crcShift]
// it gives what a CRC becomes when so many zeros follow. The CRC of a whole is that of its beginning, so
// moved, plus that of its rest.
// Source: crc32_combine of zlib, crc32.c.
func crcTimes(a, b uint32) uint32 {
	var p uint32
	for ; a != 0; a <<= 1 {
		p ^= b & -(a >> 31)
		b = b>>1 ^ crcPolynomial&-(b&1)
	}
	return p
}

// crcShift is x to the power of 8n, modulo the CRC's polynomial.
func crcShift(n int) uint32 {
	p, square := uint32(1)<<31, uint32(1)<<23 // 1, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = crcTimes(square, p)
		}
		square = crcTimes(square, square)
	}
	return p
}

// sealBrotli makes a first meta-block that is not compressed, and takes those
// of rest from a stream in which noise of head's length stands before them. The
// stream is flushed there, so that they begin on a byte. Of what stands before
// them, they depend on the length, on the last two bytes (which are head's), and
// on what they repeat of it: noise that rest happens to repeat is exchanged.
// Source: RFC 7932, sections 9.1 and 9.2.
func sealBrotli(head, rest []byte) (sealed, error) {
	const tries = 16
	want := append(bytes.Clone(head), rest...)
	for try := range uint64(tries) {
		before := make([]byte, len(head))
		for i := range before {
			before[i] = byte(mix64(try<<32 | uint64(i)))
		}
		copy(before[max(0, len(before)-2):], head[max(0, len(head)-2):])
		s, err := brotliBehind(before, head, rest)
		if err != nil {
			return s, err
		}
		if got, err := brotliCodec.decode(nil, s.body, len(want)); err == nil && bytes.Equal(got, want) {
			return s, nil
		}
	}
	return sealed{}, fmt.Errorf("br: no noise found that %d bytes do not repeat", len(rest))
}

func brotliBehind(before, head, rest []byte) (sealed, error) {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.BestSpeed)
	_, err := w.Write(before)
	if err == nil {
		err = w.Flush()
	}
	flushed := b.Len()
	if err == nil {
		_, err = w.Write(rest)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return sealed{}, err
	}
	stream := b.Bytes()
	window := uint32(stream[0] & 0xf)
	if window&1 == 0 || window>>1 == 0 {
		return sealed{}, fmt.Errorf("br: the window's size does not take four bits: %#x", stream[0])
	}
	// After the window's four bits: not the last, a length of four nibbles, that length less 1, not compressed.
	first := window | 0<<4 | 0<<5 | uint32(len(head)-1)<<7 | 1<<23
	s := sealed{body: []byte{byte(first), byte(first >> 8), byte(first >> 16)}, at: 3}
	s.body = append(append(s.body, head...), stream[flushed:]...)
	return s, nil
}
