package store_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/harness/variable"
	"relaybench/store"
)

// typeOf is the type of a variable of the table.
func typeOf(t testing.TB, name string) variable.Type {
	t.Helper()
	v, ok := store.FindVariable(name)
	if !ok {
		t.Fatalf("no variable %q", name)
	}
	return v.Type
}

func TestTypes(t *testing.T) {
	inZone(t)
	for _, c := range []struct{ variable, typed, want, err string }{
		{"relay-dirty", "yes", "yes", ""}, {"relay-dirty", "True", "yes", ""}, {"relay-dirty", "0", "no", ""}, {"relay-dirty", "off", "no", ""},
		{"relay-dirty", "", "", "is not yes or no"},
		{"relay-size", "80MiB", "80MiB", ""}, {"relay-size", "83886080", "80MiB", ""}, {"relay-size", "81920KiB", "80MiB", ""}, {"relay-size", "0.5GiB", "512MiB", ""},
		{"relay-size", "1GB", "1000000000B", ""}, {"relay-size", "8G", "8GiB", ""}, {"relay-size", "1.5K", "1.5KiB", ""}, {"relay-size", "100B", "100B", ""},
		{"relay-size", "0", "0B", ""}, {"relay-size", "23.5625GiB", "23.5625GiB", ""}, {"relay-size", "1TiB", "1TiB", ""}, {"relay-size", "18446744073709551615B", "18446744073709551615B", ""},
		{"relay-size", "", "", "is not a size"}, {"relay-size", "-1", "", "is not a size"}, {"relay-size", "1.5", "2B", ""}, {"relay-size", "1e30TiB", "", "is not a size"},
		{"relay-size", "NaNGiB", "", "is not a size"}, {"relay-size", "x", "", "is not a size"},
		{"started", "2026-11-30", "2026-11-29T22:30:00Z", ""}, {"started", "2026-11-30T14:00", "2026-11-30T12:30:00Z", ""},
		{"started", "2026-11-30T14:00:00.5+01:00", "2026-11-30T13:00:00.5Z", ""}, {"started", "2h", "", "is not a date"}, {"started", "2026-02-30", "", "is not a date"},
		{"relay-version", "26.4.0", "26.4.0", ""}, {"relay-version", "\xff", "", "is not a text"},
		{"relay-revision", "AE5A", "ae5a", ""}, {"relay-revision", "", "", "is not a hash"}, {"relay-revision", "v1", "", "is not a hash"},
		{"report-id", "20261130-", "20261130-", ""}, {"report-id", "LAST", "", "is not an id"},
		{"http.encoding", "a,b=c", "a,b=c", ""},
	} {
		typ := typeOf(t, c.variable)
		got, err := typ.Canon(c.typed)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %q: got %q, %v, want %q, %q", c.variable, c.typed, got, err, c.want, c.err)
		}
		if err != nil {
			continue
		}
		if again, err := typ.Canon(got); err != nil || again != got {
			t.Errorf("%s %q: its canonical form %q is %q itself, %v", c.variable, c.typed, got, again, err)
		}
	}
}

func TestTypesCompare(t *testing.T) {
	for variable, sorted := range map[string][]string{
		"relay-dirty":   {"no", "yes"},
		"relay-size":    {"100B", "1KiB", "1MiB", "2000000B", "1000000000B", "1GiB", "1TiB"},
		"started":       {"2026-11-30T12:00:00Z", "2026-11-30T12:00:00.5Z", "2026-11-30T12:00:01Z"},
		"relay-version": {"x", "25.12.1", "26.4.0-dev", "26.4.0", "26.4.1", "v26.4.10", "26.10.0", "27"},
		"http.timeout":  {"-1", "0.5", "1", "1.0", "2", "10", "1e2", "a", "b"},
	} {
		typ := typeOf(t, variable)
		shuffled := slices.Clone(sorted)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortFunc(shuffled, typ.Compare)
		if !slices.Equal(shuffled, sorted) {
			t.Errorf("%s: got %q, want %q", variable, shuffled, sorted)
		}
		for i, a := range sorted {
			for j, b := range sorted {
				if got, want := typ.Compare(a, b), cmp.Compare(i, j); got != want {
					t.Errorf("%s: %q against %q: got %d, want %d", variable, a, b, got, want)
				}
			}
		}
	}
	for _, same := range []struct{ variable, a, b string }{{"relay-version", "26.4", "26.4.0"}, {"relay-version", "v1.2", "1.2"}, {"started", "2026-11-30T12:00:00Z", "2026-11-30T13:00:00+01:00"}} {
		if typeOf(t, same.variable).Compare(same.a, same.b) != 0 {
			t.Errorf("%s: %q and %q differ", same.variable, same.a, same.b)
		}
	}
}

// The canonical form of what is canonical is itself, and equal to it.
func FuzzTypes(f *testing.F) {
	for _, text := range []string{"8GiB", "0.3TB", "2026-11-30T14:00", "26.4.0-dev", "AE5A", "20261130-", "true", "1e5"} {
		f.Add(text)
	}
	names := []string{"relay-dirty", "relay-size", "started", "relay-version", "relay-revision", "report-id", "http.x"}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range names {
			typ := typeOf(t, name)
			c, err := typ.Canon(text)
			if err != nil {
				continue
			}
			if again, err := typ.Canon(c); err != nil || again != c || typ.Compare(c, again) != 0 {
				t.Errorf("%s: %q is %q, which is %q, %v", name, text, c, again, err)
			}
		}
		for _, age := range []time.Duration{0, time.Hour} {
			_, _ = store.ParseFilter("started>"+text, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(age))
		}
	})
}
