package relay_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/harness/relay"
)

func TestFindErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		writeExecutable(t, path, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ name, ref, upstream, want string }{
		{"nothing", "", "", "no relay given"},
		{"no file", dir + "/no", "", `/no": no such file or directory: give the path`},
		{"a file on the way", file("plain", "", 0o644) + "/relay", "", "not a directory"},
		{"a folder", dir, "", "a folder: give the binary in it, such as " + dir + "/target/release/relay"},
		{"not executable", file("data", "#!/bin/sh\necho relay 1.2.3", 0o644), "", "not executable"},
		{"not a program", file("text", "relay 1.2.3", 0o755), "", "not a Relay: --version: exec format error"},
		{"empty", file("empty", "", 0o755), "", "not a Relay: --version: exec format error"},
		{"no interpreter", file("orphan", "#!/no/such/interpreter\n", 0o755), "", "interpreter is missing"},
		{"another program", file("other", "#!/bin/sh\necho sentry-cli 2.0.0", 0o755), "", `not a Relay: --version says "sentry-cli 2.0.0"`},
		{"a longer name", file("longer", "#!/bin/sh\necho relayd 2.0.0", 0o755), "", "not a Relay"},
		{"no version", file("bare", "#!/bin/sh\necho relay", 0o755), "", `says "relay"`},
		{"silent", file("silent", "#!/bin/sh", 0o755), "", `says ""`},
		{"fails", file("fails", "#!/bin/sh\necho oh >&2\nexit 4", 0o755), "", "not a Relay: --version: exit status 4: oh"},
		{"endless", file("endless", "#!/bin/sh\nexec yes relay 1.2.3", 0o755), "", "it printed too much"},
		{"upstream without URL", "stand-in", "127.0.0.1:1", "--upstream is for a relay given as a URL"},
		{"https", "https://127.0.0.1:3000", "127.0.0.1:1", "only http is spoken"},
		{"another scheme", "ftp://127.0.0.1", "127.0.0.1:1", "only http is spoken"},
		{"no host", "http://:3000", "127.0.0.1:1", "give http://HOST:PORT"},
		{"a path", "http://127.0.0.1:3000/api", "127.0.0.1:1", "give http://HOST:PORT"},
		{"a password", "http://u:p@127.0.0.1:3000", "127.0.0.1:1", "give http://HOST:PORT"},
		{"a bad URL", "http://127.0.0.1:port", "127.0.0.1:1", "not a URL"},
		{"no upstream", "http://127.0.0.1:1", "", "give its --upstream HOST:PORT"},
		{"a bad upstream", "http://127.0.0.1:1", "7899", "give HOST:PORT"},
		{"nobody there", "http://127.0.0.1:1", "127.0.0.1:2", "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := relay.Find(t.Context(), c.ref, c.upstream)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %v, want %q", p, err, c.want)
			}
		})
	}
}

// A program that never answers is given up, and nothing of it stays.
func TestFindGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay")
	writeExecutable(t, path, "#!/bin/sh\necho $$ >\""+path+".pid\"\nsleep 1000 & wait")
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error)
	go func() {
		_, err := relay.Find(ctx, path, "")
		got <- err
	}()
	all := pids(t, path+".pid", 1)
	cancel(cause)
	if err := <-got; !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	wait(t, "its end", func() bool { return gone(all[0]) })
}

func TestFindPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "target", "release")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "relay")
	// Its input is empty, and Relay's variables are not there.
	const text = "#!/bin/sh\ncat\necho relay 26.4.0$(env | grep RELAY_)"
	writeExecutable(t, path, text)
	t.Setenv("RELAY_PORT", "1")
	t.Setenv("HOME", filepath.Dir(filepath.Dir(dir)))
	sum := sha256.Sum256([]byte(text))
	for _, ref := range []string{path, "~/target/release/relay"} {
		got, err := relay.Find(t.Context(), ref, "")
		want := relay.Program{Form: relay.FormPath, Path: path, Version: "26.4.0", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text)), Profile: "release"}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", ref, got, err, want)
		}
	}
	link := filepath.Join(t.TempDir(), "relay")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if got := find(t, link); got.Path != link || got.Profile != "release" {
		t.Errorf("a link: got %+v, want its own path and the profile release", got)
	}
}

func TestFindOthers(t *testing.T) {
	none := find(t, "none")
	if none != (relay.Program{Form: relay.FormNone}) {
		t.Errorf("none: got %+v", none)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	standIn := find(t, "stand-in")
	if standIn.Form != relay.FormStandIn || standIn.Path != self || standIn.Version != "stand-in-1" || len(standIn.SHA256) != 64 || standIn.Size == 0 || standIn.Revision != "" {
		t.Errorf("stand-in: got %+v", standIn)
	}
	for _, c := range []struct {
		status  int
		server  string
		version string
		want    string
	}{
		{200, "sentry-relay/26.4.0", "26.4.0", ""},
		{503, "sentry-relay/26.4.0", "26.4.0", ""},
		{200, "nginx", "", ""},
		{404, "nginx", "", "not a Relay: its health check answers 404"},
		{302, "nginx", "", "not a Relay"},
	} {
		asked := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			w.Header().Set("Server", c.server)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
		}))
		got, err := relay.Find(t.Context(), s.URL+"/", "127.0.0.1:7899")
		s.Close()
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d: got %v, want %q", c.status, err, c.want)
			}
			continue
		}
		want := relay.Program{Form: relay.FormURL, URL: s.URL, Upstream: "127.0.0.1:7899", Version: c.version}
		if err != nil || got != want || asked != "/api/relay/healthcheck/ready/" {
			t.Errorf("%d: got %+v, %v (asked %s), want %+v", c.status, got, err, asked, want)
		}
	}
}

func TestString(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		p    relay.Program
		want string
	}{
		{relay.Program{Form: relay.FormNone}, "no relay: straight into the upstream"},
		{relay.Program{Form: relay.FormStandIn, Version: "stand-in-1"}, "stand-in (stand-in-1 built into relaybench)"},
		{relay.Program{Form: relay.FormURL, URL: "http://h:1", Upstream: "h:2"}, "relay of unknown version at http://h:1, sending to h:2"},
		{relay.Program{Form: relay.FormPath, Path: "/x/relay", Version: "26.4.0", SHA256: sum}, "relay 26.4.0, sha256 0123456789ab (/x/relay)"},
		{relay.Program{Form: relay.FormPath, Path: "/x/relay", Version: "26.4.0", SHA256: sum, Profile: "debug", Branch: "main", Revision: sum[:40], Dirty: true},
			"relay 26.4.0 debug, main 0123456789ab (dirty), sha256 0123456789ab (/x/relay)"},
		{relay.Program{Form: relay.FormPath, Path: "/x/relay", Version: "26.4.0", Revision: sum[:40]}, "relay 26.4.0, 0123456789ab (/x/relay)"},
	} {
		if got := c.p.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// git runs git in a folder, with a config and an identity of its own.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestRevisionIsClaimedWhereItMayBe(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	touch := func(t *testing.T, path string, at time.Time) {
		t.Helper()
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		do      func(t *testing.T, dir, binary string)
		claimed bool
		branch  string
		dirty   bool
	}{
		{"built after all", nil, true, "main", false},
		{"changed before the build", func(t *testing.T, dir, binary string) {
			writeExecutable(t, dir+"/src.rs", "changed")
			touch(t, dir+"/src.rs", time.Now().Add(time.Minute))
			touch(t, binary, time.Now().Add(2*time.Minute))
		}, true, "main", true},
		{"changed after the build", func(t *testing.T, dir, binary string) {
			touch(t, dir+"/src.rs", time.Now().Add(2*time.Hour))
		}, false, "", false},
		{"a file deleted", func(t *testing.T, dir, binary string) {
			if err := os.Remove(dir + "/src.rs"); err != nil {
				t.Fatal(err)
			}
		}, false, "", false},
		{"HEAD moved after the build", func(t *testing.T, dir, binary string) {
			touch(t, binary, time.Now().Add(-time.Minute))
			for _, name := range []string{"src.rs", "Cargo.toml", ".gitignore"} {
				touch(t, filepath.Join(dir, name), time.Now().Add(-time.Hour))
			}
		}, false, "", false},
		{"HEAD moved after the build, no reflog", func(t *testing.T, dir, binary string) {
			if err := os.RemoveAll(dir + "/.git/logs"); err != nil {
				t.Fatal(err)
			}
			touch(t, binary, time.Now().Add(-time.Minute))
			for _, name := range []string{"src.rs", "Cargo.toml", ".gitignore"} {
				touch(t, filepath.Join(dir, name), time.Now().Add(-time.Hour))
			}
		}, false, "", false},
		{"no reflog", func(t *testing.T, dir, binary string) {
			if err := os.RemoveAll(dir + "/.git/logs"); err != nil {
				t.Fatal(err)
			}
		}, true, "main", false},
		{"detached", func(t *testing.T, dir, binary string) { git(t, dir, "checkout", "-q", "--detach") }, true, "", false},
		{"an untracked file", func(t *testing.T, dir, binary string) {
			writeExecutable(t, dir+"/notes", "")
			touch(t, dir+"/notes", time.Now().Add(2*time.Hour))
		}, true, "main", false},
		{"the binary is tracked", func(t *testing.T, dir, binary string) {
			git(t, dir, "add", "-f", binary)
			git(t, dir, "commit", "-qm", "binary")
			touch(t, binary, time.Now().Add(time.Hour))
		}, false, "", false},
		{"not a cargo checkout", func(t *testing.T, dir, binary string) {
			git(t, dir, "rm", "-q", "Cargo.toml")
			git(t, dir, "commit", "-qm", "no cargo")
		}, false, "", false},
		{"GIT_DIR of another repository", func(t *testing.T, dir, binary string) {
			other := t.TempDir()
			git(t, other, "init", "-q", "-b", "other")
			t.Setenv("GIT_DIR", other+"/.git")
			t.Setenv("GIT_WORK_TREE", other)
		}, true, "main", false},
		{"no commit", func(t *testing.T, dir, binary string) {
			if err := os.RemoveAll(dir + "/.git"); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "init", "-q")
		}, false, "", false},
		{"no repository", func(t *testing.T, dir, binary string) {
			if err := os.RemoveAll(dir + "/.git"); err != nil {
				t.Fatal(err)
			}
		}, false, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "init", "-q", "-b", "main")
			for name, text := range map[string]string{"Cargo.toml": "[workspace]", "src.rs": "", ".gitignore": "/target"} {
				writeExecutable(t, filepath.Join(dir, name), text)
			}
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-qm", "first")
			revision := git(t, dir, "rev-parse", "HEAD")
			binary := filepath.Join(dir, "target", "x86_64-unknown-linux-gnu", "debug", "relay")
			if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
				t.Fatal(err)
			}
			writeExecutable(t, binary, "#!/bin/sh\necho relay 1.2.3\n")
			touch(t, binary, time.Now().Add(time.Hour))
			if c.do != nil {
				c.do(t, dir, binary)
			}
			got := find(t, binary)
			if got.Profile != "debug" {
				t.Errorf("profile: got %q, want debug", got.Profile)
			}
			if !c.claimed {
				if got.Revision != "" || got.Branch != "" || got.Dirty || !got.RevisionDate.IsZero() {
					t.Errorf("got %+v, want no claim", got)
				}
				return
			}
			if got.Revision != revision || got.Branch != c.branch || got.Dirty != c.dirty || time.Since(got.RevisionDate) > time.Minute {
				t.Errorf("got %+v, want revision %s of %q, dirty %v", got, revision, c.branch, c.dirty)
			}
			if os.Getenv("GIT_DIR") == "" {
				if left, err := filepath.Glob(dir + "/.git/*.lock"); err != nil || len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			}
		})
	}
}

// What cannot be meant is told from what is not there.
func TestFindErrorsOfUsage(t *testing.T) {
	for _, c := range []struct {
		ref, upstream  string
		usage, missing bool
	}{
		{"", "", true, false},
		{"stand-in", "127.0.0.1:2", true, false},
		{"https://127.0.0.1:1", "127.0.0.1:2", true, false},
		{"http://127.0.0.1:1/api", "127.0.0.1:2", true, false},
		{"http://127.0.0.1:port", "127.0.0.1:2", true, false},
		{"http://127.0.0.1:1", "", true, false},
		{"http://127.0.0.1:1", "nonsense", true, false},
		{"http://127.0.0.1:1", "127.0.0.1:2", false, false}, // nobody is there
		{t.TempDir() + "/no", "", false, true},
		{t.TempDir(), "", false, false},
	} {
		_, err := relay.Find(t.Context(), c.ref, c.upstream)
		var usage *relay.UsageError
		if got := errors.As(err, &usage); err == nil || got != c.usage {
			t.Errorf("%q, %q: %v: of usage %t, want %t", c.ref, c.upstream, err, got, c.usage)
		}
		if got := errors.Is(err, fs.ErrNotExist); got != c.missing {
			t.Errorf("%q, %q: %v: missing %t, want %t", c.ref, c.upstream, err, got, c.missing)
		}
	}
}
