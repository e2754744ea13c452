package store

// Metric is one entry of the table of metrics: a dependent value, derived from a report when it is read.
type Metric struct {
	Name   string
	Unit   string // "ns" for durations, "s/send" …: what a value is in; how it is shown is the printer's
	Help   string
	Better int     // +1: more is better, -1: less is, 0: neither
	Floor  float64 // a difference at most this is none, in Unit
	// Headline metrics are in the index, the summary and default tables.
	Headline bool
	// Of derives it; ok is false where it is unknown, which is not zero.
	Of func(*Report) (value float64, ok bool)
}

// Metrics is the table of metrics, in the order in which they are listed.
var Metrics []Metric

// FindMetric is the metric of that name, or nil.
func FindMetric(name string) *Metric { panic("stub") }
