package commands

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"relaybench/commands/table"
)

// quantity is a value of a metric as a person reads it, with its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return span(v)
	case "B":
		return byteSize(v)
	case "B/s":
		return byteSize(v) + "/s"
	case "%":
		return percent(v / 100)
	case "sends/s":
		if math.Abs(v) < 0.0005 { // the least rate that can be asked for is 0.001
			return "0/s"
		}
		if v != math.Trunc(v) && math.Abs(v) < 9999.5 && math.Abs(v) >= 9.995 {
			return strconv.FormatFloat(v, 'f', 1, 64) + "/s" // 199.7 is not 200
		}
		return figures(v) + "/s"
	case "/min":
		return figures(v) + unit
	case "", "sends", "items":
		return figures(v)
	}
	return figures(v) + " " + unit
}

// span is a time in nanoseconds, in three digits or more of the unit that fits.
func span(ns float64) string {
	switch a := math.Abs(ns); {
	case a == 0:
		return "0"
	case a < 999.5:
		return figures(ns) + " ns"
	case a < 999.5e3:
		return figures(ns/1e3) + " µs"
	case a < 9999.5e6:
		return figures(ns/1e6) + " ms"
	}
	return figures(ns/1e9) + " s"
}

// figures is a number with three significant digits or more, whole ones with their thousands apart.
func figures(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e15:
		return count(v)
	case a >= 99.95:
		return count(math.Round(v))
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// count is a whole number with its thousands apart.
func count[N uint64 | int64 | int | float64](n N) string {
	s := strconv.FormatFloat(math.Abs(float64(n)), 'f', 0, 64)
	switch n := any(n).(type) {
	case uint64:
		s = strconv.FormatUint(n, 10)
	}
	var b strings.Builder
	if n < 0 {
		b.WriteByte('-')
	}
	for i, c := range []byte(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// byteSize is a number of bytes, in powers of a thousand as rates are.
func byteSize(v float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	i := 0
	for math.Abs(v) >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return figures(v) + " " + units[i]
}

// seconds is a time in whole seconds, as a clock that runs shows it.
func seconds(d time.Duration) string {
	return fmt.Sprint(d.Round(time.Second))
}

// percent is a share of a hundred.
func percent(share float64) string {
	switch {
	case share == 1:
		return "100%"
	case share > 0.99 && share < 1:
		// Never rounded up to all: what is missing is what matters.
		return strconv.FormatFloat(math.Floor(share*1e4)/100, 'f', 2, 64) + "%"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64) + "%"
}

// metricCell is a metric's value; unknown where ok is false.
func metricCell(v float64, ok bool, unit string) table.Cell {
	return table.Float(v, ok).As(quantity(v, unit))
}
