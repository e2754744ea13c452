package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"
)

// routes are the routes that Relay itself uses, beside that of envelopes.
// Neither signatures nor registration are verified.
// Source: relay-server/src/services/upstream.rs and
// tests/integration/fixtures/mini_sentry.py of Relay 26.4.0.
var routes = map[string]struct {
	method string
	serve  func(*Server, *fasthttp.RequestCtx, int64)
}{
	"/api/0/relays/register/challenge": {"POST", (*Server).serveChallenge},
	"/api/0/relays/register/response":  {"POST", (*Server).serveResponse},
	"/api/0/relays/projectconfigs":     {"POST", (*Server).serveConfigs},
	"/api/0/relays/publickeys":         {"POST", (*Server).servePublicKeys},
	"/api/0/relays/live":               {"GET", (*Server).serveLive},
	"/api/0/relays/outcomes":           {"POST", (*Server).serveOutcomes},
	"/api/0/relays/metrics":            {"POST", (*Server).serveMetrics},
	"/stats":                           {"GET", (*Server).serveStats},
}

// handle answers a request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	at := s.now()
	if p, ok := ctx.Conn().(*peer); ok {
		defer p.free()
	}
	path := requestPath(&ctx.Request.Header)
	if isEnvelope(path) {
		if ctx.IsPost() {
			s.serveEnvelope(ctx, at)
		} else {
			s.serveUnknown(ctx, path, fasthttp.StatusMethodNotAllowed)
		}
		return
	}
	route, ok := routes[string(path)]
	switch {
	case !ok:
		s.serveUnknown(ctx, path, fasthttp.StatusNotFound)
	case route.method != string(ctx.Method()):
		s.serveUnknown(ctx, path, fasthttp.StatusMethodNotAllowed)
	default:
		route.serve(s, ctx, at)
	}
}

// requestPath is the path of a request as it came, without its last slash.
func requestPath(head *fasthttp.RequestHeader) []byte {
	path, _, _ := bytes.Cut(head.RequestURI(), []byte("?"))
	return bytes.TrimSuffix(path, []byte("/"))
}

// isEnvelope says whether a path is /api/{project}/envelope.
func isEnvelope(path []byte) bool {
	project, rest := cutProject(path)
	return len(project) > 0 && string(rest) == "/envelope"
}

// cutProject is the number of a project in a path, and what follows it; no
// number where the path has none. 0 is no project, but where Relay's own routes are.
func cutProject(path []byte) (project, rest []byte) {
	rest, ok := bytes.CutPrefix(path, []byte("/api/"))
	if !ok {
		return nil, nil
	}
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 0 || string(rest[:n]) == "0" || n < len(rest) && rest[n] != '/' {
		return nil, nil
	}
	return rest[:n], rest[n:]
}

// serveUnknown answers what is no route as Sentry would, and counts it.
func (s *Server) serveUnknown(ctx *fasthttp.RequestCtx, path []byte, status int) {
	name := string(path)
	if project, rest := cutProject(path); len(project) > 0 {
		name = "/api/{project}" + string(rest)
	}
	name = string(ctx.Method()) + " " + name
	if s.counts.routes.add([]byte(name), 1) {
		s.say("unknown route %s: answered %d", cut(name), status)
	}
	replyJSON(ctx, status, map[string]string{"detail": fasthttp.StatusMessage(status)})
}

// readJSON reads a body of JSON. A bad one is counted, answered and not ok.
func (s *Server) readJSON(ctx *fasthttp.RequestCtx, v any) (ok bool) {
	var refused *refusal
	hostOf(ctx).await(func() {
		refused = s.decodeJSON(ctx.Request.Header.ContentEncoding(), ctx.Request.Body(), v)
	})
	if refused != nil {
		s.refuseJSON(ctx, refused)
	}
	return refused == nil
}

func (s *Server) decodeJSON(encoding, wire []byte, v any) *refusal {
	r := <-s.readers
	defer func() {
		r.free()
		s.readers <- r
	}()
	plain, refused := r.decode(encoding, wire, s.limits.json)
	if refused != nil {
		return refused
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return &refusal{fasthttp.StatusBadRequest, "json", err}
	}
	return nil
}

// refuseJSON counts and answers a malformed body of one of Relay's own routes.
func (s *Server) refuseJSON(ctx *fasthttp.RequestCtx, r *refusal) {
	path := cut(string(requestPath(&ctx.Request.Header)))
	answer, t := s.refuse(nil, &refusal{r.status, r.sort + " " + path, fmt.Errorf("%s: %w", path, r.err)})
	reply(ctx, t.Status, answer)
}

func replyJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = fasthttp.StatusInternalServerError, []byte("{}")
	}
	reply(ctx, status, body)
}

// appendJSON appends a text as a JSON string.
func appendJSON(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		quoted = []byte(`""`)
	}
	return append(dst, quoted...)
}

// readRelay reads which relay a step of the handshake is of; not ok where it is answered already.
func (s *Server) readRelay(ctx *fasthttp.RequestCtx) (id string, ok bool) {
	var body struct {
		RelayID string `json:"relay_id"`
	}
	if !s.readJSON(ctx, &body) {
		return "", false
	}
	if body.RelayID == "" {
		s.refuseJSON(ctx, &refusal{fasthttp.StatusBadRequest, "relay_id", errors.New("no relay_id")})
		return "", false
	}
	return body.RelayID, true
}

// serveChallenge answers the first step of the handshake. Any text will do as a token.
func (s *Server) serveChallenge(ctx *fasthttp.RequestCtx, _ int64) {
	if id, ok := s.readRelay(ctx); ok {
		replyJSON(ctx, 200, map[string]string{"relay_id": id, "token": "relaybench"})
	}
}

// serveResponse answers the second and last step.
func (s *Server) serveResponse(ctx *fasthttp.RequestCtx, _ int64) {
	if id, ok := s.readRelay(ctx); ok {
		s.counts.relays.add([]byte(id), 1)
		replyJSON(ctx, 200, map[string]string{"relay_id": id})
	}
}

// servePublicKeys answers that it knows no other relays.
func (s *Server) servePublicKeys(ctx *fasthttp.RequestCtx, _ int64) {
	reply(ctx, 200, []byte(`{"public_keys":{},"relays":{}}`))
}

// serveLive answers what Relay polls in an outage.
func (s *Server) serveLive(ctx *fasthttp.RequestCtx, _ int64) {
	reply(ctx, 200, []byte(`{"is_healthy":true}`))
}

func (s *Server) serveOutcomes(ctx *fasthttp.RequestCtx, at int64) {
	var body struct {
		Outcomes []report `json:"outcomes"`
	}
	if !s.readJSON(ctx, &body) {
		return
	}
	s.counts.outcomes.add(body.Outcomes)
	if len(body.Outcomes) > 0 {
		s.counts.change(at)
	}
	reply(ctx, 200, []byte("{}"))
}

// serveMetrics counts the buckets of global metrics (http.global_metrics), by
// number only: they carry no stamp.
func (s *Server) serveMetrics(ctx *fasthttp.RequestCtx, _ int64) {
	var body struct {
		Buckets map[string][]json.RawMessage `json:"buckets"`
	}
	if !s.readJSON(ctx, &body) {
		return
	}
	for _, buckets := range body.Buckets {
		s.counts.metricBuckets.Add(uint64(len(buckets)))
	}
	reply(ctx, 200, []byte("{}"))
}

func (s *Server) serveStats(ctx *fasthttp.RequestCtx, _ int64) {
	replyJSON(ctx, 200, s.Stats())
}

// serveConfigs answers queries for the global config and for project configs.
//
// Versions 2 and 4 of the protocol are answered like 3, which Relay 26.4
// speaks; version 1 asked by the number of projects instead of by key.
func (s *Server) serveConfigs(ctx *fasthttp.RequestCtx, _ int64) {
	version := string(ctx.QueryArgs().Peek("version"))
	if version != "3" {
		s.sayOnce("version "+version, "project configs in version %q: answered as in version 3", cut(version))
	}
	var query configQuery
	if !s.readJSON(ctx, &query) {
		return
	}
	answer := s.projects.answer(&query)
	if query.Global {
		s.counts.globalQueries.Add(1)
	}
	if keys := len(query.PublicKeys) + len(query.Projects); keys > 0 || !query.Global {
		s.counts.configQueries.Add(1)
		s.counts.configKeys.Add(uint64(keys))
	}
	replyJSON(ctx, 200, answer)
}

// projectNumber is the number of a project id in a query of version 1.
func projectNumber(id json.Number) (int, bool) {
	n, err := strconv.Atoi(id.String())
	return n - 1, err == nil && n > 0
}
