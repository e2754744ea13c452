package envelope

import (
	"regexp"
	"slices"
	"testing"
)

func TestKindsTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9_-]+$`)
	seen := map[string]bool{}
	for i, k := range Kinds {
		switch {
		case !name.MatchString(k.Name) || seen[k.Name] || k.Name == Mixed || k.Name == "each":
			t.Errorf("name %q", k.Name)
		case k.Help == "" || k.Unit == "" || k.Weight <= 0 || len(k.Items) == 0 || k.Category <= 0 || k.Elements == nil || k.Make == nil:
			t.Errorf("%s: an entry is empty: %+v", k.Name, k)
		}
		seen[k.Name] = true
		if got := Find(Kinds, k.Name); got != &Kinds[i] {
			t.Errorf("%s is not found", k.Name)
		}
	}
	if got := Find(Kinds, "potatoes"); got != nil {
		t.Errorf("found %v", got)
	}
	if got, want := names(Kinds), []string{"errors", "transactions", "sessions", "checkins", "logs"}; !slices.Equal(got, want) {
		t.Errorf("kinds %q, want %q", got, want)
	}
}

func TestOutcome(t *testing.T) {
	for _, k := range Kinds {
		for status, want := range map[int]bool{200: false, 400: false, 401: false, 403: true, 413: true, 429: k.Name != "sessions", 500: false, 503: true, 0: false} {
			if got := k.Outcome(status); got != want {
				t.Errorf("%s, status %d: got %t, want %t", k.Name, status, got, want)
			}
		}
	}
}

func TestElements(t *testing.T) {
	for _, k := range Kinds {
		want := 1
		if k.Unit == "log" {
			want = 7
		}
		if got := k.Elements(Item{Count: 7}); got != want {
			t.Errorf("%s: %d elements of an item that counts 7, want %d", k.Name, got, want)
		}
	}
}
