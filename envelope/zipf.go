package envelope

import (
	"math"
	"math/bits"
)

// alias draws from a fixed distribution in constant time, by Walker's alias
// method: a slot is drawn evenly, and gives itself or the other one it stands for.
type alias struct {
	keep  []uint32 // of 2^32 draws of a slot, how many give the slot itself
	other []uint32
	n     uint64
}

// newZipf draws from n numbers of which number i has the weight (i+1)^-s.
func newZipf(n int, s float64) alias {
	a := alias{n: uint64(n)}
	if n == 1 || s == 0 {
		return a
	}
	p := make([]float64, n)
	var sum float64
	for i := range p {
		p[i] = math.Pow(float64(i+1), -s)
		sum += p[i]
	}
	a.keep, a.other = make([]uint32, n), make([]uint32, n)
	var small, large []uint32
	for i := range p {
		p[i] *= float64(n) / sum
		if p[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.keep[s] = uint32(p[s] * (1 << 32))
		a.other[s] = l
		if p[l] += p[s] - 1; p[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		a.keep[i], a.other[i] = math.MaxUint32, i
	}
	return a
}

// of is what 64 random bits draw.
func (a *alias) of(random uint64) int {
	slot, low := bits.Mul64(random, a.n)
	if a.keep == nil || uint32(low>>32) < a.keep[slot] {
		return int(slot)
	}
	return int(a.other[slot])
}
