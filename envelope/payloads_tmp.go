package envelope

import (
	"fmt"
	"time"
)

type object = map[string]any
type list = []any

func (m *Maker) common() { m.EventID(); m.Header("sent_at", m.SentAt()) }

func makeError(m *Maker) error {
	m.common()
	m.AddJSON("event", object{"event_id": m.EventID(), "timestamp": stampTime(m.Epoch.Add(-time.Second)), "level": "error", "platform": "python",
		"exception": object{"values": list{object{"type": "ValueError", "value": fmt.Sprint("bad value ", m.N)}}},
		"request":   object{"url": "https://shop.example.com/", "headers": object{"User-Agent": m.Agent}}})
	return nil
}

func makeTransaction(m *Maker) error {
	m.common()
	trace, span := m.ID(), m.SpanID()
	m.Header("trace", object{"trace_id": trace, "public_key": m.Key()})
	m.AddJSON("transaction", object{"type": "transaction", "event_id": m.EventID(), "transaction": fmt.Sprint("/items/", m.N),
		"start_timestamp": stampTime(m.Epoch.Add(-2 * time.Second)), "timestamp": stampTime(m.Epoch.Add(-time.Second)),
		"contexts": object{"trace": object{"trace_id": trace, "span_id": span, "op": "http.server"}}, "spans": list{}})
	return nil
}

func makeSession(m *Maker) error {
	m.Header("sent_at", m.SentAt())
	m.AddJSON("session", object{"sid": m.UUID(), "did": fmt.Sprint(m.N), "seq": 0, "init": true, "status": "ok", "errors": 0,
		"started": stampTime(m.Epoch.Add(-time.Second)), "timestamp": stampTime(m.Epoch.Add(-time.Second)), "attrs": object{"release": "shop@1.0.0"}})
	return nil
}

func makeCheckin(m *Maker) error {
	m.common()
	m.AddJSON("check_in", object{"check_in_id": m.ID(), "monitor_slug": fmt.Sprint("nightly-", m.N), "status": "ok"})
	return nil
}

func makeLogs(m *Maker) error {
	m.Header("sent_at", m.SentAt())
	items := list{}
	for i := range 10 {
		items = append(items, object{"timestamp": float64(m.Epoch.UnixMilli())/1000 - 1, "trace_id": m.ID(), "level": "info", "body": fmt.Sprint("log ", m.N, i)})
	}
	m.AddJSON("log", object{"items": items}, "content_type", "application/vnd.sentry.items.log+json", "item_count", len(items))
	return nil
}
