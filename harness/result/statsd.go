package result

// Statsd is what the relay's statsd said to the built-in receiver. Values are
// in the unit that the relay sent: Relay's timers are in milliseconds.
type Statsd struct {
	// Flushes are how many of the relay's flushes are in it: from the first one
	// after the load began to the first one after the drain; 0 where each value
	// is sent as it is made.
	Flushes int `json:"flushes"`
	// Cut is why the last flush is not in it, or not whole; empty: it is whole.
	Cut    string         `json:"cut,omitempty"`
	From   int64          `json:"from_ns"` // since the run's zero: what was made after this is in it
	To     int64          `json:"to_ns"`   // and what was made before this
	Series []StatsdSeries `json:"series"`  // by type, name and tags

	Datagrams uint64 `json:"datagrams"`
	Lines     uint64 `json:"lines"`
	// Malformed are lines that are none of the protocol. They count from the relay's start on, as do Ignored and Dropped.
	Malformed      uint64 `json:"malformed"`
	MalformedFirst string `json:"malformed_first,omitempty"`
	Ignored        uint64 `json:"ignored"`              // sets, events and service checks, which are not kept
	Over           uint64 `json:"over"`                 // lines of series beyond the most that are kept
	OverFirst      string `json:"over_first,omitempty"` // the first of them
	Dropped        int64  `json:"dropped"`              // datagrams that the kernel dropped, as the receiver was too slow; -1 unknown
}

// The types of series.
const (
	Timer   = "timer" // a timer, a histogram or a distribution: statsd's ms, h and d
	Counter = "counter"
	Gauge   = "gauge"
)

// StatsdSeries is what came under one name and one set of tags.
type StatsdSeries struct {
	Type string `json:"type"`
	Name string `json:"name"` // as it was sent, with the relay's prefix
	// Tags are as they were sent, "key:value" or "key", sorted; of values with colons the first one parts them.
	Tags    []string      `json:"tags,omitempty"`
	Timer   *Distribution `json:"timer,omitempty"`
	Counter float64       `json:"counter,omitempty"` // the sum, of all that was counted: what was sampled stands for more
	Gauge   *GaugeRange   `json:"gauge,omitempty"`
}

// GaugeRange is what a gauge had.
type GaugeRange struct {
	Last float64 `json:"last"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}
