package result

import "time"

// Result is what was observed in one run. Nothing in it is derived: metrics,
// marks and the ledger are computed from it when it is read. All times named
// _ns are nanoseconds; instants are since the run's zero, on the system's monotonic clock.
type Result struct {
	Started time.Time `json:"started"` // wall clock, for people
	Ended   time.Time `json:"ended"`

	Target    string `json:"target"` // "relay", or "upstream" where the blaster sent straight into it
	LoadStart int64  `json:"load_start_ns"`
	LoadEnd   int64  `json:"load_end_ns"`  // when the schedule ended or was cut; 0: no load
	DrainEnd  int64  `json:"drain_end_ns"` // when all was accounted for, or the drain given up; 0: no drain
	Drain     Drain  `json:"drain"`
	DrainWhy  string `json:"drain_why,omitempty"` // what kept the relay at work, where that is known of a drain that was cut off

	Cancelled   string `json:"cancelled,omitempty"`    // the cause, where the run was stopped from outside
	Failed      string `json:"failed,omitempty"`       // the error that ended the run
	FailedStep  string `json:"failed_step,omitempty"`  // the step in which it failed or was cancelled
	MemoryGuard string `json:"memory_guard,omitempty"` // why the load was stopped for memory

	Tally *Tally `json:"tally"`
	Kinds []Kind `json:"kinds"` // in the table's order

	Relay    RelayRun `json:"relay_run"`
	Upstream Upstream `json:"upstream"`
	Harness  Harness  `json:"harness"`
	Pool     Pool     `json:"pool"`
	// Statsd is nil where there was no receiver for it.
	Statsd  *Statsd  `json:"statsd,omitempty"`
	Profile *Profile `json:"profile,omitempty"` // nil: none was recorded

	Samples           []Sample `json:"samples"`
	CalibrationBefore int64    `json:"calibration_before_ns"` // a fixed loop of about 0.3 s, timed
	CalibrationAfter  int64    `json:"calibration_after_ns"`
}

// Drain is how the drain ended.
type Drain string

// How a drain ends.
const (
	DrainNone    Drain = ""            // there was none
	Drained      Drain = "drained"     // all was accounted for
	Settled      Drain = "settled"     // nothing came any more and the relay was quiet: what is missing is unaccounted
	NotDrained   Drain = "not drained" // cut off while the relay still worked
	DrainExited  Drain = "exited"      // the relay ended: what is missing is unaccounted
	DrainUnknown Drain = "unknown"     // nothing came any more, and whether the relay was quiet cannot be seen
)

// Cell counts the sends of one kind that were answered alike, by what became of them upstream.
type Cell struct {
	Sends        uint64 `json:"sends"`
	Items        uint64 `json:"items"` // elements in them
	Arrived      uint64 `json:"arrived"`
	ArrivedItems uint64 `json:"arrived_items"`
	Lost         uint64 `json:"lost"` // answered 4xx, 429 or 500 by the upstream, and never acknowledged
	LostItems    uint64 `json:"lost_items"`
	Missing      uint64 `json:"missing"` // never acknowledged upstream
	MissingItems uint64 `json:"missing_items"`
}

// Kind is what was observed of one kind of envelope.
type Kind struct {
	Name      string           `json:"name"`
	Unit      string           `json:"unit"`     // what an element is called
	Category  int              `json:"category"` // whose outcomes are its own
	Due       uint64           `json:"due"`
	DueItems  uint64           `json:"due_items"`
	Answers   map[string]*Cell `json:"answers"`    // by Answer.String, of those sent
	Silent    []string         `json:"silent"`     // answers that make no outcome at the relay
	Elements  uint64           `json:"elements"`   // elements that arrived
	Repeats   uint64           `json:"repeats"`    // sends that came again
	Outcomes  []Outcome        `json:"outcomes"`   // of its category, warm-up's taken off
	Through   *Sketch          `json:"through"`    // from due to arrival upstream
	BodyBytes uint64           `json:"body_bytes"` // of its sends
}

// Outcome is a count of elements that the relay reported as not forwarded.
type Outcome struct {
	Outcome  int    `json:"outcome"`
	Category int    `json:"category"`
	Reason   string `json:"reason"`
	Quantity uint64 `json:"quantity"`
}

// RelayRun is what was seen of the relay as a process. What could not be seen is unknown: CPU and memory then say so.
type RelayRun struct {
	Config     string    `json:"config"`            // its effective config, YAML
	ConfigHash string    `json:"config_hash"`       // without the keys that the run owns
	Ignored    []string  `json:"ignored,omitempty"` // keys of the plan's config file that this relay does not know
	Exit       Exit      `json:"exit"`
	Died       string    `json:"died,omitempty"` // how it ended by itself, in mid-run
	Messages   []Message `json:"messages"`       // warnings and errors from load start to the stop
	Log        []string  `json:"log"`            // its last lines

	ReadyAfter int64 `json:"ready_ns"` // from its start to settled warm-up
	CPUKnown   bool  `json:"cpu_known"`
	IdleCPU    int64 `json:"idle_cpu_ns"`  // CPU used in the idle window
	IdleTook   int64 `json:"idle_took_ns"` // the window
	CPUStart   int64 `json:"cpu_start_ns"` // its CPU clock at load start
	CPULoad    int64 `json:"cpu_load_ns"`  // at load end
	CPUDrain   int64 `json:"cpu_drain_ns"` // at drain end

	MemoryKnown bool  `json:"memory_known"`
	RSSStart    int64 `json:"rss_start"` // bytes at load start
	RSSPeak     int64 `json:"rss_peak"`  // high-water mark from load start
	RSSDrained  int64 `json:"rss_drained"`
	// Limit is its effective limit of upstream requests at once; 0 unknown.
	Limit int `json:"limit,omitempty"`

	// CPUs are those that its threads were allowed, as the system had them during the load, as in 0,2-3; "" unknown.
	CPUs        string       `json:"cpus,omitempty"`
	MemoryLimit *MemoryLimit `json:"memory_limit,omitempty"` // nil: it was given none
}

// MemoryLimit is the limit of memory that a run gave its relay, and how that met it.
type MemoryLimit struct {
	Way   LimitWay `json:"way"`
	Why   string   `json:"why,omitempty"`   // why it is by no better way
	Bytes uint64   `json:"bytes"`           // that the relay may have
	Peak  uint64   `json:"peak,omitempty"`  // the most that was counted; 0 unknown
	Hits  uint64   `json:"hits,omitempty"`  // times that the limit was met, and memory reclaimed
	Kills uint64   `json:"kills,omitempty"` // processes that the kernel killed at it
	// Before is what LimitRelay counts beside the relay: the bytes in use when it started, which were allowed on top.
	Before  uint64 `json:"before,omitempty"`
	Counted string `json:"counted,omitempty"` // whose memory LimitRelay counts: "cgroup" or "host"
}

// LimitWay is how a limit of memory is held.
type LimitWay string

// The ways, the best first.
const (
	LimitContainer LimitWay = "container" // of the relay's container
	LimitGroup     LimitWay = "cgroup"    // of a cgroup that was made for the relay
	LimitRelay     LimitWay = "relay"     // by Relay's own health.max_memory_bytes
)

// Exit is how the relay ended.
type Exit struct {
	Ended  bool   `json:"ended"`
	Status string `json:"status"`
	Killed bool   `json:"killed"`
	Took   int64  `json:"took_ns"`
}

// Message is a warning or error in the relay's log, and how often it came.
type Message struct {
	Level string `json:"level"`
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// Upstream is what the upstream counted, warm-up excluded.
type Upstream struct {
	Envelopes      uint64            `json:"envelopes"` // acknowledged
	Repeats        uint64            `json:"repeats"`
	WireBytes      uint64            `json:"wire_bytes"`
	PlainBytes     uint64            `json:"plain_bytes"`
	Items          map[string]uint64 `json:"items"`
	Answers        map[string]uint64 `json:"answers"`
	OtherOutcomes  []Outcome         `json:"other_outcomes"`  // of no kind's category
	ClientReported []Outcome         `json:"client_reported"` // what clients themselves reported as lost
	Unstamped      uint64            `json:"unstamped"`
	Malformed      uint64            `json:"malformed"`
	MalformedFirst string            `json:"malformed_first,omitempty"`
	UnknownRoutes  map[string]uint64 `json:"unknown_routes,omitempty"`
	OpenMax        int               `json:"open_max"`
	WarmUps        uint64            `json:"warm_ups"`
}

// Harness is what relaybench itself used, and what shared the CPUs with it and the relay, from load start to drain end.
type Harness struct {
	CPUs      float64 `json:"cpus"`        // that the run could use: fewer than the host's, such as 0.5, where a cgroup says so
	CPULoad   int64   `json:"cpu_load_ns"` // of relaybench and its sender processes during the load
	CPUDrain  int64   `json:"cpu_drain_ns"`
	WaitLoad  int64   `json:"wait_load_ns"`  // its threads, and those of its sender processes, waited for a CPU during the load; -1 unknown
	RelayWait int64   `json:"relay_wait_ns"` // likewise the relay's; -1 unknown
	Others    int64   `json:"others_ns"`     // CPU of all other processes from load start to drain end; -1 unknown
	RSSPeak   int64   `json:"rss_peak"`
	GCs       uint64  `json:"gcs"` // collections during the load

	// Allowed are the CPUs that the threads of relaybench and its sender processes were allowed during the load, as in 0,2-3; "" unknown.
	Allowed string `json:"allowed,omitempty"`
	// Cores are those that it shared with the relay without sharing the CPU, by their threads, as in 0,4; known where either was pinned.
	Cores []string `json:"cores,omitempty"`
}

// Profile is where the relay spent its CPU time during the load, by samples.
type Profile struct {
	CallGraph string `json:"call_graph"` // how callers were found: fp, dwarf, lbr
	Freq      int    `json:"freq"`       // samples a second of CPU
	Event     string `json:"event"`      // what was counted between samples: cycles or cpu-clock, with :u where the kernel's part is not in it
	Perf      string `json:"perf"`       // version of the recorder
	Took      int64  `json:"took_ns"`    // how long it recorded
	Samples   uint64 `json:"samples"`
	Lost      uint64 `json:"lost"`             // samples that had no room, and are not in it
	Whole     uint64 `json:"whole"`            // samples whose stack goes down to where its thread begins
	Cut       uint64 `json:"cut,omitempty"`    // samples whose callers were left out to keep the profile small
	Failed    string `json:"failed,omitempty"` // why there is none, or not all of it
	Data      []byte `json:"data,omitempty"`   // for pprof: profile.proto, compressed
}

// Pool is what was sent from.
type Pool struct {
	Payload   int    `json:"payload"` // version of the payloads
	Envelopes int    `json:"envelopes"`
	Files     int    `json:"files,omitempty"` // of a folder, that they are of; 0: they are made
	Bytes     uint64 `json:"bytes"`
	Agents    int    `json:"agents"` // distinct user agents in it
	// AgentsSent is how many of them were sent; 0 also in reports of before it was counted.
	AgentsSent int `json:"agents_sent,omitempty"`
	WarmUps    int `json:"warm_ups"`
}

// Sample is taken once a second during the load and the drain. Counts are since load start.
type Sample struct {
	At         int64  `json:"at_ns"` // since load start
	Draining   bool   `json:"draining,omitempty"`
	Due        uint64 `json:"due"`
	Sent       uint64 `json:"sent"`
	Accepted   uint64 `json:"accepted"`
	Refused    uint64 `json:"refused"`
	Failed     uint64 `json:"failed"`
	Arrived    uint64 `json:"arrived"`        // first acknowledgements
	Outcomes   uint64 `json:"outcomes"`       // in sends, by the kinds' mean elements
	Backlog    int64  `json:"backlog"`        // sent less arrived, outcomes and refused without one
	RelayCPU   int64  `json:"relay_cpu_ns"`   // since load start; -1 unknown
	RelayRSS   int64  `json:"relay_rss"`      // bytes; -1 unknown
	Threads    int    `json:"threads"`        // of the relay; -1 unknown
	HarnessCPU int64  `json:"harness_cpu_ns"` // of relaybench, without its sender processes
	HarnessRSS int64  `json:"harness_rss"`    // likewise, in bytes; 0 unknown, as in reports of before it was sampled
	LateMax    int64  `json:"late_max_ns"`    // the largest lateness of a send since the sample before
	Open       int    `json:"open"`           // envelope requests open at the upstream
}
