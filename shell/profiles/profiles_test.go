package profiles

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	addr, stop, err := Serve("127.0.0.1:0", func(host string) bool { return strings.HasPrefix(host, "127.0.0.1:") })
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path, host string) (int, string) {
		t.Helper()
		r, err := http.NewRequest("GET", "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
	if code, body := get("/debug/pprof/goroutine?debug=1", ""); code != 200 || !strings.Contains(body, "goroutine profile:") {
		t.Errorf("got %d %q, want goroutines", code, body)
	}
	if code, _ := get("/debug/pprof/", "evil.example:80"); code != 403 {
		t.Errorf("got %d for a name that is not this machine's, want 403", code)
	}
	if code, _ := get("/", ""); code != 404 {
		t.Errorf("got %d for another path, want 404", code)
	}
	stop()
	if _, err := client.Get("http://" + addr + "/debug/pprof/"); err == nil {
		t.Error("it answers after its end")
	}
}
