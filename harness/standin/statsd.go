package standin

import (
	"context"
	"fmt"
	"net"
	"sort"
	"strings"
	"sync"
	"time"
)

// flushEvery is how often the stand-in sends its metrics: Relay does every 10 s.
//
// Note: under 2 s the times of two flushes could be taken for those of one, of which a second ended.
const flushEvery = 2 * time.Second

// maxPayload bounds a datagram, in bytes, as Relay does.
const maxPayload = 1432

// metrics are the few of Relay's that the stand-in has, gathered and sent as
// Relay does: in flushes, counters and gauges with their time and before the timers.
type metrics struct {
	mu       sync.Mutex
	timers   map[string][]float64 // ms, by name and tags
	counters map[string]uint64    // since the last flush
}

// took notes how long something took; name is with tags, as "name|#tag:value". m may be nil.
func (m *metrics) took(name string, d time.Duration) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timers[name] = append(m.timers[name], float64(d)/float64(time.Millisecond))
}

// count counts one.
func (m *metrics) count(name string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counters[name]++
}

// sendMetrics sends the metrics until ctx ends. It sends nothing where it has nowhere to.
func (r *relay) sendMetrics(ctx context.Context) {
	if r.metrics == nil {
		return
	}
	conn, err := net.Dial("udp", r.config.statsd)
	if err != nil {
		r.log.say("ERROR", "failed to send metrics: "+err.Error())
		return
	}
	defer conn.Close()
	for sleep(ctx, flushEvery) {
		for _, payload := range r.metrics.flush(time.Now(), r.inside.Load()) {
			_, _ = conn.Write(payload) // in silence, as Relay does
		}
	}
}

// flush is what was gathered, in datagrams.
func (m *metrics) flush(now time.Time, inside int64) [][]byte {
	m.mu.Lock()
	counters, timers := m.counters, m.timers
	m.counters, m.timers = map[string]uint64{}, map[string][]float64{}
	m.mu.Unlock()
	var lines []string
	for name, n := range counters {
		lines = append(lines, metricLine(name, fmt.Sprint(n), "c", now.Unix()))
	}
	sort.Strings(lines)
	lines = append(lines, metricLine("buffer.envelopes_count", fmt.Sprint(inside), "g", now.Unix()))
	for name, values := range timers {
		for len(values) > 0 {
			n := min(len(values), 50)
			texts := make([]string, n)
			for i, v := range values[:n] {
				texts[i] = fmt.Sprintf("%.6f", v)
			}
			lines, values = append(lines, metricLine(name, strings.Join(texts, ":"), "d|@1.0", 0)), values[n:]
		}
	}
	var payloads [][]byte
	var payload []byte
	for _, l := range lines {
		if len(payload) > 0 && len(payload)+len(l) > maxPayload {
			payloads, payload = append(payloads, payload), nil
		}
		payload = append(payload, l...)
	}
	return append(payloads, payload)
}

func metricLine(name, value, kind string, at int64) string {
	name, tags, tagged := strings.Cut(name, "|")
	l := "sentry.relay." + name + ":" + value + "|" + kind
	if tagged {
		l += "|" + tags
	}
	if at > 0 {
		l += fmt.Sprintf("|T%d", at)
	}
	return l + "\n"
}
