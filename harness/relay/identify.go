package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// identifyLimit bounds every question to a program that is being identified.
const identifyLimit = 5 * time.Second

func findPath(ctx context.Context, ref string) (Program, error) {
	path := ref
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return Program{}, fmt.Errorf("exec %q: %w", ref, err)
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Program{}, fmt.Errorf("exec %q: %w", ref, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Program{}, fmt.Errorf("exec %q: %w: give the path of a relay binary, a URL, stand-in or none", ref, reason(err))
	case err != nil:
		return Program{}, fmt.Errorf("exec %q: %w", ref, reason(err))
	case info.IsDir():
		return Program{}, fmt.Errorf("exec %q: a folder: give the binary in it, such as %s", ref, filepath.Join(ref, "target", "release", "relay"))
	case !info.Mode().IsRegular():
		return Program{}, fmt.Errorf("exec %q: not a regular file", ref)
	case info.Mode().Perm()&0o111 == 0:
		return Program{}, fmt.Errorf("exec %q: not executable: chmod +x it, if it is a relay", ref)
	}
	p, err := identify(ctx, FormPath, path)
	if err != nil {
		return Program{}, fmt.Errorf("exec %q: %w", ref, err)
	}
	p.Profile, p.Rustc = profile(path), rustc(path)
	p.claim(ctx)
	return p, nil
}

// reason is what a path error says beside the path.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// profile is cargo's profile of target/PROFILE/relay and target/TRIPLE/PROFILE/relay,
// also behind a link; "" for any other path.
func profile(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	up := filepath.Dir(dir)
	if filepath.Base(up) != "target" && filepath.Base(filepath.Dir(up)) != "target" {
		return ""
	}
	if name := filepath.Base(dir); name == "release" || name == "debug" {
		return name
	}
	return ""
}

// identify asks a binary for its version and hashes it.
func identify(ctx context.Context, form, path string) (Program, error) {
	p := Program{Form: form, Path: path}
	said, err := question{path: path, args: []string{"--version"}, env: p.environ(), limit: identifyLimit}.ask(ctx)
	if errors.Is(err, syscall.ENOENT) {
		return p, errors.New("its interpreter is missing, or it was built for another system")
	}
	if err != nil && ctx.Err() != nil {
		return p, err
	}
	if err != nil {
		return p, fmt.Errorf("not a Relay: --version: %w", err)
	}
	if p.Version, err = versionOf(said); err != nil {
		return p, err
	}
	p.SHA256, p.Size, err = digest(path)
	if err != nil {
		return p, fmt.Errorf("hash: %w", reason(err))
	}
	return p, nil
}

// OwnSHA256 is of the binary that this process runs, read once; "" where it cannot be read.
var OwnSHA256 = sync.OnceValue(func() string {
	path, err := keeperPath()
	if err != nil {
		return ""
	}
	sum, _, err := digest(path)
	if err != nil {
		return ""
	}
	return sum
})

// versionOf is the version in what a Relay says to --version: "relay 26.4.0".
func versionOf(said string) (string, error) {
	first, _, _ := strings.Cut(said, "\n")
	name, version, _ := strings.Cut(strings.TrimSpace(first), " ")
	if name != "relay" || version == "" || strings.ContainsAny(version, " \t") {
		return "", fmt.Errorf("not a Relay: --version says %q", cut(first, 60))
	}
	return version, nil
}

func digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// environ is the environment that the program is run in.
func (p Program) environ() []string {
	env := scrubbed(os.Environ())
	if role := p.role(); role != "" {
		env = append(env, RoleVar+"="+role)
	}
	return env
}

// role is the face of relaybench's binary that the program is, "" for any other binary.
func (p Program) role() string {
	if p.Form == FormStandIn {
		return RoleStandIn
	}
	return ""
}

func findURL(ctx context.Context, ref, upstream string) (Program, error) {
	u, err := url.Parse(ref)
	switch {
	case err != nil:
		return Program{}, usage("relay %q: not a URL", ref)
	case u.Scheme != "http":
		return Program{}, usage("relay %q: only http is spoken, as Relay itself speaks it", ref)
	case u.Hostname() == "", u.User != nil, u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return Program{}, usage("relay %q: give http://HOST:PORT and nothing more", ref)
	case upstream == "":
		return Program{}, usage("relay %q: give its --upstream HOST:PORT too, the address that it sends to: relaybench will listen there", ref)
	}
	if host, port, err := net.SplitHostPort(upstream); err != nil || host == "" || port == "" {
		return Program{}, usage("--upstream %q: give HOST:PORT", upstream)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	p := Program{Form: FormURL, Upstream: upstream, URL: "http://" + net.JoinHostPort(u.Hostname(), port)}
	ctx, cancel := context.WithTimeout(ctx, identifyLimit)
	defer cancel()
	client := healthClient()
	defer client.CloseIdleConnections()
	a, err := askHealth(ctx, client, p.URL)
	if err != nil {
		return Program{}, fmt.Errorf("relay %q: %w", ref, err)
	}
	// Without its upstream a Relay is alive and not ready: that is no reason to refuse it.
	if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
		return Program{}, fmt.Errorf("relay %q: not a Relay: its health check answers %d", ref, a.status)
	}
	p.Version = a.version
	return p, nil
}
