package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/stats"
	"relaybench/store/storetest"
)

// sides is a comparison of n runs each of several builds that took turns, of some metrics.
func sides(t *testing.T, builds, n int, metrics []string) *store.Collated {
	t.Helper()
	db := storetest.Open(t)
	for i, side := range turns(builds, n) {
		r := storetest.Report(10)
		r.Result.Started = began.Add(time.Duration(i) * time.Minute)
		r.Provenance.Relay.Branch = fmt.Sprintf("build-%d", side)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	return collated(t, db, store.Collation{Variable: "relay-branch", Metrics: metrics})
}

// turns is which side runs are of, forth and back.
func turns(sides, n int) (order []int) {
	for round := range n {
		for i := range sides {
			if round%2 == 1 {
				i = sides - 1 - i
			}
			order = append(order, i)
		}
	}
	return order
}

// noisy are n values about one, by 1%.
func noisy(r *rand.Rand, n int, about float64) (values []float64) {
	for range n {
		values = append(values, about*math.Exp(0.01*r.NormFloat64()))
	}
	return values
}

// Of each metric, of two rows a fifth apart exactly one is worse, by the
// direction that the metric states, and the other one is the better row both ways round.
func TestWhichWayIsBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 29))
	c := sides(t, 2, 5, store.MetricNames())
	p := &c.Groups[0]
	for i, m := range c.Metrics {
		for row := range p.Rows {
			p.Rows[row].Primary = &p.Rows[row].Cells[i]
		}
		scale := max(1, 100*m.Floor)
		low, high := noisy(r, 5, 100*scale), noisy(r, 5, 120*scale)
		up, down := stats.Worse, stats.Better
		lead := 0 // the row that is the better one when the second is the higher
		switch {
		case m.Better > 0:
			up, down, lead = down, up, 1
		case m.Better == 0:
			up, down = stats.Different, stats.Different
		}
		for _, tt := range []struct {
			first, second []float64
			want          stats.Answer
			lead          int
		}{{low, high, up, lead}, {high, low, down, 1 - lead}} {
			c.Refill(&p.Rows[0], i, tt.first)
			c.Refill(&p.Rows[1], i, tt.second)
			c.Compare(&p.Rows[0], &p.Rows[1], store.DefaultMargin)
			if got := p.Rows[1].Primary.Verdict; got.Answer != tt.want {
				t.Errorf("%s, better %+d: %s (%s), want %s", m.Name, m.Better, got.Answer, got.Why, tt.want)
			}
			for row := range 2 {
				if got, want := p.Leads(row, i), m.Better != 0 && row == tt.lead; got != want {
					t.Errorf("%s, better %+d: row %d leads: %v, want %v", m.Name, m.Better, row, got, want)
				}
			}
		}
	}
}

// At no change, while the machine gets 6% slower, at most 1% of whole tables
// call any metric of any row worse or better: of two builds, and of four.
func TestFalseAlarmsOfTables(t *testing.T) {
	const tables = 1000
	spread := []float64{0.017, 0.001, 0.03, 0.13, 0.13, 0.02, 0} // of DefaultMetrics, as runs have it
	for _, builds := range []int{2, 4} {
		for _, n := range []int{4, 6, 10} {
			c := sides(t, builds, n, nil)
			if len(c.Metrics) != len(spread) {
				t.Fatalf("%d metrics", len(c.Metrics))
			}
			p := &c.Groups[0]
			r := rand.New(rand.NewPCG(uint64(builds), uint64(n)))
			order := turns(builds, n)
			alarms := 0
			for range tables {
				phase := r.Float64()
				for m, cv := range spread {
					values := make([][]float64, builds)
					for i, side := range order {
						at := float64(i) / float64(len(order)-1)
						slower := 1 + 0.06*at
						if phase > 0.5 {
							slower = 1 + 0.03*math.Sin(2*math.Pi*(at+2*phase))
						}
						v := 0.0
						if cv > 0 {
							v = 1e9 * slower * math.Exp(cv*r.NormFloat64())
						}
						values[side] = append(values[side], v)
					}
					for side := range builds {
						c.Refill(&p.Rows[side], m, values[side])
					}
				}
				var others []*store.Row
				for i := range p.Rows[1:] {
					others = append(others, &p.Rows[i+1])
				}
				c.CompareAll(&p.Rows[0], others, store.DefaultMargin)
				if alarmed(others) {
					alarms++
				}
			}
			t.Logf("%d builds, n=%d: %d of %d tables", builds, n, alarms, tables)
			if alarms*100 > tables {
				t.Errorf("%d builds, n=%d: %d of %d tables raise a false alarm", builds, n, alarms, tables)
			}
		}
	}
}

func alarmed(rows []*store.Row) bool {
	for _, row := range rows {
		for i := range row.Cells {
			if a := row.Cells[i].Verdict.Answer; a == stats.Worse || a == stats.Better {
				return true
			}
		}
	}
	return false
}

// A difference that is there is found in a table too.
func TestTableFindsADifference(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	c := sides(t, 2, 6, nil)
	p := &c.Groups[0]
	for m := range c.Metrics[:3] {
		c.Refill(&p.Rows[0], m, noisy(r, 6, 1e9))
		c.Refill(&p.Rows[1], m, noisy(r, 6, 1.1e9))
	}
	c.Compare(&p.Rows[0], &p.Rows[1], store.DefaultMargin)
	for m, want := range []stats.Answer{stats.Worse, stats.Better, stats.Worse} {
		if got := p.Rows[1].Cells[m].Verdict; got.Answer != want {
			t.Errorf("%s: %s (%s), want %s", c.Metrics[m].Name, got.Answer, got.Why, want)
		}
	}
}
