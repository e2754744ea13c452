package shell

import (
	"bufio"
	"strings"
	"testing"
	"time"
)

// A client that asks for all reports and reads nothing holds up nobody; it is told what it has missed.
func TestExportThatIsNotRead(t *testing.T) {
	t.Parallel()
	s := share(t, 6_000, nil, func(s *server) { s.patience = 2 * time.Second })
	stalled, other := s.guest(), s.guest()
	stalled.send("export\n")
	for range 5 {
		other.send("status\nreports -n 3\nshow last\n")
		other.until(`(?s)reports +6,00[0-9]\n.*3 of 6,00[0-9] reports: .*synthetic payloads`)
	}
	other.send("test 1s --rate 50 --mix sessions --pool 10\nwait\nshow last\n")
	other.until(`(?s)j1 queued.*sessions +50 +50 .*synthetic payloads`)
	s.logged("reads nothing: what is printed for it is dropped")
	other.send("status\nreports -n 3\nshow last\n")
	other.until(`(?s)reports +6,001\n.*3 of 6,001 reports: .*sessions +50 +50 `)
	lines := bufio.NewReader(stalled)
	next := func() string {
		l, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %.200q", err, l)
		}
		return l
	}
	whole, told := 0, ""
	for told = next(); !strings.Contains(told, "bytes were dropped here, as nothing was read\n"); told = next() {
		if strings.HasPrefix(told, `{"relaybench_report":2,`) && strings.HasSuffix(told, "}}\n") {
			whole++
		}
	}
	if whole < 10 || whole >= 6_000 {
		t.Errorf("%d reports came whole, then %.200q", whole, told)
	}
	stalled.send("status\n")
	for !strings.Contains(next(), "stand-in") {
	}
}
