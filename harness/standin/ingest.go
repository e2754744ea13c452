package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"relaybench/envelope"
)

// job is an envelope inside the stand-in, from its ingest until the upstream has it.
type job struct {
	body       []byte            // decoded
	env        envelope.Envelope // aliases body
	urlProject uint64
	project    *project
	kind       int // index in envelope.Kinds, -1: unknown
	elements   int // of its kind
	numbered   bool
	seq        uint64 // if numbered: it is stamped, and no warm-up

	agent, origin, auth, client []byte // of the request

	wire   []byte // encoded
	repeat bool   // forward it once more
	due    time.Time

	parser fastjson.Parser
	arena  fastjson.Arena
}

// jobBytes is the largest buffer that is kept for another job.
const jobBytes = 1 << 20

var jobs = sync.Pool{New: func() any { return new(job) }}

func (r *relay) release(j *job) {
	r.inside.Add(-1)
	drop(j)
}

// drop gives back a job that never was inside.
func drop(j *job) {
	j.project = nil
	if cap(j.body) <= jobBytes && cap(j.wire) <= jobBytes {
		jobs.Put(j)
	}
}

// strikes says whether a behaviour of every Nth is for this job.
func (j *job) strikes(every uint64) bool {
	return j.numbered && every > 0 && (j.seq+1)%every == 0
}

// handle answers a request.
func (r *relay) handle(ctx *fasthttp.RequestCtx) {
	switch path := ctx.Path(); {
	case bytes.Equal(path, []byte("/api/relay/healthcheck/live/")):
		answer(ctx, 200, `{"is_healthy":true}`)
	case bytes.Equal(path, []byte("/api/relay/healthcheck/ready/")):
		switch {
		case r.stopping.Load():
			answer(ctx, 503, `{"is_healthy":false}`)
		case !r.registered.Load():
			r.log.say("ERROR", "Health check probe 'auth' failed")
			answer(ctx, 503, `{"is_healthy":false}`)
		default:
			answer(ctx, 200, `{"is_healthy":true}`)
		}
	default:
		project, ok := envelopePath(path)
		if !ok {
			refuse(ctx, 404, "no such route")
			return
		}
		if !ctx.IsPost() {
			refuse(ctx, 405, "POST only")
			return
		}
		from := time.Now()
		r.ingest(ctx, project)
		r.metrics.took("requests.duration|#route:/api/{project_id}/envelope/,method:POST", time.Since(from))
		if r.metrics != nil {
			r.metrics.count(fmt.Sprintf("responses.status_codes|#status_code:%d,route:/api/{project_id}/envelope/,method:POST", ctx.Response.StatusCode()))
		}
		if r.config.answerDelay > 0 {
			sleep(r.ctx, r.config.answerDelay)
		}
	}
}

// envelopePath is the project id in /api/ID/envelope/.
func envelopePath(path []byte) (uint64, bool) {
	id, ok := bytes.CutPrefix(path, []byte("/api/"))
	if !ok {
		return 0, false
	}
	id, ok = bytes.CutSuffix(bytes.TrimSuffix(id, []byte("/")), []byte("/envelope"))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(id), 10, 64)
	return n, err == nil && n > 0
}

func answer(ctx *fasthttp.RequestCtx, status int, body string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBodyString(body)
}

func refuse(ctx *fasthttp.RequestCtx, status int, detail string) {
	body, err := json.Marshal(map[string]string{"detail": detail})
	if err != nil {
		body = []byte("{}")
	}
	answer(ctx, status, string(body))
}

// handleError answers what is no request.
func handleError(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		refuse(ctx, 413, "envelope exceeded its configured size limit")
		return
	}
	refuse(ctx, 400, "failed to read request: "+err.Error())
}

// ingest takes an envelope, or refuses it. It is answered before it is processed.
func (r *relay) ingest(ctx *fasthttp.RequestCtx, project uint64) {
	encoding := envelope.FindEncoding(string(ctx.Request.Header.ContentEncoding()))
	if encoding == nil {
		refuse(ctx, 415, "unsupported content encoding")
		return
	}
	j := jobs.Get().(*job)
	var err error
	j.body, err = encoding.Decode(j.body[:0], ctx.PostBody(), r.config.maxEnvelope)
	status, detail := 0, ""
	switch {
	case errors.Is(err, envelope.ErrTooLarge):
		status, detail = 413, "envelope exceeded its configured size limit"
	case err != nil:
		status, detail = 400, "failed to read request body: "+err.Error()
	case len(j.body) == 0:
		status, detail = 400, "empty request body"
	default:
		if err = j.env.Parse(j.body); err != nil {
			status, detail = 400, "invalid event envelope: "+err.Error()
		}
	}
	if status != 0 {
		drop(j)
		refuse(ctx, status, detail)
		return
	}
	key, status, detail := requestKey(ctx, &j.env)
	if status != 0 {
		drop(j)
		refuse(ctx, status, detail)
		return
	}
	j.fill(ctx, project, r.projects.get(key))
	if status := r.gate(j); status != 0 {
		r.refused(j, status)
		drop(j)
		if status == 429 {
			ctx.Response.Header.Set("retry-after", "1")
		}
		refuse(ctx, status, "refused by the stand-in")
		return
	}
	body := append(ctx.Response.Body(), `{}`...)
	if len(j.env.EventID) > 0 {
		body = append(body[:0], `{"id":"`...)
		body = append(body, bytes.ReplaceAll(j.env.EventID, []byte("-"), nil)...)
		body = append(body, `"}`...)
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
	if len(j.env.Items) == 0 {
		drop(j)
		return
	}
	r.inside.Add(1)
	r.admit(j)
}

// fill notes what the job needs of its request, whose memory is reused.
func (j *job) fill(ctx *fasthttp.RequestCtx, urlProject uint64, p *project) {
	h := &ctx.Request.Header
	j.urlProject, j.project = urlProject, p
	j.agent = append(j.agent[:0], h.UserAgent()...)
	j.origin = append(j.origin[:0], h.Peek("Origin")...)
	j.auth = append(append(j.auth[:0], "Sentry sentry_key="...), p.key...)
	j.auth = append(j.auth, ", sentry_version=7"...)
	if client := authField(authHeader(h), "sentry_client="); len(client) > 0 {
		j.auth = append(append(j.auth, ", sentry_client="...), client...)
	}
	j.client = append(j.client[:0], ctx.RemoteIP().String()...)
	j.repeat, j.kind, j.elements = false, -1, 0
	j.numbered, j.seq = j.env.Stamped && !j.env.Stamp.Warm, j.env.Stamp.Seq
	if !j.env.Stamped {
		return
	}
	for i := range envelope.Kinds {
		kind := &envelope.Kinds[i]
		if kind.Name != string(j.env.Stamp.Kind) {
			continue
		}
		j.kind = i
		for _, item := range j.env.Items {
			if string(item.Type) == kind.Items[0] {
				j.elements += kind.Elements(item)
			}
		}
	}
}

// gate is the status that a job is refused with, 0 for none.
func (r *relay) gate(j *job) int {
	if s := j.project.state.Load(); s != nil && (s.disabled || s.project != j.urlProject) {
		return 403
	}
	if r.stopping.Load() {
		return 503
	}
	if r.config.refuse != 0 && j.strikes(r.config.refuseEvery) {
		return r.config.refuse
	}
	if j.numbered && r.config.crashAfter > 0 {
		n := r.numbered.Add(1)
		if n == r.config.crashAfter {
			close(r.crashed)
		}
		if n >= r.config.crashAfter {
			select {} // no answer any more: the process is about to end
		}
	}
	return 0
}

// requestKey is the public key of a request, or the status and the reason that it is refused with.
// Source: relay-server/src/extractors/request_meta.rs of Relay 26.4.0.
func requestKey(ctx *fasthttp.RequestCtx, env *envelope.Envelope) (key []byte, status int, detail string) {
	header := authHeader(&ctx.Request.Header)
	query := ctx.QueryArgs().Peek("sentry_key")
	switch {
	case len(header) > 0 && len(query) > 0:
		return nil, 401, "multiple authorization parameters"
	case len(header) > 0:
		key = authField(header, "sentry_key=")
	case len(query) > 0:
		key = query
	default:
		key = dsnKey(env.Header)
	}
	switch {
	case len(key) == 0:
		return nil, 401, "missing authorization information"
	case len(key) != envelope.KeyLen || bytes.ContainsFunc(key, func(c rune) bool { return !strings.ContainsRune("0123456789abcdef", c) }):
		return nil, 400, "bad sentry key"
	}
	return key, 0, ""
}

// authHeader is "Sentry sentry_version=7, sentry_key=KEY" of either header that may say it.
func authHeader(h *fasthttp.RequestHeader) []byte {
	if header := h.Peek("X-Sentry-Auth"); len(header) > 0 {
		return header
	}
	if header := h.Peek("Authorization"); bytes.HasPrefix(header, []byte("Sentry ")) {
		return header
	}
	return nil
}

// authField is what follows a name ("sentry_key=") in an auth header.
func authField(header []byte, name string) []byte {
	_, rest, ok := bytes.Cut(header, []byte(name))
	if !ok {
		return nil
	}
	if end := bytes.IndexAny(rest, ", "); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// dsnKey is the key in the "dsn" of an envelope header: http://KEY@host/project.
func dsnKey(header []byte) []byte {
	dsn := fastjson.GetBytes(header, "dsn")
	_, rest, ok := bytes.Cut(dsn, []byte("://"))
	if !ok {
		return nil
	}
	key, _, ok := bytes.Cut(rest, []byte("@"))
	if !ok {
		return nil
	}
	key, _, _ = bytes.Cut(key, []byte(":"))
	return key
}
