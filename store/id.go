package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// An id is the second in which a report was saved, in UTC, and a random number
// that keeps those of different hosts apart, as in 20261130-164502-3f9a1c. Ids
// sort as texts.
const (
	idTime   = "20060102-150405"
	idDigits = 6
	idSpace  = 1 << (4 * idDigits)
)

// nextID is an id for a report saved now, which sorts after last, the newest
// id of this store or "". While the clock stands behind last, time stands
// still: the numbers go up.
func nextID(last string, now time.Time) string {
	now = now.UTC().Truncate(time.Second)
	number := rand.IntN(idSpace)
	if t, n, ok := parseID(last); ok && !now.After(t) {
		now, number = t, n+1+rand.IntN(64)
		if number >= idSpace {
			now, number = t.Add(time.Second), rand.IntN(idSpace)
		}
	}
	return formatID(now, number)
}

func formatID(t time.Time, number int) string {
	return fmt.Sprintf("%s-%0*x", t.Format(idTime), idDigits, number)
}

func parseID(id string) (t time.Time, number int, ok bool) {
	at := strings.LastIndexByte(id, '-')
	if at < 0 {
		return t, 0, false
	}
	t, err := time.Parse(idTime, id[:at])
	n, err2 := strconv.ParseUint(id[at+1:], 16, 4*idDigits)
	return t, int(n), err == nil && err2 == nil
}
