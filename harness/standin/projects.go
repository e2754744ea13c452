package standin

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/envelope"
)

// project is what is known of a project key.
type project struct {
	key   string
	state atomic.Pointer[state] // nil: not yet

	mu      sync.Mutex // guards waiting; held while state is set
	waiting []*job
}

// state is a project config. It is fetched once: no run is as long as to see it change.
type state struct {
	disabled bool
	org      uint64
	project  uint64
	key      uint64
	id       string // project in URLs
	allowed  []bool // by index in envelope.Kinds: whether the features that the kind needs are there
}

// projects are all project keys that were seen.
type projects struct {
	mu     sync.RWMutex
	byKey  map[string]*project
	wanted []*project
	wake   chan struct{} // of capacity 1: something is wanted
}

func newProjects() *projects {
	return &projects{byKey: map[string]*project{}, wake: make(chan struct{}, 1)}
}

// get is the project of a key, which is asked for when it is new.
func (ps *projects) get(key []byte) *project {
	ps.mu.RLock()
	p := ps.byKey[string(key)]
	ps.mu.RUnlock()
	if p != nil {
		return p
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p = ps.byKey[string(key)]; p == nil {
		p = &project{key: string(key)}
		ps.byKey[p.key] = p
		ps.wanted = append(ps.wanted, p)
		select {
		case ps.wake <- struct{}{}:
		default:
		}
	}
	return p
}

// batchSize is the most keys that one query asks for: Relay's cache.batch_size.
const batchSize = 500

// take takes up to batchSize wanted projects.
func (ps *projects) take() []*project {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	n := min(len(ps.wanted), batchSize)
	taken := ps.wanted[:n:n]
	ps.wanted = ps.wanted[n:]
	return taken
}

func (ps *projects) again(p []*project) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.wanted = append(ps.wanted, p...)
}

// admit hands a job on, now or when its project is known.
func (r *relay) admit(j *job) {
	p := j.project
	if p.state.Load() == nil {
		p.mu.Lock()
		if p.state.Load() == nil {
			p.waiting = append(p.waiting, j)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
	r.processing.push(j)
}

func (r *relay) resolve(p *project, s *state) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.state.Store(s)
	p.mu.Unlock()
	for _, j := range waiting {
		r.processing.push(j)
	}
}

// fetchAll asks for the projects that are wanted until ctx ends.
func (r *relay) fetchAll(ctx context.Context) {
	select {
	case <-r.global:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case <-r.projects.wake:
		case <-ctx.Done():
			return
		}
		for {
			if !sleep(ctx, r.config.batch) {
				return
			}
			asked := r.projects.take()
			if len(asked) == 0 {
				break
			}
			if err := r.fetch(asked); err != nil {
				r.log.say("ERROR", "error fetching project states: "+err.Error())
				r.projects.again(asked)
				if !sleep(ctx, 200*time.Millisecond) {
					return
				}
			}
		}
	}
}

// fetch asks for projects once; those that are pending are wanted again.
func (r *relay) fetch(asked []*project) error {
	ask := struct {
		PublicKeys []string  `json:"publicKeys"`
		Revisions  []*string `json:"revisions"`
		FullConfig bool      `json:"fullConfig"`
		NoCache    bool      `json:"noCache"`
	}{Revisions: make([]*string, len(asked))}
	for _, p := range asked {
		ask.PublicKeys = append(ask.PublicKeys, p.key)
	}
	var answer struct {
		Configs map[string]*projectConfig `json:"configs"`
		Pending []string                  `json:"pending"`
	}
	if err := r.up.query(configsPath, ask, &answer); err != nil {
		return err
	}
	pending := map[string]bool{}
	for _, key := range answer.Pending {
		pending[key] = true
	}
	for _, p := range asked {
		config := answer.Configs[p.key]
		switch {
		case pending[p.key]:
			r.projects.again([]*project{p})
		case config == nil:
			r.resolve(p, &state{disabled: true})
		default:
			r.resolve(p, config.state())
		}
	}
	return nil
}

// projectConfig is what is read of a project config.
type projectConfig struct {
	Disabled   bool        `json:"disabled"`
	ProjectID  json.Number `json:"projectId"`
	OrgID      json.Number `json:"organizationId"`
	PublicKeys []struct {
		NumericID json.Number `json:"numericId"`
	} `json:"publicKeys"`
	Config struct {
		Features []string `json:"features"`
	} `json:"config"`
}

func (c *projectConfig) state() *state {
	s := &state{disabled: c.Disabled, allowed: make([]bool, len(envelope.Kinds))}
	var err error
	if s.project, err = strconv.ParseUint(c.ProjectID.String(), 10, 64); err != nil {
		return &state{disabled: true}
	}
	s.id = strconv.FormatUint(s.project, 10)
	s.org, _ = strconv.ParseUint(c.OrgID.String(), 10, 64) // 0: left out of outcomes
	if len(c.PublicKeys) > 0 {
		s.key, _ = strconv.ParseUint(c.PublicKeys[0].NumericID.String(), 10, 64)
	}
	has := map[string]bool{}
	for _, f := range c.Config.Features {
		has[f] = true
	}
	for i, kind := range envelope.Kinds {
		s.allowed[i] = true
		for _, f := range kind.Features {
			s.allowed[i] = s.allowed[i] && has[f]
		}
	}
	return s
}
