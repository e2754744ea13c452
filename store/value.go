package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"relaybench/harness/variable"
)

// ParseValue reads a value of the metric as it was typed, such as 50ms of one
// in ns or 90MiB of one in B, and gives it in the metric's unit. Its error says
// what is expected.
func (m *Metric) ParseValue(text string) (float64, error) {
	digits, minus := strings.CutPrefix(text, "-")
	v, expected := 0.0, "a number"
	var err error
	switch m.Unit {
	case "ns":
		var d time.Duration
		d, err = time.ParseDuration(digits)
		v, expected = float64(d), "a duration such as 50ms"
	case "B", "B/s":
		var n uint64
		n, err = variable.ParseSize(strings.TrimSuffix(digits, strings.TrimPrefix(m.Unit, "B")))
		v, expected = float64(n), "a size such as 90MiB"
	default:
		if m.Unit != "" {
			expected += " of " + m.Unit
		}
		v, err = strconv.ParseFloat(strings.TrimSuffix(digits, m.Unit), 64)
	}
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%s: %q is not %s", m.Name, text, expected)
	}
	if minus {
		v = -v
	}
	return v, nil
}
