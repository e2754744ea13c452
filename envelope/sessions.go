package envelope

import (
	"strings"
	"time"
)

// makeSession makes one update of a session, the one item of its envelope, as
// browsers and phones send it; which of them tells the user agent. (Servers send aggregates
// instead, of the item type "sessions".)
func makeSession(m *Maker) error {
	started := m.ago(30 * time.Second)
	took := time.Duration(m.between(10, 20_000)) * time.Millisecond
	attributes := object{"release": m.say("noun") + "@" + m.version(), "environment": m.say("deployment"), "ip_address": m.say("ip")}
	update := object{
		"sid": m.UUID(), "did": m.hex(32), "init": m.chance(0.5), "errors": m.Rand.IntN(2),
		"started": stampTime(started), "timestamp": stampTime(started.Add(took)), "duration": took.Seconds(), "attrs": attributes,
		"status": oneOf(m.Rand, []string{"ok", "ok", "exited", "exited", "exited", "crashed", "abnormal"}),
	}
	name, version := "sentry.javascript.react", "10.27.0"
	if browser(m.Agent) {
		attributes["user_agent"] = m.Agent
	} else {
		name, version, _ = strings.Cut(phoneSDK(m), "/")
		update["seq"] = m.between(1, 9)
	}
	m.Header("sent_at", m.SentAt())
	m.Header("sdk", object{"name": name, "version": version})
	m.AddJSON("session", update)
	return nil
}

// phoneSDK is the SDK of a phone's session: the user agent itself where it is one.
func phoneSDK(m *Maker) string {
	if strings.HasPrefix(m.Agent, "sentry.") {
		return m.Agent
	}
	return oneOf(m.Rand, []string{"sentry.cocoa/8.57.3", "sentry.java.android/8.24.0"})
}
