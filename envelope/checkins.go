package envelope

import "time"

// makeCheckin makes a check-in of a cron monitor, with the monitor's config.
func makeCheckin(m *Maker) error {
	a := m.application()
	trace := m.ID()
	m.EventID()
	a.header(m, a.sampling(m, trace, nil))
	status := oneOf(m.Rand, []string{"in_progress", "ok", "ok", "ok", "error"})
	var duration any
	if status != "in_progress" {
		duration = float64(m.between(100, 900_000)) / 1000
	}
	schedule := object{"type": "crontab", "value": m.say("cron")}
	if m.chance(0.3) {
		schedule = object{"type": "interval", "value": m.between(1, 59), "unit": oneOf(m.Rand, []string{"minute", "hour", "day"})}
	}
	m.AddJSON("check_in", object{
		"type": "check_in", "check_in_id": m.ID(), "monitor_slug": m.say("verb") + "-" + m.say("adjective") + "-" + m.say("noun") + "s",
		"status": status, "duration": duration, "release": a.release, "environment": a.environment,
		"timestamp": stampTime(m.ago(time.Second)), "server_name": a.server, "platform": "python",
		"monitor_config": object{
			"schedule": schedule, "timezone": m.say("zone"), "checkin_margin": m.between(1, 15), "max_runtime": m.between(5, 90),
			"failure_issue_threshold": m.between(1, 5),
		},
		"contexts": object{"trace": object{"trace_id": trace, "span_id": m.SpanID(), "parent_span_id": nil}},
	}, "content_type", "application/json")
	return nil
}
