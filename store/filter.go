package store

import "time"

// Filter is a condition on a report: a variable or headline metric, an
// operator and a value, as in rate>=200 or relay-branch~perf.
type Filter struct {
	Name  string
	Op    string // one of = != < <= > >= ~
	Value string // canonical
}

// ParseFilter reads a filter as it was typed. The value is read by the
// variable's declared type: mix=errors and mix=errors=1 are the same. A time is
// a date, 2026-11-30 or 2026-11-30T14:00, of the local time zone, which stands
// for that whole day or minute, or an age such as 2h, which is counted back
// from now. A revision, a hash or an id may be a beginning of one. An empty
// value stands for what is unknown or not set. Its error names the nearest
// variable, or what is expected of the value.
func ParseFilter(text string, now time.Time) (Filter, error) { panic("stub") }

// String is the filter as it could be typed.
func (f Filter) String() string { panic("stub") }

// Match says whether a report is of the condition. What is unknown equals the
// empty value only, and so differs from any other.
func (f Filter) Match(e *Entry) bool { panic("stub") }

// FilterNames are the names that filters know: variables and headline metrics.
func FilterNames() []string { panic("stub") }
