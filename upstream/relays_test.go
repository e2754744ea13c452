package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"relaybench/envelope"
)

// recorded is a recording of Relay.
func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "relay-26.4.0", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRecordings(t *testing.T) {
	one := func(typ string) map[string]uint64 { return map[string]uint64{typ: 1} }
	for _, test := range []struct {
		name   string
		answer string // "": only that it is what was recorded
		items  map[string]uint64
	}{
		{"register-response", "", nil},
		{"outcomes", "", nil},
		{"projectconfigs-global", "*", nil},
		{"projectconfigs-keys", "*", nil},
		{"register-challenge", `{"relay_id":"c173297f-b887-42b9-866d-e35ba80bcbae","token":"relaybench"}`, nil},
		{"envelope-banana", "{}", one("banana")},
		{"envelope-check_in", "{}", one("check_in")},
		{"envelope-event-attachment-user_report", `{"id":"4db95d83196147d2a0c7e9aa620e1466"}`,
			map[string]uint64{"event": 1, "attachment": 1, "user_report": 1}},
		{"envelope-event", `{"id":"de2fc2f9515c10690e730534a7d82353"}`, one("event")},
		{"envelope-feedback", `{"id":"db9ec2d024b54b2eaaa297d95a0cd812"}`, one("feedback")},
		{"envelope-log", "{}", one("log")},
		{"envelope-session", "{}", one("session")},
		{"envelope-span", "{}", one("span")},
		{"envelope-transaction", `{"id":"d9a576e9cfa288b8e4e42a9df67250ac"}`, one("transaction")},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log notes
			s := serve(t, Config{Log: log.add})
			a, err := exchange(t, s, []byte(recorded(t, test.name+".request.http")))
			if err != nil {
				t.Fatal(err)
			}
			want := test.answer
			if want == "" {
				want = strings.TrimSpace(recorded(t, test.name+".response.json"))
			}
			if a.status != 200 || want != "*" && a.body != want || a.head.Get("Content-Type") != "application/json" {
				t.Errorf("answered %d %v %s, want 200 %s", a.status, a.head, a.body, want)
			}
			st := s.Stats()
			if diff := cmp.Diff(test.items, st.Items, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if st.Malformed > 0 || len(st.UnknownRoutes) > 0 || len(log.all()) > 0 {
				t.Errorf("malformed %q, routes %v, log %q", st.MalformedFirst, st.UnknownRoutes, log.all())
			}
			if test.items != nil && (st.Envelopes != 1 || st.Unstamped != 1 || st.PlainBytes <= st.WireBytes) {
				t.Errorf("stats: %+v", st)
			}
		})
	}
	tested, err := filepath.Glob("testdata/relay-26.4.0/*.request.http")
	if err != nil || len(tested) != 14 {
		t.Errorf("%d recordings (%v), want the 14 that are tested", len(tested), err)
	}
}

// The project config is what a plain Sentry gave that Relay, but for times and names.
func TestRecordedConfigs(t *testing.T) {
	type m = map[string]any
	var want, got m
	features := []string{"organizations:ourlogs-ingestion", "organizations:session-replay", "organizations:profiling",
		"organizations:continuous-profiling", "organizations:standalone-span-ingestion"}
	s := serve(t, Config{Features: features, Kinds: testKinds[2:]})
	for _, name := range []string{"projectconfigs-global", "projectconfigs-keys"} { // the second adds to the first
		unmarshal(t, recorded(t, name+".response.json"), &want)
		a, err := exchange(t, s, []byte(recorded(t, name+".request.http")))
		if err != nil {
			t.Fatal(err)
		}
		unmarshal(t, a.body, &got)
	}
	const key = "a94ae32be2584e0bbd7a4cbb95000000"
	wantProject, gotProject := want["configs"].(m)[key].(m), got["configs"].(m)[key].(m)
	for _, project := range []m{wantProject, gotProject} {
		list := project["config"].(m)["features"].([]any)
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	}
	if diff := cmp.Diff(wantProject["config"], gotProject["config"]); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	for name := range wantProject {
		if gotProject[name] == nil && name != "lastFetch" {
			t.Errorf("project state lacks %s", name)
		}
	}
	if diff := cmp.Diff(want["global"], got["global"]); diff != "" || got["globalStatus"] != "ready" {
		t.Errorf("global status %v, config (-want +got):\n%s", got["globalStatus"], diff)
	}
	st := s.Stats()
	if st.ConfigQueries != 1 || st.ConfigKeys != 1 || st.GlobalQueries != 1 {
		t.Errorf("queries: %+v", st)
	}
}

func TestHandshake(t *testing.T) {
	s := serve(t, Config{})
	for range 2 { // a relay renews its registration
		for _, relay := range []string{"r1", "r2"} {
			var challenge, response map[string]string
			a := do(t, s, "POST", "/api/0/relays/register/challenge/", "", `{"relay_id":"`+relay+`","public_key":"k","version":"26.4.0"}`)
			unmarshal(t, a.body, &challenge)
			a = do(t, s, "POST", "/api/0/relays/register/response/", "", `{"relay_id":"`+relay+`","token":"`+challenge["token"]+`","version":"26.4.0"}`)
			unmarshal(t, a.body, &response)
			if challenge["relay_id"] != relay || challenge["token"] == "" || response["relay_id"] != relay {
				t.Errorf("%s: %v, %v", relay, challenge, response)
			}
		}
	}
	if got := s.Stats().Registered; got != 2 {
		t.Errorf("%d relays registered, want 2", got)
	}
}

// configs queries project configs.
func configs(t *testing.T, s *Server, version string, query any) (answer struct {
	Configs            map[string]projectState
	Pending, Unchanged []string
	Global             json.RawMessage
}) {
	t.Helper()
	body, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	a := do(t, s, "POST", "/api/0/relays/projectconfigs/?version="+version, "", string(body))
	if a.status != 200 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	unmarshal(t, a.body, &answer)
	return answer
}

func TestProjectConfigs(t *testing.T) {
	quota := Quota{ID: "q", Categories: []string{"error"}, Scope: "key", ReasonCode: "none left"}
	s := serve(t, Config{Features: []string{"f:more", "f:logs"}, Quotas: []Quota{quota}})
	const byHand = "31a5a894b4524f74a9a8d0e27e21ba91"
	keys := []string{envelope.Key(0), envelope.Key(99999), byHand}
	got := configs(t, s, "3", map[string]any{"publicKeys": keys, "revisions": []any{nil, "old", nil}})
	if len(got.Configs) != 3 || len(got.Unchanged) != 0 || len(got.Pending) != 0 || got.Global != nil {
		t.Fatalf("answer %+v", got)
	}
	for key, id := range map[string]int{keys[0]: envelope.ProjectID(0), keys[1]: envelope.ProjectID(99999), byHand: 42} {
		p := got.Configs[key]
		want := projectState{ProjectID: id, OrganizationID: 1, Slug: fmt.Sprintf("p%d", id), Rev: p.Rev, LastChange: p.LastChange,
			PublicKeys: []publicKey{{key, id, true}}, Config: p.Config}
		if diff := cmp.Diff(want, p); diff != "" || p.Rev == "" {
			t.Errorf("%s: rev %q, state (-want +got):\n%s", key, p.Rev, diff)
		}
		var config struct {
			Features       []string
			Quotas         []Quota
			SessionMetrics any
		}
		unmarshal(t, string(p.Config), &config)
		if diff := cmp.Diff([]string{"f:errors", "f:logs", "f:more"}, config.Features); diff != "" {
			t.Errorf("features (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]Quota{quota}, config.Quotas); diff != "" || config.SessionMetrics != nil {
			t.Errorf("session metrics %v, quotas (-want +got):\n%s", config.SessionMetrics, diff)
		}
	}

	rev := got.Configs[byHand].Rev
	again := configs(t, s, "3", map[string]any{"publicKeys": keys, "revisions": []any{rev, nil, rev}})
	if diff := cmp.Diff([]string{keys[0], byHand}, again.Unchanged); diff != "" || len(again.Configs) != 1 {
		t.Errorf("%d configs, unchanged (-want +got):\n%s", len(again.Configs), diff)
	}
	same := serve(t, Config{Features: []string{"f:logs", "f:more"}, Quotas: []Quota{quota}})
	other := serve(t, Config{Features: []string{"f:logs", "f:other"}, Quotas: []Quota{quota}})
	query := map[string]any{"publicKeys": []string{byHand}}
	if got := configs(t, same, "3", query).Configs[byHand].Rev; got != rev {
		t.Errorf("same settings: revision %s, want %s", got, rev)
	}
	if got := configs(t, other, "3", query).Configs[byHand].Rev; got == rev {
		t.Errorf("other settings: same revision %s", got)
	}
}

// What Relay asks in other versions is answered, and said once.
func TestProjectConfigVersions(t *testing.T) {
	for _, version := range []string{"1", "2", "3", "4", "5", ""} {
		t.Run(version, func(t *testing.T) {
			var log notes
			s := serve(t, Config{Log: log.add})
			query := map[string]any{"publicKeys": []string{envelope.Key(6)}}
			name := envelope.Key(6)
			if version == "1" {
				query, name = map[string]any{"projects": []string{"7"}}, "7"
			}
			for range 2 {
				got := configs(t, s, version, query).Configs[name]
				if got.ProjectID != 7 || len(got.PublicKeys) != 1 || got.PublicKeys[0].PublicKey != envelope.Key(6) {
					t.Errorf("answer %+v", got)
				}
			}
			if got, want := len(log.all()) == 1, version != "3"; got != want {
				t.Errorf("log %q", log.all())
			}
		})
	}
}

func TestManyProjects(t *testing.T) {
	s := serve(t, Config{})
	var keys []string
	for i := range 500 { // what Relay asks for at once
		keys = append(keys, envelope.Key(200*i))
	}
	got := configs(t, s, "3", map[string]any{"publicKeys": keys})
	for i, key := range keys {
		if id := got.Configs[key].ProjectID; id != envelope.ProjectID(200*i) {
			t.Errorf("project of key %s: %d", key, id)
		}
	}
	if got := s.Stats().ConfigKeys; got != 500 {
		t.Errorf("%d keys, want 500", got)
	}
}

func TestSmallRoutes(t *testing.T) {
	s := serve(t, Config{})
	for _, test := range []struct{ method, path, body, want string }{
		{"GET", "/api/0/relays/live/", "", `{"is_healthy":true}`},
		{"POST", "/api/0/relays/publickeys/", `{"relay_ids":["x"]}`, `{"public_keys":{},"relays":{}}`},
		{"POST", "/api/0/relays/outcomes", `{"outcomes":[]}`, `{}`},
	} {
		if got := do(t, s, test.method, test.path, "", test.body); got.status != 200 || got.body != test.want {
			t.Errorf("%s %s: %d %s", test.method, test.path, got.status, got.body)
		}
	}
	if s.Changed() != 0 {
		t.Errorf("changed at %d by no outcome", s.Changed())
	}
}

func TestMetrics(t *testing.T) {
	s := serve(t, Config{})
	body := `{"buckets":{"k1":[{"name":"c:a"},{"name":"c:b"}],"k2":[{}]}}`
	for _, encoding := range []string{"", "zstd", "gzip"} {
		if got := do(t, s, "POST", "/api/0/relays/metrics/", encoding, encode(t, encoding, body)); got.status != 200 || got.body != "{}" {
			t.Errorf("%s: %d %s", encoding, got.status, got.body)
		}
	}
	if got := s.Stats().MetricBuckets; got != 9 {
		t.Errorf("%d buckets, want 9", got)
	}
}

func TestOutcomes(t *testing.T) {
	s := serve(t, Config{})
	for range 2 {
		if _, err := exchange(t, s, []byte(recorded(t, "outcomes.request.http"))); err != nil {
			t.Fatal(err)
		}
	}
	do(t, s, "POST", "/api/0/relays/outcomes/", "", `{"outcomes":[{"outcome":2,"reason":"no category or quantity"}]}`)
	want := []Outcome{
		{1, 1, "legacy-browsers", 2}, {1, 1, "web-crawlers", 2},
		{2, -1, "no category or quantity", 1},
		{3, 1, "duplicate_item", 2}, {3, 1, "invalid_json", 2}, {3, 1, "project_id", 2}, {3, 1, "too_large:event", 2},
		{3, 2, "invalid_transaction", 4}, {3, 9, "invalid_transaction", 4}, {3, 12, "invalid_transaction", 4}, {3, 16, "invalid_transaction", 4},
		{3, 23, "invalid_json", 6}, {3, 24, "invalid_json", 246},
		{5, 1, "network_error", 2}, {5, 1, "queue_overflow", 4}, {5, 2, "sample_rate", 6},
	}
	if diff := cmp.Diff(want, s.Stats().Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if s.Changed() == 0 {
		t.Errorf("nothing changed")
	}
}

// Reasons are free text: their number is bounded, the sums are not touched.
func TestOutcomeReasonsAreBounded(t *testing.T) {
	o := newOutcomes(10)
	category := uint8(1)
	for i := range 100 {
		o.add([]report{{Outcome: 3, Category: &category, Reason: fmt.Sprint(i)}})
	}
	list, sum := o.list(), uint64(0)
	for _, outcome := range list {
		sum += outcome.Quantity
	}
	if len(list) != 11 || sum != 100 || !slices.Contains(list, Outcome{3, 1, "other", 90}) {
		t.Errorf("%d outcomes of %d: %v", len(list), sum, list)
	}
}

func TestBadJSON(t *testing.T) {
	for _, path := range []string{"register/challenge", "register/response", "projectconfigs", "outcomes", "metrics"} {
		path = "/api/0/relays/" + path + "/"
		for name, test := range map[string]struct {
			encoding, body string
			status         int
		}{
			"cut":          {"", `{"relay_id":`, 400},
			"list":         {"", `[]`, 400},
			"not zstd":     {"zstd", `{}`, 400},
			"encoding":     {"rot13", `{}`, 415},
			"half counted": {"", `{"outcomes":[{"outcome":1,"quantity":5},{"outcome":-1}],"buckets":{"a":[1],"b":2},"relay_id":7,"publicKeys":["k",5]}`, 400},
			"no relay":     {"", `{"relay_id":"","outcomes":3,"buckets":4,"publicKeys":5}`, 400},
			"too large":    {"", `{"x":"` + strings.Repeat("x", 2000) + `"}`, 413},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				l := defaultLimits()
				l.json = 1000
				s := serveLimited(t, Config{}, l)
				a := do(t, s, "POST", path, test.encoding, test.body)
				st := s.Stats()
				if a.status != test.status || st.Malformed != 1 || !strings.HasPrefix(st.MalformedFirst, strings.TrimSuffix(path, "/")) {
					t.Errorf("status %d, %d malformed, first %q", a.status, st.Malformed, st.MalformedFirst)
				}
				if len(st.Outcomes) > 0 || st.MetricBuckets+st.Registered+st.ConfigQueries > 0 {
					t.Errorf("counted %+v", st)
				}
			})
		}
	}
}

func TestUnknownRoutes(t *testing.T) {
	var log notes
	s := serve(t, Config{Log: log.add})
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/api/7/store/?sentry_key=a", 404},
		{"POST", "/api/8/store/", 404},
		{"POST", "/api/0/envelope/", 404},
		{"POST", "/api/x/envelope/", 404},
		{"POST", "/api/7x/envelope/", 404},
		{"POST", "/api/", 404},
		{"GET", "/api/7/envelope/", 405},
		{"GET", "/api/0/relays/outcomes/", 405},
		{"GET", "/", 404},
	} {
		if got := do(t, s, test.method, test.path, "", ""); got.status != test.status {
			t.Errorf("%s %s: status %d, want %d", test.method, test.path, got.status, test.status)
		}
	}
	want := map[string]uint64{
		"POST /api/{project}/store": 2, "POST /api/0/envelope": 1, "POST /api/x/envelope": 1, "POST /api/7x/envelope": 1, "POST /api": 1,
		"GET /api/{project}/envelope": 1, "GET /api/0/relays/outcomes": 1, "GET ": 1,
	}
	st := s.Stats()
	if diff := cmp.Diff(want, st.UnknownRoutes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if st.Requests != 0 || len(log.all()) != len(want) {
		t.Errorf("%d envelope requests, log %q", st.Requests, log.all())
	}
	for i := range 500 {
		do(t, s, "GET", fmt.Sprintf("/%d", i), "", "")
	}
	if got := len(s.Stats().UnknownRoutes); got > 101 {
		t.Errorf("%d unknown routes are kept", got)
	}
}
