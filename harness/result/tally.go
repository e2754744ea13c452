package result

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// Answer is how a send ended at its sender, in one byte.
type Answer uint8

// The answers that are not a status of the relay.
const (
	NotSent      Answer = iota // due, but never written
	Accepted                   // any 2xx
	FailTimeout                // no answer within the plan's time-out
	FailConnect                // no connection: a byte of it never went out, so it is not sent
	FailClosed                 // the connection ended before the answer
	FailResponse               // bytes that are no HTTP response
	FailOther
	firstStatus // then statuses
)

// NotDue is how a number is answered that no share of the schedule got to: beyond the
// end of its own, where another one's goes on. It is in logs alone, and counted nowhere.
const NotDue Answer = 0xff

// statuses are those that a relay is known to answer; another one is counted as "other".
var statuses = []int{0, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 422, 429, 431, 500, 501, 502, 503, 504}

// Answers is how many different answers there are: an array of counts by answer has this length.
const Answers = int(firstStatus) + 20

// AnswerOf is the answer for an HTTP status.
func AnswerOf(status int) Answer {
	if status >= 200 && status < 300 {
		return Accepted
	}
	for i, s := range statuses {
		if s == status {
			return firstStatus + Answer(i)
		}
	}
	return firstStatus
}

// Status is the HTTP status of a refusal; 0 for one not in the table, and for all that is no refusal.
func (a Answer) Status() int {
	if !a.Refused() {
		return 0
	}
	return statuses[a-firstStatus]
}

// Refused says that the relay answered, and not with a 2xx.
func (a Answer) Refused() bool { return a >= firstStatus && int(a) < Answers }

// Sent says that a byte of the send went out.
func (a Answer) Sent() bool { return a != NotSent && a != FailConnect && a != NotDue }

// Failed says that the send was begun and not answered; see [Answer.Sent] for whether anything of it went out.
func (a Answer) Failed() bool { return a > Accepted && a < firstStatus }

// String is the answer's name in a ledger.
func (a Answer) String() string {
	switch a {
	case NotSent:
		return "not sent"
	case Accepted:
		return "accepted"
	case FailTimeout:
		return "timeout"
	case FailConnect:
		return "connect"
	case FailClosed:
		return "closed"
	case FailResponse:
		return "bad response"
	case FailOther:
		return "other error"
	case NotDue:
		return "not due"
	case firstStatus:
		return "other status"
	}
	if s := a.Status(); s != 0 {
		return strconv.Itoa(s) + " " + http.StatusText(s)
	}
	return "answer " + strconv.Itoa(int(a))
}

// Log is one byte for each number that was due of a share of a schedule: how that send was answered.
type Log struct {
	First, Stride uint64
	Bytes         []byte // Bytes[i] is the Answer of number First + i*Stride
}

// Answer is how send seq was answered; NotDue for a number that is not in the log.
func (l *Log) Answer(seq uint64) Answer {
	if seq < l.First || l.Stride == 0 || (seq-l.First)%l.Stride != 0 {
		return NotDue
	}
	if i := (seq - l.First) / l.Stride; i < uint64(len(l.Bytes)) {
		return Answer(l.Bytes[i])
	}
	return NotDue
}

// Spans are the sketches of one outcome of sends, all in nanoseconds.
type Spans struct {
	Response *Sketch `json:"response"` // from when the send was due to its answer
	Service  *Sketch `json:"service"`  // from the write to its answer
}

// Tally is what a blaster brings back. Tallies of the shares of one schedule merge.
type Tally struct {
	Due           uint64            `json:"due"`      // numbers that were due: Sent, and the counts of NotSent and FailConnect
	Sent          uint64            `json:"sent"`     // of them, those of which a byte went out
	Counts        [Answers]uint64   `json:"counts"`   // sends by Answer
	Pushed        uint64            `json:"pushed"`   // bytes written: heads and bodies
	Accepted      uint64            `json:"accepted"` // body bytes of accepted sends
	AcceptedSpans Spans             `json:"accepted_spans"`
	RefusedSpans  Spans             `json:"refused_spans"`
	Late          *Sketch           `json:"late"`             // from when a send was due to its write
	Errors        map[string]uint64 `json:"errors,omitempty"` // failures by message, bounded in number
	Connects      uint64            `json:"connects"`         // connections made
	Renewed       uint64            `json:"renewed"`          // of them, those that replaced an idle or closed one
	First         int64             `json:"first_ns"`         // when the first send was written, since the run's zero; 0: none
	Last          int64             `json:"last_ns"`          // when the last answer came
	CPU           int64             `json:"cpu_ns"`           // of sender processes other than this one
	Wait          int64             `json:"wait_ns"`          // how long their threads waited for a CPU; -1 unknown
	Log           Log               `json:"-"`                // dropped once it is joined with the upstream's bits
}

// NewTally is an empty tally for a share.
func NewTally(first, stride uint64) *Tally {
	spans := func() Spans { return Spans{NewSketch(), NewSketch()} }
	return &Tally{AcceptedSpans: spans(), RefusedSpans: spans(), Late: NewSketch(),
		Errors: map[string]uint64{}, Log: Log{First: first, Stride: stride}}
}

// Merge adds another share of the same schedule. The logs of two different
// shares become one of the whole schedule (First 0, Stride 1).
func (t *Tally) Merge(o *Tally) error {
	for _, p := range []struct {
		to   **Sketch
		from *Sketch
	}{
		{&t.AcceptedSpans.Response, o.AcceptedSpans.Response}, {&t.AcceptedSpans.Service, o.AcceptedSpans.Service},
		{&t.RefusedSpans.Response, o.RefusedSpans.Response}, {&t.RefusedSpans.Service, o.RefusedSpans.Service},
		{&t.Late, o.Late},
	} {
		if *p.to == nil { // as a decoded tally may have it
			*p.to = NewSketch()
		}
		if err := (*p.to).Merge(p.from); err != nil {
			return fmt.Errorf("merge tally: %w", err)
		}
	}
	t.Due += o.Due
	t.Sent += o.Sent
	for i, n := range o.Counts {
		t.Counts[i] += n
	}
	t.Pushed += o.Pushed
	t.Accepted += o.Accepted
	t.Connects += o.Connects
	t.Renewed += o.Renewed
	t.CPU += o.CPU
	if t.Wait < 0 || o.Wait < 0 {
		t.Wait = -1
	} else {
		t.Wait += o.Wait
	}
	if t.Errors == nil {
		t.Errors = maps.Clone(o.Errors)
	} else {
		for what, n := range o.Errors {
			t.Errors[what] += n
		}
	}
	if t.First == 0 || o.First != 0 && o.First < t.First {
		t.First = o.First
	}
	t.Last = max(t.Last, o.Last)
	t.Log.merge(&o.Log)
	return nil
}

func (l *Log) merge(o *Log) {
	if len(o.Bytes) == 0 {
		return
	}
	if len(l.Bytes) == 0 {
		*l = *o
		return
	}
	whole := bytes.Repeat([]byte{byte(NotDue)}, int(max(l.End(), o.End())))
	for _, p := range []*Log{l, o} {
		for i, b := range p.Bytes {
			if at := p.First + uint64(i)*p.Stride; b != byte(NotDue) {
				whole[at] = b
			}
		}
	}
	*l = Log{Stride: 1, Bytes: whole}
}

// End is one more than the last number of the log.
//
// Note: it is more than were due where shares are not equally long, as those of a closed loop.
func (l *Log) End() uint64 {
	if len(l.Bytes) == 0 {
		return 0
	}
	return l.First + uint64(len(l.Bytes)-1)*l.Stride + 1
}
