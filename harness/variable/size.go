package variable

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes between least and most, written in the largest unit that leaves few digits.
func Size(least, most uint64) Type {
	return typ{"size", func(s string) (string, error) {
		n, err := ParseSize(s)
		if err != nil {
			return "", err
		}
		if n < least || n > most {
			return "", fmt.Errorf("%s is not %s", s, between(FormatSize(least), FormatSize(most), most == math.MaxUint64))
		}
		return FormatSize(n), nil
	}, CompareSizes, splitComma}
}

// CompareSizes orders two sizes.
func CompareSizes(a, b string) int {
	x, _ := ParseSize(a)
	y, _ := ParseSize(b)
	return cmp.Compare(x, y)
}

// sizeUnits are the units that a size may be typed in. The binary ones, first, are those it is written in.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"t", 1 << 40}, {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"B", 1}, {"", 1},
}

// ParseSize reads a size such as 8GiB, 512MB, 256m (as docker has it: MiB) or 1024.
func ParseSize(s string) (bytes uint64, err error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && u.bytes == 1 {
			return n, nil
		}
		v, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(v >= 0) || v*u.bytes >= math.MaxInt64 {
			break
		}
		return uint64(math.Round(v * u.bytes)), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 8GiB, 512MB or 1024", s)
}

// FormatSize is a size in its largest unit, where it is a whole number of sixteenths of it, else in bytes.
func FormatSize(n uint64) string {
	for _, u := range sizeUnits[:4] {
		unit := uint64(u.bytes)
		if n < unit {
			continue
		}
		if n%(unit/16) == 0 {
			return strconv.FormatFloat(float64(n)/u.bytes, 'f', -1, 64) + u.name
		}
		break
	}
	return strconv.FormatUint(n, 10) + "B"
}

// RoughSize is a size for people, with a digit after the point at most.
func RoughSize(n uint64) string {
	for _, u := range sizeUnits[:4] {
		if v := float64(n) / u.bytes; v >= 1 {
			return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}
