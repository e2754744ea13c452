package blaster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

// simulate runs a load against s on a simulated clock, over connections that
// are no sockets.
func simulate(t *testing.T, load Load, pool *envelope.Pool, s *server, check func(got *result.Tally, zero int64)) {
	synctest.Test(t, func(t *testing.T) {
		load.Zero = envelope.Now()
		s.zero = load.Zero
		r := newRun(load, pool)
		r.places = goroutines
		r.dial = func(context.Context) (net.Conn, error) {
			mine, theirs := net.Pipe()
			s.serve(theirs)
			return mine, nil
		}
		var live Live
		got, err := r.do(t.Context(), &live)
		if err != nil {
			t.Fatal(err)
		}
		s.close(t)
		sums(t, got)
		late, _ := got.Late.Quantile(1)
		refused := got.RefusedSpans.Service.Count() // as sums has it
		want := Counts{Due: got.Due, Sent: got.Sent, Accepted: got.Counts[result.Accepted], Refused: refused, Failed: got.Counts[result.FailConnect], LateMax: int64(late)}
		if c := live.Counts(); c != want {
			t.Errorf("got live counts %+v, want %+v", c, want)
		}
		check(got, load.Zero)
	})
}

// Twenty seconds of load that the senders cannot keep up with take twenty
// seconds, and what was not sent is counted.
func TestOverload(t *testing.T) {
	load := newLoad("", 20_000, 10*time.Second, 1)
	s := newServer(func(c net.Conn, _ *request) bool {
		time.Sleep(5 * time.Millisecond)
		io.WriteString(c, accepted)
		return true
	})
	simulate(t, load, newPool(t), s, func(got *result.Tally, zero int64) {
		if got.Due != 200_000 || got.Sent != 2000 || got.Counts[result.NotSent] != 198_000 || s.once(t) != 2000 {
			t.Errorf("%d due, %d sent, %d not sent, want 200,000, 2,000, 198,000", got.Due, got.Sent, got.Counts[result.NotSent])
		}
		if ended := time.Duration(envelope.Now() - zero); ended != 10*time.Second {
			t.Errorf("the load took %v, want 10s", ended)
		}
		near(t, "median response", quantile(t, got.AcceptedSpans.Response, .5), 5e9*(1-0.01), 0.02)
		near(t, "median service", quantile(t, got.AcceptedSpans.Service, .5), 5e6, 0.02)
		near(t, "median lateness", quantile(t, got.Late, .5), 5e9*(1-0.01), 0.02)
	})
}

// A closed loop sends as fast as it is answered, until its time is up.
func TestClosedLoop(t *testing.T) {
	load := newLoad("", 0, time.Second, 8)
	load.Schedule.Start = int64(time.Minute)
	s := newServer(func(c net.Conn, _ *request) bool {
		time.Sleep(7 * time.Millisecond)
		io.WriteString(c, accepted)
		return true
	})
	simulate(t, load, newPool(t), s, func(got *result.Tally, _ int64) {
		const want = 8 * (1000/7 + 1)
		if got.Due != want || got.Counts[result.Accepted] != want || s.once(t) != want || got.Connects != 8 {
			t.Errorf("%d due, %d accepted over %d connections, want %d, all, 8", got.Due, got.Counts[result.Accepted], got.Connects, want)
		}
		if got.Late.Count() != 0 {
			t.Errorf("%d values of lateness, want none", got.Late.Count())
		}
		for name, s := range map[string]*result.Sketch{"response": got.AcceptedSpans.Response, "service": got.AcceptedSpans.Service} {
			if low, high := quantile(t, s, 0), quantile(t, s, 1); low != 7e6 || high != 7e6 {
				t.Errorf("%s from %v to %v ns, want 7 ms", name, low, high)
			}
		}
		if first, last := load.Schedule.Start, load.Schedule.Start+1_001e6; got.First != first || got.Last != last {
			t.Errorf("sent from %d to %d, want %d to %d", got.First, got.Last, first, last)
		}
	})
}

// What four sender processes bring back, merged, is what one sender brings back
// of the same schedule: each count, each value of each sketch, each answer.
func TestSharesMerge(t *testing.T) {
	pool := newPool(t)
	send := func(first, stride uint64, connections int) *result.Tally {
		load := newLoad("", 1000, time.Second, connections)
		load.Schedule.First, load.Schedule.Stride, load.Schedule.Burst = first, stride, 10
		s := newServer(func(c net.Conn, r *request) bool {
			time.Sleep(time.Duration(1+r.stamp.Seq%7) * 5 * time.Millisecond)
			if r.stamp.Seq%5 == 0 {
				io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")
			} else {
				io.WriteString(c, accepted)
			}
			return true
		})
		var tally *result.Tally
		simulate(t, load, pool, s, func(got *result.Tally, zero int64) { tally = got })
		return tally
	}
	one := send(0, 1, 128)
	merged := result.NewTally(0, 1)
	for i := range uint64(4) {
		share := send(i, 4, 32)
		text, err := json.Marshal(message{Tally: share, Log: &share.Log}) // as a process says it
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		m.Tally.Log = *m.Log
		if err := merged.Merge(m.Tally); err != nil {
			t.Fatal(err)
		}
	}
	if one.Due != 1000 || one.Counts[result.Accepted] != 800 || one.Counts[result.AnswerOf(429)] != 200 {
		t.Errorf("%d due, answers %v, want 1000, 800 of them accepted, 200 refused", one.Due, one.Counts)
	}
	if one.Connects != merged.Connects {
		t.Logf("%d connections, %d of four", one.Connects, merged.Connects) // who is free first is no part of it
		one.Connects = merged.Connects
	}
	want, err := json.Marshal(message{Tally: one, Log: &one.Log})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(message{Tally: merged, Log: &merged.Log})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("four shares, merged:\n%s\none sender:\n%s", got, want)
	}
}

// A sender closes its connection after so many answers, whatever they are, and
// no send is lost or made again by that.
func TestReconnect(t *testing.T) {
	for _, rate := range []float64{0, 100} {
		load := newLoad("", rate, time.Second, 2)
		load.Reconnect = 3
		var over atomic.Int64 // requests beyond the third of a connection
		s := newServer(func(c net.Conn, r *request) bool {
			time.Sleep(10 * time.Millisecond)
			if r.nth > 2 {
				over.Add(1)
			}
			if r.stamp.Seq%2 == 0 {
				io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			} else {
				io.WriteString(c, accepted)
			}
			return true
		})
		simulate(t, load, newPool(t), s, func(got *result.Tally, _ int64) {
			if n := over.Load(); n > 0 || got.Sent < 90 || got.Counts[result.Accepted]+got.Counts[result.AnswerOf(503)] != got.Sent || s.once(t) != got.Sent {
				t.Errorf("at %v/s: %d sent, answers %v, %d requests too many on a connection", rate, got.Sent, got.Counts, n)
			}
			if least := (got.Sent + 2) / 3; got.Connects < least || got.Connects > least+1 || got.Renewed != got.Connects-2 {
				t.Errorf("at %v/s: %d sends over %d connections, %d of them renewed", rate, got.Sent, got.Connects, got.Renewed)
			}
		})
	}
}

func quantile(t *testing.T, s *result.Sketch, q float64) float64 {
	t.Helper()
	ns, ok := s.Quantile(q)
	if !ok {
		t.Fatal("empty sketch")
	}
	return ns
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g ms, want %.4g within %g%%", what, got/1e6, want/1e6, 100*tolerance)
	}
}

// A rate lower than the number of connections is spread evenly over time,
// whichever connection carries a send, and no connection is used after Relay
// would have closed it.
func TestFewSends(t *testing.T) {
	for _, c := range []struct {
		rate        float64
		connections int
		duration    time.Duration
		renewed     uint64
	}{
		{3, 128, 10 * time.Second, 0},
		{0.5, 1, 20 * time.Second, 0},
		{0.2, 1, 50 * time.Second, 9},
		{0.01, 3, 1000 * time.Second, 7},
	} {
		load := newLoad("", c.rate, c.duration, c.connections)
		load.Schedule.Start = int64(time.Second)
		s := newServer(say(accepted, true))
		s.idle = 5 * time.Second
		simulate(t, load, newPool(t), s, func(got *result.Tally, zero int64) {
			want := uint64(math.Round(c.rate * c.duration.Seconds()))
			if got.Due != want || got.Counts[result.Accepted] != want || got.Renewed != c.renewed {
				t.Errorf("at %v/s %d due, %d accepted, %d connections renewed, want %d, all, %d: %v",
					c.rate, got.Due, got.Counts[result.Accepted], got.Renewed, want, c.renewed, got.Errors)
			}
			for seq := range want {
				if at := s.at[seq] - zero; at != load.Schedule.Due(seq) {
					t.Errorf("at %v/s number %d came at %d, want %d", c.rate, seq, at, load.Schedule.Due(seq))
				}
			}
			if late, _ := got.Late.Quantile(1); late != 0 {
				t.Errorf("at %v/s a send is late by %v ns", c.rate, late)
			}
			if got.First != load.Schedule.Start {
				t.Errorf("first send at %d, want %d", got.First, load.Schedule.Start)
			}
		})
	}
}

// A sender that stalls delays no number but its own.
func TestOneStalls(t *testing.T) {
	load := newLoad("", 100, 10*time.Second, 3)
	load.Timeout = time.Minute
	var first atomic.Bool
	s := newServer(func(c net.Conn, _ *request) bool {
		if first.CompareAndSwap(false, true) {
			time.Sleep(30 * time.Second)
		}
		io.WriteString(c, accepted)
		return true
	})
	simulate(t, load, newPool(t), s, func(got *result.Tally, zero int64) {
		if got.Counts[result.Accepted] != 1000 {
			t.Errorf("%d accepted, want 1000", got.Counts[result.Accepted])
		}
		if late, _ := got.Late.Quantile(1); late != 0 {
			t.Errorf("a send is late by %v ns", late)
		}
		if longest, _ := got.AcceptedSpans.Response.Quantile(1); longest != 30e9 {
			t.Errorf("longest response %v ns, want 30 s", longest)
		}
		if got.Last != 30e9 {
			t.Errorf("last answer at %d, want 30 s", got.Last)
		}
	})
}

// A server that stalls one second in ten shows in full: the response times
// agree with those that follow from the schedule alone.
func TestStalls(t *testing.T) {
	const service = 500 * time.Microsecond
	for _, rate := range []float64{100, 300, 1000} {
		load := newLoad("", rate, 20*time.Second, 64)
		// stalled is how long a server that is asked at a time stalls: in the fifth second of ten.
		stalled := func(at int64) int64 {
			if at %= 10e9; at >= 4e9 && at < 5e9 {
				return 5e9 - at
			}
			return 0
		}
		s := newServer(nil)
		s.handle = func(c net.Conn, _ *request) bool {
			time.Sleep(time.Duration(stalled(envelope.Now()-s.zero)) + service)
			io.WriteString(c, accepted)
			return true
		}
		simulate(t, load, newPool(t), s, func(got *result.Tally, _ int64) {
			responses := make([]float64, got.Due)
			for seq := range got.Due {
				responses[seq] = float64(stalled(load.Schedule.Due(seq)) + int64(service))
			}
			slices.Sort(responses)
			for _, q := range []float64{.95, .99, .999} {
				near(t, "response", quantile(t, got.AcceptedSpans.Response, q), responses[int(q*float64(len(responses)-1))], 0.02)
			}
			if got.Counts[result.Accepted] != got.Due {
				t.Errorf("%d of %d accepted", got.Counts[result.Accepted], got.Due)
			}
		})
	}
}

// A time-out is counted from its own send's write, to the nanosecond, though
// deadlines are not set for each send.
func TestTimeout(t *testing.T) {
	const timeout = 800 * time.Millisecond
	for _, gap := range []time.Duration{0, 10 * time.Millisecond, 99 * time.Millisecond, 101 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			mine, theirs := net.Pipe()
			defer mine.Close()
			defer theirs.Close()
			var stopped atomic.Bool
			c := newConn(mine, timeout, &stopped)
			for range 3 { // sends that are answered after a tenth of the time-out
				go func() {
					io.ReadFull(theirs, make([]byte, 4))
					time.Sleep(timeout / 10)
					theirs.Write([]byte("pong"))
				}()
				if n, err := c.write([]byte("ping"), envelope.Now()); n != 4 || err != nil {
					t.Fatalf("gap %v: wrote %d bytes: %v", gap, n, err)
				}
				if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
					t.Fatalf("gap %v: %v", gap, err)
				}
				time.Sleep(gap)
			}
			go io.ReadFull(theirs, make([]byte, 4)) // and one that is not
			before := envelope.Now()
			c.write([]byte("ping"), before)
			_, err := c.Read(make([]byte, 4))
			if after := time.Duration(envelope.Now() - before); !errors.Is(err, os.ErrDeadlineExceeded) || after != timeout {
				t.Errorf("gap %v: got error %v after %v, want a passed deadline after %v", gap, err, after, timeout)
			}
			before = envelope.Now()
			n, err := c.write([]byte("ping"), before) // nobody reads
			if after := time.Duration(envelope.Now() - before); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || after != timeout {
				t.Errorf("gap %v: wrote %d bytes, error %v after %v, want a passed deadline after %v", gap, n, err, after, timeout)
			}
		})
	}
}

// In a closed loop that cannot connect each sender waits longer and longer, up
// to a tenth of a second, and at once sends again when it can.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(c net.Conn, _ *request) bool {
			time.Sleep(100 * time.Millisecond)
			io.WriteString(c, accepted)
			return true
		})
		load := newLoad("", 0, 2*time.Second, 1)
		r := newRun(load, newPool(t))
		r.places = goroutines
		r.load.Zero = envelope.Now()
		r.start, r.end = r.load.Zero, r.load.Zero+int64(load.Duration)
		var tries []int64
		r.dial = func(context.Context) (net.Conn, error) {
			at := (envelope.Now() - r.start) / 1e6
			tries = append(tries, at)
			if at < 1000 {
				return nil, io.ErrUnexpectedEOF
			}
			mine, theirs := net.Pipe()
			s.serve(theirs)
			return mine, nil
		}
		got, err := r.do(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.close(t)
		sums(t, got)
		want := []int64{0, 1, 3, 7, 15, 31, 63, 127, 227, 327, 427, 527, 627, 727, 827, 927, 1027}
		if !slices.Equal(tries, want) {
			t.Errorf("tried to connect after %v ms, want %v", tries, want)
		}
		if n := got.Counts[result.Accepted]; n != 10 || got.Counts[result.FailConnect] != 16 || got.Renewed != 0 {
			t.Errorf("%d accepted, %d not connected, %d renewed, want 10, 16, 0", n, got.Counts[result.FailConnect], got.Renewed)
		}
	})
}
