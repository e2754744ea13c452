package blaster

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

// sums checks what holds for the tally of every whole schedule.
func sums(t *testing.T, got *result.Tally) {
	t.Helper()
	var all, sent uint64
	for a, n := range got.Counts {
		all += n
		if result.Answer(a) != result.NotSent && result.Answer(a) != result.FailConnect {
			sent += n
		}
	}
	if all != got.Due || sent != got.Sent {
		t.Errorf("%d due and %d sent, but %d and %d by answer", got.Due, got.Sent, all, sent)
	}
	var logged [result.Answers]uint64
	for seq := range got.Due {
		logged[got.Log.Answer(got.Log.First+seq*got.Log.Stride)]++
	}
	if logged != got.Counts {
		t.Errorf("answers by the log %v, by the counts %v", logged, got.Counts)
	}
	if n := uint64(len(got.Log.Bytes)); n != got.Due {
		t.Errorf("log of %d bytes for %d numbers", n, got.Due)
	}
	var refused uint64
	for a, n := range got.Counts {
		if result.Answer(a).Refused() {
			refused += n
		}
	}
	for _, c := range []struct {
		what string
		s    *result.Sketch
		want uint64
	}{
		{"accepted response", got.AcceptedSpans.Response, got.Counts[result.Accepted]},
		{"accepted service", got.AcceptedSpans.Service, got.Counts[result.Accepted]},
		{"refused response", got.RefusedSpans.Response, refused},
		{"refused service", got.RefusedSpans.Service, refused},
	} {
		if n := c.s.Count(); n != c.want {
			t.Errorf("%d values of %s, want %d", n, c.what, c.want)
		}
	}
}

// sendAll sends a whole load: its senders have a minute more than its duration
// for what is due within it, so that a busy machine leaves nothing unsent.
func sendAll(t *testing.T, load Load, change func(*run)) *result.Tally {
	t.Helper()
	r := newRun(load, nil)
	r.end += int64(time.Minute)
	r.patience = time.Minute // a short time-out is for answers
	if change != nil {
		change(r)
	}
	if r.pool == nil {
		r.pool = newPool(t)
	}
	got, err := r.do(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sums(t, got)
	if got.Counts[result.NotSent] != 0 {
		t.Fatalf("%d of %d not sent", got.Counts[result.NotSent], got.Due)
	}
	return got
}

// What servers do to a send, and what it is then counted as.
func TestAnswers(t *testing.T) {
	reset := func(c net.Conn, _ *request) bool {
		c.(*net.TCPConn).SetLinger(0)
		return false
	}
	for name, c := range map[string]struct {
		handle  func(net.Conn, *request) bool
		timeout time.Duration
		want    result.Answer
		errors  []string // possible ones
		renewed bool     // each send needs a connection of its own, and no send suffers by that
		fresh   bool     // the same, after a failure
	}{
		"accepted":                 {handle: say(accepted, true), want: result.Accepted},
		"another 2xx":              {handle: say("HTTP/1.1 204 No Content\r\n\r\n", true), want: result.Accepted},
		"chunked":                  {handle: say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true), want: result.Accepted},
		"interim":                  {handle: say("HTTP/1.1 100 Continue\r\n\r\n"+accepted, true), want: result.Accepted},
		"503":                      {handle: say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", true), want: result.AnswerOf(503)},
		"429":                      {handle: say("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n", true), want: result.AnswerOf(429)},
		"close announced":          {handle: say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", false), want: result.Accepted, renewed: true},
		"close announced and left": {handle: say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", true), want: result.Accepted, renewed: true},
		"body until the close":     {handle: say("HTTP/1.1 200 OK\r\n\r\n{}", false), want: result.Accepted, renewed: true},
		"more than was asked for":  {handle: say(accepted+accepted, true), want: result.Accepted, renewed: true},

		"close before the answer": {handle: say("", false), want: result.FailClosed, errors: []string{"closed before the answer"}, fresh: true},
		"close within the head":   {handle: say("HTTP/1.1 200 OK\r\nContent-", false), want: result.FailClosed, errors: []string{"closed within the answer"}, fresh: true},
		"close within the body":   {handle: say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", false), want: result.FailClosed, errors: []string{"closed within the answer"}, fresh: true},
		"reset":                   {handle: reset, want: result.FailClosed, errors: []string{"closed before the answer: connection reset by peer", "closed before the answer"}, fresh: true},
		"garbage":                 {handle: say("SSH-2.0-OpenSSH\r\n", true), want: result.FailResponse, errors: []string{"malformed response: status line"}, fresh: true},
		"huge header":             {handle: say("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 100_000), true), want: result.FailResponse, errors: []string{"malformed response: line too long"}, fresh: true},
		"no answer":               {handle: say("", true), timeout: 20 * time.Millisecond, want: result.FailTimeout, errors: []string{"no answer within 20ms"}, fresh: true},
		"half an answer":          {handle: say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true), timeout: 20 * time.Millisecond, want: result.FailTimeout, errors: []string{"no answer within 20ms"}, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(c.handle)
			load := newLoad(s.listen(t), 200, 50*time.Millisecond, 2)
			if c.timeout > 0 {
				load.Timeout = c.timeout
			}
			pool := newPool(t)
			got := sendAll(t, load, nil)
			if got.Due != 10 || got.Counts[c.want] != 10 {
				t.Errorf("%d due, %d sent, %d of them %v, want 10 and all: %v", got.Due, got.Sent, got.Counts[c.want], c.want, got.Errors)
			}
			if n := s.once(t); n != got.Sent {
				t.Errorf("%d sent, %d came", got.Sent, n)
			}
			var body, pushed uint64
			for seq := range got.Due {
				if got.Log.Answer(seq) != result.NotSent {
					head := appendHead(nil, load.Addr, pool.Project(seq), pool.UserAgent(seq), envelope.Identity, pool.Size(seq))
					pushed += uint64(len(head) + pool.Size(seq))
					body += uint64(pool.Size(seq))
				}
			}
			if got.Pushed != pushed || s.bytes != int64(pushed) {
				t.Errorf("pushed %d bytes, %d came, want %d", got.Pushed, s.bytes, pushed)
			}
			if want := map[bool]uint64{true: body}[c.want == result.Accepted]; got.Accepted != want {
				t.Errorf("%d bytes accepted, want %d", got.Accepted, want)
			}
			for what := range got.Errors {
				if !slices.Contains(c.errors, what) {
					t.Errorf("error %q, want one of %q", what, c.errors)
				}
			}
			switch {
			case c.renewed && (got.Renewed < got.Sent-2 || got.Connects < got.Sent):
				t.Errorf("%d sends over %d connections, %d of them renewed, want a renewed one for each after the first", got.Sent, got.Connects, got.Renewed)
			case c.fresh && (got.Connects < got.Sent || got.Renewed > 0):
				t.Errorf("%d sends over %d connections, %d of them renewed, want a new one each, none renewed", got.Sent, got.Connects, got.Renewed)
			case !c.renewed && !c.fresh && (got.Connects > 2 || got.Renewed > 0):
				t.Errorf("%d connections, %d of them renewed, want at most 2, that last", got.Connects, got.Renewed)
			}
		})
	}
}

// A request as it stands on the wire.
func TestRequest(t *testing.T) {
	pool := newPool(t)
	var bad atomic.Pointer[string]
	s := newServer(nil)
	addr := ""
	s.handle = func(c net.Conn, r *request) bool {
		seq := r.stamp.Seq
		project := pool.Project(seq)
		want := map[string]string{
			"host": addr, "user-agent": string(pool.UserAgent(seq)), "content-type": "application/x-sentry-envelope",
			"x-sentry-auth":  "Sentry sentry_key=" + envelope.Key(project) + ", sentry_version=7, sentry_client=relaybench/1",
			"content-length": r.header["content-length"],
		}
		if !maps.Equal(r.header, want) || r.line != "POST /api/"+strconv.Itoa(envelope.ProjectID(project))+"/envelope/ HTTP/1.1" ||
			r.stamp.Warm || string(r.stamp.Kind) != pool.Kinds()[pool.Kind(seq)].Name || r.stamp.Due != (Schedule{Start: 5e6, Rate: 1000}).Due(seq) {
			what := r.line
			for name, value := range r.header {
				what += "\n" + name + ": " + value
			}
			bad.Store(&what)
		}
		return say(accepted, true)(c, r)
	}
	addr = s.listen(t)
	load := newLoad(addr, 1000, 100*time.Millisecond, 4)
	load.Schedule.Start = 5e6
	if got := sendAll(t, load, nil); got.Due != 100 {
		t.Errorf("got %d due, want 100", got.Due)
	}
	if b := bad.Load(); b != nil {
		t.Errorf("got request\n%s", *b)
	}
}

func TestRefusedConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	got := sendAll(t, newLoad(l.Addr().String(), 100, 200*time.Millisecond, 4), nil)
	if got.Due != 20 || got.Sent != 0 || got.Counts[result.FailConnect] != 20 || got.Late.Count() != 0 || got.Pushed != 0 {
		t.Errorf("%d due, %d sent, %d unconnected, %d values of lateness, %d bytes, want 20, 0, 20, 0, 0",
			got.Due, got.Sent, got.Counts[result.FailConnect], got.Late.Count(), got.Pushed)
	}
	if want := map[string]uint64{"connect: connection refused": 20}; !maps.Equal(got.Errors, want) {
		t.Errorf("got errors %v, want %v", got.Errors, want)
	}
}

// A connection that the peer has closed is noticed before a write.
func TestCloseIsNoticed(t *testing.T) {
	var handled atomic.Int64
	s := newServer(func(c net.Conn, r *request) bool {
		handled.Add(1)
		return say(accepted, false)(c, r)
	})
	got := sendAll(t, newLoad(s.listen(t), 1000, 20*time.Millisecond, 1), func(r *run) {
		r.places = func(n int, open bool) ([]place, func(), error) {
			all, free, err := newPlaces(n, open)
			for i, p := range all {
				all[i] = afterClose{p, s, &handled}
			}
			return all, free, err
		}
	})
	if got.Counts[result.Accepted] != 20 || got.Connects != 20 || got.Renewed != 19 {
		t.Errorf("%d accepted over %d connections, %d of them renewed, want 20, 20, 19: %v", got.Counts[result.Accepted], got.Connects, got.Renewed, got.Errors)
	}
	s.once(t)
}

// afterClose is a place that waits until each connection on which a request
// was handled is closed, and for as long as makes a connection worth a look.
type afterClose struct {
	place
	s       *server
	handled *atomic.Int64
}

func (a afterClose) wait(until int64) (int64, bool) {
	for a.s.ended.Load() < a.handled.Load() {
		runtime.Gosched()
	}
	return a.place.wait(max(until, envelope.Now()+peekAfter))
}

// A stop ends the load at once, whatever its senders wait for.
func TestStop(t *testing.T) {
	cause := errors.New("enough")
	pool := newPool(t)
	for name, c := range map[string]struct {
		answer string
		rate   float64
		after  int32 // the stop comes with this request
		want   map[result.Answer]uint64
	}{
		"waiting for answers": {"", 0, 4, map[result.Answer]uint64{result.FailOther: 4}},
		"waiting for half":    {"HTTP/1.1 200 OK\r\nContent-Le", 0, 4, map[result.Answer]uint64{result.FailOther: 4}},
		"waiting for due":     {accepted, 1e-3, 1, map[result.Answer]uint64{result.Accepted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var live Live
			var came atomic.Int32
			s := newServer(func(conn net.Conn, _ *request) bool {
				io.WriteString(conn, c.answer)
				if came.Add(1) == c.after {
					for live.Counts().Accepted < c.want[result.Accepted] {
						runtime.Gosched()
					}
					cancel(cause)
				}
				return true
			})
			load := newLoad(s.listen(t), c.rate, time.Hour, 4)
			load.Timeout = time.Hour
			got, err := Run(ctx, load, pool, &live)
			if err != cause {
				t.Errorf("got error %v, want %v", err, cause)
			}
			sums(t, got)
			counts := map[result.Answer]uint64{}
			for a, n := range got.Counts {
				if n > 0 {
					counts[result.Answer(a)] = n
				}
			}
			if !maps.Equal(counts, c.want) {
				t.Errorf("got %v, want %v: %v", counts, c.want, got.Errors)
			}
		})
	}
	t.Run("waiting for a connection", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newRun(newLoad("", 1000, time.Hour, 4), pool)
		var asked atomic.Int32
		r.dial = func(ctx context.Context) (net.Conn, error) {
			if asked.Add(1) == 4 {
				cancel(cause)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		got, err := r.do(ctx, nil)
		if err != cause || got.Sent != 0 || got.Counts[result.NotSent] != got.Due {
			t.Errorf("got error %v, %d sent, %d of %d not sent", err, got.Sent, got.Counts[result.NotSent], got.Due)
		}
		sums(t, got)
	})
	t.Run("before the start", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		for _, rate := range []float64{0, 1000} {
			load := newLoad("", rate, time.Hour, 4)
			load.Schedule.Start = int64(time.Hour)
			got, err := Run(ctx, load, pool, nil)
			if err != cause || got.Due != 0 || got.Connects != 0 {
				t.Errorf("at %v/s: got error %v, %d due, %d connections, want %v, none, none", rate, err, got.Due, got.Connects, cause)
			}
		}
	})
}

func TestBadLoad(t *testing.T) {
	for name, change := range map[string]func(*Load){
		"connections": func(l *Load) { l.Connections = 0 },
		"time-out":    func(l *Load) { l.Timeout = 0 },
		"stride":      func(l *Load) { l.Schedule.Stride = 0 },
		"sends":       func(l *Load) { l.Schedule.Rate = 1e9; l.Duration = time.Hour },
	} {
		load := newLoad("127.0.0.1:1", 10, time.Second, 1)
		change(&load)
		got, err := Run(t.Context(), load, newPool(t), nil)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got error %v, want one that names it", name, err)
		}
		if got == nil {
			t.Errorf("%s: got no tally", name)
		}
	}
}

// A server that stalls for a tenth of the time shows in full.
//
// Note: a busy machine makes responses longer, never shorter; by how much is for [BenchmarkStall].
func TestStallInReal(t *testing.T) {
	t.Parallel()
	got, want := stalls(t, 500, time.Second, 400*time.Millisecond, 500*time.Millisecond, func(load Load) *result.Tally {
		return sendAll(t, load, nil)
	})
	for _, q := range []float64{.95, .99, .999} {
		ns, _ := got.AcceptedSpans.Response.Quantile(q)
		if least := want[int(q*float64(len(want)-1))]; ns < 0.98*least || ns > 1.02*least+10e9 {
			t.Errorf("p%g of response is %.4g ms, by the schedule %.4g", 100*q, ns/1e6, least/1e6)
		}
	}
}

// Sending on costs no memory: twice the sends make no more allocations.
func TestNoAllocations(t *testing.T) {
	addr := startNullServer(t)
	pool := newPool(t)
	mallocs := func(d time.Duration) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := sendAll(t, newLoad(addr, 20_000, d, 8), func(r *run) { r.pool = pool })
		runtime.ReadMemStats(&after)
		if want := uint64(d / (50 * time.Microsecond)); got.Counts[result.Accepted] != want {
			t.Fatalf("%d of %d accepted: %v", got.Counts[result.Accepted], want, got.Errors)
		}
		return after.Mallocs - before.Mallocs
	}
	mallocs(100 * time.Millisecond)
	once, twice := mallocs(time.Second/2), mallocs(time.Second)
	t.Logf("%d allocations for 10,000 sends, %d for 20,000", once, twice)
	if more := int64(twice) - int64(once); more >= 100 {
		t.Errorf("10,000 more sends made %d more allocations, want under 100", more)
	}
}
