package standin

import (
	"context"
	"sync"
	"time"

	"relaybench/envelope"
)

// Ids of outcomes. Source: relay-server/src/services/outcome.rs.
const (
	outcomeFiltered    = 1
	outcomeRateLimited = 2
	outcomeInvalid     = 3
)

// outcome is what became of elements that are not forwarded. The quantity is counted apart.
type outcome struct {
	Outcome  int    `json:"outcome"`
	Reason   string `json:"reason"`
	Category int    `json:"category"`
	Org      uint64 `json:"org_id,omitempty"`
	Project  uint64 `json:"project_id"`
	Key      uint64 `json:"key_id,omitempty"`
}

// outcomes aggregates outcomes until they are reported.
type outcomes struct {
	mu     sync.Mutex
	counts map[outcome]uint64
}

func (o *outcomes) add(what outcome, quantity uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[outcome]uint64{}
	}
	o.counts[what] += quantity
}

func (o *outcomes) take() map[outcome]uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := o.counts
	o.counts = nil
	return counts
}

// outcome counts an outcome of a job, where its kind is known.
func (r *relay) outcome(j *job, id int, reason string) {
	if !r.config.emit || j.kind < 0 {
		return
	}
	what := outcome{Outcome: id, Reason: reason, Category: envelope.Kinds[j.kind].Category, Project: j.urlProject}
	if s := j.project.state.Load(); s != nil && !s.disabled {
		what.Org, what.Project, what.Key = s.org, s.project, s.key
	}
	r.outcomes.add(what, uint64(j.elements))
}

// refused counts the outcome of a job that is answered with a status at ingest,
// if Relay makes one for its kind.
func (r *relay) refused(j *job, status int) {
	if j.kind < 0 || !envelope.Kinds[j.kind].Outcome(status) {
		return
	}
	switch status {
	case 403:
		r.outcome(j, outcomeInvalid, "project_id")
	case 413:
		r.outcome(j, outcomeInvalid, "too_large:"+envelope.Kinds[j.kind].Items[0])
	case 429:
		r.outcome(j, outcomeRateLimited, "stand-in")
	default:
		r.outcome(j, outcomeInvalid, "internal")
	}
}

// report sends what was counted; what does not get through is kept.
func (r *relay) report() error {
	type entry struct {
		Timestamp string `json:"timestamp"`
		outcome
		Quantity uint64 `json:"quantity"`
	}
	counts := r.outcomes.take()
	if len(counts) == 0 {
		return nil
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	var body struct {
		Outcomes []entry `json:"outcomes"`
	}
	for what, n := range counts {
		body.Outcomes = append(body.Outcomes, entry{at, what, n})
	}
	var answer map[string]any
	err := r.up.query("/api/0/relays/outcomes/", body, &answer)
	if err != nil {
		for what, n := range counts {
			r.outcomes.add(what, n)
		}
	}
	return err
}

// reportAll reports outcomes at each interval until ctx ends.
func (r *relay) reportAll(ctx context.Context) {
	for sleep(ctx, max(r.config.outcomes, 10*time.Millisecond)) {
		if err := r.report(); err != nil {
			r.log.say("ERROR", "failed to send outcomes: "+err.Error())
		}
	}
}
