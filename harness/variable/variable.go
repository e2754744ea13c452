// Package variable holds the types of values that knobs and other variables
// have: how a text is read, put into its one canonical form, compared, and how
// a list of them is typed.
//
// It is a leaf. It must never know which variables there are.
package variable

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Type is a type of values.
type Type interface {
	// Name is the type's name in help and errors.
	Name() string
	// Canon reads a typed text and gives its canonical form: equal for equal
	// values, and its own canonical form. Its error says what is expected.
	Canon(text string) (string, error)
	// Compare orders two canonical texts; 0 is equality.
	Compare(a, b string) int
	// Split cuts a typed list into its values: at commas, where no value has one.
	Split(text string) []string
}

func splitComma(text string) []string { return strings.Split(text, ",") }

type typ struct {
	name    string
	canon   func(string) (string, error)
	compare func(a, b string) int
	split   func(string) []string
}

func (t typ) Name() string                   { return t.name }
func (t typ) Canon(s string) (string, error) { return t.canon(s) }
func (t typ) Compare(a, b string) int        { return t.compare(a, b) }
func (t typ) Split(s string) []string        { return t.split(s) }

// whole never splits: values may hold commas.
func whole(text string) []string { return []string{text} }

// Float is a number between least and most.
func Float(least, most float64) Type {
	return typ{"number", func(s string) (string, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return "", fmt.Errorf("%q is not a number", s)
		}
		if v < least || v > most {
			return "", fmt.Errorf("%s is not %s", s, between(fmt.Sprint(least), fmt.Sprint(most), most >= math.MaxFloat64))
		}
		if v == 0 {
			v = 0 // not -0
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}, compareFloat, splitComma}
}

func between(least, most string, open bool) string {
	if open {
		return least + " or more"
	}
	return "between " + least + " and " + most
}

func compareFloat(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// Int is a whole number between least and most.
func Int(least, most int64) Type {
	return typ{"whole number", func(s string) (string, error) {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return "", fmt.Errorf("%q is not a whole number", s)
		}
		if v < least || v > most {
			return "", fmt.Errorf("%s is not %s", s, between(fmt.Sprint(least), fmt.Sprint(most), most == math.MaxInt64))
		}
		return strconv.FormatInt(v, 10), nil
	}, func(a, b string) int {
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		return cmp.Compare(x, y)
	}, splitComma}
}

// Rate is a number of sends a second, or "max": as fast as answers come.
var Rate Type = typ{"rate", func(s string) (string, error) {
	if s == "max" {
		return s, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return "", fmt.Errorf("%q is not a rate: a number of sends a second, or max", s)
	}
	if v < 0.001 || v > 1e7 {
		return "", fmt.Errorf("%s is not between 0.001 and 10,000,000 a second, nor max", s)
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}, func(a, b string) int {
	x, errx := strconv.ParseFloat(a, 64)
	y, erry := strconv.ParseFloat(b, 64)
	if errx != nil {
		x = math.Inf(1)
	}
	if erry != nil {
		y = math.Inf(1)
	}
	return cmp.Compare(x, y)
}, splitComma}

// Duration is a span of time such as 10s, 1m30s or 500ms, between least and most.
func Duration(least, most time.Duration) Type {
	return typ{"duration", func(s string) (string, error) {
		d, err := time.ParseDuration(s)
		if err != nil {
			return "", fmt.Errorf("%q is not a duration such as 10s, 1m30s or 500ms", s)
		}
		if d < least || d > most {
			return "", fmt.Errorf("%s is not %s", s, between(ShortDuration(least), ShortDuration(most), most == math.MaxInt64))
		}
		return ShortDuration(d), nil
	}, func(a, b string) int {
		x, _ := time.ParseDuration(a)
		y, _ := time.ParseDuration(b)
		return cmp.Compare(x, y)
	}, splitComma}
}

// ShortDuration writes a duration as a person would: 1m, not 1m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// String is any text that a file and a terminal can hold: UTF-8 without NUL. A
// comma in it is part of it.
var String Type = typ{"text", func(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", fmt.Errorf("%q is not a text in UTF-8", s)
	}
	return s, nil
}, strings.Compare, whole}

// Range is two whole numbers, MIN-MAX, or one number for both, between least and most.
func Range(least, most int) Type {
	return typ{"range", func(s string) (string, error) {
		lo, hi, err := ParseRange(s)
		if err != nil {
			return "", err
		}
		if lo < least || hi > most {
			return "", fmt.Errorf("range %s is not within %d-%d", s, least, most)
		}
		if lo == hi {
			return strconv.Itoa(lo), nil
		}
		return fmt.Sprintf("%d-%d", lo, hi), nil
	}, func(a, b string) int {
		al, ah, _ := ParseRange(a)
		bl, bh, _ := ParseRange(b)
		return cmp.Or(cmp.Compare(al, bl), cmp.Compare(ah, bh))
	}, splitComma}
}

// ParseRange reads MIN-MAX, or one number for both.
func ParseRange(s string) (lo, hi int, err error) {
	first, second, two := strings.Cut(s, "-")
	lo, err = strconv.Atoi(first)
	hi = lo
	if err == nil && two {
		hi, err = strconv.Atoi(second)
	}
	if err != nil || lo < 0 {
		return 0, 0, fmt.Errorf("%q is not a range such as 20-100", s)
	}
	if lo > hi {
		return 0, 0, fmt.Errorf("range %s ends before it begins", s)
	}
	return lo, hi, nil
}

// Word is one of some words, which are in their order.
func Word(name string, words ...string) Type {
	return typ{name, func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		if near := Nearest(s, words); near != "" {
			return "", fmt.Errorf("%q is none of %s: did you mean %q?", s, strings.Join(words, ", "), near)
		}
		return "", fmt.Errorf("%q is none of %s", s, strings.Join(words, ", "))
	}, func(a, b string) int { return cmp.Compare(slices.Index(words, a), slices.Index(words, b)) }, splitComma}
}

// New is a type of its own: whole says that its values may hold commas.
func New(name string, canon func(string) (string, error), compare func(a, b string) int, holdsCommas bool) Type {
	split := splitComma
	if holdsCommas {
		split = whole
	}
	return typ{name, canon, compare, split}
}

// Nearest is the name among names that is most like what was typed: one of
// which two letters that follow each other were exchanged, else the one with
// the fewest letters changed, if those are few, else the first that begins so; "" where there is none.
func Nearest(typed string, names []string) string {
	for i := 1; i < len(typed); i++ {
		swapped := typed[:i-1] + typed[i:i+1] + typed[i-1:i] + typed[i+1:]
		if slices.Contains(names, swapped) {
			return swapped
		}
	}
	best, least := "", 2
	if n := utf8.RuneCountInString(typed); n > 3 {
		least = max(2, n/3) + 1
	}
	for _, n := range names {
		if d := levenshtein.ComputeDistance(typed, n); d < least {
			best, least = n, d
		}
	}
	if best != "" || len(typed) < 3 {
		return best
	}
	for _, n := range names {
		if strings.HasPrefix(n, typed) {
			return n
		}
	}
	return ""
}
