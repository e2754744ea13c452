package envelope

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// object and list are JSON.
type (
	object = map[string]any
	list   = []any
)

// application is what an envelope says of the program that sends it.
type application struct {
	release, environment, server string
	sdk                          sdk
	transaction                  string
}

// sdk is a client library. Payloads have the shape of sentry-sdk's, the
// fullest of the recorded ones, with what the others send as well.
type sdk struct {
	name, runtime string
	integrations  []string
}

// sdkVersion is the version of the recorded sentry-sdk.
const sdkVersion = "2.75.0"

var sdks = []sdk{
	{"sentry.python.django", "CPython", []string{"argv", "atexit", "dedupe", "django", "excepthook", "logging", "modules", "redis", "stdlib", "threading"}},
	{"sentry.python.flask", "CPython", []string{"argv", "atexit", "dedupe", "excepthook", "flask", "logging", "modules", "sqlalchemy", "stdlib", "threading"}},
	{"sentry.python.fastapi", "CPython", []string{"argv", "asyncio", "atexit", "dedupe", "excepthook", "fastapi", "httpx", "logging", "modules", "starlette", "stdlib", "threading"}},
	{"sentry.python.celery", "CPython", []string{"argv", "atexit", "celery", "dedupe", "excepthook", "logging", "modules", "redis", "stdlib", "threading"}},
	{"sentry.python.aiohttp", "PyPy", []string{"aiohttp", "argv", "asyncio", "atexit", "dedupe", "excepthook", "logging", "modules", "stdlib", "threading"}},
}

func oneOf[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// between is a whole number from low to high.
func (m *Maker) between(low, high int) int { return low + m.Rand.IntN(high-low+1) }

// chance is true in share of the cases.
func (m *Maker) chance(share float64) bool { return m.Rand.Float64() < share }

// hex is n random hex digits, the same in each send.
func (m *Maker) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = hexDigits[m.Rand.IntN(16)]
	}
	return string(b)
}

// version is a version number of three parts.
func (m *Maker) version() string {
	return fmt.Sprintf("%d.%d.%d", m.between(0, 9), m.between(0, 30), m.between(0, 20))
}

// ago is a time before the run's start, by d at least and by up to twice as much.
func (m *Maker) ago(d time.Duration) time.Time {
	return m.Epoch.Add(-d - time.Duration(m.Rand.Int64N(int64(d)+1)))
}

// application makes up a program.
func (m *Maker) application() application {
	return application{
		release:     m.say("noun") + "-" + m.say("part") + "@" + m.version() + "+" + m.hex(m.between(7, 12)),
		environment: m.say("deployment"),
		server:      m.say("server"),
		sdk:         oneOf(m.Rand, sdks),
		transaction: m.say("route"),
	}
}

// header says in the envelope header what SDKs say there.
func (a application) header(m *Maker, trace object) {
	m.Header("sent_at", m.SentAt())
	m.Header("sdk", object{"name": a.sdk.name, "version": sdkVersion})
	if trace != nil {
		m.Header("trace", trace)
	}
}

// sampling is the dynamic sampling context of a trace.
//
// Note: Relay loads the project of its public_key too before it lets an
// envelope through, so that is the send's own project.
func (a application) sampling(m *Maker, trace string, more object) object {
	context := object{
		"trace_id": trace, "public_key": m.Key(), "release": a.release, "environment": a.environment,
		"sample_rate": "1.0", "sample_rand": fmt.Sprintf("%.6f", m.Rand.Float64()),
	}
	for k, v := range more {
		context[k] = v
	}
	return context
}

// sdkInfo is the sdk of a payload.
func (a application) sdkInfo() object {
	return object{
		"name": a.sdk.name, "version": sdkVersion, "integrations": a.sdk.integrations,
		"packages": list{object{"name": "pypi:sentry-sdk", "version": sdkVersion}},
	}
}

// modules are the installed packages of an event.
func (m *Maker) modules() object {
	modules := object{"sentry-sdk": sdkVersion}
	for range m.between(5, 9) {
		name, _, _ := strings.Cut(m.say("library"), ".")
		modules[name] = m.version()
		modules[m.say("noun")+"-"+m.say("part")] = m.version()
	}
	return modules
}

// request is the request that an event or transaction happened in. It holds
// what Relay's default scrubbing must catch: cookies, tokens, a password, a
// card number, addresses; and the user agent, where Relay reads it.
func (m *Maker) request(ip string) object {
	host, method := m.say("host"), m.say("method")
	r := object{
		"url": "https://" + host + m.say("path"), "method": method,
		"query_string": m.say("query") + "&token=" + m.say("secret"),
		"env":          object{"SERVER_NAME": host, "SERVER_PORT": "443", "REMOTE_ADDR": ip},
		"cookies":      object{"sessionid": m.hex(32), "csrftoken": m.hex(32), "_ga": m.say("zone"), "locale": m.say("locale")},
		"headers": object{
			"Host": host, "User-Agent": m.Agent, "Accept": "application/json, text/plain, */*", "Accept-Language": m.say("locale") + ",en;q=0.8",
			"Accept-Encoding": "gzip, deflate, br, zstd", "Referer": m.say("url"), "X-Request-Id": m.hex(32), "X-Forwarded-For": ip,
			"Authorization": "Bearer " + m.say("secret"), "Cookie": "sessionid=" + m.hex(32) + "; csrftoken=" + m.hex(32),
		},
	}
	if method != "GET" && method != "DELETE" {
		r["data"] = object{
			m.say("name"): m.say("repr"), m.say("column"): m.say("message"), "email": m.say("email"),
			"password": m.say("noun") + m.hex(6), "card_number": m.say("card"),
		}
	}
	return r
}

// user is who was affected.
func (m *Maker) user(ip string) object {
	return object{"id": fmt.Sprint(m.between(1000, 9_999_999)), "email": m.say("email"), "username": m.say("first") + "." + m.say("last"), "ip_address": ip}
}

// contexts are those of an event or transaction, with its trace.
func (a application) contexts(m *Maker, trace object) object {
	release := m.version()
	return object{
		"trace":   trace,
		"runtime": object{"name": a.sdk.runtime, "version": release, "build": fmt.Sprintf("%s (main, %s) [GCC %s]", release, m.hex(8), m.version())},
		"os":      object{"name": "Linux", "version": fmt.Sprintf("6.%d.%d", m.between(1, 18), m.between(0, 90)), "kernel_version": "6." + m.version() + "-generic"},
		"device":  object{"arch": oneOf(m.Rand, []string{"x86_64", "aarch64"}), "processor_count": 1 << m.between(0, 6), "memory_size": m.between(1, 256) << 30},
		"culture": object{"locale": m.say("locale"), "timezone": m.say("zone")},
	}
}

// tags are free: names and values.
func (m *Maker) tags() object {
	tags := object{"region": m.say("zone"), "tenant": m.say("noun") + "-" + m.hex(4)}
	for range m.between(3, 7) {
		tags[m.say("noun")+"."+m.say("column")] = m.say("adjective")
	}
	return tags
}

// breadcrumbs are the last things that happened before at.
func (m *Maker) breadcrumbs(n int, at time.Time) list {
	crumbs := make(list, n)
	for i := n - 1; i >= 0; i-- {
		at = at.Add(-time.Duration(m.between(500, 90_000)) * time.Microsecond)
		crumb := object{"timestamp": stampTime(at), "level": oneOf(m.Rand, []string{"info", "info", "warning", "debug"}), "category": m.say("category")}
		switch m.Rand.IntN(3) {
		case 0:
			crumb["type"], crumb["message"] = "default", m.say("sql")
			crumb["data"] = object{"db.system": "postgresql", "rows": m.between(0, 500)}
		case 1:
			crumb["type"], crumb["message"] = "http", m.say("method")+" "+m.say("path")
			crumb["data"] = object{"url": m.say("url"), "http.method": m.say("method"), "status_code": m.say("status"), "reason": m.say("adjective")}
		default:
			crumb["type"], crumb["message"] = "log", m.say("log")
			crumb["data"] = object{m.say("name"): m.say("repr")}
		}
		crumbs[i] = crumb
	}
	return crumbs
}
