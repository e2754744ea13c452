// Package builds makes builds of Relay from a git checkout, and keeps them.
//
// It knows git and cargo. It must never know what a run is, nor print.
package builds
