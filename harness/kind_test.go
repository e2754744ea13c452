package harness

import (
	"bytes"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/upstream"
)

// crash is a kind that only tests have: an event with an attachment, two wire types in one envelope.
var crash = envelope.Kind{
	Name: "crash", Help: "an event with an attachment", Weight: 1, Unit: "item", Items: []string{"event", "attachment"}, Category: 1,
	Elements: func(envelope.Item) int { return 1 },
	Make: func(m *envelope.Maker) error {
		m.AddJSON("event", map[string]any{"event_id": m.EventID(), "platform": "native", "level": "fatal",
			"timestamp": m.Epoch.Add(-time.Second).UTC().Format(time.RFC3339), "message": "boom"})
		m.AddItem("attachment", bytes.Repeat([]byte("minidump"), 200), "filename", "crash.dmp", "content_type", "application/octet-stream")
		return nil
	},
}

func TestStandInInjectedKind(t *testing.T) { testInjectedKind(t, standIn(t)) }
func TestRealInjectedKind(t *testing.T)    { testInjectedKind(t, realRelay(t)) }

// testInjectedKind wants a kind that is in no table to be sent, recognised
// behind the relay and accounted for like any other.
func testInjectedKind(t *testing.T, p relay.Program) {
	kinds := append([]envelope.Kind{crash}, envelope.Kinds...)
	plan := planned(t)
	plan.Mix, plan.Pool = "crash=1,sessions=1", 200
	r, err := Run(t.Context(), plan, p, Options{kinds: kinds, limits: quick()})
	if err != nil {
		t.Fatalf("%v\n%s", err, lastLog(r))
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	closed(t, r, l, 200)
	if len(l.Kinds) != 2 || l.Kinds[0].Kind != "crash" {
		t.Fatalf("%+v, want two kinds", l.Kinds)
	}
	// On a machine that is busy not all go out.
	sent := l.Kinds[0].Sends.Sent
	if sent == 0 || l.Kinds[0].Sends.Arrived != sent || r.Upstream.Items["attachment"] != sent || r.Upstream.Items["event"] != sent {
		t.Errorf("%+v, items %v, want an event with an attachment for each that was sent", l.Kinds, r.Upstream.Items)
	}
}

// TestRealPartLimited limits attachments alone: each request is answered 429,
// and its event comes through all the same.
func TestRealPartLimited(t *testing.T) {
	kinds := append([]envelope.Kind{crash}, envelope.Kinds...)
	quotas := []upstream.Quota{{ID: "q", Categories: []string{"attachment"}, Scope: "organization", Limit: 0, ReasonCode: "none_left"}}
	plan := planned(t)
	plan.Mix, plan.Rate, plan.Duration = "crash", 50, 2*time.Second
	r, err := Run(t.Context(), plan, realRelay(t), Options{kinds: kinds, limits: quick(), quotas: quotas})
	if err != nil {
		t.Fatalf("%v\n%s", err, lastLog(r))
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	s, i := l.Total.Sends, l.Total.Items
	if s.Sent == 0 || s.Refused != s.Sent || s.Arrived != s.Sent || l.Total.ArrivedRefused != s.Sent || i.Arrived != i.Sent || i.Outcomes+i.RefusedSilent+i.Unaccounted+i.Surplus != 0 {
		t.Errorf("%+v, want all refused, and the events of all arrived\n%s", l.Total, lastLog(r))
	}
	if r.Upstream.Items["event"] != s.Sent || r.Upstream.Items["attachment"] != 0 {
		t.Errorf("items %v, want %d events and no attachment", r.Upstream.Items, s.Sent)
	}
	var attachments uint64 // no kind's own category
	for _, o := range r.Upstream.OtherOutcomes {
		if o.Outcome == 2 {
			attachments += o.Quantity
		}
	}
	if attachments == 0 {
		t.Errorf("other outcomes %+v, want the attachments", r.Upstream.OtherOutcomes)
	}
}

// TestRealUpstreamLimits has the upstream answer the first send with a limit on
// a part of the categories, or on none by name, which is on all.
func TestRealUpstreamLimits(t *testing.T) {
	kinds := append([]envelope.Kind{crash}, envelope.Kinds...)
	for limits, all := range map[string]bool{"60:attachment:key": false, "60::key": true} {
		fault := func(q upstream.Request) upstream.Treatment {
			if q.N == 0 {
				return upstream.Treatment{Status: 429, RateLimits: limits}
			}
			return upstream.Treatment{}
		}
		plan := planned(t)
		plan.Mix, plan.Rate, plan.Duration = "crash", 50, 2*time.Second
		r, err := Run(t.Context(), plan, realRelay(t), Options{kinds: kinds, limits: quick(), fault: fault})
		if err != nil {
			t.Fatalf("%v\n%s", err, lastLog(r))
		}
		l := result.LedgerOf(r)
		checkLedger(t, r, l)
		s, i := l.Total.Sends, l.Total.Items
		if s.Refused < s.Sent/2 || s.Lost == 0 || i.Unaccounted != 0 || !i.UnaccountedKnown || i.Surplus != 0 {
			t.Errorf("%s: %+v, want most refused, one lost, and all accounted for", limits, l.Total)
		}
		if forwarded := s.Arrived+s.Lost == s.Sent; forwarded == all {
			t.Errorf("%s: %+v, want the events of all but the first arrived: %v", limits, l.Total, !all)
		}
	}
}
