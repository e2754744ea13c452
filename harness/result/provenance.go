package result

import "time"

// Provenance is where a run's figures come from: the relay, the host, relaybench itself.
type Provenance struct {
	Relay Relay `json:"relay"`
	Host  Host  `json:"host"`
	Bench Bench `json:"bench"`
	// ConfigText is the text of the config file that the plan names, YAML; ""
	// where it names none, and in reports of before it was kept.
	ConfigText string `json:"config_text,omitempty"`
	// MixSHA256 is of the files of the folder that the plan's mix is; "" where it is none.
	MixSHA256 string `json:"mix_sha256,omitempty"`
	// Series is of the occasion: it says nothing of what was measured.
	Series Series `json:"series,omitzero"`
}

// Series is the line of many runs that a run was one of. It is the zero value of a run by itself.
type Series struct {
	ID       string `json:"id"`       // the same for all runs of the line, and no other
	Position int    `json:"position"` // of this run among them, in time, from 1
	Of       int    `json:"of"`       // how many the line asked for
	Round    int    `json:"round"`    // through the line's list, from 1
	// Side is the run's in a comparison that takes turns, such as "A" and "B"; "" where it was of none.
	Side string `json:"side,omitempty"`
}

// Relay is the identity of the program under test, as it was found; see relay.Program, of which it is the stored form.
type Relay struct {
	Form         string    `json:"form"`
	Path         string    `json:"path,omitempty"`
	Image        string    `json:"image,omitempty"`
	Engine       string    `json:"engine,omitempty"`
	URL          string    `json:"url,omitempty"`
	Upstream     string    `json:"upstream,omitempty"`
	Version      string    `json:"version,omitempty"`
	SHA256       string    `json:"sha256,omitempty"`
	Size         int64     `json:"size,omitempty"`
	Branch       string    `json:"branch,omitempty"`
	Revision     string    `json:"revision,omitempty"`
	RevisionDate time.Time `json:"revision_date,omitzero"`
	Dirty        bool      `json:"dirty,omitempty"`
	Profile      string    `json:"profile,omitempty"`
	Rustc        string    `json:"rustc,omitempty"`
}

// Host is the machine that a run was made on. What a system does not tell is the zero value.
type Host struct {
	Name           string  `json:"name"`
	CPU            string  `json:"cpu"`    // model
	CPUs           int     `json:"cpus"`   // that this process may use
	Memory         uint64  `json:"memory"` // bytes
	OS             string  `json:"os"`
	Kernel         string  `json:"kernel"`
	Distribution   string  `json:"distribution"`
	Virtualisation string  `json:"virtualisation"`
	Governor       string  `json:"governor"`
	CgroupCPU      float64 `json:"cgroup_cpu"`    // CPUs that the cgroup allows; 0: no limit
	CgroupMemory   uint64  `json:"cgroup_memory"` // bytes; 0: no limit
	Load1          float64 `json:"load1"`         // load average over a minute, before the run

	// For a reader: no condition of any comparison, and unknown in reports made before they were.
	Uname   string `json:"uname,omitempty"`   // the kernel: its name, release, build and the machine's architecture
	Release string `json:"release,omitempty"` // the distribution's name in full
	Sockets int    `json:"sockets,omitempty"` // of the machine
	Cores   int    `json:"cores,omitempty"`   // of the machine, without SMT
	Threads int    `json:"threads,omitempty"` // of the machine, with SMT
	Turbo   string `json:"turbo,omitempty"`   // on, off
}

// Bench is relaybench itself.
type Bench struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Payload  int    `json:"payload"` // version of the payloads, a condition of every comparison
	Go       string `json:"go"`
	SHA256   string `json:"sha256,omitempty"` // of its binary
}
