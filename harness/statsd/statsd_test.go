package statsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relaybench/harness/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func written(t testing.TB, r *result.Statsd) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func read(t testing.TB, text string) *result.Statsd {
	t.Helper()
	var r result.Statsd
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// pair is a receiver and who sends to it.
type pair struct {
	*Receiver
	t    *testing.T
	conn net.Conn
}

func started(t *testing.T) *pair {
	t.Helper()
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		r.Close()
	})
	return &pair{r, t, conn}
}

// sends sends a datagram and waits until it was taken.
func (p *pair) sends(lines ...string) {
	p.t.Helper()
	p.mu.Lock()
	before := p.came
	p.mu.Unlock()
	if _, err := p.conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		p.mu.Lock()
		came := p.came
		p.mu.Unlock()
		if came > before {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("a datagram of %d bytes did not come", len(strings.Join(lines, "\n")))
		}
		time.Sleep(time.Millisecond)
	}
}

// find is what came under a name.
func find(t *testing.T, r *result.Statsd, name string) result.StatsdSeries {
	t.Helper()
	i := slices.IndexFunc(r.Series, func(s result.StatsdSeries) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no series %s in %s", name, written(t, r))
	}
	return r.Series[i]
}

// open is a receiver that counts what is sent without a time.
func open(t *testing.T) *pair {
	t.Helper()
	p := started(t)
	p.sends("before:1|c")
	if err := p.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// Forms of a DogStatsD line: packed values, colons in tags, fields to come, and what is none.
func TestForms(t *testing.T) {
	p := open(t)
	p.sends("a:3:5:9|d|@0.25|T1796049672", "b:1|c|c:0123abcd", "c:1.0|g|#id:relay-system/src/controller.rs:178,file,line:178|T1796049672",
		"d:2|c|#x:y|z:new", "e:1|ms", "", "f|c", ":1|c")
	r := p.Result()
	a := find(t, r, "a")
	if a.Type != result.Timer || a.Timer.Values() != 3 || a.Timer.Count() != 12 || a.Timer.Sum() != 4*(3+5+9) {
		t.Errorf("a: got %+v: %d values, count %v, sum %v, want 3 that stand for 4 each", a, a.Timer.Values(), a.Timer.Count(), a.Timer.Sum())
	}
	if b := find(t, r, "b"); b.Counter != 1 || b.Tags != nil {
		t.Errorf("b: got %+v, want 1 without tags", b)
	}
	c := find(t, r, "c")
	if want := []string{"file", "id:relay-system/src/controller.rs:178", "line:178"}; !slices.Equal(c.Tags, want) || c.Gauge == nil || c.Gauge.Last != 1 {
		t.Errorf("c: got %+v, want tags %q", c, want)
	}
	if d := find(t, r, "d"); d.Counter != 2 || !slices.Equal(d.Tags, []string{"x:y"}) {
		t.Errorf("d: got %+v, want 2", d)
	}
	if e := find(t, r, "e"); e.Timer.Count() != 1 || e.Timer.Sum() != 1 {
		t.Errorf("e: got %+v, want 1", e)
	}
	if r.Malformed != 2 || r.MalformedFirst != "no value: f|c" || r.Lines != 5 || len(r.Series) != 5 {
		t.Errorf("%d malformed, first %q, %d lines, %d series, want 2, f|c, 5, 5", r.Malformed, r.MalformedFirst, r.Lines, len(r.Series))
	}
}

// A sampled value stands for several and stays what it is; large datagrams come whole; bad rates are malformed.
func TestRatesAndLargeDatagrams(t *testing.T) {
	p := open(t)
	p.sends("sentry.relay.requests.duration:57|d|@0.1|#route:envelope", "g:5|g|@0.5", "n:2|c|@0.5", "x:1|d|@0", "x:1|d|@2", "x:1|d|@nan")
	for _, size := range []int{9000, 65507} {
		last := "\nsentry.relay.http_queue.size:1234|d"
		var b strings.Builder
		for b.Len() < size-len(last)-20 {
			b.WriteString("sentry.relay.f:1|d\n")
		}
		b.WriteString(strings.Repeat("\n", size-len(last)-b.Len()) + last)
		if b.Len() != size {
			t.Fatalf("made %d bytes, want %d", b.Len(), size)
		}
		p.sends(b.String())
	}
	r := p.Result()
	d := find(t, r, "sentry.relay.requests.duration").Timer
	if v, _ := d.Quantile(1); v != 57 || d.Count() != 10 {
		t.Errorf("got %v, count %v, want 57, 10", v, d.Count())
	}
	if v, _ := d.Quantile(0.5); v != 57 {
		t.Errorf("p50 %v, want 57", v)
	}
	if g := find(t, r, "g").Gauge; g.Last != 5 {
		t.Errorf("gauge %v, want 5", g.Last)
	}
	if n := find(t, r, "n").Counter; n != 4 {
		t.Errorf("counter %v, want 4", n)
	}
	q := find(t, r, "sentry.relay.http_queue.size").Timer
	if least, _ := q.Quantile(0); least != 1234 || q.Values() != 2 {
		t.Errorf("%d values from %v, want 2 of 1234", q.Values(), least)
	}
	if r.Malformed != 3 || r.MalformedFirst != `rate "0": x:1|d|@0` || r.Datagrams != 3 {
		t.Errorf("%d malformed, first %q, %d datagrams", r.Malformed, r.MalformedFirst, r.Datagrams)
	}
	if r.Dropped > 0 {
		t.Errorf("the kernel dropped %d", r.Dropped)
	}
}

// What the kernel drops, as nobody reads, is counted.
func TestDropped(t *testing.T) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := dropped(conn); n < 0 {
		t.Skip("this system does not tell")
	} else if n != 0 {
		t.Fatalf("%d dropped before anything came", n)
	}
	if err := conn.SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	to, err := net.Dial("udp", conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	const sent = 100
	for range sent {
		if _, err := to.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := dropped(conn); n < sent/2 || n > sent {
		t.Errorf("%d dropped of %d, want most", n, sent)
	}
}

// Values count from the flush after the one that Begin waits for, to the first
// that begins after End was called, and that one is whole.
func TestFlushes(t *testing.T) {
	p := started(t)
	k := 0.0 // the newest flush
	flush := func() {
		k++
		at := 1796049672 + int64(10*k)
		p.sends(fmt.Sprintf("c:%v|c|T%d", k, at), fmt.Sprintf("g:%v|g|T%d", k, at+1)) // a second ends
		p.sends(fmt.Sprintf("t:%v|d|@1.0", k))
	}
	during := func(wait func(context.Context) error, do func(done <-chan error)) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- wait(ctx) }()
		do(done)
	}
	flush()
	during(p.Begin, func(done <-chan error) {
		for { // until Begin has looked, the next one is an old one to it
			flush()
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	first := k + 1
	p.sends(fmt.Sprintf("t:%v|d", k)) // of the flush before
	flush()
	during(p.End, func(done <-chan error) {
		var ending time.Time
		for ending.IsZero() {
			time.Sleep(time.Millisecond)
			p.mu.Lock()
			ending = p.ending
			p.mu.Unlock()
		}
		flush() // too early to be the last, unless this machine stands still
		time.Sleep(time.Until(ending) + time.Millisecond)
		flush()
		p.sends(fmt.Sprintf("t:%v|d", k))
		flush()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
	flush()
	r := p.Result()
	d := find(t, r, "t").Timer
	if want := first + first + 1 + 2*(first+2); r.Flushes != 3 || d.Values() != 4 || d.Sum() != want {
		t.Errorf("%d flushes, %d values, sum %v, want 3, 4 and %v", r.Flushes, d.Values(), d.Sum(), want)
	}
	if c := find(t, r, "c").Counter; c != 3*first+3 {
		t.Errorf("counter %v, want %v", c, 3*first+3)
	}
	if g := find(t, r, "g").Gauge; g.Last != first+2 || g.Min != first || g.Max != first+2 {
		t.Errorf("gauge %+v, want %v to %v", g, first, first+2)
	}
}

// Where nothing comes, or what comes does not end, ctx ends the wait.
func TestWaitsEnd(t *testing.T) {
	p := started(t)
	cause := errors.New("no more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.Begin(ctx); err != cause {
		t.Errorf("begin: got %v, want %v", err, cause)
	}
	if r := p.Result(); r.Flushes != 0 || len(r.Series) != 0 {
		t.Errorf("got %s", written(t, r))
	}
	p.sends("a:1|c|T1796049672")
	p.mu.Lock()
	p.phase = counting
	p.mu.Unlock()
	p.sends("a:2|c|T1796049682")
	if err := p.End(ctx); err != cause {
		t.Errorf("end: got %v, want %v", err, cause)
	}
	p.sends("a:4|c|T1796049692")
	if got := find(t, p.Result(), "a").Counter; got != 2 {
		t.Errorf("got %v, want 2: what had come by then", got)
	}
}

// The recording of a real Relay: every line is understood.
func TestRecording(t *testing.T) {
	r := &Receiver{phase: counting, base: -1}
	for _, d := range recording(t) {
		r.take([]byte(d))
	}
	got := r.tally.result()
	if got.Malformed != 0 || got.Ignored != 0 || got.Over != 0 || r.flush != 4 {
		t.Errorf("%d malformed (%s), %d ignored, %d over, %d flushes, want 0, 0, 0, 4", got.Malformed, got.MalformedFirst, got.Ignored, got.Over, r.flush)
	}
	types := map[string]int{}
	for _, s := range got.Series {
		types[s.Type]++
	}
	if types[result.Timer] < 50 || types[result.Counter] < 30 || types[result.Gauge] < 50 {
		t.Errorf("series by type: %v", types)
	}
	i := slices.IndexFunc(got.Series, func(s result.StatsdSeries) bool {
		return s.Name == "sentry.relay.signature.create.duration" && slices.Equal(s.Tags, []string{"signature_type:request_sign"})
	})
	if i < 0 {
		t.Fatal("no signature timer")
	}
	if p50, ok := got.Series[i].Timer.Quantile(0.5); !ok || p50 < 0.02 || p50 > 0.2 {
		t.Errorf("a signature took %v ms, %t, want about 0.05", p50, ok)
	}
	once := written(t, got)
	if again := written(t, read(t, once)); again != once {
		t.Error("it is written otherwise once read")
	}
	t.Logf("%d series in %d bytes", len(got.Series), len(once))
}

// Series beyond the most that are kept, and names of any length, are counted.
func TestBound(t *testing.T) {
	r := &Receiver{phase: counting, direct: true}
	for i := range maxSeries + 10 {
		r.take(fmt.Appendf(nil, "a:1|c|#n:%d\na:1|c|#n:%d", i, i))
	}
	r.take([]byte(strings.Repeat("x", maxKey) + ":1|c|#y"))
	got := r.tally.result()
	if len(got.Series) != maxSeries || got.Over != 21 || got.OverFirst != "a" {
		t.Errorf("%d series, %d lines over, first %q, want %d, 21, a", len(got.Series), got.Over, got.OverFirst, maxSeries)
	}
	if got.Series[0].Counter != 2 {
		t.Errorf("counter %v, want 2", got.Series[0].Counter)
	}
}

// Tags make one series in any order.
func TestTagOrder(t *testing.T) {
	r := &Receiver{phase: counting, direct: true}
	r.take([]byte("a:1|d|#x:1,y:2\na:2|d|#y:2,x:1,,x:1\na,x:1:3|d"))
	got := r.tally.result()
	if len(got.Series) != 2 || got.Series[0].Timer.Sum() != 3 || math.IsNaN(got.Series[1].Timer.Sum()) {
		t.Errorf("got %s", written(t, got))
	}
}
