// Package result holds what was observed in a run: tallies, sketches, samples,
// causes of marks, and the ledger that is derived from them.
//
// It is a leaf of data. It must never know the engine that fills it, nor the
// store that keeps it.
package result
