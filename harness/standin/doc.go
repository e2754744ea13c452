// Package standin is the small relay built into relaybench: it speaks both
// sides of Relay's protocol, so that a newcomer and the tests have a relay at
// hand. Its behaviour is set by config keys standin.*.
//
// It must never know the harness that starts it.
package standin
