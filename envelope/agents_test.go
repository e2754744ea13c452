package envelope

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// crawlers is what Relay takes for a web crawler, by the raw user agent.
// Source: relay-filter/src/web_crawlers.rs of Relay 26.4.0.
var crawlers = regexp.MustCompile(`(?i)Mediapartners-Google|AdsBot-Google|Googlebot|FeedFetcher-Google|Storebot-Google|BingBot|BingPreview|` +
	`Baiduspider|Slurp|Sogou|facebook|meta-|ia_archiver|bots?([/\s\);]|$)|spider([/\s\);]|$)|Slack|Calypso\sAppCrawler|pingdom|lyticsbot|` +
	`AWS\sSecurity\sScanner|HubSpot\sCrawler|Bytespider|Better\sUptime|Cloudflare-Healthchecks|GTmetrix|BrightEdgeOnCrawl|ELB-HealthChecker|` +
	`naver.me/spd|ClaudeBot|CCBot|OAI-SearchBot|GPTBot|PerplexityBot|Applebot|DuckDuckBot`)

// legacy is a browser below the version that Relay's filter "default" asks for:
// IE 10, Safari 6, Opera 15, Android's 4, Opera Mini 8. It tells the few forms of
// those browsers' user agents, where Relay asks uap-core's rules (by which both sets were checked too).
// Source: relay-filter/src/legacy_browsers.rs of Relay 26.4.0.
func legacy(agent string) bool {
	for _, rule := range []struct {
		form  *regexp.Regexp
		least int
	}{
		{regexp.MustCompile(`MSIE (\d+)`), 10},
		{regexp.MustCompile(`Opera Mini/(\d+)`), 8},
		{regexp.MustCompile(`^Opera/.*Version/(\d+)`), 15},
		{regexp.MustCompile(`OPR/(\d+)`), 15},
		{regexp.MustCompile(`Android (\d+).*Version/4\.0 Mobile Safari`), 4},
		{regexp.MustCompile(`Macintosh.*Version/(\d+).*Safari`), 6},
	} {
		if found := rule.form.FindStringSubmatch(agent); found != nil {
			version, _ := strconv.Atoi(found[1])
			return version < rule.least
		}
	}
	return false
}

func TestAgents(t *testing.T) {
	if got := UserAgents(); got < 50 {
		t.Errorf("%d user agents, want 50 or more", got)
	}
	for i, agent := range agents {
		if crawlers.MatchString(agent) || legacy(agent) {
			t.Errorf("Relay would drop %q", agent)
		}
		if slices.Contains(agents[:i], agent) {
			t.Errorf("%q twice", agent)
		}
	}
	for _, agent := range filteredAgents {
		if !crawlers.MatchString(agent) && !legacy(agent) {
			t.Errorf("Relay would let %q through", agent)
		}
	}
	for _, agent := range slices.Concat(agents, filteredAgents) {
		for _, c := range []byte(agent) {
			if c < ' ' || c > '~' {
				t.Errorf("%q is no header's value", agent)
			}
		}
	}
}

// The share that is filtered is exact, over the pool and as near as can be in each kind.
func TestFilteredShare(t *testing.T) {
	for _, c := range []struct {
		mix   string
		size  int
		share float64
		want  map[string]int
	}{
		{"errors=1,transactions=1", 40, 0, map[string]int{"errors": 0, "transactions": 0}},
		{"errors=1,transactions=1", 40, 0.2, map[string]int{"errors": 4, "transactions": 4}},
		{"errors=3,sessions=1", 100, 0.01, map[string]int{"errors": 1, "sessions": 0}},
		{"errors=3,logs=2", 10, 0.5, map[string]int{"errors": 3, "logs": 2}},
		{"errors", 8, 1, map[string]int{"errors": 8}},
	} {
		p := testPool(t, c.mix, c.size, Shape{Filtered: c.share})
		got := map[string]int{}
		for seq := range uint64(c.size) {
			if slices.Contains(filteredAgents, string(p.UserAgent(seq))) {
				got[p.Kinds()[p.Kind(seq)].Name]++
			}
		}
		for kind, want := range c.want {
			if got[kind] != want {
				t.Errorf("%s of %d, share %v: %d %s, want %d", c.mix, c.size, c.share, got[kind], kind, want)
			}
		}
	}
}

// By default the built-in ones take turns; a number is drawn from by Zipf; or each envelope has its own.
func TestDistinctAgents(t *testing.T) {
	const size = 2000
	for _, c := range []struct {
		shape       Shape
		least, most int // distinct ones
		first       int // envelopes that have the first one, about
	}{
		{Shape{}, UserAgents(), UserAgents(), size / UserAgents()},
		{Shape{UserAgents: 1}, 1, 1, size},
		{Shape{UserAgents: 5}, 5, 5, size * 60 / 137},
		{Shape{UserAgents: size}, size / 5, size / 2, size * 10 / 82},
		{Shape{Unique: true}, size, size, 1},
	} {
		p := testPool(t, "errors=1,sessions=1", size, c.shape)
		seen := map[string]int{}
		for seq := range uint64(size) {
			seen[string(p.UserAgent(seq))]++
		}
		if got := len(seen); got < c.least || got > c.most {
			t.Errorf("%+v: %d user agents, want %d to %d", c.shape, got, c.least, c.most)
		}
		if got := seen[agents[0]]; got < c.first*8/10 || got > c.first*12/10+1 {
			t.Errorf("%+v: the first one %d times, want about %d", c.shape, got, c.first)
		}
	}
}

// No two are equal, none is filtered, and all are values of a header.
func TestAgentNumbers(t *testing.T) {
	for _, c := range clients {
		if c.count < MaxAgents/len(clients) || c.count%scatter == 0 {
			t.Errorf("%s: %d user agents", c.format, c.count)
		}
	}
	const n = 20_000
	seen := make(map[string]bool, n)
	for i := range n {
		agent := agentNumber(i)
		if seen[agent] {
			t.Fatalf("number %d comes again: %s", i, agent)
		}
		seen[agent] = true
		if i%97 == 0 && (crawlers.MatchString(agent) || legacy(agent)) {
			t.Errorf("Relay would drop %q", agent)
		}
		for _, c := range []byte(agent) {
			if c < ' ' || c > '~' || c == '_' && strings.Contains(agent, "Android") {
				t.Fatalf("%q is no user agent", agent)
			}
		}
	}
	for i := range len(clients) {
		if agent := agentNumber(MaxAgents - 1 - i); seen[agent] {
			t.Errorf("one of the last comes again: %s", agent)
		}
	}
}

// Relay reads the user agent of errors and transactions in the event's request headers.
func TestAgentIsInTheRequest(t *testing.T) {
	p := testPool(t, "errors=1,transactions=1", 60, Shape{Filtered: 0.3})
	for seq := range uint64(60) {
		body := p.Append(nil, seq, 0)
		if want := `"User-Agent":"` + string(p.UserAgent(seq)) + `"`; !bytes.Contains(body, []byte(want)) {
			t.Errorf("send %d does not say %s", seq, want)
		}
	}
}
