package commands

import (
	"strings"
	"testing"

	"relaybench/harness/result"
)

// What Relay did at its limit of memory is said of what was seen alone.
func TestMemoryText(t *testing.T) {
	for name, c := range map[string]struct {
		limit   result.MemoryLimit
		died    string
		refused bool
		want    string
	}{
		"kept":                   {limit: result.MemoryLimit{Way: result.LimitGroup}, want: "; Relay kept all that came in it"},
		"killed in its cgroup":   {limit: result.MemoryLimit{Way: result.LimitGroup, Peak: 2e6, Kills: 1}, died: "signal: killed", want: "; peak 2 MB, the kernel killed the relay"},
		"killed in a container":  {limit: result.MemoryLimit{Way: result.LimitContainer}, died: "signal: killed (out of its memory)", want: "; the relay ended by itself: signal: killed (out of its memory)"},
		"another death":          {limit: result.MemoryLimit{Way: result.LimitRelay}, died: "exit status 1", refused: true, want: "; the relay ended by itself: exit status 1"},
		"refused":                {limit: result.MemoryLimit{Way: result.LimitRelay}, refused: true, want: "; Relay refused 3 sends with 503"},
		"refused by another way": {limit: result.MemoryLimit{Way: result.LimitGroup}, refused: true, want: "; Relay kept all that came in it"},
	} {
		r := &result.Result{}
		r.Relay.Died = c.died
		if c.refused {
			r.Kinds = []result.Kind{{Answers: map[string]*result.Cell{result.AnswerOf(503).String(): {Sends: 3}}}}
		}
		if got := memoryText(&c.limit, r); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: got %q, want it to end with %q", name, got, c.want)
		}
	}
}
