package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/harness/standin"
)

// badRelay is a program that passes for a relay and then misbehaves as
// BAD_RELAY says. It is the stand-in up to where it is not.
func badRelay() int {
	how, args := os.Getenv("BAD_RELAY"), os.Args[1:]
	os.Unsetenv("RELAYBENCH_ROLE")
	if args[len(args)-1] != "run" {
		return standin.Main(context.Background(), args, os.Stdout, os.Stderr)
	}
	switch how {
	case "dies":
		fmt.Fprintln(os.Stderr, "error: cannot open the moon")
		return 3
	case "floods":
		line := bytes.Repeat([]byte("x"), 1023)
		line = append(line, '\n')
		for range 200 << 10 {
			os.Stderr.Write(line)
		}
	case "closes its output":
		os.Stdout.Close()
		os.Stderr.Close()
	case "never listens":
		select {}
	case "never registers", "never asks":
		return half(args, how == "never asks")
	case "forks":
		exe, err := os.Executable()
		if err != nil {
			return 4
		}
		child := exec.Command(exe, args...)
		child.Env = append(os.Environ(), "RELAYBENCH_ROLE="+relay.RoleStandIn)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			return 4
		}
		return 0 // and leaves the child behind
	}
	return standin.Main(context.Background(), args, os.Stdout, os.Stderr)
}

// half answers its health check, and registers or not, but never asks for the global config.
func half(args []string, register bool) int {
	text, err := os.ReadFile(filepath.Join(args[1], "config.yml"))
	var c struct {
		Relay struct {
			Upstream, Host string
			Port           int
		}
	}
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err == nil && register {
		id := `{"relay_id":"05c0f56d-ee79-4ba1-99f9-5efde02be6ea","public_key":"B7fjANOmQdrL3UjZeRm9IIEs5IKHHDGt15CCPs2ZcRY","token":"x","version":"26.4.0"}`
		for _, step := range []string{"challenge", "response"} {
			var req *http.Request
			req, err = http.NewRequest(http.MethodPost, c.Relay.Upstream+"api/0/relays/register/"+step+"/", strings.NewReader(id))
			if err != nil {
				break
			}
			req.Header.Set("X-Sentry-Relay-Id", "05c0f56d-ee79-4ba1-99f9-5efde02be6ea")
			if _, err = http.DefaultClient.Do(req); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	err = http.ListenAndServe(net.JoinHostPort(c.Relay.Host, fmt.Sprint(c.Relay.Port)), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"is_healthy":true}`)
	}))
	fmt.Fprintln(os.Stderr, err)
	return 4
}

func TestBadRelays(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write := func(mode os.FileMode, text string) string {
		path := filepath.Join(t.TempDir(), "relay")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, path string
		want       string // in the error; "" where the run is to succeed all the same
	}{
		{"missing", "/nowhere/relay", "no such file"},
		{"a folder", t.TempDir(), "a folder: give the binary in it"},
		{"not executable", write(0o600, "#!/bin/sh\n"), "not executable: chmod +x it"},
		{"no program", write(0o700, "\x00\x01\x02"), "exec format error"},
		{"another program", write(0o700, "#!/bin/sh\necho bread 1.0\n"), "not a Relay"},
		{"silent", write(0o700, "#!/bin/sh\nexec sleep 60\n"), "--version"},
		{"dies", "", "cannot open the moon"},
		{"never listens", "", "did not become ready"},
		{"never registers", "", "it registered never"},
		{"never asks", "", "did not ask its upstream for the global config"},
		{"floods", "", ""},
		{"closes its output", "", ""},
		{"forks", "", "ended by itself: exit status 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			left := watchLeft(t)
			short := *quick()
			short.ready, short.global, short.warm = 3*time.Second, time.Second, 3*time.Second
			if tt.name == "floods" {
				short.ready = time.Minute
			}
			path := tt.path
			if path == "" {
				path = write(0o700, fmt.Sprintf("#!/bin/sh\nBAD_RELAY=%q RELAYBENCH_ROLE=bad-relay exec %q \"$@\"\n", tt.name, exe))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p, err := relay.Find(ctx, path, "")
			var r *result.Result
			if err == nil {
				r, err = Run(ctx, planned(t, "duration=150ms", "pool=20", "drain=300ms"), p, Options{limits: &short})
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error()+lastLog(r), tt.want)):
				t.Errorf("error %v\n%s\nwant %q", err, lastLog(r), tt.want)
			}
			if r != nil && tt.want == "" {
				closed(t, r, result.LedgerOf(r), 30)
			}
			left()
		})
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	left := watchLeft(t)
	_, err = Run(t.Context(), planned(t), relay.Program{Form: relay.FormURL, URL: "http://127.0.0.1:1", Upstream: l.Addr().String()}, Options{limits: quick()})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error %v, want the address in use", err)
	}
	left()
	short := *quick()
	short.warm = 500 * time.Millisecond
	_, err = Run(t.Context(), planned(t), relay.Program{Form: relay.FormURL, URL: "http://127.0.0.1:1", Upstream: "127.0.0.1:0"}, Options{limits: &short})
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v, want a refused connection", err)
	}
	left()
}

// TestTooManyFiles wants to hear which limit to raise before anything starts.
func TestTooManyFiles(t *testing.T) {
	for _, tt := range []struct {
		connections, form string
		limit             uint64
		want              string
	}{
		{"10000", relay.FormStandIn, 1024, "need 20400 open files, and the limit is 1024: raise it with ulimit -n 20400"},
		{"10000", relay.FormNone, 30_399, "ulimit -n 30400"},
		{"4x2500", relay.FormStandIn, 10_399, "ulimit -n 10400"}, // the relay's, as it has them all
		{"4x2500", relay.FormStandIn, 10_400, ""},
		{"64x100", relay.FormNone, 6800, ""},
		{"32", relay.FormStandIn, 1024, ""},
	} {
		err := enoughFiles(filesNeeded(planned(t, "connections="+tt.connections), tt.form), tt.limit)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.connections, err, tt.want)
		}
	}
}

// A config that no relay of the run reads is no condition of it.
func TestConfigThatNothingReads(t *testing.T) {
	url := relay.Program{Form: relay.FormURL, URL: "http://127.0.0.1:1", Upstream: "127.0.0.1:0"}
	set, file := planned(t, "http.encoding=gzip"), planned(t)
	file.Config, file.ConfigText = "fast.yml", "http: {encoding: gzip}\n"
	for _, tt := range []struct {
		plan  plan.Plan
		relay relay.Program
		want  string
	}{
		{set, relay.Program{Form: relay.FormNone}, `check: set "http.encoding": no relay is started that could read it`},
		{file, relay.Program{Form: relay.FormNone}, `check: config "fast.yml": no relay is started that could read it`},
		{set, url, `check: set "http.encoding": a relay that is not started here keeps the config that its owner gave it`},
	} {
		if r, err := Run(t.Context(), tt.plan, tt.relay, Options{limits: quick()}); r != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: result %v, error %v, want %s", tt.relay.Form, r != nil, err, tt.want)
		}
	}
}
