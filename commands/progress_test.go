package commands

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness"
	"relaybench/harness/result"
)

var samples = []result.Sample{
	{At: 1e9, Sent: 200, Arrived: 197, Backlog: 3, RelayCPU: 5e8, RelayRSS: 84e6},
	{At: 3e9, Sent: 12_200, Arrived: 8_197, Backlog: 4_003, Refused: 7, Failed: 1, RelayCPU: 35e8, RelayRSS: 1_084e6},
	{At: 4e9, Draining: true, Sent: 12_200, Arrived: 12_200, RelayCPU: -1, RelayRSS: -1},
}

func TestProgressLine(t *testing.T) {
	const load = 3 * time.Second
	var before result.Sample
	for i, want := range []string{
		"1s, 2s left  sent 200/s  arrived 197/s  backlog 3  relay 0.50 cores 84 MB",
		"3s, 0s left  sent 6,000/s  arrived 4,000/s  backlog 4,003  refused 7  failed 1  relay 1.50 cores 1084 MB",
		"drain 1s  arrived 4,003/s  backlog 0",
	} {
		var ended time.Duration
		if i == 2 {
			ended = load
		}
		if got := progressLine(before, samples[i], load, ended, place{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		before = samples[i]
	}
	got, want := progressLine(samples[1], samples[2], load, 0, place{}), "senders late 1s  sent 0/s  arrived 4,003/s  backlog 0"
	if got != want {
		t.Errorf("past its end: %q, want %q", got, want)
	}
}

// A load whose senders are late has not ended with its planned duration: the drain begins with its step.
func TestProgressOfLateSenders(t *testing.T) {
	var lines []string
	events := make(chan any, 8)
	for _, e := range []any{harness.StepLoad, samples[1], result.Sample{At: 8e9, Draining: true},
		harness.StepDrain, result.Sample{At: 9e9, Draining: true}} {
		events <- e
	}
	close(events)
	tell(events, nil, io.Discard, 0, 3*time.Second, place{}, func(l string) { lines = append(lines, l) })
	for i, want := range []string{"load …", "3s, 0s left  sent ", "senders late 5s  sent ", "drain …", "drain 1s  arrived ", ""} {
		if len(lines) <= i || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of %q does not begin with %q", i, lines, want)
		}
	}
}

// told is what tell writes of all events, with a tick after each.
func toldOf(width int) string {
	var out strings.Builder
	events, tick, done := make(chan any), make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		tell(events, tick, &out, width, 3*time.Second, place{}, nil)
	}()
	for _, e := range []any{harness.StepReady, harness.StepLoad, samples[0], samples[1]} {
		events <- e
		tick <- time.Time{}
	}
	close(events)
	<-done
	return out.String()
}

func TestTell(t *testing.T) {
	line := func(i int, before result.Sample) string {
		return progressLine(before, samples[i], 3*time.Second, 0, place{})
	}
	want := "ready …\nload …\n" + line(0, result.Sample{}) + "\n" + line(1, samples[0]) + "\n"
	if d := cmp.Diff(want, toldOf(0)); d != "" {
		t.Errorf("in a log (-want +got)\n%s", d)
	}
	const over = "\r\x1b[K"
	want = over + "ready …" + over + "load …" + over + line(0, result.Sample{}) + over + line(1, samples[0]) + over
	if d := cmp.Diff(want, toldOf(120)); d != "" {
		t.Errorf("on a terminal (-want +got)\n%s", d)
	}
	for l := range strings.SplitSeq(toldOf(40), over) {
		if w := len([]rune(l)); w > 39 {
			t.Errorf("a line of %d on a screen of 40: %q", w, l)
		}
	}
}

// stuck is a writer that does not come back until it may.
type stuck struct{ may chan struct{} }

func (s stuck) Write(p []byte) (int, error) { <-s.may; return len(p), nil }

// A reader that does not read does not hold up the run.
func TestProgressNeverBlocks(t *testing.T) {
	out := stuck{make(chan struct{})}
	p := startProgress(Client{Notes: out, Live: 80}, time.Minute, Text, place{}, nil)
	for range 10_000 {
		p.Step(harness.StepLoad)
		p.Sample(samples[0])
	}
	close(out.may)
	p.Close()
}

// Where output is for a program, only a terminal is told of progress.
func TestProgressBesideJSON(t *testing.T) {
	for _, tt := range []struct {
		format Format
		live   int
		silent bool
	}{{Text, 80, false}, {JSON, 80, false}, {JSON, 0, true}, {CSV, 0, true}} {
		var out strings.Builder
		p := startProgress(Client{Notes: &out, Live: tt.live}, time.Minute, tt.format, place{}, nil)
		p.Step(harness.StepLoad)
		p.Close()
		if got := out.Len() == 0; got != tt.silent {
			t.Errorf("format %d, width %d: wrote %q", tt.format, tt.live, out.String())
		}
	}
	p := startProgress(Client{}, time.Minute, Text, place{}, nil)
	p.Step(harness.StepLoad)
	p.Close()
}

// Of several runs it is said which one it is, and when all are done.
func TestPlaceInALine(t *testing.T) {
	left := func() time.Duration { return 100 * time.Second }
	one := place{run: 3, of: 12, round: 1, rounds: 1, left: left}
	rounds := place{run: 3, of: 12, round: 2, rounds: 3, left: left}
	late := place{run: 12, of: 12, rounds: 1, left: func() time.Duration { return -time.Second }}
	for _, tt := range []struct {
		where place
		want  string
	}{
		{one, "3/12, 1m40s left  sent 6,000/s  arrived 4,000/s  backlog 4,003  "},
		{rounds, "3/12 round 2/3, 1m40s left  sent 6,000/s"},
		{late, "12/12, 0s left  sent "},
	} {
		if got := progressLine(samples[0], samples[1], 3*time.Second, 0, tt.where); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	hours := place{run: 1, of: 2, left: func() time.Duration { return 26*time.Hour + 3*time.Minute + 31*time.Second }}
	if got, want := hours.String(), "1/2, 26h4m left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := progressLine(samples[1], samples[2], 3*time.Second, 3*time.Second, one), "3/12, 1m40s left  drain 1s  arrived "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var out strings.Builder
	p := startProgress(Client{Notes: &out, Live: 80}, time.Minute, Text, rounds, nil)
	p.Step(harness.StepReady)
	p.Close()
	if want := "3/12 round 2/3, 1m40s left  ready …"; !strings.Contains(out.String(), want) {
		t.Errorf("%q, want %q in it", out.String(), want)
	}
}
