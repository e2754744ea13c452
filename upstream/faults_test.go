package upstream

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/envelope"
)

// Every treatment, and what becomes of the sends that it is given to, when
// they come once, and when they come again and are answered 200.
func TestTreatments(t *testing.T) {
	for _, test := range []struct {
		treatment   Treatment
		status      int // 0: no answer
		once, again Fate
	}{
		{Treatment{}, 200, Arrived, Arrived},
		{Treatment{Status: 202}, 202, Arrived, Arrived},
		{Treatment{Delay: time.Millisecond}, 200, Arrived, Arrived},
		{Treatment{Status: 502}, 502, Kept, Arrived},
		{Treatment{Status: 503}, 503, Kept, Arrived},
		{Treatment{Status: 504}, 504, Kept, Arrived},
		{Treatment{Drop: true}, 0, Kept, Arrived},
		{Treatment{Drop: true, Status: 500, Delay: time.Millisecond}, 0, Kept, Arrived},
		{Treatment{Status: 400}, 400, Lost, Arrived},
		{Treatment{Status: 404}, 404, Lost, Arrived},
		{Treatment{Status: 500}, 500, Lost, Arrived},
		{Treatment{Status: 429}, 429, Lost, Arrived},
		{Treatment{Status: 429, RateLimits: "60:attachment:key"}, 429, Lost, Arrived},
		{Treatment{RateLimits: "60::key"}, 200, Arrived, Arrived},
	} {
		t.Run(fmt.Sprintf("%+v", test.treatment), func(t *testing.T) {
			var requests []Request
			var arrived arrivals
			s := serve(t, Config{Arrived: arrived.add, Fault: func(r Request) Treatment {
				requests = append(requests, r)
				if r.Attempt == 0 {
					return test.treatment
				}
				return Treatment{}
			}})
			body := request("POST", "/api/1/envelope/", "", []byte(send(9, "replay_event", "replay_recording")))
			a, err := exchange(t, s, body)
			if err != nil && test.status != 0 || err == nil && test.status == 0 {
				t.Fatalf("answer %+v, error %v", a, err)
			}
			if a.status != test.status || a.head.Get("X-Sentry-Rate-Limits") != test.treatment.RateLimits {
				t.Errorf("answered %d %v", a.status, a.head)
			}
			answers := map[string]uint64{"dropped": 1}
			if test.status != 0 {
				answers = map[string]uint64{fmt.Sprint(test.status): 1}
			}
			if diff := cmp.Diff(answers, s.Stats().Answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if got := s.Fate(2, 9); got != test.once {
				t.Errorf("fate after one request is %d, want %d", got, test.once)
			}
			if got, want := s.Stats().Elements["pairs"] == 1, test.once == Arrived; got != want || len(arrived.at) == 1 != want {
				t.Errorf("counted: %v, arrived: %v; want both %v", got, len(arrived.at) == 1, want)
			}
			if a, err := exchange(t, s, body); err != nil || a.status != 200 {
				t.Fatalf("second answer %+v, error %v", a, err)
			}
			if got := s.Fate(2, 9); got != test.again {
				t.Errorf("fate after two requests is %d, want %d", got, test.again)
			}
			st := s.Stats()
			if st.Repeats != 2 || st.Elements["pairs"] != 1 || st.Items["replay_event"] != 1 || len(arrived.at) != 1 {
				t.Errorf("%d repeats, elements %v, items %v, %d arrivals", st.Repeats, st.Elements, st.Items, len(arrived.at))
			}
			for i := range requests {
				if requests[i].At <= 0 || s.Changed() < requests[i].At {
					t.Errorf("request at %d, changed at %d", requests[i].At, s.Changed())
				}
				requests[i].At = 0
			}
			if diff := cmp.Diff([]Request{{N: 0, Seq: 9}, {N: 1, Seq: 9, Attempt: 1}}, requests); diff != "" {
				t.Errorf("fault was asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A part of a send that comes late is another first time, and not lost with the other.
func TestTreatmentOfParts(t *testing.T) {
	s := serve(t, Config{Fault: func(r Request) Treatment {
		if r.N == 0 {
			return Treatment{Status: 500}
		}
		return Treatment{}
	}})
	post(t, s, send(1, "replay_event"))
	if got := s.Fate(2, 1); got != Lost {
		t.Errorf("fate with one part lost: %d", got)
	}
	post(t, s, send(1, "replay_recording"))
	if got := s.Fate(2, 1); got != Partly {
		t.Errorf("fate with one part lost and one acknowledged: %d", got)
	}
	if got := s.Stats().Repeats; got != 0 {
		t.Errorf("%d repeats", got)
	}
}

func TestFaultsSpareOthers(t *testing.T) {
	s := serve(t, Config{Fault: func(r Request) Treatment { t.Errorf("asked for %+v", r); return Treatment{} }})
	post(t, s, "{}\n"+`{"type":"event"}`+"\n{}")
	post(t, s, "nothing")
	if got := s.Stats().Unstamped; got != 1 {
		t.Errorf("%d unstamped", got)
	}
}

func TestShare(t *testing.T) {
	const n = 100_000
	for _, share := range []float64{0, 0.01, 0.3, 1} {
		hit, fault := 0, Share(share, Treatment{Status: 503})
		for i := range uint64(n) {
			got := fault(Request{N: i})
			if got != fault(Request{N: i, Seq: 3, At: 5, Attempt: 1}) {
				t.Fatalf("share %v: request %d is not treated by its number alone", share, i)
			}
			if got.Status == 503 {
				hit++
			}
		}
		if got := float64(hit) / n; got < share-0.005 || got > share+0.005 || share == 0 && hit > 0 || share == 1 && hit < n {
			t.Errorf("share %v: %v of the requests", share, got)
		}
	}
}

func TestEvery(t *testing.T) {
	fault, hit := Every(10, Treatment{Status: 500}), 0
	for seq := range uint64(1000) {
		if fault(Request{N: seq * 7, Seq: seq}).Status == 500 {
			hit++
		}
	}
	if hit != 100 {
		t.Errorf("%d of 1000, want 100", hit)
	}
}

// Sends that an upstream answers in parts with 503, or drops, all arrive when
// they are sent again, and as many are repeats as had to be.
func TestFaultsWithRetries(t *testing.T) {
	for _, treatment := range []Treatment{{Status: 503}, {Drop: true}} {
		t.Run(fmt.Sprintf("%+v", treatment), func(t *testing.T) {
			const sends = 200
			fault, repeats, n := Share(0.3, treatment), uint64(0), uint64(0)
			s := serve(t, Config{Fault: fault})
			c := dial(t, s)
			r := bufio.NewReader(c)
			for seq := range uint64(sends) {
				body := request("POST", "/api/1/envelope/", "", []byte(send(seq, "event")))
				for done := false; !done; n++ {
					if _, err := c.Write(body); err != nil {
						t.Fatal(err)
					}
					a, err := readAnswer(r)
					want := fault(Request{N: n})
					if got := err != nil; got != want.Drop || err == nil && a.status != want.status() {
						t.Fatalf("request %d: %v %v, want %+v", n, a, err, want)
					}
					if err != nil {
						c.Close()
						c = dial(t, s)
						r = bufio.NewReader(c)
					}
					if done = want.acknowledges(); !done {
						repeats++
					}
				}
				if got := s.Fate(0, seq); got != Arrived {
					t.Fatalf("fate of send %d: %d", seq, got)
				}
			}
			st := s.Stats()
			if st.Repeats != repeats || repeats == 0 || st.Elements["errors"] != sends || st.Envelopes != sends || st.Answers["200"] != sends {
				t.Errorf("%+v; want %d repeats", st, repeats)
			}
		})
	}
}

// A late answer is late, and the request open all the while, though it is
// counted at once; others pass it. What a fault delays comes on top, and warm-ups are not late.
func TestLatency(t *testing.T) {
	const late = 150 * time.Millisecond
	asked := make(chan struct{}, 1)
	s := serve(t, Config{Latency: late, Fault: func(r Request) Treatment {
		asked <- struct{}{}
		return Treatment{Delay: late}
	}})
	c := dial(t, s)
	start := time.Now()
	c.Write(request("POST", "/api/1/envelope/", "", []byte(send(0, "event"))))
	<-asked
	unstamped := time.Now()
	if a := post(t, s, "{}\n"+`{"type":"event"}`+"\n{}"); a.status != 200 || time.Since(unstamped) < late {
		t.Errorf("answer to an unstamped one after %v: %+v", time.Since(unstamped), a)
	}
	if a, err := readAnswer(bufio.NewReader(c)); err != nil || a.status != 200 {
		t.Errorf("answer %+v, error %v", a, err)
	}
	if took := time.Since(start); took < 2*late {
		t.Errorf("took %v, want at least %v", took, 2*late)
	}
	if st := s.Stats(); st.OpenMax != 2 || st.Envelopes != 2 || s.Open() != 0 {
		t.Errorf("at most %d open, now %d, %d envelopes; want 2, 0, 2", st.OpenMax, s.Open(), st.Envelopes)
	}
	never := serve(t, Config{Latency: time.Hour})
	if a := post(t, never, envelopeOf(envelope.Stamp{Seq: 1, Warm: true, Kind: []byte("errors")}, "event")); a.status != 200 {
		t.Errorf("a warm-up: %+v", a)
	}
}

// 429 on a part of the envelopes, in the form of each of Sentry's ways to say what is limited.
func TestRateLimits(t *testing.T) {
	limited := "60:attachment:key, 60::organization"
	s := serve(t, Config{Fault: func(r Request) Treatment {
		if r.N == 0 {
			return Treatment{Status: 429, RateLimits: limited}
		}
		return Treatment{}
	}})
	first, second := post(t, s, send(0, "event", "attachment")), post(t, s, send(1, "event"))
	if first.status != 429 || first.head.Get("X-Sentry-Rate-Limits") != limited {
		t.Errorf("first answer: %+v", first)
	}
	if second.status != 200 || strings.Contains(fmt.Sprint(second.head), "Rate") {
		t.Errorf("second answer: %+v", second)
	}
	if diff := cmp.Diff(map[string]uint64{"event": 1}, s.Stats().Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}
