package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Bodies that are only claimed take no memory beyond the room for them, hold up
// nothing that is small, and give the room back when they are cut off.
func TestRoom(t *testing.T) {
	l := defaultLimits()
	l.room, l.read = 64<<20, time.Second
	s := serveLimited(t, Config{}, l)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var slow []net.Conn
	for range 50 {
		c := dial(t, s)
		fmt.Fprintf(c, "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", l.wire)
		slow = append(slow, c)
	}
	for s.room.TryAcquire(1) { // until the first of them have it all
		s.room.Release(1)
		runtime.Gosched()
	}
	if a := post(t, s, send(1, "event")); a.status != 200 {
		t.Errorf("a small one beside them: %+v", a)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > int64(l.room)*3/2 {
		t.Errorf("the heap grew by %d MiB, with room for %d", grown>>20, l.room>>20)
	}
	for _, c := range slow {
		io.Copy(io.Discard, c) // cut off, those in the body and those that waited for room
	}
	large := request("POST", "/api/1/envelope/", "", []byte(large(2, 1<<20)))
	c := dial(t, s)
	if _, err := c.Write(large); err != nil {
		t.Fatal(err)
	}
	if a, err := readAnswer(bufio.NewReader(c)); err != nil || a.status != 200 {
		t.Errorf("a large one after them: %+v, %v", a, err)
	}
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !s.room.TryAcquire(int64(l.room / roomUnit)) {
		t.Error("not all of the room was given back")
	}
	if st := s.Stats(); st.Envelopes != 2 || st.Malformed != 0 {
		t.Errorf("%d envelopes, %d malformed, want 2, 0", st.Envelopes, st.Malformed)
	}
}

// large is a send with an attachment of some size.
func large(seq uint64, size int) string {
	return send(seq, "event") + fmt.Sprintf("{\"type\":\"attachment\",\"length\":%d}\n", size) + strings.Repeat("x", size) + "\n"
}

// A chunked body is bounded, as its size is not known beforehand.
func TestChunked(t *testing.T) {
	s := serve(t, Config{})
	chunked := func(size int) []byte {
		body := large(3, size)
		return fmt.Appendf(nil, "POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	for size, want := range map[int]int{100: 200, roomUnit: 413} {
		if a, err := exchange(t, s, chunked(size)); err != nil || a.status != want {
			t.Errorf("%d bytes: %+v, %v, want %d", size, a, err, want)
		}
	}
}
