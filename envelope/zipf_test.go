package envelope

import (
	"math"
	"strings"
	"testing"
)

// The table that draws projects has exactly Zipf's weights, and draws by them.
func TestZipf(t *testing.T) {
	for _, c := range []struct {
		n int
		s float64
	}{{1, 1}, {2, 1}, {10, 0}, {10, 1}, {1000, 0.8}, {1000, 1.2}, {100_000, 1}} {
		a := newZipf(c.n, c.s)
		weights := make([]float64, c.n)
		var sum float64
		for i := range weights {
			weights[i] = math.Pow(float64(i+1), -c.s)
			sum += weights[i]
		}
		got := make([]float64, c.n)
		for slot := range c.n {
			keep := 1.0
			if a.keep != nil {
				keep = float64(a.keep[slot]) / (1 << 32)
				got[a.other[slot]] += (1 - keep) / float64(c.n)
			}
			got[slot] += keep / float64(c.n)
		}
		for i := range got {
			if want := weights[i] / sum; math.Abs(got[i]-want) > 1e-6*want+1e-9 {
				t.Fatalf("%d projects, exponent %v: project %d has %v, want %v", c.n, c.s, i, got[i], want)
			}
		}
		const draws = 200_000
		counts := make([]int, c.n)
		for seq := range uint64(draws) {
			counts[a.of(draw(5, saltProject, seq))]++
		}
		for i := range min(c.n, 5) {
			want := draws * weights[i] / sum
			if math.Abs(float64(counts[i])-want) > 6*math.Sqrt(want) {
				t.Errorf("%d projects, exponent %v: project %d drawn %d times, want about %.0f", c.n, c.s, i, counts[i], want)
			}
		}
	}
}

func TestProjects(t *testing.T) {
	for _, project := range []int{0, 1, 99_999, math.MaxUint32} {
		key := Key(project)
		if got, ok := ProjectOf(key); !ok || got != project || len(key) != KeyLen {
			t.Errorf("key %s of project %d is of %d, %t", key, project, got, ok)
		}
	}
	for _, key := range []string{"", Key(1)[1:], "a" + Key(1)[1:], Key(1)[:31] + "g", strings.ToUpper(Key(10))} {
		if project, ok := ProjectOf(key); ok {
			t.Errorf("key %q is of project %d", key, project)
		}
	}
}

func BenchmarkProject(b *testing.B) {
	mix, err := ParseMix(Kinds, "sessions")
	if err != nil {
		b.Fatal(err)
	}
	p, err := NewPool(PoolConfig{Mix: mix, Size: 1, Projects: 100_000, Zipf: 1, Epoch: epoch})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	seq, sum := uint64(0), 0
	for b.Loop() {
		sum += p.Project(seq)
		seq++
	}
	_ = sum
}
