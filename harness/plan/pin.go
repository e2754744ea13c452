package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"relaybench/harness/variable"
)

const (
	anyCPUs = "any"
	noLimit = "none"
)

// formatCPUs is a list as a knob's value: any, or as in 0,2-3.
func formatCPUs(c variable.CPUs) string {
	if len(c) == 0 {
		return anyCPUs
	}
	return c.List()
}

func parseCPUs(s string) (variable.CPUs, error) {
	if s == anyCPUs {
		return nil, nil
	}
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("the list of CPUs is empty: give some, such as 0,2-3, or any")
	}
	return variable.ParseCPUs(s)
}

// cpusType is a list of CPUs, or any; fewer come before more, and any after all.
var cpusType = variable.New("CPUs", func(s string) (string, error) {
	c, err := parseCPUs(s)
	if err != nil {
		return "", err
	}
	return formatCPUs(c), nil
}, func(a, b string) int {
	if (a == anyCPUs) != (b == anyCPUs) {
		return cmp.Compare(strings.Count(a, anyCPUs), strings.Count(b, anyCPUs))
	}
	x, _ := parseCPUs(a)
	y, _ := parseCPUs(b)
	return cmp.Or(cmp.Compare(len(x), len(y)), slices.Compare(x, y))
}, true)

func cpusKnob(at func(*Plan) *variable.CPUs) (func(*Plan) string, func(*Plan, string) error) {
	return func(p *Plan) string { return formatCPUs(*at(p)) }, func(p *Plan, s string) (err error) {
		*at(p), err = parseCPUs(s)
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
