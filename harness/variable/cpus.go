package variable

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUs are CPUs by the system's numbers, in order, each once. None of them: a
// list that was not given, for whichever there are.
type CPUs []int

// maxCPU bounds the number of a CPU: the system's mask of them has as many bits.
const maxCPU = 1023

// List is the list as the kernel and docker write it, as in 0,2-3.
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

// ParseCPUs reads a list such as 0,2-3, of one CPU at least.
func ParseCPUs(s string) (CPUs, error) {
	var c CPUs
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, err := ParseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 0,2-3", s)
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

// And are the CPUs that are in both lists.
func (c CPUs) And(o CPUs) (both CPUs) {
	for _, n := range c {
		if slices.Contains(o, n) {
			both = append(both, n)
		}
	}
	return both
}

// Without are the CPUs that are not in the other list.
func (c CPUs) Without(o CPUs) (left CPUs) {
	for _, n := range c {
		if !slices.Contains(o, n) {
			left = append(left, n)
		}
	}
	return left
}
