package envelope

import (
	"fmt"
	"time"
)

// logsPer is how many logs a container holds.
const logsPer = 10

// logType is the content type of a container of logs; without it Relay takes the item for something else.
const logType = "application/vnd.sentry.items.log+json"

// levels are those of logs, with their numbers in OpenTelemetry.
var levels = []struct {
	name   string
	number int
}{{"info", 9}, {"info", 9}, {"info", 9}, {"warn", 13}, {"error", 17}, {"debug", 5}}

func makeLogs(m *Maker) error { return m.logs(logsPer) }

// logs makes a container of n logs, of a few traces.
//
// Note: the logs do not say user_agent.original. Relay takes the user agent of
// the HTTP head for each log then, and parses it.
func (m *Maker) logs(n int) error {
	a := m.application()
	a.header(m, nil)
	items := make(list, n)
	var trace, span string
	at := m.ago(2 * time.Second)
	for i := range items {
		if trace == "" || m.chance(0.3) {
			trace, span = m.ID(), m.SpanID()
		}
		at = at.Add(time.Duration(m.between(100, 50_000)) * time.Microsecond)
		level := oneOf(m.Rand, levels)
		attributes := object{
			"sentry.environment": attribute(a.environment), "sentry.release": attribute(a.release), "sentry.sdk.name": attribute(a.sdk.name), "sentry.sdk.version": attribute(sdkVersion),
			"server.address": attribute(a.server), "logger.name": attribute(m.say("module")), "code.function.name": attribute(m.say("function")), "code.line.number": attribute(m.between(8, 1900)),
			"sentry.message.parameter." + m.say("name"): attribute(m.between(1, 9999)), m.say("noun") + "." + m.say("column"): attribute(m.say("repr")), "user.email": attribute(m.say("email")),
		}
		items[i] = object{
			"timestamp": float64(at.UnixMicro()) / 1e6, "trace_id": trace, "span_id": span, "level": level.name, "severity_number": level.number,
			"body": m.say("log"), "attributes": attributes,
		}
	}
	m.AddJSON("log", object{"version": 2, "items": items}, "item_count", n, "content_type", logType)
	return nil
}

// attribute is a value with its type, as attributes of logs have it.
func attribute(v any) object {
	switch v := v.(type) {
	case int:
		return object{"value": v, "type": "integer"}
	case float64:
		return object{"value": v, "type": "double"}
	case bool:
		return object{"value": v, "type": "boolean"}
	default:
		return object{"value": fmt.Sprint(v), "type": "string"}
	}
}
