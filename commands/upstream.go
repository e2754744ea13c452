package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	"relaybench/commands/table"
	"relaybench/upstream"
)

// ServeUpstream runs the fake Sentry alone at addr until ctx ends, and says
// how to use it and what it counted on out; what it did not understand, on
// notes. It gives why it could not, nil where it could.
func ServeUpstream(ctx context.Context, addr string, format Format, out, notes io.Writer) *Failure {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil || port == "" {
		return &Failure{Err: fmt.Errorf("-upstream %q: give HOST:PORT, such as 127.0.0.1:9100", addr), Code: Usage}
	}
	if err := serveUpstream(ctx, addr, format, out, notes); err != nil {
		return &Failure{Err: err, Code: CouldNot}
	}
	return nil
}

func serveUpstream(ctx context.Context, addr string, format Format, out, notes io.Writer) error {
	var mu sync.Mutex
	say := func(w io.Writer, f string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, f, args...)
	}
	server, err := upstream.Start(upstream.Config{Addr: addr, Log: func(text string) { say(notes, "upstream: %s\n", table.Clean(text)) }})
	if err != nil {
		return err
	}
	words := out
	if format != Text {
		words = notes
	}
	say(words, `upstream at %[1]s, until interrupted
in Relay's config.yml:
  relay:
    mode: managed
    upstream: http://%[1]s/
  outcomes:
    emit_outcomes: true
counts: http://%[1]s/stats
`, server.Addr())
	<-ctx.Done()
	if err := server.Close(); err != nil {
		return err
	}
	stats := server.Stats()
	switch format {
	case JSON:
		b, err := json.MarshalIndent(stats, "", "  ")
		if err != nil {
			return fmt.Errorf("upstream: %w", err)
		}
		say(out, "%s\n", b)
		return nil
	case CSV:
		return upstreamTable(stats).CSV(out)
	}
	return upstreamTable(stats).Text(out, 0)
}

// upstreamTable is what an upstream counted, a row a count.
func upstreamTable(s upstream.Stats) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "count", Head: "counted"}, {Key: "value", Head: "", Right: true}}}
	add := func(name string, n uint64) { t.Add(table.Text(name), table.Uint(n).As(count(n))) }
	add("relays registered", s.Registered)
	add("envelope requests", s.Requests)
	add("envelopes", s.Envelopes)
	add("repeats", s.Repeats)
	add("bytes on the wire", s.WireBytes)
	add("bytes decoded", s.PlainBytes)
	for _, name := range sorted(s.Items) {
		add("items "+name, s.Items[name])
	}
	for _, o := range s.Outcomes {
		add(fmt.Sprintf("outcome %s of category %d: %s", outcomeName(o.Outcome), o.Category, o.Reason), o.Quantity)
	}
	add("malformed", s.Malformed)
	for _, name := range sorted(s.UnknownRoutes) {
		add("unknown route "+name, s.UnknownRoutes[name])
	}
	return t
}
