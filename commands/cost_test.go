package commands

import (
	"strings"
	"testing"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// byMix makes logs four times as dear as other kinds.
func byMix(p plan.Plan, _ relay.Program) float64 {
	if p.Mix == "logs" {
		return 4
	}
	return 1
}

func TestCost(t *testing.T) {
	var out strings.Builder
	spoiled := 0
	g := &stage{cost: byMix, spoil: func(run int, r *result.Result) (*result.Result, error) {
		if run == spoiled {
			r.Harness.Others = 1e12
		}
		return r, nil
	}}
	s, _ := staged(t, g, &out)
	code, said := do(t, s, &out, "cost")
	wants(t, said, "each kind alone, at 300/s for 10s, 3 runs of each, forth and\nback\nrun 1 of 15, errors: ", "run 6 of 15, logs: ", "kind          CPU per envelope  x cheapest  element",
		"logs ", " log ", "\nthe runs: reports series=")
	if code != Fine || g.runs != 15 {
		t.Errorf("code %d, %d runs", code, g.runs)
	}
	code, said = do(t, s, &out, "cost 5s --rate 100 --repeat 2 --csv")
	wants(t, said, "kind,rate,cpu_per_envelope_ns,spread,relative,element,cpu_per_element_ns,n,left_out,series\nerrors,100,", "\nlogs,100,")
	if code != Fine || g.runs != 25 {
		t.Errorf("code %d, %d runs", code, g.runs)
	}
	for l := range strings.Lines(said) {
		f := strings.Split(l, ",")
		if f[0] == "logs" && (!strings.HasPrefix(f[4], "4") || f[6] == "") || f[0] == "errors" && (!strings.HasPrefix(f[4], "1") || f[6] != "") {
			t.Errorf("%q", l)
		}
	}

	// A value that a mark leaves out is counted; a kind that has none is a code.
	g.runs, spoiled = 0, 1
	code, said = do(t, s, &out, "cost 10s --repeat 2")
	wants(t, said, "which mark host-busy makes unfit", "left out by mark host-busy: 1 value")
	if code != Fine {
		t.Errorf("code %d", code)
	}
	g.runs = 0
	if code, said = do(t, s, &out, "cost 10s --repeat 1"); code != Unfit {
		t.Errorf("code %d:\n%s", code, said)
	}

	for _, tt := range []struct{ line, says string }{
		{"cost --mix errors", "unknown flag --mix"},
		{"cost --rate 1,2", "rate has a list"},
		{"cost --repeat 0", "--repeat 0"},
		{"cost 10s 20s", "one word too many"},
	} {
		if code, said := do(t, s, &out, tt.line); code != Usage || !strings.Contains(said, tt.says) {
			t.Errorf("%s: code %d: %q, want %q", tt.line, code, said, tt.says)
		}
	}
	if code, said := do(t, s, &out, "explain cost"); code != Fine || !strings.Contains(said, "15 runs") || !strings.Contains(said, "300") {
		t.Errorf("code %d: %s", code, said)
	}
}
