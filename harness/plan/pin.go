package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness/variable"
)

// CPUs are CPUs by the system's numbers, in order, each once; nil: whichever there are.
type CPUs []int

// maxCPU bounds the number of a CPU: an affinity mask of the system has as many bits.
const maxCPU = 1023

const (
	anyCPUs = "any"
	noLimit = "none"
)

// String is the list as a knob's value: any, or as in 0,2-3.
func (c CPUs) String() string {
	if len(c) == 0 {
		return anyCPUs
	}
	return c.List()
}

// List is the list as the kernel and docker write it, as in 0,2-3; "" of any CPUs.
func (c CPUs) List() string {
	var parts []string
	for i := 0; i < len(c); {
		end := i
		for end+1 < len(c) && c[end+1] == c[end]+1 {
			end++
		}
		part := strconv.Itoa(c[i])
		if end > i {
			part += "-" + strconv.Itoa(c[end])
		}
		parts, i = append(parts, part), end+1
	}
	return strings.Join(parts, ",")
}

// ParseCPUs reads any, or a list such as 0,2-3.
func ParseCPUs(s string) (CPUs, error) {
	if s == anyCPUs {
		return nil, nil
	}
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("the list of CPUs is empty: give some, such as 0,2-3, or any")
	}
	var c CPUs
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, err := variable.ParseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 0,2-3, nor %s", s, anyCPUs)
		}
		if hi > maxCPU {
			return nil, fmt.Errorf("CPU %d is more than %d", hi, maxCPU)
		}
		for n := lo; n <= hi; n++ {
			c = append(c, n)
		}
	}
	slices.Sort(c)
	return slices.Compact(c), nil
}

// cpusType is a list of CPUs; fewer come before more.
var cpusType = variable.New("CPUs", func(s string) (string, error) {
	c, err := ParseCPUs(s)
	if err != nil {
		return "", err
	}
	return c.String(), nil
}, func(a, b string) int {
	x, _ := ParseCPUs(a)
	y, _ := ParseCPUs(b)
	order := func(c CPUs) int {
		if c == nil {
			return maxCPU + 2
		}
		return len(c)
	}
	return cmp.Or(cmp.Compare(order(x), order(y)), slices.Compare(x, y))
}, true)

func cpusKnob(at func(*Plan) *CPUs) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return at(p).String() }, func(p *Plan, s string) (err error) {
		*at(p), err = ParseCPUs(s)
		return err
	}
}

// Bounds of [Plan.Memory], in bytes: Relay does not start in less, and no machine has more.
const (
	minMemory = 16 << 20
	maxMemory = 1 << 50
)

// memoryType is a limit of memory, or none, which comes after all.
var memoryType = variable.New("size", func(s string) (string, error) {
	n, err := parseMemory(s)
	if err != nil {
		return "", err
	}
	return formatMemory(n), nil
}, func(a, b string) int {
	if (a == noLimit) != (b == noLimit) {
		return cmp.Compare(strings.Count(a, noLimit), strings.Count(b, noLimit))
	}
	return variable.CompareSizes(a, b)
}, false)

func parseMemory(s string) (uint64, error) {
	if s == noLimit {
		return 0, nil
	}
	n, err := variable.ParseSize(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 256m or 1g, nor %s", s, noLimit)
	}
	if n < minMemory || n > maxMemory {
		return 0, fmt.Errorf("%s is not between %s and %s", s, variable.FormatSize(minMemory), variable.FormatSize(maxMemory))
	}
	return n, nil
}

func formatMemory(n uint64) string {
	if n == 0 {
		return noLimit
	}
	return variable.FormatSize(n)
}
