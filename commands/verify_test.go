package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/stats"
	"relaybench/store/storetest"
)

// revision makes a report that of a revision, by its number: a day later each, and dearer by a part.
func revision(r *store.Report, number, run int, dearer float64) {
	r.Provenance.Relay.Revision = fmt.Sprintf("%010d%030d", number, 0)
	r.Provenance.Relay.RevisionDate = time.Date(2026, 4, number, 9, 0, 0, 0, time.UTC)
	r.Provenance.Relay.SHA256 = fmt.Sprintf("%064x", 0xabc0+number)
	used := float64(r.Result.Relay.CPUDrain - r.Result.Relay.CPUStart)
	r.Result.Relay.CPUDrain = r.Result.Relay.CPUStart + int64(used*(1+dearer)*(1+0.002*float64(run%3)))
}

// revisions saves reports of revisions 1 and 2, in turns.
func revisions(t *testing.T, db *store.DB, n int, dearer float64, change func(side int, r *store.Report)) {
	inTurns(t, db, n, func(side, i int, r *store.Report) {
		revision(r, side+1, i, dearer*float64(side))
		if change != nil {
			change(side, r)
		}
	})
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T, db *store.DB)
		line string
		code Code
		says []string
	}{
		{"worse", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0.3, nil) }, "verify relay-branch=main mix=errors=3,logs=1", Worse,
			[]string{"worse: 0000000002 is worse than 0000000001 by cpu-per-envelope: +30", "n=4+4", "revision 0000000002, version 26.4.0, branch main, of 2026-04-02: 4 runs"}},
		{"better", func(t *testing.T, db *store.DB) { revisions(t, db, 4, -0.3, nil) }, "verify", Fine, []string{"better: 0000000002 is better than 0000000001"}},
		{"the same", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0, nil) }, "verify", Fine, []string{"not worse: 0000000002 is no worse than 0000000001 by cpu-per-envelope, margin 5%"}},
		{"under the margin", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0.08, nil) }, "verify --margin 10%", Fine, []string{"margin 10%"}},
		{"too few", func(t *testing.T, db *store.DB) { revisions(t, db, 3, 0.3, nil) }, "verify", Inconclusive, []string{"no verdict: of 0000000002 against 0000000001", "needs 4 runs a side, has 3"}},
		{"in blocks", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, func(side int, r *store.Report) {
				r.Result.Started = r.Result.Started.Add(time.Duration(side) * 5 * time.Hour)
			})
		}, "verify", Inconclusive, []string{"no verdict: of 0000000002 against 0000000001", "not interleaved: the machine's drift is in this number (4 runs", "+30"}},
		// Nothing in common is no pass.
		{"no such branch", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0.3, nil) }, "verify relay-branch=mian mix=errors=3,logs=1", Inconclusive,
			[]string{"no report: none has relay-branch mian; the nearest is main"}},
		{"no such reports", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0.3, nil) }, "verify relay-branch=main rate>900", Inconclusive,
			[]string{"no verdict: no report has all of relay-branch=main, rate>900"}},
		{"no report", func(*testing.T, *store.DB) {}, "verify", Inconclusive, []string{"no verdict: there is no report yet"}},
		{"one revision", func(t *testing.T, db *store.DB) {
			inTurns(t, db, 3, func(_, i int, r *store.Report) { revision(r, 1, i, 0) })
		}, "verify --like last", Inconclusive, []string{"no verdict: nothing to compare with: 0000000001 is the only build there is"}},
		{"the earliest", func(t *testing.T, db *store.DB) { revisions(t, db, 4, 0.3, nil) }, "verify --like last", Inconclusive,
			[]string{"no verdict: nothing to compare with: 0000000001 is the earliest build there is"}},
		{"like the newest", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, nil)
			inTurns(t, db, 1, func(_, i int, r *store.Report) { revision(r, 5, i, 0); r.Plan["rate"] = "300" })
		}, "verify --like last-2", Inconclusive, []string{"earliest"}},
		{"mixed", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, nil)
			inTurns(t, db, 1, func(_, i int, r *store.Report) { revision(r, 2, i, 0); r.Plan["rate"] = "300" })
		}, "verify", Usage, []string{"the reports are not alike in all but the build: rate differs (200, 300)", "hint: add filters, such as rate=300"}},
		{"dirty", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, func(side int, r *store.Report) {
				r.Provenance.Relay.Revision, r.Provenance.Relay.Dirty = "aaaaaaaaaa", side == 1
			})
		}, "verify", Worse, []string{"sha256 0000000000"}},
		// A metric that has no value is no pass.
		{"no value", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, func(_ int, r *store.Report) { r.Result.Tally.AcceptedSpans = result.Spans{} })
		}, "verify --metric response-p99", Inconclusive, []string{"no verdict: no value of response-p99 in 4 of 4 reports of 0000000002\n"}},
		{"no value, one build", func(t *testing.T, db *store.DB) {
			if err := db.Save(storetest.Report(2)); err != nil {
				t.Fatal(err)
			}
		}, "verify --like last --metric forwarded-rate", Inconclusive, []string{"no verdict: no value of forwarded-rate in 1 of 1 report", "(mark short makes it unfit in"}},
		{"unfit", func(t *testing.T, db *store.DB) {
			revisions(t, db, 4, 0.3, func(_ int, r *store.Report) { r.Result.Failed = "it broke" })
		}, "verify", Inconclusive, []string{"(mark failed makes it unfit"}},
		{"no such metric", func(*testing.T, *store.DB) {}, "verify --metric cpu-per-envelop", Usage, []string{"did you mean cpu-per-envelope?"}},
		{"no direction", func(*testing.T, *store.DB) {}, "verify --metric due-rate", Usage, []string{"neither more nor less of due-rate is better"}},
		{"no such report", func(*testing.T, *store.DB) {}, "verify --like last", CouldNot, []string{"no run was made here yet"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Open(t)
			tt.make(t, db)
			var out strings.Builder
			code, said := do(t, session(db, &out), &out, tt.line)
			wants(t, said, tt.says...)
			if code != tt.code {
				t.Errorf("code %d, want %d:\n%s", code, tt.code, said)
			}
		})
	}
}

// Of several earlier revisions the one is named that the newest is worse than.
func TestVerifyNames(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 18 {
		side := []int{0, 1, 2, 2, 1, 0}[i%6]
		r := storetest.Report(10)
		r.Result.Started = began.Add(time.Duration(i) * time.Minute)
		revision(r, side+1, i, []float64{0, 0.2, 0.2}[side])
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	s := session(db, &out)
	code, said := do(t, s, &out, "verify")
	wants(t, said, "worse: 0000000003 is worse than 0000000001 by cpu-per-envelope: +20", "against        its median         newest   shift  interval            p      n  verdict\n", "n=6+6  no difference\n")
	if code != Worse {
		t.Errorf("code %d:\n%s", code, said)
	}
	code, said = do(t, s, &out, "verify --json")
	var j struct {
		Answer  string
		Code    int
		Newest  string
		Reports []string
		Against []struct{ Baseline, Answer string }
	}
	if err := json.Unmarshal([]byte(said), &j); err != nil || code != Worse || j.Code != 1 || j.Answer != "worse" || len(j.Reports) != 6 || len(j.Against) != 2 ||
		j.Against[0].Answer != "worse" || j.Against[1].Answer != "no difference" {
		t.Errorf("code %d, %v: %+v\n%s", code, err, j, said)
	}
}

// Of each pair of builds exactly one is worse, by the metric's own direction.
func TestVerifyDirection(t *testing.T) {
	noise := []float64{0.99, 1.01, 1, 0.995, 1.005}
	low, high := scaled(1e12, noise...), scaled(1.2e12, noise...)
	for i := range store.Metrics {
		m := &store.Metrics[i]
		if m.Better == 0 {
			continue
		}
		answer := func(base, newest []float64) Code {
			v := stats.Compare(base, newest).Judge(stats.Question{Better: m.Better, Margin: store.DefaultMargin, Floor: m.Floor})
			row := &store.Row{Primary: &store.Cell{Metric: m, Verdict: &v}}
			f := &finding{newest: "b", pairs: []pair{{&store.Row{}, row, "a", "b"}}}
			f.conclude(&verifying{metric: m, margin: store.DefaultMargin})
			if words := map[stats.Answer]string{stats.Worse: "worse: b is worse than a", stats.Better: "better: b is better than a"}; !strings.HasPrefix(f.says, words[f.answer]) || words[f.answer] == "" {
				t.Errorf("%s: %q is not %s", m.Name, f.says, f.answer)
			}
			return codeOf(f.answer)
		}
		up, down := Worse, Fine
		if m.Better > 0 {
			up, down = Fine, Worse
		}
		if got := answer(low, high); got != up {
			t.Errorf("%s 20%% up: code %d, want %d", m.Name, got, up)
		}
		if got := answer(high, low); got != down {
			t.Errorf("%s 20%% down: code %d, want %d", m.Name, got, down)
		}
	}
}

// The same through the store, of those that can be made so.
func TestVerifyDirectionOfReports(t *testing.T) {
	t.Parallel()
	sketch := func(by float64) *result.Sketch {
		s := result.NewSketch()
		for i := range 2000 {
			s.Add(int64(by * 1e6 * (5 + float64(i%100)/100)))
		}
		return s
	}
	for metric, by := range map[string]func(r *store.Report, by float64){
		"cpu-per-envelope": func(r *store.Report, by float64) {
			r.Result.Relay.CPUDrain = r.Result.Relay.CPUStart + int64(by*float64(r.Result.Relay.CPUDrain-r.Result.Relay.CPUStart))
		},
		"rss-peak": func(r *store.Report, by float64) {
			r.Result.Relay.RSSPeak = int64(by * float64(r.Result.Relay.RSSPeak))
		},
		"memory-efficiency": func(r *store.Report, by float64) {
			r.Result.Tally.Accepted = uint64(by * float64(r.Result.Tally.Accepted))
		},
		"accepted-rate": func(r *store.Report, by float64) {
			r.Result.Tally.Counts[result.Accepted] = uint64(by * float64(r.Result.Tally.Counts[result.Accepted]))
		},
		"response-p99": func(r *store.Report, by float64) { r.Result.Tally.AcceptedSpans.Response = sketch(by) },
		"drain-time":   func(r *store.Report, by float64) { r.Result.DrainEnd = r.Result.LoadEnd + int64(by*1e9) },
	} {
		worse := 0
		for _, change := range []float64{1.2, 1 / 1.2} {
			db := storetest.Open(t)
			i := 0
			revisions(t, db, 4, 0, func(side int, r *store.Report) {
				i++
				f := 1 + 0.002*float64(i%3)
				if side == 1 {
					f *= change
				}
				by(r, f)
			})
			var out strings.Builder
			code, said := do(t, session(db, &out), &out, "verify --metric "+metric)
			up := change > 1
			want := Fine
			if up == (store.FindMetric(metric).Better < 0) {
				want = Worse
			}
			if code == Worse {
				worse++
			}
			if code != want {
				t.Errorf("%s by %.2f: code %d, want %d:\n%s", metric, change, code, want, said)
			}
		}
		if worse != 1 {
			t.Errorf("%s: %d of a pair are worse", metric, worse)
		}
	}
}
