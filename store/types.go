package store

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"relaybench/harness/variable"
)

// Types of variables that no knob has.
var (
	// boolType is yes or no.
	boolType = variable.New("yes or no", func(s string) (string, error) {
		switch strings.ToLower(s) {
		case yes, "true", "1", "on":
			return yes, nil
		case no, "false", "0", "off":
			return no, nil
		}
		return "", fmt.Errorf("%q is not yes or no", s)
	}, strings.Compare, false) // no comes before yes

	// sizeType is a number of bytes.
	sizeType = variable.Size(0, math.MaxUint64)

	// timeType is an instant; see parseSpan for what may be typed.
	timeType = variable.New("date", func(s string) (string, error) {
		from, _, err := parseSpan(s, time.Time{})
		if err != nil {
			return "", err
		}
		return formatTime(from), nil
	}, func(a, b string) int {
		x, _ := time.Parse(time.RFC3339Nano, a)
		y, _ := time.Parse(time.RFC3339Nano, b)
		return x.Compare(y)
	}, false)

	// versionType is numbers with dots between them, and what may follow them: 26.10.0 comes after 26.4.0.
	versionType = variable.New("version", variable.String.Canon, compareVersions, false)

	// hexType is a revision or a hash, of which a filter may give the beginning.
	hexType = variable.New("revision or hash", func(s string) (string, error) {
		s = strings.ToLower(s)
		if s == "" || strings.Trim(s, "0123456789abcdef") != "" {
			return "", fmt.Errorf("%q is not a hash, or the beginning of one, in hexadecimal digits", s)
		}
		return s, nil
	}, strings.Compare, false)

	// idType is a report's id, of which a filter may give the beginning.
	idType = variable.New("report id", func(s string) (string, error) {
		if s == "" || strings.Trim(s, "0123456789abcdef-") != "" {
			return "", fmt.Errorf("%q is not an id, or the beginning of one, such as 20261130-164502-3f9a1c", s)
		}
		return s, nil
	}, strings.Compare, false)

	// settingType is a config key's value: numbers and durations compare as such.
	settingType = variable.New("text", variable.String.Canon, func(a, b string) int {
		if x, err := time.ParseDuration(a); err == nil {
			if y, err := time.ParseDuration(b); err == nil {
				return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
			}
		}
		x, errx := strconv.ParseFloat(a, 64)
		y, erry := strconv.ParseFloat(b, 64)
		if errx != nil || erry != nil || math.IsNaN(x) || math.IsNaN(y) {
			return strings.Compare(a, b)
		}
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	}, true)
)

const yes, no = "yes", "no"

func yesNo(b bool) string {
	if b {
		return yes
	}
	return no
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// dates are the forms of a date that may be typed, and how much time each stands for.
var dates = []struct {
	layout string
	span   func(time.Time) time.Time // its end
}{
	{"2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04:05", func(t time.Time) time.Time { return t.Add(time.Second) }},
	{"2006-01-02 15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02 15:04:05", func(t time.Time) time.Time { return t.Add(time.Second) }},
}

// parseSpan reads a date, of the local time zone unless it names one, as the
// span of time [from, to) that it stands for, or, where now is not zero, an age
// as the instant that long before now: then from is to.
func parseSpan(s string, now time.Time) (from, to time.Time, err error) {
	for _, d := range dates {
		if from, err := time.ParseInLocation(d.layout, s, time.Local); err == nil {
			return from, d.span(from), nil
		}
	}
	if from, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return from, from.Add(1), nil
	}
	if now.IsZero() {
		return from, to, fmt.Errorf("%q is not a date such as 2026-11-30 or 2026-11-30T14:00", s)
	}
	age, err := time.ParseDuration(s)
	if err != nil || age < 0 {
		return from, to, fmt.Errorf("%q is not a date such as 2026-11-30 or 2026-11-30T14:00, nor an age such as 2h", s)
	}
	from = now.Add(-age)
	return from, from, nil
}

// compareVersions compares the numbers of versions, then what follows them: a
// version with a rest, as in 26.5.0-dev, comes before the one without.
func compareVersions(a, b string) int {
	x, restX := versionNumbers(a)
	y, restY := versionNumbers(b)
	for i := range max(len(x), len(y)) {
		var p, q uint64
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return cmp.Compare(p, q)
		}
	}
	if (restX == "") != (restY == "") {
		return cmp.Compare(len(restY), len(restX))
	}
	return strings.Compare(restX, restY)
}

// versionNumbers are the numbers that a version begins with, after a v, and the rest of it.
func versionNumbers(s string) (numbers []uint64, rest string) {
	rest = strings.TrimPrefix(s, "v")
	for {
		end := 0
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		n, err := strconv.ParseUint(rest[:end], 10, 64)
		if err != nil {
			return numbers, rest
		}
		numbers = append(numbers, n)
		if rest = rest[end:]; !strings.HasPrefix(rest, ".") {
			return numbers, rest
		}
		rest = rest[1:]
	}
}
