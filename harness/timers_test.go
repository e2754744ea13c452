package harness

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// series is what came under a name.
func series(t *testing.T, s *result.Statsd, name string) result.StatsdSeries {
	t.Helper()
	i := slices.IndexFunc(s.Series, func(x result.StatsdSeries) bool { return strings.HasSuffix(x.Name, name) })
	if i < 0 {
		t.Fatalf("no series %s among %d", name, len(s.Series))
	}
	return s.Series[i]
}

// What the relay says by statsd is that of the load alone: each send has one
// value, and the warm-up has none.
func TestStandInStatsd(t *testing.T) {
	r, _ := ran(t, standIn(t), Options{}, "statsd=on", "rate=50")
	s := r.Statsd
	if s == nil || s.Cut != "" || s.Flushes < 1 || s.Malformed != 0 || s.Dropped > 0 || s.From > r.LoadStart || s.To < r.DrainEnd {
		t.Fatalf("got %+v of a load from %d to %d", s, r.LoadStart, r.DrainEnd)
	}
	sent := r.Tally.Sent
	if d := series(t, s, "requests.duration").Timer; d.Values() != sent {
		t.Errorf("%d request timers of %d sends", d.Values(), sent)
	}
	if c := series(t, s, "responses.status_codes"); c.Counter != float64(sent) || !slices.Contains(c.Tags, "status_code:200") {
		t.Errorf("%+v of %d sends", c, sent)
	}
	if g := series(t, s, "buffer.envelopes_count").Gauge; g == nil {
		t.Error("no gauge")
	}
}

// A run without it listens to none, and one that sends elsewhere keeps nothing.
func TestStatsdElsewhere(t *testing.T) {
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// The relay is held for two of its flushes, unless the run is stopped: here once it was drained.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 64<<10)
		n, _, _ := server.ReadFrom(b)
		got <- string(b[:n])
	}()
	o := Options{limits: quick(), at: func(step string, _ *run) {
		if step == StepStatsd {
			stop()
		}
	}}
	r, err := Run(ctx, planned(t, "rate=20", "duration=2500ms", "statsd="+server.LocalAddr().String()), standIn(t), o)
	if err != nil || r.Statsd != nil {
		t.Errorf("%v, statsd %+v", err, r.Statsd)
	}
	select {
	case text := <-got:
		if !strings.HasPrefix(text, "sentry.relay.") {
			t.Errorf("got %q", text)
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing was sent there")
	}
}

func TestStatsdCut(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	o := Options{limits: quick(), at: func(step string, x *run) {
		if step == StepStatsd && x.tally != nil {
			stop(errors.New("enough"))
		}
	}}
	r, err := Run(ctx, planned(t, "rate=20", "statsd=on"), standIn(t), o)
	if err != nil || r.Statsd == nil || r.Statsd.Cut != "enough" || r.Cancelled != "" {
		t.Errorf("%v, %+v, want what came until it was cut", err, r.Statsd)
	}
}

func TestStatsdNeedsRelay(t *testing.T) {
	for form, want := range map[string]string{relay.FormNone: "no relay is started", relay.FormURL: "the config that its owner gave it"} {
		_, err := Run(t.Context(), planned(t, "statsd=on"), relay.Program{Form: form, URL: "http://127.0.0.1:1"}, Options{})
		if err == nil || !strings.Contains(err.Error(), `statsd "on"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", form, err, want)
		}
	}
}

// A relay that sends nothing fails the run before its load.
func TestStatsdSilent(t *testing.T) {
	o := Options{limits: quick()}
	o.limits.flush = time.Nanosecond
	r, err := Run(t.Context(), planned(t, "statsd=on"), standIn(t), o)
	if err == nil || !strings.Contains(err.Error(), "statsd flush: nothing came at 127.0.0.1:") || r == nil || r.FailedStep != StepStatsd || r.Statsd != nil {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestRealStatsd(t *testing.T) {
	r, _ := ran(t, realRelay(t), Options{}, "statsd=on", "rate=50")
	s := r.Statsd
	if s == nil || s.Cut != "" || s.Malformed != 0 || s.Over != 0 || s.Dropped > 0 {
		t.Fatalf("got %+v", s)
	}
	if d := series(t, s, "event_processing.normalization").Timer; d.Values() != r.Tally.Sent {
		t.Errorf("%d normalizations of %d errors", d.Values(), r.Tally.Sent)
	}
}
