package upstream

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTally(t *testing.T) {
	for _, test := range []struct {
		name   string
		names  []string
		firsts int
		want   map[string]uint64
	}{
		{"none", nil, 0, map[string]uint64{}},
		{"known", []string{"a", "b", "a"}, 2, map[string]uint64{"a": 2, "b": 1}},
		{"too many", []string{"a", "b", "c", "d", "e", "a", "d"}, 4, map[string]uint64{"a": 2, "b": 1, "c": 1, "other": 3}},
		{"named other", []string{"other", "a", "b", "c"}, 3, map[string]uint64{"other": 2, "a": 1, "b": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tally, firsts := newTally(3), 0
			for _, name := range test.names {
				if tally.add([]byte(name), 1) {
					firsts++
				}
			}
			if diff := cmp.Diff(test.want, tally.counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if firsts != test.firsts || tally.len() != len(test.want) {
				t.Errorf("%d first of their name, %d names; want %d, %d", firsts, tally.len(), test.firsts, len(test.want))
			}
		})
	}
}

func TestTallyCutsNames(t *testing.T) {
	tally := newTally(3)
	tally.add([]byte(strings.Repeat("é", 1000)), 1)
	tally.add([]byte("\xff"), 1)
	for name := range tally.counts() {
		if len(name) > nameLen+utf8.UTFMax || !utf8.ValidString(name) {
			t.Errorf("name of %d bytes: %q", len(name), name)
		}
	}
}

func TestTallyConcurrent(t *testing.T) {
	tally := newTally(50)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				tally.add(fmt.Appendf(nil, "%d", i%60), 1)
			}
		})
	}
	wg.Wait()
	sum := uint64(0)
	for _, n := range tally.counts() {
		sum += n
	}
	if sum != 8000 || tally.len() != 51 {
		t.Errorf("%d counted under %d names, want 8000 under 51", sum, tally.len())
	}
}
