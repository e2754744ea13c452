// Package profiles serves profiles of relaybench itself, for go tool pprof.
package profiles

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Serve serves profiles of this very process at /debug/pprof/ of addr, until
// stop has returned, to requests of whose host local says that it is this
// machine by an address of its own: a web page whose name was made to lead here must not read them.
//
// Note: a profile stops all threads for moments and costs CPU, which runs that go on then have in their figures.
func Serve(addr string, local func(host string) bool) (at string, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: only(local, mux), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	return l.Addr().String(), func() {
		server.Close()
		<-done
	}, nil
}

func only(local func(host string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) {
			http.Error(w, fmt.Sprintf("%q is no loopback address with a port", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
