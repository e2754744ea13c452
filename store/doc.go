// Package store keeps reports in one bbolt file and derives from them what is
// read: variables, metrics, marks, later comparisons.
//
// It knows what was observed and how it is stored. It must never know
// commands, printing, or the engine that makes a run.
package store
