// Package blaster sends the envelopes of a pool by a schedule, over many
// connections, and brings back a tally: it is the load generator.
//
// It knows HTTP/1.1 as far as a send needs it. It must never know what a run
// or a relay is, nor what becomes of a send behind the address it is sent to.
package blaster
