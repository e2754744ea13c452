package harness

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/harness/perf"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// fakeScript is a perf that records one whole stack. What is done instead of an order stands in $1.
const fakeScript = `#!/bin/sh
here=$(dirname "$0")
case "$1" in
record)
	while [ "$1" != --output ]; do shift; done
	trap 'cp "$here/data" "$2"; exit 0' INT
	while read -r order <&3; do
		echo "$order" >> "$here/orders"
		INSTEAD
		printf 'ack\n\0' >&4
		[ "$order$(wc -l < "$here/orders")" != disable3 ] || break
	done
	while :; do sleep 0.02; done;;
script)
	printf 'relay 1 2000000 cpu-clock:\n\t1 parse (/opt/relay)\n\t2 main (/opt/relay)\n\n';;
esac
`

// fakePerf is what finds a perf that is none, in a folder of its own that it is told by.
func fakePerf(t *testing.T, instead string) func(context.Context, ...string) (perf.Means, error) {
	t.Helper()
	dir := t.TempDir()
	data := make([]byte, 104) // a recording without records
	copy(data, "PERFILE2")
	binary.LittleEndian.PutUint64(data[40:], 104)
	path := filepath.Join(dir, "perf")
	for name, text := range map[string]string{"perf": strings.Replace(fakeScript, "INSTEAD", instead, 1), "data": string(data)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return func(_ context.Context, graphs ...string) (perf.Means, error) {
		return perf.Means{Perf: path, Version: "6.1", CallGraph: graphs[0], Event: "cpu-clock"}, nil
	}
}

// The relay is recorded from the start of the load to its end, and its profile is in the result.
func TestProfiled(t *testing.T) {
	find := fakePerf(t, "")
	m, _ := find(t.Context(), "fp")
	orders := func() string {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(m.Perf), "orders"))
		return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ")
	}
	seen := map[string]string{}
	r, _ := ran(t, standIn(t), Options{perf: find, at: func(step string, _ *run) { seen[step] = orders() }}, "profiled=fp@499", "duration=300ms", "rate=50", "mix=sessions", "pool=10")
	want := &result.Profile{CallGraph: "fp", Freq: 499, Event: "cpu-clock", Perf: "6.1", Samples: 1, Whole: 1}
	got := *r.Profile
	if got.Took < 300e6 || len(got.Data) == 0 {
		t.Errorf("got %+v", got)
	}
	got.Took, got.Data = 0, nil
	if got.Failed != "" || got.CallGraph != want.CallGraph || got.Freq != want.Freq || got.Event != want.Event || got.Samples != 1 || got.Whole != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for step, want := range map[string]string{StepLoad: "", "send": "disable enable", "sent": "disable enable", StepDrain: "disable enable disable", StepProfile: "disable enable disable"} {
		if seen[step] != want {
			t.Errorf("at %s perf was told %q, want %q", step, seen[step], want)
		}
	}
}

// A profile that fails is no reason to lose a run; one that cannot begin is, before anything is sent.
func TestProfileFails(t *testing.T) {
	for _, c := range []struct{ instead, failed, err string }{
		{`[ "$order$(wc -l < "$here/orders")" != disable3 ] || exit 3`, "exit status 3", ""},
		{`[ "$order" != enable ] || exit 3`, "", "perf record: ended: exit status 3"},
		{`exit 3`, "", "load: perf record: ended: exit status 3"},
	} {
		r, err := Run(t.Context(), planned(t, "profiled=fp@499", "duration=100ms", "rate=50", "mix=sessions", "pool=10"), standIn(t), Options{limits: quick(), perf: fakePerf(t, c.instead)})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || r.Profile != nil {
				t.Errorf("%s: got %v, %+v", c.instead, err, r.Profile)
			}
		case err != nil || !strings.Contains(r.Profile.Failed, c.failed):
			t.Errorf("%s: got %v, %+v", c.instead, err, r.Profile)
		}
	}
}

func TestNothingToProfile(t *testing.T) {
	for _, p := range []relay.Program{{Form: relay.FormNone}, {Form: relay.FormURL, URL: "http://127.0.0.1:1", Upstream: "127.0.0.1:2"}} {
		if r, err := Run(t.Context(), planned(t, "profiled=fp@499"), p, Options{limits: quick()}); r != nil || err == nil || !strings.Contains(err.Error(), "check: profile: ") {
			t.Errorf("%s: got %v, %v", p.Form, r, err)
		}
	}
}
