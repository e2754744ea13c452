package commands

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// twoBuilds saves reports of two builds that are there, in blocks: of the older one first.
func twoBuilds(t *testing.T, s *Session, db *store.DB) (older, newer string) {
	t.Helper()
	older, newer = filepath.Join(t.TempDir(), "older"), filepath.Join(t.TempDir(), "newer")
	began := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for i, path := range []string{older, newer} {
		fakeRelay(t, path, []string{"26.4.0", "26.5.0"}[i])
		program, err := relay.Find(t.Context(), path, "")
		if err != nil {
			t.Fatal(err)
		}
		for run := range 4 {
			r := storetest.Report(10)
			p := plan.Default()
			p.Mix, p.Duration = "sessions=1", 10*time.Second
			r.Plan, r.Provenance = p.Record(), s.provenance(t.Context(), program)
			r.Result.Started = began.Add(time.Duration(4*i+run) * time.Minute)
			if err := db.Save(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return older, newer
}

func TestRerun(t *testing.T) {
	var out strings.Builder
	g := &stage{cost: func(_ plan.Plan, r relay.Program) float64 {
		if r.Version == "26.5.0" {
			return 1.3
		}
		return 1
	}}
	s, db := staged(t, g, &out)
	older, _ := twoBuilds(t, s, db)
	code, said := do(t, s, &out, "verify mix=sessions")
	wants(t, said, "not interleaved: the machine's drift is in this number", "verify --rerun with the same filters makes them")
	if code != Inconclusive {
		t.Errorf("code %d", code)
	}
	_, said = do(t, s, &out, "explain verify mix=sessions --rerun")
	wants(t, said, "14 runs, of which the first of each of the 2 builds is not saved, in turns, in about")

	code, said = do(t, s, &out, "verify mix=sessions --rerun")
	wants(t, said, "A: ", ": relay 26.4.0", "B: ", ": relay 26.5.0", "run 12 of 12, A: ", "\nworse: ", " by cpu-per-envelope: +30", "the runs: reports series=", "\nthe same again: verify series=")
	if code != Worse || g.runs != 14 {
		t.Errorf("code %d, %d runs", code, g.runs)
	}
	_, again, _ := strings.Cut(said, "\nthe same again: ")
	if code, said := do(t, s, &out, strings.TrimSpace(again)); code != Worse {
		t.Errorf("%q: code %d:\n%s", again, code, said)
	}
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != 8+12 {
		t.Errorf("%d reports, %v", len(entries), err)
	}

	// A file that has changed is named, and nothing is run.
	fakeRelay(t, older, "26.4.1")
	code, said = do(t, s, &out, "verify mix=sessions report-id<"+entries[8].ID+" --rerun")
	wants(t, said, older+" has changed: its sha256 is ", "hint: put that build back there")
	if code != CouldNot || g.runs != 14 {
		t.Errorf("code %d, %d runs", code, g.runs)
	}
}

func TestRerunRefused(t *testing.T) {
	var out strings.Builder
	s, db := staged(t, &stage{cost: byFrames}, &out)
	code, said := do(t, s, &out, "verify --rerun")
	wants(t, said, "nothing to run again: there is no report yet")
	if code != Inconclusive {
		t.Errorf("code %d", code)
	}
	revisions(t, db, 4, 0, nil)
	code, said = do(t, s, &out, "verify --rerun")
	wants(t, said, "/home/u/relay/target/release/relay")
	if code != CouldNot {
		t.Errorf("code %d:\n%s", code, said)
	}
}

// A margin under the noise that was measured is refused, and one near it is told.
func TestVerifyNoise(t *testing.T) {
	var out strings.Builder
	db := storetest.Open(t)
	revisions(t, db, 6, 0.3, func(_ int, r *store.Report) { r.Provenance.Host = result.Host{Name: "bench1"} })
	s := session(db, &out)
	last, err := db.Get("last")
	if err != nil {
		t.Fatal(err)
	}
	n := &noise{When: time.Now(), Runs: 6, Widths: map[string][]float64{"cpu-per-envelope": {0.05, 0.05, 0.04}}, key: noiseKey(store.EntryOf(last))}
	if err := n.keep(db); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		line string
		code Code
		says string
	}{
		{"verify --margin 3%", CouldNot, "a margin of 3% cannot be judged: the noise of cpu-per-envelope with 6 runs a side here is ±4%"},
		{"verify --margin 3% --force", Worse, "worse: "},
		{"verify --margin 5%", Worse, "warning: the noise of cpu-per-envelope"},
		{"verify --margin 20%", Worse, "worse: "},
	} {
		code, said := do(t, s, &out, tt.line)
		if code != tt.code || !strings.Contains(said, tt.says) || strings.Contains(said, "warning") != strings.Contains(tt.says+tt.line, "warning") && tt.line != "verify --margin 3% --force" {
			t.Errorf("%s: code %d, want %d and %q:\n%s", tt.line, code, tt.code, tt.says, said)
		}
	}
}
