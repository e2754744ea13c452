package result

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		answer                Answer
		name                  string
		status                int
		sent, refused, failed bool
	}{
		{NotSent, "not sent", 0, false, false, false},
		{AnswerOf(200), "accepted", 0, true, false, false},
		{AnswerOf(202), "accepted", 0, true, false, false},
		{AnswerOf(299), "accepted", 0, true, false, false},
		{FailTimeout, "timeout", 0, true, false, true},
		{FailConnect, "connect", 0, false, false, true},
		{FailClosed, "closed", 0, true, false, true},
		{FailResponse, "bad response", 0, true, false, true},
		{FailOther, "other error", 0, true, false, true},
		{AnswerOf(400), "400 Bad Request", 400, true, true, false},
		{AnswerOf(413), "413 Request Entity Too Large", 413, true, true, false},
		{AnswerOf(429), "429 Too Many Requests", 429, true, true, false},
		{AnswerOf(503), "503 Service Unavailable", 503, true, true, false},
		{AnswerOf(504), "504 Gateway Timeout", 504, true, true, false},
		{AnswerOf(418), "other status", 0, true, true, false},
		{AnswerOf(304), "other status", 0, true, true, false},
		{AnswerOf(999), "other status", 0, true, true, false},
		{AnswerOf(0), "other status", 0, true, true, false},
		{Answer(Answers), "answer 27", 0, true, false, false},
		{200, "answer 200", 0, true, false, false},
	} {
		a := c.answer
		if a.String() != c.name || a.Status() != c.status || a.Sent() != c.sent || a.Refused() != c.refused || a.Failed() != c.failed {
			t.Errorf("%d: got %q, status %d, sent %t, refused %t, failed %t, want %+v", a, a, a.Status(), a.Sent(), a.Refused(), a.Failed(), c)
		}
	}
	names := map[string]bool{}
	for a := range Answers {
		name := Answer(a).String()
		if names[name] {
			t.Errorf("two answers %q", name)
		}
		names[name] = true
		if s := Answer(a).Status(); s != 0 && AnswerOf(s) != Answer(a) {
			t.Errorf("answer %d has status %d, whose answer is %d", a, s, AnswerOf(s))
		}
	}
	if len(statuses) != Answers-int(firstStatus) {
		t.Errorf("%d statuses, room for %d", len(statuses), Answers-int(firstStatus))
	}
}

// record adds one send to a tally, as a sender would, with the log of its share.
func record(t *Tally, seq uint64, a Answer, response int64) {
	at := (seq - t.Log.First) / t.Log.Stride
	for uint64(len(t.Log.Bytes)) <= at {
		t.Log.Bytes = append(t.Log.Bytes, byte(NotSent))
	}
	t.Log.Bytes[at] = byte(a)
	t.Due++
	t.Counts[a]++
	due := int64(seq) * 1000
	if a.Sent() {
		t.Sent++
		t.Pushed += 1200
		t.Late.Add(response / 10)
		if t.First == 0 || due+response/10 < t.First {
			t.First = due + response/10
		}
	}
	if a == Accepted || a.Refused() {
		spans := &t.AcceptedSpans
		if a.Refused() {
			spans = &t.RefusedSpans
		} else {
			t.Accepted += 1000
		}
		spans.Response.Add(response)
		spans.Service.Add(response - response/10)
		t.Last = max(t.Last, due+response)
	}
	if a.Failed() {
		t.Errors[a.String()]++
	}
	t.Connects++
	t.Renewed += seq % 2
	t.CPU += 10
	t.Wait += 5
}

// The tallies of the shares of a schedule merge into that of one sender of all of it.
func TestTallyMerge(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 7} {
		random := rand.New(rand.NewPCG(n, 1))
		want := NewTally(0, 1)
		shares := make([]*Tally, n)
		for i := range shares {
			shares[i] = NewTally(uint64(i), n)
		}
		for seq := range uint64(1000) {
			a, response := Answer(random.IntN(Answers)), random.Int64N(1e9)
			record(want, seq, a, response)
			record(shares[seq%n], seq, a, response)
		}
		random.Shuffle(len(shares), func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
		got := NewTally(0, 1)
		for _, s := range shares {
			if err := got.Merge(s); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, got, want)

		// Of one that does not know how long it waited, the sum is unknown too.
		for _, wait := range []int64{-1, 7} {
			if err := got.Merge(&Tally{Wait: wait}); err != nil || got.Wait != -1 {
				t.Errorf("%d ns waited, error %v, want -1", got.Wait, err)
			}
		}

		// And so do those that came from other processes.
		var read Tally
		if err := json.Unmarshal([]byte(`{"late":null}`), &read); err != nil {
			t.Fatal(err)
		}
		for _, s := range shares {
			var o Tally
			if err := json.Unmarshal(mustJSON(t, s), &o); err != nil {
				t.Fatal(err)
			}
			if o.Log.Bytes != nil {
				t.Error("the log went with the tally's JSON")
			}
			o.Log = s.Log
			if err := read.Merge(&o); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, &read, want)
	}
}

func compare(t *testing.T, got, want *Tally) {
	t.Helper()
	for seq := range uint64(len(want.Log.Bytes)) + 2 {
		if g, w := got.Log.Answer(seq), want.Log.Answer(seq); g != w {
			t.Fatalf("number %d: got answer %v, want %v", seq, g, w)
		}
	}
	opts := cmp.Options{
		cmp.Comparer(func(a, b *Sketch) bool { return sameButSum(t, mustJSON(t, a), mustJSON(t, b)) }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Log" }, cmp.Ignore()),
	}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("a merged tally differs (-want +got):\n%s", diff)
	}
}

func TestTallyRoundTrip(t *testing.T) {
	want := NewTally(0, 1)
	for seq := range uint64(100) {
		record(want, seq, Answer(seq%uint64(Answers)), int64(seq*seq))
	}
	b := mustJSON(t, want)
	var got Tally
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if again := mustJSON(t, &got); !bytes.Equal(again, b) {
		t.Errorf("got %s, want %s", again, b)
	}
}

func TestLog(t *testing.T) {
	l := &Log{First: 3, Stride: 4, Bytes: []byte{byte(Accepted), byte(FailClosed)}}
	for seq, want := range map[uint64]Answer{0: NotDue, 2: NotDue, 3: Accepted, 4: NotDue, 7: FailClosed, 11: NotDue} {
		if got := l.Answer(seq); got != want {
			t.Errorf("number %d: got %v, want %v", seq, got, want)
		}
	}
	if got := (&Log{}).Answer(0); got != NotDue {
		t.Errorf("an empty log: got %v, want %v", got, NotDue)
	}
	if a := NotDue; a.Sent() || a.Failed() || a.Refused() || a.Status() != 0 || a.String() != "not due" {
		t.Errorf("%v counts", a)
	}
}

// The shares of a closed loop are as long as they happened to be: what the
// slower one did not get to is neither due nor sent, and the faster one's last sends are in the log.
func TestLogOfUnequalShares(t *testing.T) {
	a, c, f, n := byte(Accepted), byte(FailClosed), byte(FailConnect), byte(NotSent)
	whole := NewTally(0, 3)
	whole.Log.Bytes = []byte{a, a, a, a, n}
	for first, bytes := range map[uint64][]byte{1: {c}, 2: {f, n}} {
		o := NewTally(first, 3)
		o.Log.Bytes = bytes
		if err := whole.Merge(o); err != nil {
			t.Fatal(err)
		}
	}
	x := byte(NotDue)
	want := []byte{a, c, f, a, x, n, a, x, x, a, x, x, n}
	if got := whole.Log.Bytes; !bytes.Equal(got, want) || whole.Log.End() != uint64(len(want)) {
		t.Errorf("got %v, want %v", got, want)
	}
}
