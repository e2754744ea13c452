// Package statsd receives what a relay says of itself by DogStatsD: timers,
// counters and gauges, kept by name and tags as sketches.
//
// It must never know the run that it is for.
package statsd
