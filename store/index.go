package store

import "time"

// Entry is what the index knows of a report: its variables, headline metrics
// and marks. It holds no transaction, and may be kept.
type Entry struct {
	ID         string
	Start, End time.Time // of the run; zero where there was none
	Own        bool      // made here, not imported
	// Problem is why the report cannot be read, in words that say what to do.
	// Nothing else is known of it then.
	Problem string
}

// EntryOf derives an entry from a report, or from the plan and provenance of one that is not yet run.
func EntryOf(r *Report) *Entry { panic("stub") }

// Var is the value of a variable, canonical; ok is false where it is unknown or not set.
func (e *Entry) Var(name string) (value string, ok bool) { panic("stub") }

// Vars are all variables that are known, by name.
func (e *Entry) Vars() map[string]string { panic("stub") }

// Metric is the value of a headline metric, in its unit; ok is false where it is unknown.
func (e *Entry) Metric(name string) (value float64, ok bool) { panic("stub") }

// Marks are the marks that it has, in the table's order.
func (e *Entry) Marks() []*Mark { panic("stub") }

// Unfit says whether its marks make a metric unfit, and which one does first.
func (e *Entry) Unfit(metric string) (by string, ok bool) { panic("stub") }

// Fit says that it can be read and that no mark makes any metric of it unfit.
func (e *Entry) Fit() bool { panic("stub") }

// Group is [GroupKey] of its variables.
func (e *Entry) Group(named ...string) string { panic("stub") }

// Newest limits what is read to the newest reports. Its zero value is no limit.
type Newest struct {
	N      int           // that many at most; 0: no limit
	Within time.Duration // saved that long ago at most; 0: no limit
}

// Entries are the reports that all filters match, newest last, and how many
// more match that the limit cut off. No transaction is open when it returns.
func (db *DB) Entries(filters []Filter, limit Newest) (entries []Entry, cut int, err error) {
	panic("stub")
}

// Index brings the index up to date where the tables of variables, metrics or
// marks are not those that made it; else it does nothing. It reads every report
// then: tell, which may be nil, hears how many it has done. [DB.Entries] calls it.
func (db *DB) Index(tell func(done, all int)) error { panic("stub") }
