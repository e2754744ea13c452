package relay

import "testing"

func TestParseLine(t *testing.T) {
	for _, c := range []struct {
		line string
		want Line
		text string
	}{
		{`{"timestamp":"2026-11-30T14:40:42.474438Z","level":"INFO","message":"launching relay","target":"relay::setup","filename":"relay/src/setup.rs","line_number":71}`,
			Line{"2026-11-30T14:40:42.474438Z", "INFO", "relay::setup", "launching relay"}, "2026-11-30T14:40:42.474438Z INFO relay::setup: launching relay"},
		{`{"timestamp":"T","level":"ERROR","message":"error","error":"no upstream","attempt":2,"target":"relay_server"}`,
			Line{"T", "ERROR", "relay_server", "error attempt=2 error=no upstream"}, "T ERROR relay_server: error attempt=2 error=no upstream"},
		{`{"level":"WARN","error":{"a":[1]}}`, Line{"", "WARN", "", `error={"a":[1]}`}, `WARN error={"a":[1]}`},
		{"2026-11-30T14:50:05.749542Z  INFO relay::setup: launching: now", Line{"2026-11-30T14:50:05.749542Z", "INFO", "relay::setup", "launching: now"}, "2026-11-30T14:50:05.749542Z INFO relay::setup: launching: now"},
		{"2026-11-30T14:50:05Z ERROR no target: here", Line{"2026-11-30T14:50:05Z", "ERROR", "", "no target: here"}, "2026-11-30T14:50:05Z ERROR no target: here"},
		{"thread 'main' panicked at x.rs:1:2:", Line{"", "ERROR", "", "thread 'main' panicked at x.rs:1:2:"}, "ERROR thread 'main' panicked at x.rs:1:2:"},
		{`{"level":"ERROR","message":"cut of`, Line{"", "ERROR", "", `{"level":"ERROR","message":"cut of`}, `ERROR {"level":"ERROR","message":"cut of`},
		{"plain", Line{Text: "plain"}, "plain"}, {"", Line{}, ""},
	} {
		got := ParseLine(c.line)
		if got != c.want || got.String() != c.text {
			t.Errorf("%s:\n got %q\nwant %q", c.line, got, c.want)
		}
	}
}

func TestLinesOfALog(t *testing.T) {
	var l logbook
	if lines, next := l.since(0); len(lines) != 0 || next != 0 {
		t.Errorf("of an empty one: %q, %d", lines, next)
	}
	l.add([]byte("a"))
	l.add([]byte("b"))
	lines, next := l.since(0)
	if len(lines) != 2 || lines[0] != "a" || next != 2 {
		t.Errorf("got %q, %d", lines, next)
	}
	for range logLines {
		l.add([]byte("c"))
	}
	l.add([]byte("d"))
	if lines, next = l.since(next); len(lines) != logLines || lines[0] != "c" || lines[logLines-1] != "d" || next != logLines+3 {
		t.Errorf("after more than are kept: %d lines, %d", len(lines), next)
	}
	if lines, next = l.since(next); len(lines) != 0 || next != logLines+3 {
		t.Errorf("nothing new: %q, %d", lines, next)
	}
}
