package envelope

import (
	"strings"
	"time"
)

// chain is how many exceptions an error has, each the cause of the next. All
// of them have a stack of Shape.Frames frames.
const chain = 2

// makeError makes an event of an unhandled exception in a web request.
func makeError(m *Maker) error {
	a := m.application()
	trace, ip, at := m.ID(), m.say("ip"), m.ago(2*time.Second)
	a.header(m, a.sampling(m, trace, object{"sampled": "true", "transaction": a.transaction}))
	exceptions := make(list, chain)
	for i := range exceptions {
		exceptions[i] = m.exception(i)
	}
	m.AddJSON("event", object{
		"event_id": m.EventID(), "timestamp": stampTime(at), "platform": "python", "level": "error", "logger": m.say("module"),
		"release": a.release, "environment": a.environment, "server_name": a.server, "dist": m.hex(8), "sdk": a.sdkInfo(),
		"transaction": a.transaction, "transaction_info": object{"source": "route"},
		"exception": object{"values": exceptions},
		"request":   m.request(ip), "user": m.user(ip), "tags": m.tags(), "modules": m.modules(),
		"contexts": a.contexts(m, object{
			"trace_id": trace, "span_id": m.SpanID(), "parent_span_id": m.hex(16), "op": "http.server", "origin": "auto.http." + m.say("noun"), "status": "internal_error",
			"data": object{"thread.id": m.say("repr"), "thread.name": "MainThread", "http.request.method": m.say("method")},
		}),
		"breadcrumbs": object{"values": m.breadcrumbs(m.between(4, 7), at)},
		"extra": object{
			"sys.argv": list{"manage.py", m.say("function")}, m.say("name"): m.say("repr"), "api_key": m.say("secret"), "contact": m.say("email"),
			m.say("function"): list{m.say("repr"), m.say("repr"), m.say("url")}, "last_query": m.say("sql"),
		},
	}, "content_type", "application/json")
	return nil
}

// exception is number i of a chain, from the innermost.
func (m *Maker) exception(i int) object {
	mechanism := object{"type": "chained", "handled": true, "exception_id": chain - 1 - i, "parent_id": chain - 2 - i, "source": "__cause__"}
	if i == chain-1 {
		mechanism = object{"type": oneOf(m.Rand, []string{"django", "flask", "fastapi", "celery"}), "handled": false, "exception_id": 0}
	}
	frames := make(list, m.Shape.Frames)
	for i := range frames {
		frames[i] = m.frame()
	}
	return object{
		"type": m.say("exception"), "value": m.say("message"), "module": m.say("module"), "mechanism": mechanism,
		"stacktrace": object{"frames": frames},
	}
}

// frame is one frame of a stack: three in five of the application, with more
// local variables, the others of a library.
func (m *Maker) frame() object {
	app := m.chance(0.6)
	module, root := m.say("module"), "/srv/app/"
	if !app {
		module, root = m.say("library"), "/srv/app/venv/lib/python3.13/site-packages/"
	}
	file := strings.ReplaceAll(module, ".", "/") + ".py"
	return object{
		"filename": file, "abs_path": root + file, "module": module, "function": m.say("function"), "lineno": m.between(8, 1900), "in_app": app,
		"pre_context": m.lines(5), "context_line": m.say("source"), "post_context": m.lines(5), "vars": m.vars(app),
	}
}

func (m *Maker) lines(n int) list {
	lines := make(list, n)
	for i := range lines {
		lines[i] = strings.TrimRight(m.say("source"), " ")
	}
	return lines
}

// vars are local variables; some of them are what Relay's default scrubbing must catch.
func (m *Maker) vars(app bool) object {
	if !app {
		return object{"self": m.say("repr"), m.say("name"): m.say("repr")}
	}
	vars := object{}
	for range m.between(1, 3) {
		vars[m.say("name")] = m.say("repr")
	}
	switch m.Rand.IntN(6) {
	case 0:
		vars["password"] = "'" + m.say("noun") + m.hex(6) + "'"
	case 1:
		vars["card"] = "'" + m.say("card") + "'"
	case 2:
		vars["access_token"] = "'" + m.say("secret") + "'"
	case 3:
		vars["headers"] = object{"Authorization": "Bearer " + m.say("secret"), "X-Real-Ip": m.say("ip")}
	case 4:
		vars["customer"] = object{"email": m.say("email"), m.say("name"): m.say("repr")}
	}
	return vars
}
