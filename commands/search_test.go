package commands

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// searcher is a session whose runs are of a simulated relay; after so many runs, where that is not 0, they fail.
func searcher(t *testing.T, out *strings.Builder, m simulated, fails int) (*Session, *store.DB) {
	t.Helper()
	db := storetest.Open(t)
	s := session(db, out)
	m.draw = rand.New(rand.NewPCG(1, 2))
	runs := 0
	s.bench.run = func(_ context.Context, p plan.Plan, _ relay.Program, _ harness.Options) (*result.Result, error) {
		runs++
		r := m.run(p.Rate).Result
		if runs == fails {
			err := fmt.Errorf("%w by a test", ErrInterrupted)
			r.Cancelled = err.Error()
			return r, err
		}
		return r, nil
	}
	started(t, s)
	do(t, s, out, "relay use none")
	return s, db
}

func TestSearch(t *testing.T) {
	var out strings.Builder
	s, db := searcher(t, &out, simulated{capacity: 300}, 0)
	code, said := do(t, s, &out, "search --mix sessions --connections 4")
	wants(t, said, "no relay: straight into the upstream: sessions, 10s a step, from 100/s\n",
		"step  1       100/s  keeps up: the backlog is steady\n", "step  3       400/s  falls behind: the backlog grows by ", "25.0% of the rate\n",
		"keeps up with 300/s, not with 306/s\n", "reports series=")
	if code != Fine {
		t.Errorf("code %d:\n%s", code, said)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != strings.Count(said, "step ") {
		t.Fatalf("%d reports, %v:\n%s", len(entries), err, said)
	}
	var rates []string
	for i, e := range entries {
		rate, _ := e.Var("rate")
		rates = append(rates, rate)
		if at, _ := e.Var("series-position"); at != fmt.Sprint(i+1) {
			t.Errorf("report %d has position %q", i+1, at)
		}
		if of, known := e.Var("series-of"); known {
			t.Errorf("a search knows beforehand that it has %s runs", of)
		}
	}
	if got := strings.Join(rates, " "); !strings.HasPrefix(got, "100 200 400 300 350 325 312 306 ") {
		t.Errorf("rates %s", got)
	}
}

func TestSearchFormats(t *testing.T) {
	var out strings.Builder
	s, _ := searcher(t, &out, simulated{capacity: 300, noise: 0.03}, 0)
	code, said := do(t, s, &out, "search --mix sessions --repeat 3 --from 200")
	wants(t, said, "search 1 of 3\n", "search 3 of 3\n", "3 searches: median ")
	if code != Fine {
		t.Errorf("code %d:\n%s", code, said)
	}
	_, said = do(t, s, &out, "search --mix sessions --repeat 2 --json")
	var j struct {
		Series   string
		Found    int
		Median   float64 `json:"median_rate"`
		Searches []struct {
			KeepsUp float64 `json:"keeps_up_rate"`
			Falls   float64 `json:"falls_rate"`
			End     string
			Steps   []struct {
				Rate    float64
				KeepsUp bool   `json:"keeps_up"`
				Report  string `json:"report-id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(said), &j); err != nil || j.Found != 2 || len(j.Searches) != 2 || j.Searches[1].End != "found" || j.Series == "" {
		t.Fatalf("%v: %+v\n%s", err, j, said)
	}
	for _, c := range j.Searches {
		if c.KeepsUp < 285 || c.KeepsUp > 315 || c.Falls > 1.02*c.KeepsUp || len(c.Steps) < 8 || c.Steps[0].Rate != 100 || !c.Steps[0].KeepsUp || c.Steps[0].Report == "" {
			t.Errorf("%+v", c)
		}
	}
	_, said = do(t, s, &out, "search --mix sessions --csv")
	rows, err := csv.NewReader(strings.NewReader(said)).ReadAll()
	if err != nil || len(rows) < 9 || rows[0][1] != "what" || rows[len(rows)-1][1] != "end" || !strings.HasPrefix(rows[len(rows)-1][5], "keeps up with ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// What ends a search says what was found until then, in every format.
func TestSearchStopped(t *testing.T) {
	for _, format := range []string{"", " --json", " --csv"} {
		var out strings.Builder
		s, db := searcher(t, &out, simulated{capacity: 300}, 4)
		code, said := do(t, s, &out, "search --mix sessions"+format)
		wants(t, said, "keeps up with 200/s, not with 400/s, so far: stopped after 3 steps", "interrupted by a test", "the steps that were done were saved: reports series=")
		entries, _, err := db.Entries(nil, store.Newest{})
		if code != Interrupted || err != nil || len(entries) != 4 || !marked(&entries[3], "cancelled") {
			t.Errorf("code %d, %d reports, %v", code, len(entries), err)
		}
	}
}

// Where the senders are the limit, the relay's is not known.
func TestSearchHarness(t *testing.T) {
	var out strings.Builder
	s, _ := searcher(t, &out, simulated{capacity: 1e6, ceiling: 700}, 0)
	code, said := do(t, s, &out, "search --mix sessions")
	wants(t, said, "says nothing: harness-limited: 87.5% of due sends sent", "keeps up with at least 400/s; at 800/s something else than the relay was the limit")
	if code != Unfit {
		t.Errorf("code %d:\n%s", code, said)
	}
}

func FuzzBound(f *testing.F) {
	for _, text := range []string{"100", "max", "1e3", "-1", "", "NaN", "1e99", "0.5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := parseBound("from", text)
		if err == nil && !(rate > 0 && rate <= mostRate) {
			t.Errorf("%q is %g", text, rate)
		}
		if err != nil && failure(nil, err).Code != Usage {
			t.Errorf("%q: %v is no error of what was typed", text, err)
		}
		if _, err := parseMargin(text); err == nil && !strings.HasSuffix(text, "%") {
			t.Errorf("%q is a margin", text)
		}
	})
}

// A run that was stopped by the machine, not by somebody, says so too.
func TestSearchFails(t *testing.T) {
	var out strings.Builder
	s, _ := searcher(t, &out, simulated{capacity: 300}, 0)
	s.bench.run = func(context.Context, plan.Plan, relay.Program, harness.Options) (*result.Result, error) {
		return nil, errors.New("no port is free")
	}
	if code, said := do(t, s, &out, "search"); code != CouldNot || !strings.Contains(said, "search: no port is free") {
		t.Errorf("code %d:\n%s", code, said)
	}
}
