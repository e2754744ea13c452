//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// sent is what a client did.
type sent struct {
	requests, seconds float64
	cpu               time.Duration // of its whole process
	blasted                         // relaybench's own
}

func (s sent) perSecond() float64 { return s.requests / s.seconds }
func (s sent) cpuEach() float64   { return float64(s.cpu) / s.requests }

// auth is the head that every client sends beside its own, as an SDK does.
const (
	auth        = "X-Sentry-Auth: Sentry sentry_key=00000000000000000000000000000000, sentry_version=7, sentry_client=relaybench/1"
	contentType = "application/x-sentry-envelope"
)

// client is a load generator. It posts a body over 64 connections, flat out or at a rate a second.
type client struct {
	name string
	send func(ctx context.Context, b *bench, addr, body string, rate float64) (sent, error)
}

// peers are the clients that relaybench is measured beside, by name.
var peers = map[string]client{
	"hey": {"hey", func(ctx context.Context, b *bench, addr, body string, _ float64) (sent, error) {
		e, err := b.client(ctx, "hey", "-z", b.length(), "-c", "64", "-m", "POST", "-D", body, "-T", contentType, "-H", auth, url(addr))
		return counted(e, err, `\[200\]\s+(\d+) responses`, `Total:\s+([\d.]+) secs`)
	}},
	"vegeta": {"vegeta", func(ctx context.Context, b *bench, addr, body string, rate float64) (sent, error) {
		target, out := filepath.Join(b.work, "vegeta.target"), filepath.Join(b.work, "vegeta.out")
		if err := os.WriteFile(target, []byte("POST "+url(addr)+"\n"), 0o600); err != nil {
			return sent{}, err
		}
		e, err := b.client(ctx, "vegeta", "attack", "-rate", fmt.Sprintf("%.0f/1s", rate), "-workers", "64", "-max-workers", "64", "-connections", "64",
			"-duration", b.length(), "-targets", target, "-body", body, "-header", auth, "-header", "Content-Type: "+contentType, "-output", out)
		if err != nil {
			return sent{}, err
		}
		r, err := run(ctx, time.Minute, "", b.programs["vegeta"], "report", "-type", "json", out)
		if err != nil {
			return sent{}, err
		}
		var report struct {
			Duration int64
			Codes    map[string]float64 `json:"status_codes"`
		}
		if err := json.Unmarshal(r.out, &report); err != nil {
			return sent{}, err
		}
		return sent{requests: report.Codes["200"], seconds: float64(report.Duration) / 1e9, cpu: e.cpu}, nil
	}},
	"fortio": {"fortio", func(ctx context.Context, b *bench, addr, body string, _ float64) (sent, error) {
		e, err := b.client(ctx, "fortio", "load", "-quiet", "-qps", "0", "-c", "64", "-t", b.length(), "-payload-file", body, "-content-type", contentType, "-H", auth, "-json", "-", url(addr))
		if err != nil {
			return sent{}, err
		}
		var report struct {
			ActualDuration int64
			RetCodes       map[string]float64
		}
		if err := json.Unmarshal(e.out, &report); err != nil {
			return sent{}, err
		}
		return sent{requests: report.RetCodes["200"], seconds: float64(report.ActualDuration) / 1e9, cpu: e.cpu}, nil
	}},
	"oha": {"oha", func(ctx context.Context, b *bench, addr, body string, _ float64) (sent, error) {
		e, err := b.client(ctx, "oha", "-z", b.length(), "-c", "64", "-m", "POST", "-D", body, "-T", contentType, "-H", auth, "--no-tui", "-j", url(addr))
		if err != nil {
			return sent{}, err
		}
		var report struct {
			Summary struct{ Total float64 }
			Codes   map[string]float64 `json:"statusCodeDistribution"`
		}
		if err := json.Unmarshal(e.out, &report); err != nil {
			return sent{}, err
		}
		return sent{requests: report.Codes["200"], seconds: report.Summary.Total, cpu: e.cpu}, nil
	}},
	"wrk -t2": {"wrk", wrk("2")},
	"wrk -t1": {"wrk", wrk("1")},
}

func wrk(threads string) func(ctx context.Context, b *bench, addr, body string, rate float64) (sent, error) {
	return func(ctx context.Context, b *bench, addr, body string, _ float64) (sent, error) {
		script := filepath.Join(b.work, "post.lua")
		text := fmt.Sprintf("wrk.method = %q\nlocal f = io.open(%q, \"rb\")\nwrk.body = f:read(\"*a\")\nf:close()\n", "POST", body)
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return sent{}, err
		}
		e, err := b.client(ctx, "wrk", "-t"+threads, "-c64", "-d", b.length(), "-H", auth, "-H", "Content-Type: "+contentType, "-s", script, url(addr))
		return counted(e, err, `(\d+) requests in`, `requests in ([\d.]+)s`)
	}
}

// ours is relaybench's senders on a body of size bytes, or as args say.
func ours(ctx context.Context, b *bench, addr string, args ...string) (sent, error) {
	e, err := b.client(ctx, "peer", append([]string{"blast", "-addr", addr, "-seconds", fmt.Sprint(b.seconds)}, args...)...)
	if err != nil {
		return sent{}, err
	}
	var s sent
	if err := json.Unmarshal(e.out, &s.blasted); err != nil {
		return s, err
	}
	s.requests, s.seconds, s.cpu = s.Requests, s.Seconds, e.cpu
	return s, nil
}

func url(addr string) string { return "http://" + addr + "/api/1/envelope/" }

// counted reads requests and seconds out of what a client printed.
func counted(e ended, err error, requests, seconds string) (sent, error) {
	s := sent{cpu: e.cpu}
	if err != nil {
		return s, err
	}
	for _, want := range []struct {
		pattern string
		to      *float64
	}{{requests, &s.requests}, {seconds, &s.seconds}} {
		m := regexp.MustCompile(want.pattern).FindSubmatch(e.out)
		if m == nil {
			return s, fmt.Errorf("no %s in what it printed", want.pattern)
		}
		if *want.to, err = strconv.ParseFloat(string(m[1]), 64); err != nil {
			return s, err
		}
	}
	if s.requests == 0 || s.seconds == 0 {
		return s, fmt.Errorf("no request in %v s", s.seconds)
	}
	return s, nil
}
