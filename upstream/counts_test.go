package upstream

import (
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
)

// arrivals collects the calls of Arrived.
type arrivals struct {
	mu  sync.Mutex
	due map[int64]int // calls by due time
	at  []int64
}

func (a *arrivals) add(kind int, due, at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.due == nil {
		a.due = map[int64]int{}
	}
	a.due[due]++
	a.at = append(a.at, at)
}

func TestCounts(t *testing.T) {
	var arrived arrivals
	zero := envelope.Now()
	s := serve(t, Config{Arrived: arrived.add, Zero: zero})
	if s.Changed() != 0 {
		t.Errorf("changed at %d before anything came", s.Changed())
	}
	bodies := []string{
		send(0, "event"),
		send(1, "log"),
		send(2, "replay_event", "replay_recording"),
		send(3, "replay_event"), // split in two
		send(3, "replay_recording"),
		send(4, "replay_recording"), // its other part is lost
		send(1, "log"),              // again
		send(3, "replay_recording"), // again
		send(5, "event", "attachment", "attachment"),
		send(5, "event", "attachment", "attachment"), // again
		`{"event_id":null}` + "\n" + `{"type":"client_report","length":2}` + "\n{}\n",
	}
	wire := 0
	for _, body := range bodies {
		wire += len(body)
		if got := post(t, s, body); got.status != 200 {
			t.Fatalf("status %d for %s", got.status, body)
		}
	}
	now := envelope.Now() - zero
	got := s.Stats()
	want := Stats{
		Requests: 11, Envelopes: 11, Unstamped: 1, Repeats: 3,
		WireBytes: uint64(wire), PlainBytes: uint64(wire),
		Items: map[string]uint64{"event": 2, "log": 1, "replay_event": 2, "replay_recording": 3,
			"attachment": 2, "client_report": 1},
		Elements:      map[string]uint64{"errors": 2, "logs": 10, "pairs": 2},
		RepeatsByKind: map[string]uint64{"errors": 1, "logs": 1, "pairs": 1},
		Outcomes:      []Outcome{},
		Answers:       map[string]uint64{"200": 11},
		UnknownRoutes: map[string]uint64{},
		OpenMax:       1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	for seq, want := range []struct {
		kind int
		fate Fate
	}{{0, Arrived}, {1, Arrived}, {2, Arrived}, {2, Arrived}, {2, Partly}, {0, Arrived}, {0, Missing}} {
		if got := s.Fate(want.kind, uint64(seq)); got != want.fate {
			t.Errorf("fate of send %d is %d, want %d", seq, got, want.fate)
		}
	}
	if diff := cmp.Diff(map[int64]int{0: 1, 1: 1, 2: 1, 3: 1, 5: 1}, arrived.due); diff != "" {
		t.Errorf("arrived, by due time (-want +got):\n%s", diff)
	}
	for _, at := range arrived.at {
		if at <= 0 || at > now {
			t.Errorf("arrived at %d, want within %d since zero", at, now)
		}
	}
	if c := s.Changed(); c < arrived.at[len(arrived.at)-1] || c > now {
		t.Errorf("changed at %d, want the last arrival or later, at most %d", c, now)
	}
}

// A warm-up is known to have arrived, and counts nowhere else.
func TestWarmUps(t *testing.T) {
	var arrived arrivals
	s := serve(t, Config{Arrived: arrived.add, Fault: func(Request) Treatment { return Treatment{Status: 500} }})
	for _, kind := range []string{"errors", "kind-that-is-not-in-the-mix"} {
		for _, n := range []uint64{7, 7} {
			stamp := envelope.Stamp{Seq: n, Warm: true, Kind: []byte(kind)}
			if got := post(t, s, envelopeOf(stamp, "event")); got.status != 200 {
				t.Errorf("status %d", got.status)
			}
		}
	}
	for n, want := range map[uint64]bool{0: false, 7: true, 1 << 40: false} {
		if got := s.WarmArrived(n); got != want {
			t.Errorf("warm-up %d arrived: %v", n, got)
		}
	}
	got := s.Stats()
	want := Stats{Requests: 4, WarmUps: 4, Answers: map[string]uint64{"200": 4}, OpenMax: 1,
		Items: map[string]uint64{}, Elements: map[string]uint64{"errors": 0, "logs": 0, "pairs": 0},
		RepeatsByKind: map[string]uint64{"errors": 0, "logs": 0, "pairs": 0}, Outcomes: []Outcome{}, UnknownRoutes: map[string]uint64{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if len(arrived.due) > 0 || s.Fate(0, 7) != Missing || s.Changed() != 0 {
		t.Errorf("arrived %v, fate of send 7 %d, changed %d", arrived.due, s.Fate(0, 7), s.Changed())
	}
}

// A stamp that cannot be of this run is malformed.
func TestForeignStamps(t *testing.T) {
	for _, stamp := range []envelope.Stamp{
		{Seq: maxSeq, Kind: []byte("errors")},
		{Seq: 1<<64 - 1, Kind: []byte("errors")},
		{Seq: 1<<64 - 1, Kind: []byte("errors"), Warm: true},
		{Seq: 1, Kind: []byte("nothing")},
	} {
		t.Run(fmt.Sprintf("%d %s %v", stamp.Seq, stamp.Kind, stamp.Warm), func(t *testing.T) {
			s := serve(t, Config{})
			a := post(t, s, envelopeOf(stamp, "event"))
			st := s.Stats()
			if a.status != 400 || st.Malformed != 1 || st.Envelopes+st.WarmUps != 0 || len(st.Items) > 0 {
				t.Errorf("status %d, stats %+v", a.status, st)
			}
			if !strings.HasPrefix(st.MalformedFirst, "stamp: ") {
				t.Errorf("first malformed: %q", st.MalformedFirst)
			}
		})
	}
}

// Of identical sends that come at once, one counts and the others are repeats.
func TestConcurrentRepeats(t *testing.T) {
	const senders, sends = 100, 100
	var arrived arrivals
	s := serve(t, Config{Arrived: arrived.add})
	bodies := make([][]byte, sends)
	for i := range bodies {
		types := [][]string{{"event"}, {"log"}, {"replay_event", "replay_recording"}}[i%3]
		bodies[i] = []byte(send(uint64(i), types...))
	}
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for _, i := range rand.New(rand.NewSource(int64(sender))).Perm(sends) {
				if answer, tr := s.ingest(nil, nil, bodies[i], 1); !tr.acknowledges() {
					t.Errorf("send %d: %s", i, answer)
				}
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	wantItems := map[string]uint64{"event": 34, "log": 33, "replay_event": 33, "replay_recording": 33}
	if diff := cmp.Diff(wantItems, st.Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"errors": 34, "logs": 330, "pairs": 33}, st.Elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	repeats := uint64(senders - 1)
	wantRepeats := map[string]uint64{"errors": 34 * repeats, "logs": 33 * repeats, "pairs": 66 * repeats}
	if diff := cmp.Diff(wantRepeats, st.RepeatsByKind); diff != "" {
		t.Errorf("repeats (-want +got):\n%s", diff)
	}
	if st.Repeats != 133*repeats || st.Envelopes != senders*sends {
		t.Errorf("%d repeats, %d envelopes; want %d, %d", st.Repeats, st.Envelopes, 133*repeats, senders*sends)
	}
	if len(arrived.due) != sends || len(arrived.at) != sends {
		t.Errorf("%d sends arrived in %d calls, want %d in as many", len(arrived.due), len(arrived.at), sends)
	}
}

// Items of a type that the kind does not have are counted with what they came
// with, and said once.
func TestForeignItems(t *testing.T) {
	var log notes
	s := serve(t, Config{Log: log.add})
	for range 2 {
		post(t, s, send(0, "event", "user_report"))
		post(t, s, envelopeOf(envelope.Stamp{Seq: 1, Kind: []byte("errors")}, "log"))
	}
	if diff := cmp.Diff(map[string]uint64{"event": 1, "user_report": 1, "log": 2}, s.Stats().Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if got := s.Fate(0, 1); got != Missing {
		t.Errorf("fate of a send without its item: %d", got)
	}
	if got := log.all(); len(got) != 1 {
		t.Errorf("logged %q, want one line", got)
	}
}

func TestOpenMax(t *testing.T) {
	var g gauge
	for range 3 {
		g.up()
	}
	g.down()
	g.up()
	if now, most := g.now.Load(), g.max.Load(); now != 3 || most != 3 {
		t.Errorf("now %d, most %d; want 3, 3", now, most)
	}
}
