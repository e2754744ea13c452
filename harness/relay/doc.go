// Package relay knows the program under test: how one is found and identified,
// configured, started under a keeper, watched and stopped.
//
// It must never know what is sent to it or what a run measures.
package relay
