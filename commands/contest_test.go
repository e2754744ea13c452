package commands

import (
	"testing"
	"time"
)

func TestPlaceOfTurns(t *testing.T) {
	left := func() time.Duration { return 70 * time.Second }
	for _, tt := range []struct {
		place place
		want  string
	}{
		{place{of: 8, side: "B", left: left}, "warm-up B, 1m10s left"},
		{place{run: 3, of: 8, side: "A", left: left, soFar: "A 1.46 ms, B 1.57 ms"}, "3/8 A, 1m10s left  A 1.46 ms, B 1.57 ms"},
	} {
		if got := tt.place.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
