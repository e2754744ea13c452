package standin

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// upstream is the side towards Sentry: it signs and asks.
type upstream struct {
	addr     string
	who      identity
	timeout  time.Duration
	client   *fasthttp.HostClient
	unsigned signature
}

// cuttable is a connection that closes when a context ends.
type cuttable struct {
	net.Conn
	spare func() bool
}

func (c cuttable) Close() error {
	c.spare()
	return c.Conn.Close()
}

// signature is a signature of an empty body, made anew each second: as
// envelopes sign no body, it would be the same for all of a moment.
type signature struct {
	mu   sync.Mutex
	at   time.Time
	text string
}

// newUpstream is the upstream of a config; when ctx ends, all requests to it fail at once.
func newUpstream(ctx context.Context, c config, who identity) *upstream {
	u := &upstream{addr: c.upstream, who: who, timeout: c.timeout}
	u.client = &fasthttp.HostClient{
		Addr: c.upstream,
		Dial: func(addr string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: 3 * time.Second} // Relay's http.connection_timeout
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return cuttable{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
		},
		MaxConns:                      c.requests + 8, // and the queries
		MaxIdleConnDuration:           15 * time.Second,
		MaxIdemponentCallAttempts:     1,
		RetryIfErr:                    func(*fasthttp.Request, int, error) (bool, bool) { return false, false }, // we count our repeats
		NoDefaultUserAgentHeader:      true,
		DisablePathNormalizing:        true,
		DisableHeaderNamesNormalizing: true,
		WriteBufferSize:               16 << 10,
	}
	return u
}

// sign is the header X-Sentry-Relay-Signature of a body.
// Source: relay-auth/src/lib.rs of Relay 26.4.0.
func (u *upstream) sign(body []byte) string {
	header, err := json.Marshal(map[string]string{"t": time.Now().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return ""
	}
	signed := append(append(append([]byte(nil), header...), 0), body...)
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(u.who.secret, signed)) + "." +
		base64.RawURLEncoding.EncodeToString(header)
}

func (u *upstream) signEmpty() string {
	s := &u.unsigned
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.at) > time.Second {
		s.at, s.text = now, u.sign(nil)
	}
	return s.text
}

// statusError is an answer other than 2xx.
type statusError struct {
	status int
	body   string // its first bytes
}

func (e *statusError) Error() string {
	return fmt.Sprintf("upstream answered %d: %s", e.status, e.body)
}

// network says whether a request is to be made again: it failed on its way, or
// a proxy answered in the upstream's place. Source: relay-server/src/services/upstream.rs.
func network(status int, err error) bool {
	return err != nil || status == 502 || status == 503 || status == 504
}

// query posts JSON to one of Relay's own routes and reads the JSON answer.
func (u *upstream) query(path string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.SetRequestURI("http://" + u.addr + path)
	req.Header.SetContentType("application/json")
	req.Header.Set("x-sentry-relay-id", u.who.id)
	req.Header.Set("x-sentry-relay-signature", u.sign(body))
	req.SetBodyRaw(body)
	if err := u.client.DoTimeout(req, resp, u.timeout); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s := resp.StatusCode(); s < 200 || s > 299 {
		said := resp.Body()
		return fmt.Errorf("%s: %w", path, &statusError{s, string(said[:min(len(said), 200)])})
	}
	if err := json.Unmarshal(resp.Body(), answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var errDenied = errors.New("upstream told this relay to stop")

// register makes the handshake once.
func (u *upstream) register() error {
	type hello struct {
		RelayID   string `json:"relay_id"`
		PublicKey string `json:"public_key,omitempty"`
		Token     string `json:"token,omitempty"`
		Version   string `json:"version,omitempty"`
	}
	var challenge, done hello
	err := u.query("/api/0/relays/register/challenge/", hello{RelayID: u.who.id, PublicKey: u.who.public, Version: relayVersion}, &challenge)
	if err == nil {
		err = u.query("/api/0/relays/register/response/", hello{RelayID: u.who.id, Token: challenge.Token, Version: relayVersion}, &done)
	}
	var refused *statusError
	if errors.As(err, &refused) && refused.status == 403 {
		var action struct{ Relay string }
		if json.Unmarshal([]byte(refused.body), &action) == nil && action.Relay == "stop" {
			return errDenied
		}
	}
	return err
}

// globalConfig asks for the global config and says whether it is ready.
func (u *upstream) globalConfig() (bool, error) {
	var answer struct {
		Global *json.RawMessage `json:"global"`
		Status string           `json:"globalStatus"`
	}
	ask := struct {
		Global     bool     `json:"global"`
		PublicKeys []string `json:"publicKeys"`
	}{true, []string{}}
	if err := u.query(configsPath, ask, &answer); err != nil {
		return false, err
	}
	if answer.Global == nil {
		return false, errors.New("global config missing in upstream response")
	}
	return answer.Status == "" || answer.Status == "ready", nil
}

const configsPath = "/api/0/relays/projectconfigs/?version=3"

// retryLimit is the longest wait between two attempts to register.
const retryLimit = 2 * time.Second

// connect registers, then asks for the global config again and again, until ctx ends.
func (r *relay) connect(ctx context.Context) {
	if !sleep(ctx, r.config.slowStart) {
		return
	}
	wait := 100 * time.Millisecond
	for {
		r.log.say("INFO", "registering with upstream")
		err := r.up.register()
		if err == nil {
			break
		}
		if errors.Is(err, errDenied) {
			r.log.say("ERROR", err.Error())
			return
		}
		r.log.say("ERROR", "authentication encountered error: "+err.Error())
		if !sleep(ctx, wait) {
			return
		}
		wait = min(wait*3/2, retryLimit)
	}
	r.registered.Store(true)
	r.log.say("INFO", "relay successfully registered with upstream")
	for first := true; ; {
		ready, err := r.up.globalConfig()
		if err != nil {
			r.log.say("ERROR", "failed to fetch global config: "+err.Error())
		}
		if ready && first {
			first = false
			r.log.say("INFO", "received global config from upstream")
			close(r.global)
		}
		wait := r.config.global
		if first {
			wait = min(wait, time.Second)
		}
		if !sleep(ctx, max(wait, 10*time.Millisecond)) {
			return
		}
	}
}
