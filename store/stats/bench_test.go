package stats

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Two groups of n runs each; ties are the slowest case of the exact test.
func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{5, 10, 20, 1000, 50_000} {
		r := rand.New(rand.NewPCG(1, 1))
		x, y := sample(r, n, 0.02), sample(r, n, 0.02)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				Compare(x, y)
			}
		})
		y[0] = x[0]
		b.Run(fmt.Sprintf("n=%d/tie", n), func(b *testing.B) {
			for b.Loop() {
				Compare(x, y)
			}
		})
		y[0] = 0
		b.Run(fmt.Sprintf("n=%d/difference", n), func(b *testing.B) {
			for b.Loop() {
				Compare(x, y)
			}
		})
	}
}
