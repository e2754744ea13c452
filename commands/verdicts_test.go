package commands

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"relaybench/store"
	"relaybench/store/stats"
	"relaybench/store/storetest"
)

func scaled(by float64, values ...float64) (out []float64) {
	for _, v := range values {
		out = append(out, by*v)
	}
	return out
}

func TestVerdictWords(t *testing.T) {
	steady := []float64{1000, 1001, 1002, 1003, 1004}
	wide := []float64{1000, 1100, 1200, 1300, 1400}
	for _, tt := range []struct {
		name           string
		a, b           []float64
		q              stats.Question
		unit           string
		figures, words string
	}{
		{"better", steady, scaled(0.7, steady...), stats.Question{Better: -1, Margin: 0.05}, "ns", "−30.0% [−30.2, −29.8] p=0.008 n=5+5", "better"},
		{"worse", steady, scaled(1.5, wide...), stats.Question{Better: -1, Margin: 0.05}, "ns", "+80% [50, 110] p=0.008 n=5+5", "worse"},
		{"the same", steady, steady, stats.Question{Better: -1, Margin: 0.05}, "ns", "0.0% [−0.3, 0.3] p=1 n=5+5", "no difference beyond 5%"},
		{"a floor", steady, scaled(1.2, steady...), stats.Question{Better: -1, Margin: 0.05, Floor: 1000}, "ns", "+20.0% [19.6, 20.4] p=0.008 n=5+5", "no difference beyond 1 µs"},
		{"few", steady[:3], steady[:3], stats.Question{Better: -1, Margin: 0.05}, "ns", "0.0% [−0.2, 0.2] p=1 n=3+3", "no verdict: needs 4 runs a side, has 3"},
		{"one", steady[:1], steady[1:2], stats.Question{Better: -1, Margin: 0.05}, "ns", "+0.10% - p=1 n=1+1", "no verdict: needs 4 runs a side, has 1"},
		{"none", steady, nil, stats.Question{Better: -1, Margin: 0.05}, "ns", "n=5+0", "no verdict: no value to compare with the baseline"},
		{"wide", wide, wide, stats.Question{Better: -1, Margin: 0.05}, "ns", "0% [−21, 27] p=1 n=5+5", "inconclusive: the interval reaches beyond the margin; about 149 runs a side would tell"},
		{"from zero", []float64{0, 0, 0, 0, 0}, []float64{7, 8, 9, 10, 11}, stats.Question{Better: -1, Margin: 0.05}, "sends", "+9 [+7, +11] p=0.008 n=5+5", "worse"},
		{"zeros", []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}, stats.Question{Better: -1, Margin: 0.05}, "sends", "0 [0, 0] p=1 n=4+4", "no difference"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := stats.Compare(tt.a, tt.b).Judge(tt.q)
			if got := pairText(&v, tt.unit); got != tt.figures {
				t.Errorf("figures %q, want %q", got, tt.figures)
			}
			if got := answerText(&v, tt.unit); got != tt.words {
				t.Errorf("words %q, want %q", got, tt.words)
			}
			if tt.a != nil && tt.b != nil && strings.Contains(answerText(&v, tt.unit), "NaN") {
				t.Error("NaN")
			}
		})
	}
}

func TestCodeOf(t *testing.T) {
	for a, want := range map[stats.Answer]Code{stats.Better: Fine, stats.NoDifference: Fine, stats.Different: Fine, stats.Worse: Worse, stats.Inconclusive: Inconclusive, stats.NoVerdict: Inconclusive} {
		if got := codeOf(a); got != want {
			t.Errorf("%s: %d, want %d", a, got, want)
		}
	}
}

// A table of verdicts fits a screen, and what is not in it is said below.
func TestVerdictTable(t *testing.T) {
	db := storetest.Open(t)
	for i := range 8 {
		r := storetest.Report(10)
		r.Plan["rate"] = []string{"200", "300"}[i%2]
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	c, err := db.Collate(store.Collation{Variable: "rate", Margin: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	rows := c.Groups[0].Rows
	pairs := []pair{{&rows[0], &rows[1], "200", "300"}}
	var out strings.Builder
	s := session(db, &out)
	for _, all := range [][]pair{pairs, append(pairs, pairs[0])} {
		out.Reset()
		if err := s.print(s.verdictTable(all, true)); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(out.String()) {
			if w := text.StringWidth(strings.TrimSuffix(l, "\n")); w > 100 {
				t.Errorf("a line is %d wide: %q", w, l)
			}
		}
		wants(t, out.String(), "n=4+4", "cpu-per-envelope", "no verdict", "no difference beyond 5%")
	}
	if got, want := strings.Join(verdictNotes(pairs), "\n"), "cpu-per-envelope, through-p50, through-p99, response-p99: no verdict: not interleaved: the machine's drift is in this number (4 runs of one side in a row)"; got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}
