// Package envelope knows Sentry's envelope format: how one is read, made and
// stamped, the kinds of envelope that a run sends, their mixes, and the pool
// that a run's sends are copied from.
//
// It must never know anything else: not HTTP, not Relay, not the upstream, not
// who sends.
package envelope
