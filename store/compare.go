package store

import (
	"errors"

	"relaybench/store/stats"
)

// Collation is what is asked of the reports: groups that are equal in every
// condition but the named variable, and in each of them the reports by its value.
type Collation struct {
	// Variable is the named one; those that follow it vary with it.
	Variable string
	// With are more that may vary with it, though they do not follow it.
	With    []string
	Filters []Filter
	Limit   Newest
	Metrics []string // in the order in which they are wanted
	// Primary is the metric that decides. It is compared whether or not it is among Metrics.
	Primary string
	// Baseline is the value of Variable that the others are compared with; empty: the first of each group.
	Baseline string
	Margin   float64 // the relative difference that matters: 0.05 is 5%
	Marked   bool    // with values that marks make unfit
}

// Collated is what the reports say.
type Collated struct {
	Reports    int               // that the filters match, within the limit
	Cut        int               // that match and that the limit left out
	Unreadable []string          // ids of reports of which nothing is known
	Without    int               // reports in which Variable has no value
	Metrics    []*Metric         // of each row's cells
	Primary    *Metric           //
	Shared     map[string]string // conditions in which all groups are equal
	Groups     []Peers           // in the order of their conditions
}

// Peers are the reports that are equal in every condition but the named variable.
type Peers struct {
	Differs map[string]string // its conditions that are not in Shared
	Rows    []Row             // by value of the variable, in its type's order
}

// Row is the reports of a group with one value of the named variable.
type Row struct {
	Value   string
	Follows map[string]string // what varies with the variable, where all runs of the row agree
	Runs    []Run             // oldest first
	Cells   []Cell            // by Collated.Metrics
	Primary Cell              // of Collated.Primary
}

// Run is one report of a row.
type Run struct {
	Entry
	Values []Value // by Collated.Metrics
}

// Value is a metric of a run.
type Value struct {
	Value float64
	Known bool
	Unfit string // the first mark that makes it unfit; empty: none
}

// Cell is one metric of a row: what is fit of it, how it lies, and how it
// compares with the baseline.
type Cell struct {
	Metric  *Metric
	Values  []float64 // of those runs that count, oldest first
	Summary stats.Summary
	Unfit   map[string]int // values left out, by mark
	Unknown int            // runs in which it is unknown
	// Verdict is against the baseline's cell; nil of the baseline itself.
	Verdict *stats.Verdict
	// Order is how the runs that count followed the baseline's.
	Order stats.Order
	// Drift is by how much the calibration differs from the baseline's: 0.03 is 3%. DriftKnown is false where it is not known.
	Drift      float64
	DriftKnown bool
}

// Collate groups reports and compares them. It reads the index alone where all
// metrics are in it, else also the reports of the groups that it gives.
func (db *DB) Collate(c Collation) (*Collated, error) { return nil, errors.New("stub") }

// Compare judges a row against another, the baseline, by Collated.Metrics: the
// primary metric alone, the others corrected together. It fills their cells' comparisons in row.
func (c *Collated) Compare(base, row *Row, margin float64) {}
