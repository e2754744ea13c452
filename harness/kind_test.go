package harness

import (
	"bytes"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/relay"
	"relaybench/harness/result"
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
	if len(l.Kinds) != 2 || l.Kinds[0].Kind != "crash" || l.Kinds[0].Sends.Arrived != 100 || r.Upstream.Items["attachment"] != 100 || r.Upstream.Items["event"] != 100 {
		t.Errorf("%+v, items %v, want 100 events with an attachment each", l.Kinds, r.Upstream.Items)
	}
}
