//go:build !linux

package upstream

// newCarrier is how connections are served on this system.
func newCarrier(s *Server) carrier { return newGoroutines(s) }
