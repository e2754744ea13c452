// Package upstream is the fake Sentry behind a relay: it speaks Relay's
// upstream protocol, counts exactly what arrives, and can be told to fail.
//
// It must never know the harness, nor who is sending: kind and time of a send
// reach it through the relay, in the stamp alone.
package upstream
