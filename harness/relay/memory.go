package relay

import (
	"fmt"
	"strconv"

	"relaybench/harness/host"
	"relaybench/harness/result"
)

// maxMemoryKey is Relay's own limit. Above it Relay answers 503, and is not ready.
// Source: relay-config/src/config.rs, Health; relay-server/src/utils/memory.rs.
const maxMemoryKey = "health.max_memory_bytes"

// limitMemory gives the program the memory that it may have: by its container
// or a cgroup where one may be made, else by its config, of which it then gives what it has set.
//
// Note: Relay counts all of the topmost cgroup or of the host. What is in use
// there before it starts is allowed on top, else it would refuse all from the beginning.
func (p *Process) limitMemory(program Program, s Setup, config tree) (own []setting, err error) {
	if s.Memory == 0 {
		return nil, nil
	}
	if program.Form == FormImage {
		p.limit = &result.MemoryLimit{Way: result.LimitContainer, Bytes: s.Memory}
		return nil, nil
	}
	group, err := (*host.Group)(nil), s.noGroup
	if err == nil {
		group, err = host.MakeGroup(s.Memory)
	}
	if err == nil {
		p.memory, p.limit = group, &result.MemoryLimit{Way: result.LimitGroup, Bytes: s.Memory}
		return nil, nil
	}
	why := fmt.Sprintf("no cgroup may be made: %v", err)
	if _, said := config.get(maxMemoryKey); said {
		return nil, fmt.Errorf("%s, and %s is set already", why, maxMemoryKey)
	}
	p.limit = &result.MemoryLimit{Way: result.LimitRelay, Why: why, Bytes: s.Memory}
	p.limit.Before, p.limit.Counted = host.RelayCounts()
	most := p.limit.Before + s.Memory
	config.set(maxMemoryKey, most)
	return []setting{{maxMemoryKey, strconv.FormatUint(most, 10), most}}, nil
}

// groupDir is the folder of its cgroup, "" where it has none of its own.
func (p *Process) groupDir() string {
	if p.memory == nil {
		return ""
	}
	return p.memory.Dir
}

// used notes what the keeper says of the cgroup that it has removed.
func (p *Process) used(figures string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limit
	if _, err := fmt.Sscan(figures, &l.Peak, &l.Hits, &l.Kills); err != nil {
		l.Peak, l.Hits, l.Kills = 0, 0, 0
	}
}

// MemoryLimit is the limit of memory that it was started with, and what was
// seen of it: whole once it has ended. nil: there is none.
func (p *Process) MemoryLimit() *result.MemoryLimit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == nil {
		return nil
	}
	l := *p.limit
	return &l
}
