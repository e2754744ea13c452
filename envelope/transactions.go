package envelope

import (
	"fmt"
	"time"
)

// makeTransaction makes a transaction of a web request, with a tree of SQL and HTTP spans.
func makeTransaction(m *Maker) error {
	a := m.application()
	trace, root, ip := m.ID(), m.SpanID(), m.say("ip")
	took := time.Duration(m.between(20_000, 900_000)) * time.Microsecond
	end := m.ago(2 * time.Second)
	start := end.Add(-took)
	status := m.say("status")
	a.header(m, a.sampling(m, trace, object{"sampled": "true", "transaction": a.transaction}))
	spans := make(list, m.between(m.Shape.SpansMin, m.Shape.SpansMax))
	parents, thread := []string{root}, fmt.Sprint(m.between(1e9, 9e9))
	for i := range spans {
		id := m.hex(16)
		parent := parents[max(0, len(parents)-1-m.Rand.IntN(4))]
		spans[i] = m.span(trace, id, parent, thread, start, took)
		if m.chance(0.2) {
			parents = append(parents, id)
		}
	}
	m.AddJSON("transaction", object{
		"type": "transaction", "event_id": m.EventID(), "platform": "python", "level": "info",
		"transaction": a.transaction, "transaction_info": object{"source": "route"},
		"start_timestamp": stampTime(start), "timestamp": stampTime(end),
		"release": a.release, "environment": a.environment, "server_name": a.server, "sdk": a.sdkInfo(),
		"contexts": a.contexts(m, object{
			"trace_id": trace, "span_id": root, "parent_span_id": m.hex(16), "op": "http.server", "status": "ok", "origin": "auto.http." + m.say("noun"),
			"data": object{"thread.id": thread, "thread.name": "MainThread", "http.request.method": m.say("method"), "http.response.status_code": status},
		}),
		"spans": spans, "request": m.request(ip), "user": m.user(ip), "tags": m.tags(), "modules": m.modules(),
		"breadcrumbs": object{"values": m.breadcrumbs(m.between(1, 3), end)}, "measurements": object{"duration": object{"value": took.Seconds(), "unit": "second"}},
	}, "content_type", "application/json")
	return nil
}

// span is one span within a transaction's time.
func (m *Maker) span(trace, id, parent, thread string, start time.Time, took time.Duration) object {
	from := time.Duration(m.Rand.Int64N(int64(took)))
	to := from + time.Duration(m.Rand.Int64N(int64(took-from)/3+1))
	span := object{
		"trace_id": trace, "span_id": id, "parent_span_id": parent, "status": "ok",
		"start_timestamp": stampTime(start.Add(from)), "timestamp": stampTime(start.Add(to)),
	}
	data := object{"thread.id": thread, "thread.name": "MainThread"}
	if m.chance(0.6) {
		span["op"], span["origin"], span["description"] = "db", "auto.db."+oneOf(m.Rand, []string{"django", "sqlalchemy", "asyncpg"}), m.say("sql")
		data["db.system"], data["db.name"] = "postgresql", m.say("noun")
	} else {
		url, method, status := m.say("url"), m.say("method"), m.say("status")
		span["op"], span["origin"], span["description"] = "http.client", "auto.http."+oneOf(m.Rand, []string{"stdlib.httplib", "httpx", "aiohttp"}), method+" "+url
		data["url"], data["http.method"], data["http.response.status_code"] = url, method, status
	}
	span["data"] = data
	return span
}
