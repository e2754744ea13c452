package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The engines that run containers, in the order in which they are asked.
const (
	engineDocker = "docker"
	enginePodman = "podman"
)

// ErrNoEngine says that nothing runs containers here.
var ErrNoEngine = errors.New("no container engine")

// ErrNoImage says that the engine has no such image.
var ErrNoImage = errors.New("no such image here")

// engine is a CLI of an engine that runs containers.
type engine struct {
	kind string // engineDocker, enginePodman
	path string
}

// engineLimit bounds one question to an engine; it takes 50 ms, and seconds on a machine that is busy.
const engineLimit = 20 * time.Second

// environ is the environment of the CLI: where its engine is, is said there.
// Note: nothing of it comes into the container.
func (e engine) environ() []string {
	return append(programEnv(), "DOCKER_CLI_HINTS=false") // advertising among what it says
}

// ask asks the engine something.
func (e engine) ask(ctx context.Context, args ...string) (string, error) {
	said, err := question{path: e.path, args: args, env: e.environ(), limit: engineLimit}.ask(ctx)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s %s: %w", e.kind, args[0], err)
	}
	return strings.TrimSpace(said), err
}

// findEngine is the CLI of an engine that was chosen before.
func findEngine(kind string) (engine, error) {
	path, err := exec.LookPath(kind)
	if err != nil && kind == enginePodman {
		path, err = exec.LookPath(engineDocker) // podman under docker's name
	}
	if err != nil {
		return engine{}, fmt.Errorf("%w: %s is not there any more", ErrNoEngine, kind)
	}
	return engine{kind, path}, nil
}

// chooseEngine is the first engine that answers; where none does, the error is
// what the first one said.
func chooseEngine(ctx context.Context) (engine, error) {
	var first error
	for _, name := range []string{engineDocker, enginePodman} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		e := engine{name, path}
		if err = e.probe(ctx); err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return e, context.Cause(ctx)
		}
		if first == nil {
			first = fmt.Errorf("%w answers: %w", ErrNoEngine, err)
		}
	}
	if first == nil {
		first = fmt.Errorf("%w: neither docker nor podman is there", ErrNoEngine)
	}
	return engine{}, first
}

// probe asks whether the engine runs its containers here: a run needs this host's
// network, and sees their processes.
func (e *engine) probe(ctx context.Context) error {
	version, err := e.ask(ctx, "--version")
	if err != nil {
		return err
	}
	if strings.Contains(version, enginePodman) {
		e.kind = enginePodman
		remote, err := e.ask(ctx, "info", "--format", "{{.Host.ServiceIsRemote}}")
		if err == nil && remote == "true" {
			err = errors.New("podman runs containers in a virtual machine or on another host, whose network and processes are not this host's")
		}
		return err
	}
	said, err := e.ask(ctx, "info", "--format", "{{json .}}")
	if err != nil {
		return err
	}
	var info struct {
		OperatingSystem string
		SecurityOptions []string
		ServerErrors    []string // where it does not answer, and all the same is no error
	}
	if err := json.Unmarshal([]byte(said), &info); err != nil {
		return fmt.Errorf("docker info: %w", err)
	}
	switch {
	case len(info.ServerErrors) > 0:
		return fmt.Errorf("docker info: %s", firstLines(info.ServerErrors[0], 1))
	case info.OperatingSystem == "Docker Desktop":
		return errors.New("it is Docker Desktop, which runs containers in a virtual machine, whose network and processes are not this host's")
	case slices.Contains(info.SecurityOptions, "name=rootless"):
		// Source: docs.docker.com/engine/security/rootless: --net=host is not the host's.
		return errors.New("rootless docker gives containers a network of its own, not this host's: podman uses the host's")
	}
	return nil
}

// Images are the images that the engine has whose name speaks of a relay, as references.
func Images(ctx context.Context) []string {
	e, err := engineHere(ctx)
	if err != nil {
		return nil
	}
	said, err := e.ask(ctx, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
	if err != nil {
		return nil
	}
	var found []string
	for name := range strings.Lines(said) {
		name = strings.TrimPrefix(strings.TrimSpace(name), "localhost/")
		if strings.Contains(name, "relay") && imageName.MatchString(name) {
			found = append(found, ImageRef(name))
		}
	}
	return found
}

// image is the id and the size of an image that the engine has.
//
// Note: the id is the sha256 of the image's config, which names the layers: the
// same wherever the image is, and there also for one that was never in a registry, which
// has no digest. (Where docker keeps images in containerd, it is that of the manifest.)
func (e engine) image(ctx context.Context, name string) (id string, size int64, err error) {
	said, err := e.ask(ctx, "image", "inspect", "--format", "{{.Id}} {{.Size}}", name)
	if err != nil {
		text := strings.ToLower(err.Error())
		if strings.Contains(text, "no such image") || strings.Contains(text, "image not known") {
			err = fmt.Errorf("%w: %s has none of this name", ErrNoImage, e.kind)
		}
		return "", 0, err
	}
	id, bytes, _ := strings.Cut(said, " ")
	id = strings.TrimPrefix(id, "sha256:")
	if size, err = strconv.ParseInt(bytes, 10, 64); err != nil || len(id) != 64 {
		return "", 0, fmt.Errorf("%s image inspect says %q", e.kind, cut(said, 100))
	}
	return id, size, nil
}
