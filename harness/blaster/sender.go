package blaster

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

const (
	// idleLimit is the age at which an unused connection is renewed: Relay
	// closes one after 5.0 s.
	// Source: seen on Relay 26.4.0, its header read timeout (services/server/mod.rs:117).
	idleLimit = int64(4 * time.Second)
	// peekAfter is how long a connection must have been unused to be looked at
	// before a write.
	//
	// Note: a look is a system call. Between two sends of a busy sender it would
	// cost a tenth of a send to find what comes in later as likely as not.
	peekAfter = int64(time.Millisecond)
	// dialLead is how long before its send is due a connection is made.
	dialLead = int64(100 * time.Millisecond)
	// pauseMin and pauseMax bound how long a sender of a closed loop waits after
	// it could not connect; each failure doubles it.
	pauseMin = int64(time.Millisecond)
	pauseMax = int64(100 * time.Millisecond)
	// maxReasons bounds the different messages of failures that a thread keeps.
	maxReasons = 16
)

// thread is what the senders of one thread share, see place: with a thousand
// of them, each with its own, none of it would be in a cache when it is needed.
type thread struct {
	live  *cell
	tally *result.Tally
	buf   []byte // head and body of the send that one of them writes next
	body  int    // length of its body
	made  uint64 // its number and one; 0: none
}

func newThread(s Schedule, live *cell) *thread {
	t := &thread{live: live, tally: result.NewTally(s.First, s.Stride), buf: make([]byte, 0, 64<<10)}
	for _, s := range []*result.Sketch{t.tally.AcceptedSpans.Response, t.tally.AcceptedSpans.Service, t.tally.Late} {
		s.Reserve(int64(10*time.Microsecond), int64(10*time.Second))
	}
	return t
}

// sender is one connection's sending loop. It shares the counter that numbers
// are taken from with all others, and its thread with some.
type sender struct {
	run   *run
	place place
	*thread

	conn    *conn                // nil: none
	open    atomic.Pointer[conn] // the same, for run.cut
	used    int64                // when conn was made or last used
	served  int                  // sends that were answered over conn
	renewal bool                 // the next connection replaces one that was idle or closed between two sends
	pause   int64                // after the last failure to connect; 0: there was none

	answers responses
	size    int // of the present send's body
}

// loop takes numbers and sends them until none is left, the load's time is up or the run is stopped.
func (s *sender) loop() {
	defer s.drop(false)
	r := s.run
	open := r.load.Schedule.Open()
	now, ok := envelope.Now(), true
	if !open {
		s.ahead(now, r.start)
		now, ok = s.place.wait(r.start)
	}
	// Note: the end is looked at before a number is taken, not after the wait
	// for it: a sender that waits in time sends, however late it is woken.
	for ok && now < r.end {
		i := r.next.Add(1) - 1
		if i >= r.share {
			return
		}
		seq, due := r.load.Schedule.number(i), now
		if open {
			due = r.load.Zero + r.load.Schedule.Due(seq)
		}
		s.ahead(now, due)
		if now, ok = s.place.wait(due); ok {
			now, ok = s.send(i, seq, due, now)
		}
	}
}

// build makes the request of send seq in the thread's buffer, unless it is
// there, where it stays until the sender waits.
func (s *sender) build(seq uint64, due int64) {
	if s.made == seq+1 {
		return
	}
	s.made = seq + 1
	pool := s.run.pool
	head := appendHead(s.buf[:0], s.run.load.Addr, pool.Project(seq), pool.UserAgent(seq), pool.Encoding(), pool.Size(seq))
	s.buf = pool.Append(head, seq, due)
	s.body = len(s.buf) - len(head)
}

// buildNext makes what is due after number i of the share, whichever sender
// has it: by then it need not be made, and now it costs least, as another just was.
func (s *sender) buildNext(i uint64) {
	if r := s.run; len(r.threads) == 1 && r.load.Schedule.Open() && i+1 < r.share {
		seq := r.load.Schedule.number(i + 1)
		s.build(seq, r.load.Schedule.Due(seq))
	}
}

// appendHead appends the head of a POST of size bytes, of a content encoding, to a project's ingest.
// Source: Relay 26.4.0, endpoints/envelope.rs:60, extractors/request_meta.rs:401.
func appendHead(dst []byte, addr string, project int, agent []byte, encoding string, size int) []byte {
	dst = append(dst, "POST /api/"...)
	dst = strconv.AppendInt(dst, int64(envelope.ProjectID(project)), 10)
	dst = append(dst, "/envelope/ HTTP/1.1\r\nHost: "...)
	dst = append(dst, addr...)
	dst = append(dst, "\r\nUser-Agent: "...)
	dst = append(dst, agent...)
	if encoding != envelope.Identity {
		dst = append(dst, "\r\nContent-Encoding: "...)
		dst = append(dst, encoding...)
	}
	dst = append(dst, "\r\nContent-Type: application/x-sentry-envelope\r\nX-Sentry-Auth: Sentry sentry_key="...)
	dst = envelope.AppendKey(dst, project)
	dst = append(dst, ", sentry_version=7, sentry_client=relaybench/1\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(size), 10)
	return append(dst, "\r\n\r\n"...)
}

// ahead sees to it, in the time that is left until a send is due, that there
// is a connection for it which will not be too old. What fails is tried again when it is due.
func (s *sender) ahead(now, due int64) {
	if now >= due || s.conn != nil && due-s.used < idleLimit {
		return
	}
	if _, ok := s.place.wait(due - dialLead); ok {
		s.drop(true)
		s.connect()
	}
}

// send makes send seq, number i of the share, at the time now, and returns the
// time when that is over; ok is false when the run is stopped.
func (s *sender) send(i, seq uint64, due, now int64) (after int64, ok bool) {
	if idle := now - s.used; s.conn != nil && idle >= peekAfter && (idle >= idleLimit || s.conn.closed()) {
		s.drop(true)
	}
	n, err := 0, error(nil)
	for fresh := false; n == 0; {
		if s.conn == nil {
			if err := s.connect(); err != nil {
				return s.unconnected(i, err)
			}
			fresh = true
		}
		s.build(seq, due-s.run.load.Zero)
		s.size = s.body
		now = envelope.Now()
		if n, err = s.conn.write(s.buf, now); n == 0 {
			// Nothing went out: the peer closed it in this very moment.
			s.drop(true)
			if fresh {
				return s.unconnected(i, err)
			}
		}
	}
	s.begun(due, now, n)
	s.buildNext(i)
	var status int
	keep := err == nil
	if err == nil || hungUp(err) {
		// A relay that refuses may answer and close before it has read all.
		var e error
		var kept bool
		if status, kept, e = s.answers.next(); e == nil {
			err, keep = nil, keep && kept
		} else if err == nil {
			err = e
		}
	}
	after = envelope.Now()
	s.used = after
	if err != nil {
		s.failed(i, err)
	} else {
		s.answered(i, result.AnswerOf(status), after-due, after-now)
		s.tally.Last = after - s.run.load.Zero
		if s.served++; !keep || s.served == s.run.load.Reconnect {
			s.drop(true)
		}
	}
	return after, !s.run.stopped.Load()
}

// begun notes that n bytes of a send went out at the time now.
func (s *sender) begun(due, now int64, n int) {
	t := s.tally
	if t.Sent == 0 {
		t.First = now - s.run.load.Zero
	}
	t.Sent++
	t.Pushed += uint64(n)
	s.live.sent.Add(1)
	if s.run.load.Schedule.Open() {
		t.Late.Add(now - due)
		s.live.tardy(now - due)
	}
}

func (s *sender) answered(i uint64, a result.Answer, response, service int64) {
	t := s.tally
	spans, count := &t.AcceptedSpans, &s.live.accepted
	if a == result.Accepted {
		t.Accepted += uint64(s.size)
	} else {
		spans, count = &t.RefusedSpans, &s.live.refused
	}
	spans.Response.Add(response)
	spans.Service.Add(service)
	t.Counts[a]++
	s.run.log.put(i, a)
	count.Add(1)
}

// unconnected notes that there was no connection for a number, of which
// nothing went out, and holds a closed loop back.
func (s *sender) unconnected(i uint64, err error) (after int64, ok bool) {
	if s.run.ctx.Err() != nil {
		return envelope.Now(), false
	}
	s.fail(i, result.FailConnect, "connect: "+reason(err))
	if s.run.load.Schedule.Open() {
		return envelope.Now(), true // the schedule holds it back
	}
	s.pause = min(max(2*s.pause, pauseMin), pauseMax)
	return s.place.wait(min(envelope.Now()+s.pause, s.run.end))
}

// failed notes that a send was not answered, and gives its connection up.
func (s *sender) failed(i uint64, err error) {
	s.drop(false)
	var bad malformed
	switch {
	case s.run.stopped.Load():
		s.fail(i, result.FailOther, "stopped before the answer")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.fail(i, result.FailTimeout, "no answer within "+s.run.load.Timeout.String())
	case errors.As(err, &bad):
		s.fail(i, result.FailResponse, bad.Error())
	case hungUp(err):
		what := "closed before the answer"
		if s.answers.begun {
			what = "closed within the answer"
		}
		if err != io.EOF {
			what += ": " + reason(err)
		}
		s.fail(i, result.FailClosed, what)
	default:
		s.fail(i, result.FailOther, reason(err))
	}
}

func (s *sender) fail(i uint64, a result.Answer, what string) {
	s.tally.Counts[a]++
	s.run.log.put(i, a)
	s.live.failed.Add(1)
	if _, known := s.tally.Errors[what]; !known && len(s.tally.Errors) >= maxReasons {
		what = "other errors"
	}
	s.tally.Errors[what]++
}

func (s *sender) connect() error {
	c, err := s.place.connect(s.run)
	if err != nil {
		return err
	}
	s.conn = newConn(c, s.run.load.Timeout, &s.run.stopped)
	s.open.Store(s.conn)
	s.answers.reset(s.conn)
	s.used, s.served = envelope.Now(), 0
	s.pause = 0
	s.tally.Connects++
	if s.renewal {
		s.renewal = false
		s.tally.Renewed++
	}
	return nil
}

// drop closes the connection, if there is one; renewal says that no send suffered by that.
func (s *sender) drop(renewal bool) {
	if s.conn == nil {
		return
	}
	s.conn.net.Close()
	s.conn, s.renewal = nil, renewal
	s.open.Store(nil)
}

// hungUp says that the peer closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// reason is what an error of the network says without its addresses, which
// differ from send to send.
func reason(err error) string {
	var op *net.OpError
	for errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err.Error()
}
