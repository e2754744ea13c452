package envelope

import "math/rand/v2"

var agents = []string{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"}

var filteredAgents = []string{"Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0)"}

func pickAgent(r *rand.Rand, n, distinct int, filtered bool) string {
	set := agents
	if distinct > 0 {
		set = set[:distinct]
	}
	if filtered {
		set = filteredAgents
	}
	return set[n%len(set)]
}
