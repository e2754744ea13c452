package store

// SaveFile writes a report that Save could not save to a file of its own in a
// folder, under a new id, which it sets. The file is on the disk when it
// returns; [DB.ImportFile] brings it into a store.
func (db *DB) SaveFile(r *Report, dir string) (path string, err error) { panic("stub") }

// ImportFile brings the report of such a file into the store under its own id.
// It counts as made here where host, this machine's name, is the report's. A
// report that is there already is known and not added; where another one has
// its id the error is a [ConflictError].
func (db *DB) ImportFile(path, host string) (id string, added bool, err error) { panic("stub") }

// ConflictError says that the store has another report under the id of one that was to be imported.
type ConflictError struct{ ID string }

func (e *ConflictError) Error() string { panic("stub") }
