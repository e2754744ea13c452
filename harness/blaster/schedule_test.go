package blaster

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Rates that do not divide, or are lower than the connections, are due exactly all the same.
func TestScheduleCount(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		duration time.Duration
		want     uint64
	}{
		{1499, 10 * time.Second, 14990},
		{3, 10 * time.Second, 30},
		{0.5, 10 * time.Second, 5},
		{7000, 10 * time.Second, 70000},
		{5, 10 * time.Millisecond, 1},
		{0.1, 10 * time.Second, 1},
		{0.1, 10*time.Second + 1, 2},
		{33.3, 10 * time.Second, 333},
		{1e6, time.Hour, 3600e6},
		{200, 0, 0},
		{200, -time.Second, 0},
		{0, time.Second, 0},
		{1, 1, 1},
		{1e-9, time.Hour, 1},
	} {
		// In bursts the last one is whole: 200 a second in bursts of 50 are 250 in 1.1 s.
		b := Schedule{Rate: c.rate, Burst: 50, Stride: 1}
		if got, want := b.Count(int64(c.duration)), (c.want+49)/50*50; got != want {
			t.Errorf("%v/s for %v in bursts of 50: got %d, want %d", c.rate, c.duration, got, want)
		}
		for _, start := range []int64{0, 12345, -3} {
			s := Schedule{Start: start, Rate: c.rate, Stride: 1}
			if got := s.Count(int64(c.duration)); got != c.want {
				t.Errorf("%v/s for %v from %d: got %d, want %d", c.rate, c.duration, start, got, c.want)
			}
		}
	}
}

func TestScheduleDue(t *testing.T) {
	for _, c := range []struct {
		rate float64
		k    uint64
		want int64
	}{
		{3, 0, 100}, {3, 1, 333_333_433}, {3, 2, 666_666_767}, {3, 3, 1_000_000_100},
		{1499, 14990, 10_000_000_100},
		{0.1, 1, 10_000_000_100},
		{20000, 4_000_000_000, 200_000_000_000_100},
		{0, 7, 100},
		{1e-9, math.MaxUint64, math.MaxInt64},
	} {
		s := Schedule{Start: 100, Rate: c.rate, Stride: 1}
		if got := s.Due(c.k); got != c.want {
			t.Errorf("number %d at %v/s: got due at %d, want %d", c.k, c.rate, got, c.want)
		}
		// A burst is due when its first number is, at the same rate.
		s.Burst = 50
		for k := c.k - c.k%50; k < min(c.k, math.MaxUint64-50)-c.k%50+50; k++ {
			if got, want := s.Due(k), (Schedule{Start: 100, Rate: c.rate, Stride: 1}).Due(c.k-c.k%50); got != want {
				t.Errorf("number %d at %v/s in bursts of 50: got due at %d, want %d", k, c.rate, got, want)
			}
		}
	}
}

// Properties that hold for any schedule: numbers are due in order, the count is
// of those due before the end, and the shares of it add up to it.
func TestScheduleProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := Schedule{Start: random.Int64N(1e12), Rate: math.Exp(random.Float64()*20 - 5), Burst: random.Uint64N(100), Stride: 1}
		d := int64(math.Exp(random.Float64() * 32))
		n := s.Count(d)
		if n > 0 && s.Due(n-1) >= s.Start+d || s.Due(n) < s.Start+d {
			t.Fatalf("%+v: %d numbers within %d, but they are due at %d and %d", s, n, d, s.Due(n-1), s.Due(n))
		}
		k := random.Uint64N(1e12)
		if s.Due(k) > s.Due(k+1) {
			t.Fatalf("%+v: number %d due at %d, the next at %d", s, k, s.Due(k), s.Due(k+1))
		}
		shares, sum := 1+random.Uint64N(200), uint64(0)
		for i := range shares {
			share := s
			share.First, share.Stride = i, shares
			mine := share.share(time.Duration(d))
			if mine > 0 && share.number(mine-1) >= n {
				t.Fatalf("%+v: number %d of a schedule of %d", share, share.number(mine-1), n)
			}
			sum += mine
		}
		if sum != n {
			t.Fatalf("%+v in %d shares: got %d numbers, want %d", s, shares, sum, n)
		}
	}
}
