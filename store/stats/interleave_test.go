package stats

import (
	"strings"
	"testing"
	"time"
)

func TestInterleave(t *testing.T) {
	tests := []struct {
		order string // "=" between two: at the same moment
		want  bool
		says  string
	}{
		{"ABBAABBA", true, "interleaved"},
		{"ABBAABBAAB", true, "interleaved"},
		{"ABABABAB", true, "interleaved"},
		{"BABABA", true, "interleaved"},
		{"AB", true, "interleaved"},
		{"AABB", false, "not interleaved (mean positions 2.0 runs apart)"},
		{"AAAABBBB", false, "not interleaved (4 runs of one side in a row)"},
		{"ABBBAABA", false, "not interleaved (3 runs of one side in a row)"},
		{"ABBAABBAAAAA", false, "not interleaved (5 runs of one side in a row)"},
		{"AABABABB", false, "not interleaved (mean positions 2.5 runs apart)"},
		{"AABAABAAB", false, "not interleaved (mean positions 1.5 runs apart)"},
		{"AABAABAABAA", true, "interleaved"},
		{"AA", false, "not interleaved (one side has no run)"},
		{"AAA", false, "not interleaved (3 runs of one side in a row)"},
		{"", false, "not interleaved (one side has no run)"},
		{"A=B=A=B=A=B", false, "not interleaved (3 runs of one side in a row)"},
	}
	for _, test := range tests {
		t.Run(test.order, func(t *testing.T) {
			var sides [2][]time.Time
			at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			for _, c := range test.order {
				switch c {
				case '=':
					at = at.Add(-time.Minute)
				default:
					// The latest first: the order of the list is not that of time.
					sides[c-'A'] = append([]time.Time{at}, sides[c-'A']...)
					at = at.Add(time.Minute)
				}
			}
			got := Interleave(sides[0], sides[1])
			if got.Interleaved != test.want || got.String() != test.says {
				t.Errorf("%v %q (%+v), want %v %q", got.Interleaved, got, got, test.want, test.says)
			}
			if swapped := Interleave(sides[1], sides[0]); swapped != got {
				t.Errorf("swapped: %+v, want %+v", swapped, got)
			}
		})
	}

	// A sixth decimal of a second is enough of an order, in any zone.
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	there := at.In(time.FixedZone("there", -7*3600))
	got := Interleave([]time.Time{at, there.Add(3000)}, []time.Time{there.Add(1000), at.Add(2000)})
	if !got.Interleaved || !strings.HasPrefix(got.String(), "inter") {
		t.Errorf("A B B A in a microsecond: %+v", got)
	}
}
