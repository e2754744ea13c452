package store

// Mark is one entry of the table of marks: something that a reader must know
// of a report, derived from stored causes when it is read.
type Mark struct {
	Name  string
	Help  string   // when it stands, one line
	Unfit []string // the metrics that it makes unfit for comparison, by name; "*" is all; none: a notice
	// Of says whether the report has it, and why in a few words with figures.
	Of func(*Report) (why string, ok bool)
}

// Marks is the table of marks.
var Marks []Mark

// Marked is a mark that a report has.
type Marked struct {
	*Mark
	Why string
}

// MarksOf are the marks of a report, in the table's order.
func MarksOf(r *Report) []Marked { panic("stub") }

// Unfit says whether marks make the metric unfit, and which one does first.
func Unfit(marks []Marked, metric string) (by string, ok bool) { panic("stub") }
