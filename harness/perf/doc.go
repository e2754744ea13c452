// Package perf records where a process spends its CPU time, with Linux's perf,
// and makes a profile of it that pprof reads.
//
// It knows perf and its formats, and pprof. It must never know what is
// profiled, the store, or printing.
package perf
