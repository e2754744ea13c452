package commands

import "time"

// State is how far a job is.
type State string

// The states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"      // it did what it was to do, whatever the verdict
	Failed    State = "failed"    // typed wrongly, or could not run
	Cancelled State = "cancelled" // by a client, or because relaybench ended
)

// Job is what is to know of a queued command line at a moment.
type Job struct {
	ID    string // such as j12; a number is never used twice in a store
	Owner string // the name of the client that typed it
	Line  string // as it could be typed again
	State State
	Since time.Time // when it came into that state
	// Left is until when it will have ended, about; known is false where that cannot be said.
	Left  time.Duration
	Known bool
	Code  Code // of one that has ended
}
