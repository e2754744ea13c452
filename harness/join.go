package harness

import (
	"relaybench/harness/result"
	"relaybench/upstream"
)

// join makes the cross table of both ends: for each number of the schedule,
// how its sender saw it answered and what became of it upstream.
func (x *run) join() {
	kinds := make([]result.Kind, len(x.index))
	cells := make([][result.Answers]result.Cell, len(x.index))
	for i, k := range x.index {
		kinds[i] = result.Kind{Name: x.kinds[k].Name, Unit: x.kinds[k].Unit, Category: x.kinds[k].Category}
	}
	log := &x.tally.Log
	x.kept = 0
	for seq := uint64(0); seq < log.End(); seq++ {
		answer := log.Answer(seq)
		if answer == result.NotDue {
			continue
		}
		i := x.pool.Kind(seq)
		items := uint64(x.pool.Elements(seq))
		k := &kinds[i]
		k.Due++
		k.DueItems += items
		if answer == result.NotSent {
			continue
		}
		k.BodyBytes += uint64(x.pool.Size(seq))
		c := &cells[i][answer]
		c.Sends++
		c.Items += items
		switch x.up.Fate(x.index[i], seq) {
		case upstream.Arrived, upstream.Partly:
			c.Arrived++
			c.ArrivedItems += items
		case upstream.Lost:
			c.Lost++
			c.LostItems += items
		case upstream.Kept:
			x.kept++
			fallthrough
		default:
			c.Missing++
			c.MissingItems += items
		}
	}
	st := x.up.Stats()
	outcomes := x.outcomes(st)
	taken := map[int]bool{}
	for i := range kinds {
		k, table := &kinds[i], x.index[i]
		k.Answers = map[string]*result.Cell{}
		for a := range cells[i] {
			answer := result.Answer(a)
			if answer.Refused() && !x.kinds[table].Outcome(answer.Status()) {
				k.Silent = append(k.Silent, answer.String())
			}
			if cells[i][a].Sends > 0 {
				k.Answers[answer.String()] = &cells[i][a]
			}
		}
		k.Elements = st.Elements[k.Name]
		k.Repeats = st.RepeatsByKind[k.Name]
		k.Through = x.agent.kinds[table].sketch
		// Note: where two kinds of a mix share a category, their outcomes cannot be told apart; the first one has them.
		for _, o := range outcomes {
			if o.Category == k.Category && o.Outcome != outcomeClient && !taken[k.Category] {
				k.Outcomes = append(k.Outcomes, o)
			}
		}
		taken[k.Category] = true
	}
	x.res.Kinds, x.res.Tally = kinds, x.tally
}
