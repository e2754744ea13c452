package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"relaybench/envelope"
)

// Quota is a quota in a project config. Relay outside processing mode enforces those of limit 0 only.
type Quota struct {
	ID         string   `json:"id"`
	Categories []string `json:"categories"`
	Scope      string   `json:"scope"`
	Limit      int      `json:"limit"`
	ReasonCode string   `json:"reasonCode"`
}

// handProject is the id of the project of every key that is not of
// [envelope.Key], as of a Relay tried by hand: the one that Relay's own tests use.
const handProject = 42

// configQuery is a query for configs.
type configQuery struct {
	Global     bool          `json:"global"`
	PublicKeys []string      `json:"publicKeys"`
	Revisions  []*string     `json:"revisions"`
	Projects   []json.Number `json:"projects"` // version 1, instead of PublicKeys
}

// configAnswer is the answer to it.
type configAnswer struct {
	Configs      map[string]projectState `json:"configs"`
	Pending      []string                `json:"pending"`
	Unchanged    []string                `json:"unchanged"`
	Global       json.RawMessage         `json:"global,omitempty"`
	GlobalStatus string                  `json:"globalStatus,omitempty"`
}

// projectState is what Relay learns of a project.
// Source: relay-server/src/services/projects/project/info.rs of Relay 26.4.0.
type projectState struct {
	ProjectID      int             `json:"projectId"`
	OrganizationID int             `json:"organizationId"`
	Slug           string          `json:"slug"`
	Rev            string          `json:"rev"`
	LastChange     string          `json:"lastChange"`
	Disabled       bool            `json:"disabled"`
	PublicKeys     []publicKey     `json:"publicKeys"` // the queried key only, or Relay rejects the project
	Config         json.RawMessage `json:"config"`
}

type publicKey struct {
	PublicKey string `json:"publicKey"`
	NumericID int    `json:"numericId"` // without it, Relay logs an error an event
	IsEnabled bool   `json:"isEnabled"`
}

// globalConfig is the least that Relay takes for ready; it holds back every envelope until it has one.
const globalConfig = `{"measurements":{"builtinMeasurements":[],"maxCustomMeasurements":10},` +
	`"quotas":[],"filters":{"version":1,"filters":[]},"options":{}}`

// settings is the config of every project: what Sentry gives a project by
// default, as far as it costs Relay work. There are no sessionMetrics: they
// would turn sessions into buckets without a stamp.
func settings(features []string, quotas []Quota) any {
	type m map[string]any
	enabled, disabled := m{"isEnabled": true}, m{"isEnabled": false}
	return m{
		"allowedDomains": []string{"*"},
		"trustedRelays":  []string{},
		"piiConfig":      nil,
		"groupingConfig": m{"id": "newstyle:2023-01-11", "enhancements": ""},
		"filterSettings": m{
			"browserExtensions": enabled,
			"webCrawlers":       enabled,
			"localhost":         disabled,
			"legacyBrowsers":    m{"isEnabled": true, "options": []string{"default"}},
		},
		"datascrubbingSettings": m{
			"scrubData":        true,
			"scrubDefaults":    true,
			"scrubIpAddresses": true,
			"excludeFields":    []string{},
			"sensitiveFields":  []string{},
		},
		"eventRetention": 90,
		"features":       features,
		"quotas":         quotas,
	}
}

// projects answers queries for configs. All projects have the same settings,
// so it needs no table of them.
type projects struct {
	config json.RawMessage
	rev    string // of config: equal settings have equal revisions
}

func newProjects(c Config, kinds []envelope.Kind) (projects, error) {
	features := slices.Clone(c.Features)
	for i := range kinds {
		features = append(features, kinds[i].Features...)
	}
	slices.Sort(features)
	features = slices.Compact(features)
	if features == nil {
		features = []string{}
	}
	quotas := c.Quotas
	if quotas == nil {
		quotas = []Quota{}
	}
	config, err := json.Marshal(settings(features, quotas))
	if err != nil {
		return projects{}, fmt.Errorf("project config: %w", err)
	}
	sum := sha256.Sum256(config)
	return projects{config: config, rev: hex.EncodeToString(sum[:16])}, nil
}

func (p *projects) answer(q *configQuery) configAnswer {
	a := configAnswer{Configs: map[string]projectState{}, Pending: []string{}, Unchanged: []string{}}
	if q.Global {
		a.Global, a.GlobalStatus = json.RawMessage(globalConfig), "ready"
	}
	for i, key := range q.PublicKeys {
		if i < len(q.Revisions) && q.Revisions[i] != nil && *q.Revisions[i] == p.rev {
			a.Unchanged = append(a.Unchanged, key)
			continue
		}
		id := handProject
		if project, ok := envelope.ProjectOf(key); ok {
			id = envelope.ProjectID(project)
		}
		a.Configs[key] = p.state(id, key)
	}
	for _, id := range q.Projects {
		if n, ok := projectNumber(id); ok {
			a.Configs[id.String()] = p.state(envelope.ProjectID(n), envelope.Key(n))
		}
	}
	return a
}

func (p *projects) state(id int, key string) projectState {
	return projectState{
		ProjectID:      id,
		OrganizationID: 1,
		Slug:           fmt.Sprintf("p%d", id),
		Rev:            p.rev,
		LastChange:     "2026-01-01T00:00:00Z",
		PublicKeys:     []publicKey{{PublicKey: key, NumericID: id, IsEnabled: true}},
		Config:         p.config,
	}
}
