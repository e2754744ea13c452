package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// readyPath is Relay's readiness probe: 200, or 503 until it has registered upstream.
const readyPath = "/api/relay/healthcheck/ready/"

type healthAnswer struct {
	status  int
	version string // of the server header, "sentry-relay/26.4.0"
	body    string // its first bytes
}

// healthClient speaks to the given host only: no proxy, and no connection kept
// open, which Relay would close after 5 s.
func healthClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func askHealth(ctx context.Context, client *http.Client, base string) (healthAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+readyPath, nil)
	if err != nil {
		return healthAnswer{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return healthAnswer{}, fmt.Errorf("health check: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 512))
	if err != nil {
		return healthAnswer{}, fmt.Errorf("health check: %w", err)
	}
	a := healthAnswer{status: resp.StatusCode, body: strings.TrimSpace(string(body))}
	if version, ok := strings.CutPrefix(resp.Header.Get("Server"), "sentry-relay/"); ok {
		a.version = version
	}
	return a, nil
}

// Ready asks its readiness probe once; nil when it is ready. Until the owner of
// the port is known to be ours, an answer counts for nothing: Relay shares a
// port in silence (SO_REUSEPORT), so another one could have given it.
func (p *Process) Ready(ctx context.Context) error {
	select {
	case <-p.done:
		return fmt.Errorf("relay has ended: %s", p.Exit().words())
	default:
	}
	if err := p.ports(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	a, err := askHealth(ctx, p.client, "http://"+p.addr)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("health check: %d %s", a.status, cut(a.body, 100))
	}
	return p.ports()
}
