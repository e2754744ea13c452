package store

import "relaybench/harness/variable"

// Role is what a variable means for a comparison.
type Role int

// The roles of variables.
const (
	// Condition is one that all reports of a group agree on, unless it is the one that they are compared by.
	Condition Role = iota
	// Follows is a condition that varies with others: where one of those in After is what reports are compared by, it may differ.
	Follows
	// Occasion never splits a group: when, in which order, under which label, how busy the host was.
	Occasion
)

// Variable is one entry of the table of variables: a named, typed, independent
// value of a report, a knob of its plan or of its provenance.
type Variable struct {
	Name string
	Unit string // "" where the type says all
	Help string // one line
	variable.Type
	Role  Role
	After []string // of one that follows: with which it varies; [AnySetting] is any config key
	// Of is the value, canonical for Type; ok is false where it is unknown.
	Of func(*Report) (value string, ok bool)
}

// AnySetting, in After, stands for every config key set with -E.
const AnySetting = "-E"

// Variables is the table of variables, in the order in which they are listed:
// the knobs, the relay, the host, relaybench, then what is of the occasion.
// A config key set with -E (a name with a dot) is a variable too, a condition
// that is in no table.
var Variables []Variable

// FindVariable is the variable of that name, of the table or a config key's.
func FindVariable(name string) (*Variable, bool) { panic("stub") }

// VariableNames are the names of the table.
func VariableNames() []string { panic("stub") }

// VariablesOf are the values of all variables of a report that are known, by
// name: those of the table and each config key of its plan.
func VariablesOf(r *Report) map[string]string { panic("stub") }

// InOrder are the names of variables in any of some reports' values: those of
// the table in its order, then the others by name.
func InOrder(values ...map[string]string) []string { panic("stub") }

// GroupKey is a text that is equal for reports that may be compared by the
// named variables: equal in every condition but those, and but what follows
// them. Without a name it is the cell: the report's whole identity.
//
// Note: the hash of the effective config is known after a run only. A plan
// that is not yet run is found among reports by naming "config-hash".
func GroupKey(values map[string]string, named ...string) string { panic("stub") }
