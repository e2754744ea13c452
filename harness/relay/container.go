package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultImage is the image that Sentry publishes.
// Source: .craft.yml of Relay 26.4.0, whose releases go there (latest, too) and to Docker Hub.
const DefaultImage = "ghcr.io/getsentry/relay"

// ImageWord begins the reference of an image, whichever the engine is; alone it is that of [DefaultImage].
const ImageWord = "docker"

// IsImage says whether ref names an image: "docker" is [DefaultImage], "docker:IMAGE" any.
func IsImage(ref string) bool {
	return ref == ImageWord || strings.HasPrefix(ref, ImageWord+":")
}

// ImageRef is the reference of an image by its name or id.
func ImageRef(image string) string { return ImageWord + ":" + image }

// imageName is what names of images are made of, tag, digest and id included. None begins as a flag does.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}$`)

// imageOf is the image that a reference names.
func imageOf(ref string) (string, error) {
	if ref == ImageWord {
		return DefaultImage, nil
	}
	name := strings.TrimPrefix(ref, ImageWord+":")
	if !imageName.MatchString(name) {
		return "", usage("relay %q: %q is no name of an image", ref, name)
	}
	return name, nil
}

// findImage identifies an image that the engine has. It is not pulled: see [Pull].
func findImage(ctx context.Context, ref string) (Program, error) {
	name, err := imageOf(ref)
	if err != nil {
		return Program{}, err
	}
	p := Program{Form: FormImage, Image: name}
	e, err := engineHere(ctx)
	if err != nil {
		return p, err
	}
	p.Engine = e.kind
	if p.SHA256, p.Size, err = e.image(ctx, name); err != nil {
		return p, fmt.Errorf("image %q: %w", name, err)
	}
	said, err := newContainer(e, p.imageID(), "", Setup{}).ask(ctx, "--version")
	if err != nil && ctx.Err() != nil {
		return p, err
	}
	if err != nil {
		return p, fmt.Errorf("image %q: not a Relay: --version: %w", name, err)
	}
	if p.Version, err = versionOf(said); err != nil {
		return p, fmt.Errorf("image %q: %w", name, err)
	}
	return p, nil
}

// engineHere is an engine that runs containers on this host.
func engineHere(ctx context.Context) (engine, error) {
	if runtime.GOOS != "linux" {
		return engine{}, fmt.Errorf("%w: only on Linux are the network and the processes of containers this host's", ErrNoEngine)
	}
	return chooseEngine(ctx)
}

// imageID is what the engine takes for the image that was found, whatever its name means by now.
func (p Program) imageID() string { return "sha256:" + p.SHA256 }

// Pull makes the engine fetch an image from its registry, and calls tell, which
// must not block, with each line that it says. When ctx ends, it is ended and waited for.
func Pull(ctx context.Context, ref string, tell func(line string)) error {
	name, err := imageOf(ref)
	if err != nil {
		return err
	}
	e, err := engineHere(ctx)
	if err != nil {
		return err
	}
	out := &lines{tell: tell}
	cmd := exec.CommandContext(ctx, e.path, "pull", name)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.environ(), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // and no terminal either that it could ask at
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s pull %s: %w: %s", e.kind, name, err, strings.TrimSpace(out.last))
	}
	return nil
}

// lines cuts what is written to it into lines, and keeps the last that is not empty.
type lines struct {
	tell func(line string)
	part []byte
	last string
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		end := bytes.IndexAny(l.part, "\r\n")
		if end < 0 {
			l.part = l.part[:min(len(l.part), 64<<10)]
			return len(p), nil
		}
		if line := cut(strings.TrimSpace(string(l.part[:end])), 300); line != "" {
			l.last = line
			l.tell(line)
		}
		l.part = l.part[end+1:]
	}
}

// mounted is where the folder with config and credentials is in the container.
const mounted = "/relaybench"

// container is one in which a relay is to run, or to answer a question. Its
// first process is the image's entrypoint, run with Relay's arguments.
type container struct {
	engine engine
	image  string // id
	name   string // its own, which no other has
	dir    string // with config and credentials; "": none
	cpus   string // that it may run on, as in 0,2; "": any
	memory uint64 // that it may have, bytes; 0: no limit
	pid    int    // of its first process, once it runs
}

func newContainer(e engine, image, dir string, s Setup) *container {
	return &container{engine: e, image: image, name: "relaybench-" + strings.ToLower(rand.Text()), dir: dir, cpus: s.CPUs.List(), memory: s.Memory}
}

// containerLimit bounds a question to a program in a container: one is made
// for it, in 0.3 s, and in many where the engine copies the image for it.
const containerLimit = time.Minute

// argv runs Relay in the container, attached to the CLI: it writes what Relay
// says, hands signals on, and ends as Relay does.
func (c *container) argv(args ...string) []string {
	argv := []string{c.engine.path, "run", "--pull", "never", "--name", c.name, "--label", "relaybench", "--network", "host",
		// What it says goes to the CLI alone: an engine that kept it would write it to the disk.
		"--log-driver", "none",
		// SELinux would hide the folder; a label of its own (:Z) would have to be written to the host's files.
		"--security-opt", "label=disable",
		// An engine's config may put proxies into containers: the upstream is this host.
		"--env", "NO_PROXY=127.0.0.1,::1", "--env", "no_proxy=127.0.0.1,::1"}
	// A process of ours may have as many; podman's own default is as high as it gets, and its list of limits is a whole.
	if n, ok := openFiles(); ok && c.engine.kind == engineDocker {
		argv = append(argv, "--ulimit", fmt.Sprintf("nofile=%d:%d", n, n))
	}
	uid, gid := os.Geteuid(), os.Getegid()
	switch {
	case uid != 0:
		// A process of this user's is one that this user may measure.
		argv = append(argv, "--user", fmt.Sprintf("%d:%d", uid, gid))
		if c.engine.kind == enginePodman { // rootless: a container's users are others here, unless they are kept
			argv = append(argv, "--userns", "keep-id")
			break
		}
		fallthrough
	case c.engine.kind == engineDocker:
		argv = append(argv, "--userns", "host") // where docker maps users, they have no host network
	}
	if c.dir != "" {
		argv = append(argv, "--mount", mount(c.dir))
		args = append([]string{"-c", mounted}, args...)
	}
	if c.cpus != "" {
		argv = append(argv, "--cpuset-cpus", c.cpus)
	}
	if c.memory > 0 { // and no swap beside it
		n := strconv.FormatUint(c.memory, 10)
		argv = append(argv, "--memory", n, "--memory-swap", n)
	}
	return append(append(argv, c.image), args...)
}

// mount is the value of --mount that shows a folder in the container: a line of CSV.
func mount(dir string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"type=bind", "source=" + dir, "target=" + mounted, "readonly"}) // to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// writeConfig writes config and credentials for whichever user the image runs
// as. The folder above keeps this host's other users out.
func (c *container) writeConfig(config tree) error {
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	if err := writeConfig(c.dir, config); err != nil {
		return err
	}
	for name, mode := range map[string]os.FileMode{"": 0o755, "config.yml": 0o644, "credentials.json": 0o644} {
		if err := os.Chmod(filepath.Join(c.dir, name), mode); err != nil {
			return fmt.Errorf("write config: %w", err)
		}
	}
	return nil
}

// ask runs Relay in the container for an answer. Nothing of it is left after that.
func (c *container) ask(ctx context.Context, args ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, containerLimit)
	defer cancel()
	control, orders, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer control.Close()
	defer orders.Close()
	news, status, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer news.Close()
	defer status.Close()
	cmd, err := keeperCommand(limited, "", "", "", c.ending(), c.argv(args...), c.engine.environ())
	if err != nil {
		return "", err
	}
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = []*os.File{control, status}
	cmd.Cancel = orders.Close // the keeper ends the container then
	cmd.WaitDelay = endLimit + keeperGrace
	err = cmd.Run()
	status.Close()
	said, _ := io.ReadAll(news) // a few lines, in the pipe
	exited, left := "", ""
	for line := range strings.Lines(string(said)) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "failed":
			return "", errors.New(rest)
		case "exited":
			exited = rest
		case "left":
			left = rest
		}
	}
	if exited == "" && cmd.Process != nil { // the keeper was killed
		if _, err := c.ending().end(c.engine.environ(), true); err != nil {
			left = err.Error()
		}
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("no answer within %v", containerLimit)
	case stdout.over || stderr.over:
		return "", errTooLong
	case left != "":
		return "", fmt.Errorf("container %s: %s", c.name, left)
	}
	if how := c.exitStatus(exitStatus(exited, err), ""); how != "" {
		return "", errors.New(join(how+":", engineSaid(stderr.String())))
	}
	return stdout.String(), nil
}

// engineSaid is what of an error's text says something.
func engineSaid(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "See 'docker") && !strings.HasPrefix(line, "Run 'docker") {
			kept = append(kept, line)
		}
	}
	return firstLines(strings.Join(kept, ""), 3)
}

// awaitContainer waits until the engine has started the container's first process.
func (p *Process) awaitContainer(ctx context.Context) error {
	c := p.container
	limit := time.NewTimer(containerLimit)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		var said string
		// Until it is made, the engine knows of none.
		if said, err = c.engine.ask(ctx, "container", "inspect", "--format", "{{.State.Pid}}", c.name); err == nil {
			if c.pid, err = strconv.Atoi(said); err == nil && c.pid > 0 {
				break
			}
		}
		select {
		case <-p.done:
			if e := p.Exit(); slices.Contains(engineFailed, e.Status) {
				return fmt.Errorf("%s run: %s", c.engine.kind, engineSaid(strings.Join(p.Tail(10), "\n")))
			}
			return nil // it has run, and ended
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("the engine has not started it within %v: %w", containerLimit, err)
		case <-tick.C:
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", c.pid)); err != nil {
		select {
		case <-p.done:
			return nil
		default:
			return fmt.Errorf("its process is not among this host's: %s runs containers in a virtual machine or on another host", c.engine.kind)
		}
	}
	return nil
}

// engineFailed is how the CLI ends where the engine could not run the container.
// Source: docs.docker.com/engine/containers/run, exit status; podman-run(1).
var engineFailed = []string{"exit status 125", "exit status 126", "exit status 127"}

// exitStatus is that of Relay, of what the CLI ended with and what the engine said of it.
func (c *container) exitStatus(cli, oom string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(cli, "exit status "))
	if err != nil || n <= 128 {
		return cli
	}
	how := "signal: " + syscall.Signal(n-128).String()
	if oom == "true" {
		how += " (out of its memory)"
	}
	return how
}

// ending is how a container ends: the CLI that runs it only shows it.
type ending struct {
	Name string   `json:"name"` // of the container
	Dir  string   `json:"dir"`  // goes too where nobody is left to take it away
	Ask  []string `json:"ask"`  // asked when it has ended by itself: what it says is told
	End  []string `json:"end"`  // takes it away, and then says its name
}

func (c *container) ending() *ending {
	dir := ""
	if c.dir != "" {
		dir = filepath.Dir(c.dir)
	}
	return &ending{Name: c.name, Dir: dir,
		Ask: []string{c.engine.path, "container", "inspect", "--format", "{{.State.OOMKilled}}", c.name},
		End: []string{c.engine.path, "rm", "--force", "--volumes", c.name}}
}

const (
	// endLimit is how long an engine may take to end a container.
	endLimit = 30 * time.Second
	// lateLimit is how long after the CLI was killed a container may still come to be: the engine was making it.
	lateLimit = 3 * time.Second
)

// end takes the container away; killed says that its CLI was, which may have
// been about to make it. said is what the engine says of one that ended by itself.
func (e *ending) end(env []string, killed bool) (said string, err error) {
	ask := func(argv []string) (string, error) {
		said, err := question{path: argv[0], args: argv[1:], env: env, limit: endLimit}.ask(context.Background())
		return strings.TrimSpace(said), err
	}
	if !killed {
		said, _ = ask(e.Ask) // or it is unknown
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		gone, err := ask(e.End)
		if strings.Contains(gone, e.Name) {
			return said, nil
		}
		none := err == nil || strings.Contains(strings.ToLower(err.Error()), "no such container")
		switch took := time.Since(begun); {
		case none && (!killed || took > lateLimit):
			return said, nil
		case !none && took > endLimit:
			return said, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
}

// openFiles is how many files a process of this one may have open at most.
func openFiles() (n uint64, ok bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Max), true
}
