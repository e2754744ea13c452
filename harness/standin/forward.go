package standin

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// process takes jobs until the queue is closed. It begins when the global
// config is there: before, nothing leaves Relay.
func (r *relay) process(ctx context.Context) {
	select {
	case <-r.global:
	case <-ctx.Done():
		return
	}
	if r.config.hold {
		return
	}
	if r.config.cpu > 0 {
		runtime.LockOSThread() // burn reads the thread's clock
		defer runtime.UnlockOSThread()
	}
	var plain []byte
	for j := r.processing.pop(); j != nil; j = r.processing.pop() {
		from := time.Now()
		plain = r.processOne(ctx, j, plain)
		r.metrics.took("processor.message.duration|#message:ProcessEnvelope", time.Since(from))
	}
}

// processOne decides what becomes of a job. plain is memory to be used again.
func (r *relay) processOne(ctx context.Context, j *job, plain []byte) []byte {
	c := &r.config
	if j.numbered {
		if c.capacity > 0 {
			r.pace.wait(ctx)
		}
		burn(c.cpu)
		if c.leak > 0 {
			r.leak(c.leak)
		}
	}
	s := j.project.state.Load()
	switch {
	case s.disabled || s.project != j.urlProject:
		r.outcome(j, outcomeInvalid, "project_id")
	case j.kind >= 0 && !s.allowed[j.kind]: // as Relay drops kinds without their feature: in silence
	case j.strikes(c.drop):
	case j.strikes(c.outcomeEvery):
		r.outcome(j, outcomeFiltered, "stand-in")
	default:
		plain = j.rewrite(plain[:0])
		wire, err := c.encoding.Encode(j.wire[:0], plain)
		if err != nil {
			r.log.say("ERROR", "failed to encode envelope: "+err.Error())
			break
		}
		j.wire = wire
		j.repeat = j.strikes(c.repeat)
		if j.numbered && c.delay > 0 {
			r.delayed.push(j)
		} else {
			r.sending.push(j)
		}
		return plain
	}
	r.release(j)
	return plain
}

// rewrite appends the envelope as Relay forwards it: sent_at is now, all other
// keys of its header, ours too, are as they came.
func (j *job) rewrite(dst []byte) []byte {
	header, err := j.parser.ParseBytes(j.env.Header)
	if err != nil { // the envelope's parser took it
		dst = append(dst, j.env.Header...)
	} else {
		j.arena.Reset()
		header.Set("sent_at", j.arena.NewString(time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))
		dst = header.MarshalTo(dst)
	}
	dst = append(dst, '\n')
	if rest := j.body[len(j.env.Header):]; len(rest) > 0 {
		dst = append(dst, bytes.TrimPrefix(rest, []byte("\n"))...)
	}
	return dst
}

// burn spends CPU time of the calling thread, which the caller has locked.
func burn(d time.Duration) {
	if d <= 0 {
		return
	}
	// The clock is read by a system call, which is as good a way to spend time as any.
	for start := threadTime(); threadTime()-start < d; {
	}
}

// pace spreads what is processed evenly over time. A wait that lasts too long,
// on a machine that is busy, is made up for: else its capacity would be less than was asked for.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time
	late  time.Duration // by how much the last wait was too long
}

// mostLate is how much of one wait is made up for.
const mostLate = 200 * time.Millisecond

func (p *pace) wait(ctx context.Context) {
	p.mu.Lock()
	now := time.Now()
	if least := now.Add(-p.late); p.next.Before(least) {
		p.next = least
	}
	at := p.next
	p.next = at.Add(p.every)
	p.mu.Unlock()
	sleep(ctx, time.Until(at))
	late := min(max(0, time.Since(at)), mostLate)
	p.mu.Lock()
	p.late = late
	p.mu.Unlock()
}

// leak keeps memory for ever, and writes to it, as it is not there before.
func (r *relay) leak(n int) {
	kept := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		kept[i] = 1
	}
	r.leaking.Lock()
	defer r.leaking.Unlock()
	r.leaked = append(r.leaked, kept)
}

// send forwards jobs until the queue is closed.
func (r *relay) send() {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	var uri []byte
	for j := r.sending.pop(); j != nil; j = r.sending.pop() {
		req.Reset()
		h := &req.Header
		h.SetMethod(fasthttp.MethodPost)
		uri = append(append(uri[:0], "/api/"...), j.project.state.Load().id...)
		uri = append(uri, "/envelope/"...)
		h.SetRequestURIBytes(uri)
		h.SetHost(r.up.addr)
		h.Set("x-sentry-relay-id", r.up.who.id)
		h.Set("x-sentry-relay-signature", r.up.signEmpty())
		if r.config.encoding.Name != "identity" {
			h.Set("content-encoding", r.config.encoding.Name)
		}
		if len(j.agent) > 0 {
			h.SetBytesV("user-agent", j.agent)
		}
		if len(j.origin) > 0 {
			h.SetBytesV("origin", j.origin)
		}
		h.SetBytesV("x-sentry-auth", j.auth)
		h.SetBytesV("x-forwarded-for", j.client)
		h.SetContentType("application/x-sentry-envelope")
		req.SetBodyRaw(j.wire)
		err := r.up.client.DoTimeout(req, resp, r.config.timeout)
		switch {
		case network(resp.StatusCode(), err):
			r.retrying.push(j)
		case j.repeat: // 4xx, 429 and 500 end it just as 200 does: Relay keeps nothing of them
			j.repeat = false
			r.sending.push(j)
		default:
			r.release(j)
		}
	}
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
