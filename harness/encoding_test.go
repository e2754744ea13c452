package harness

import (
	"testing"

	"relaybench/envelope"
	"relaybench/harness/relay"
)

func TestStandInEncodings(t *testing.T) { testEncodings(t, standIn(t)) }
func TestRealEncodings(t *testing.T)    { testEncodings(t, realRelay(t)) }

// testEncodings wants each send to be known by its stamp behind the relay in
// every encoding of what is sent, and of what the relay forwards.
func testEncodings(t *testing.T, p relay.Program) {
	for _, e := range envelope.Encodings {
		for _, forward := range []string{"identity", "gzip"} {
			t.Run(e.Name+" then "+forward, func(t *testing.T) {
				t.Parallel()
				r, l := ran(t, p, Options{}, "mix=mixed", "encoding="+e.Name, "http.encoding="+forward, "pool=20", "projects=3", "duration=300ms")
				closed(t, r, l, 60)
				if small := r.Tally.Accepted < 400_000; small != (e.Name != envelope.Identity) {
					t.Errorf("%d bytes of bodies", r.Tally.Accepted)
				}
			})
		}
	}
}
