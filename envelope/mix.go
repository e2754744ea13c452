package envelope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Mix is weights over kinds, by index in a table of kinds. Its canonical text
// lists kinds in the table's order with the smallest whole weights
// ("errors=3,logs=1"); "errors" alone where there is one; "mixed" where it is the table's own weights.
type Mix struct {
	text    string
	weights []float64
}

// Mixed is the name of the mix of the table's own weights.
const Mixed = "mixed"

// weightDigits is how many digits of a weight may stand before and after its point.
const weightDigits = 6

// maxWeight is the largest weight of a canonical text: one that reads back.
const maxWeight = 999_999

// weightUnit is the weight 1 in the whole numbers that weights are reckoned in.
const weightUnit = 1_000_000

// ParseMix reads a mix over the table kinds: "errors=3,logs=1", "errors", "mixed".
// A kind without a weight has the weight 1. Its error says what is expected and
// names the nearest kind.
func ParseMix(kinds []Kind, text string) (Mix, error) {
	own := make([]uint64, len(kinds))
	for i, k := range kinds {
		own[i] = uint64(k.Weight*weightUnit + 0.5)
	}
	if text == Mixed {
		if slices.Max(append(own, 0)) == 0 {
			return Mix{}, fmt.Errorf("mix %q: no kind has a weight", text)
		}
		return newMix(kinds, own, own), nil
	}
	weights := make([]uint64, len(kinds))
	for part := range strings.SplitSeq(text, ",") {
		name, value, weighted := strings.Cut(part, "=")
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
		if i < 0 {
			return Mix{}, unknownKind(kinds, text, name)
		}
		if weights[i] > 0 {
			return Mix{}, fmt.Errorf("mix %q: %s twice", text, name)
		}
		weights[i] = weightUnit
		if weighted {
			w, ok := parseWeight(value)
			if !ok {
				return Mix{}, fmt.Errorf("mix %q: weight %q of %s is not a number above 0, of at most %d digits before and after the point", text, value, name, weightDigits)
			}
			weights[i] = w
		}
	}
	if slices.Max(lowest(weights)) > maxWeight {
		return Mix{}, fmt.Errorf("mix %q: whole weights of it go beyond %d", text, maxWeight)
	}
	return newMix(kinds, weights, own), nil
}

// unknownKind is the error of a name that no kind has.
func unknownKind(kinds []Kind, text, name string) error {
	names := make([]string, len(kinds))
	nearest, distance := "", 4
	for i, k := range kinds {
		names[i] = k.Name
		if d := levenshtein.ComputeDistance(name, k.Name); d < distance {
			nearest, distance = k.Name, d
		}
	}
	want := "expected KIND=WEIGHT[,…] or " + Mixed + ", of the kinds " + strings.Join(names, ", ")
	if nearest != "" {
		want = fmt.Sprintf("did you mean %q? %s", nearest, want)
	}
	return fmt.Errorf("mix %q: unknown kind %q: %s", text, name, want)
}

// parseWeight reads a decimal above 0, exactly.
func parseWeight(s string) (uint64, bool) {
	whole, part, _ := strings.Cut(s, ".")
	if len(whole)+len(part) == 0 || len(whole) > weightDigits || len(part) > weightDigits {
		return 0, false
	}
	digits := whole + part + strings.Repeat("0", weightDigits-len(part))
	for _, c := range []byte(digits) {
		if !isDigit(c) {
			return 0, false
		}
	}
	w, err := strconv.ParseUint(digits, 10, 64)
	return w, err == nil && w > 0
}

func newMix(kinds []Kind, weights, own []uint64) Mix {
	weights, own = lowest(weights), lowest(own)
	m := Mix{weights: make([]float64, len(kinds))}
	var parts []string
	var one string
	for i, w := range weights {
		m.weights[i] = float64(w)
		if w > 0 {
			one = kinds[i].Name
			parts = append(parts, one+"="+strconv.FormatUint(w, 10))
		}
	}
	switch {
	case len(parts) == 1:
		m.text = one
	case slices.Equal(weights, own):
		m.text = Mixed
	default:
		m.text = strings.Join(parts, ",")
	}
	return m
}

// lowest divides weights by their greatest common divisor.
func lowest(weights []uint64) []uint64 {
	var d uint64
	for _, w := range weights {
		for w > 0 {
			d, w = w, d%w
		}
	}
	out := make([]uint64, len(weights))
	for i, w := range weights {
		out[i] = w / max(d, 1)
	}
	return out
}

func (m Mix) String() string { return m.text }

// shares divides n by weights, by largest remainder: each gets its exact share
// rounded down, and what is left goes to the largest remainders, one each; on a
// tie to the earlier one.
func shares(n int, weights []float64) []int {
	var sum float64
	for _, w := range weights {
		sum += w
	}
	counts := make([]int, len(weights))
	rest := make([]float64, len(weights))
	left := n
	for i, w := range weights {
		exact := float64(n) * w / sum
		counts[i] = int(exact)
		rest[i] = exact - float64(counts[i])
		left -= counts[i]
	}
	for ; left > 0; left-- {
		i := 0
		for j := range rest {
			if rest[j] > rest[i] {
				i = j
			}
		}
		counts[i]++
		rest[i] = -1
	}
	return counts
}
