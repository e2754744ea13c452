package commands

import (
	"math"
	"slices"
	"strings"
	"testing"

	"relaybench/store/stats"
)

func TestHalfWidths(t *testing.T) {
	a := []float64{100, 101, 102, 103, 104, 105}
	got := halfWidths(a, a)
	if len(got) != 3 { // of 4, 5 and 6 runs a side
		t.Fatalf("%v", got)
	}
	// Of all of them there is one interval.
	if want := stats.Compare(a, a).Shift.HalfWidth(); got[2] != want {
		t.Errorf("%v, want %v", got[2], want)
	}
	for _, tt := range []struct{ a, b []float64 }{{a[:3], a}, {nil, nil}, {[]float64{0, 0, 0, 0}, a}} {
		if got := halfWidths(tt.a, tt.b); len(got) != 0 {
			t.Errorf("%v and %v: %v", tt.a, tt.b, got)
		}
	}
	if got := halfWidths(slices.Repeat(a, 10), slices.Repeat(a, 10)); len(got) != mostWidths-stats.MinRuns+1 {
		t.Errorf("of 60 runs: %d widths", len(got))
	}
}

func TestNoiseAt(t *testing.T) {
	k := &noise{Widths: map[string][]float64{"rss-peak": {0.04, 0.03, 0.02}}} // 4, 5, 6
	for _, tt := range []struct {
		metric string
		n      int
		want   float64
		ok     bool
	}{
		{"rss-peak", 3, 0, false}, {"rss-peak", 4, 0.04, true}, {"rss-peak", 6, 0.02, true},
		{"rss-peak", 24, 0.01, true}, // four times the runs
		{"unaccounted", 6, 0, false},
	} {
		if got, ok := k.at(tt.metric, tt.n); math.Abs(got-tt.want) > 1e-12 || ok != tt.ok {
			t.Errorf("%s, %d runs: %v, %t; want %v, %t", tt.metric, tt.n, got, ok, tt.want, tt.ok)
		}
	}
}

func TestNoise(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: byFrames}
	s, db := staged(t, g, &out)
	if code, said := do(t, s, &out, "noise"); code != Fine || !strings.Contains(said, "no noise was measured yet") {
		t.Errorf("code %d: %s", code, said)
	}
	if code, said := do(t, s, &out, "explain noise -n 4 test 10s"); code != Fine || !strings.Contains(said, "8 runs: A B B A") {
		t.Errorf("code %d: %s", code, said)
	}
	code, said := do(t, s, &out, "noise -n 8 test 10s --rate 100")
	wants(t, said, "A and B: no relay", "run 16 of 16, A: ", "\nnoise under mixed at 100/s for 10s, of no relay", "bench1", "none mixed 100/s 10s", "cpu-per-envelope", "±0.", "nothing was called a difference", "ab and verify refuse a margin under it")
	if code != Fine {
		t.Errorf("code %d", code)
	}

	// It is listed, with its age, and for programs whole.
	code, said = do(t, s, &out, "noise")
	wants(t, said, "load", "metric", "age", "none mixed 100/s 10s", "cpu-per-envelope", "±0.")
	if code != Fine {
		t.Errorf("code %d", code)
	}
	code, said = do(t, s, &out, "noise --csv")
	wants(t, said, "host,load,conditions,metric,n,half_width,half_width_6,when,series\n", "rate=100", ",response-p99.9,8,")
	if code != Fine {
		t.Errorf("code %d", code)
	}

	// A margin near it is warned of, one under it refused, before any run.
	shelf, err := db.Settings(noiseShelf)
	if err != nil || len(shelf) != 1 {
		t.Fatalf("%v, %v", shelf, err)
	}
	runs := g.runs
	for _, tt := range []struct {
		line string
		code Code
		says string
		runs int
	}{
		{"ab frames=10 frames=13 -n 4 --margin 0.1% test 10s --rate 100", CouldNot, "ab: a margin of 0.1% cannot be judged: the noise of cpu-per-envelope with 4 runs a side here is ±", 0},
		{"ab frames=10 frames=13 -n 4 --margin 0.1% --force test 10s --rate 100", Worse, "warning: the noise of cpu-per-envelope", 10},
		{"ab frames=10 frames=13 -n 4 --margin 1.2% test 10s --rate 100", Worse, "near the margin of 1.2%", 10},
		{"ab frames=10 frames=13 -n 4 --margin 0.1% test 10s --rate 200", Worse, "cpu-per-envelope +30", 10}, // of another load
		{"ab seed=1 seed=2 -n 4 --margin 30% test 10s --rate 100", Fine, "no difference beyond 30%", 10},
	} {
		code, said := do(t, s, &out, tt.line)
		if code != tt.code || !strings.Contains(said, tt.says) || g.runs-runs != tt.runs {
			t.Errorf("%s: code %d, %d runs; want %d, %d, %q:\n%s", tt.line, code, g.runs-runs, tt.code, tt.runs, tt.says, said)
		}
		if tt.line[len(tt.line)-3:] == "200" && strings.Contains(said, "warning") {
			t.Errorf("warned by the noise of another load:\n%s", said)
		}
		runs = g.runs
	}

	// A newer one takes its place.
	do(t, s, &out, "noise -n 4 test 10s --rate 100")
	if shelf, err := db.Settings(noiseShelf); len(shelf) != 1 || err != nil {
		t.Errorf("%d, %v", len(shelf), err)
	}
}

func TestNoiseRefused(t *testing.T) {
	var out strings.Builder
	s, _ := staged(t, &stage{cost: byFrames}, &out)
	for _, tt := range []struct{ line, says string }{
		{"noise 10s", "no test: the line ends with one"},
		{"noise -n 3 test 10s", "-n 3 is not between 4 and 100"},
		{"noise -n 101 test 10s", "-n 101 is not between 4 and 100"},
		{"noise test 10s --rate 100,200", "rate has a list"},
		{"noise test 10s --repeat 2", "test: --repeat is not for this"},
	} {
		if code, said := do(t, s, &out, tt.line); code != Usage || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d: %q, want %q", tt.line, code, said, tt.says)
		}
	}
}
