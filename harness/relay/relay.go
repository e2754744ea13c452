package relay

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// RoleVar is the environment variable that chooses the face of relaybench's
// binary. The keeper hands the program its own role, or none.
const RoleVar = "RELAYBENCH_ROLE"

// The faces that this package starts the binary in.
const (
	RoleKeeper  = "keeper"   // see [KeeperMain]
	RoleStandIn = "stand-in" // the small relay built into relaybench
)

// The forms of a relay.
const (
	FormPath    = "path"     // a binary of Relay
	FormStandIn = "stand-in" // the small relay built into relaybench
	FormNone    = "none"     // no relay: the blaster straight into the upstream
	FormURL     = "url"      // somebody else's running Relay
	FormImage   = "image"    // an image of Relay, in a container
)

// Program is a relay that was found and identified. What is unknown of it is
// the zero value. It is stored with a report as provenance.
type Program struct {
	Form     string `json:"form"`
	Path     string `json:"path,omitempty"`     // of the binary
	Image    string `json:"image,omitempty"`    // as it was named
	Engine   string `json:"engine,omitempty"`   // that runs the image: docker, podman
	URL      string `json:"url,omitempty"`      // of somebody else's Relay, http://host:port
	Upstream string `json:"upstream,omitempty"` // where that one sends to: host:port for us to listen on
	Version  string `json:"version,omitempty"`  // as it says: "26.4.0"
	SHA256   string `json:"sha256,omitempty"`   // of the binary; of an image, its id
	Size     int64  `json:"size,omitempty"`     // of the binary or image, bytes
	// Branch, Revision, RevisionDate and Dirty are claimed only of a binary that
	// lies in a checkout whose HEAD and tracked files are all older than it.
	Branch       string    `json:"branch,omitempty"`
	Revision     string    `json:"revision,omitempty"`
	RevisionDate time.Time `json:"revision_date,omitzero"`
	Dirty        bool      `json:"dirty,omitempty"`
	Profile      string    `json:"profile,omitempty"` // "release" or "debug", from the path target/PROFILE/relay
	Rustc        string    `json:"rustc,omitempty"`   // version of the compiler, as the binary has it
}

// UsageError is the error of a relay that was named in a way that none can be
// named, whatever there is on this machine.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usage(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Find resolves and identifies what `relay use` was given: "stand-in", "none",
// a URL (then upstream is its --upstream), "docker" or "docker:IMAGE" (see [IsImage]), or the
// path of a binary ("~/" is the home folder). Nothing is started but `relay --version`, and nothing is left running.
// Its error has a *[UsageError] in it where ref and upstream cannot be what was
// meant, fs.ErrNotExist where there is no such file, [ErrNoImage] or [ErrNoEngine].
func Find(ctx context.Context, ref, upstream string) (Program, error) {
	url := strings.Contains(ref, "://")
	if upstream != "" && !url {
		return Program{}, usage("%q: --upstream is for a relay given as a URL", ref)
	}
	switch {
	case ref == "":
		return Program{}, usage("no relay given: a path, a URL, docker:IMAGE, stand-in or none")
	case ref == FormNone:
		return Program{Form: FormNone}, nil
	case ref == FormStandIn:
		self, err := os.Executable()
		if err != nil {
			return Program{}, fmt.Errorf("find relaybench's own binary: %w", err)
		}
		return identify(ctx, FormStandIn, self)
	case url:
		return findURL(ctx, ref, upstream)
	case IsImage(ref):
		return findImage(ctx, ref)
	}
	return findPath(ctx, ref)
}

// String is the program in a few words, as `relay use` and reports say it.
func (p Program) String() string {
	switch p.Form {
	case FormNone:
		return "no relay: straight into the upstream"
	case FormURL:
		return join("relay", orUnknown(p.Version), "at "+p.URL+", sending to "+p.Upstream)
	case FormStandIn:
		return "stand-in (" + join(p.Version, "built into relaybench") + ")"
	case FormImage:
		return join("relay", orUnknown(p.Version)) + fmt.Sprintf(", image %s in %s, sha256 %.12s", p.Image, p.Engine, p.SHA256)
	}
	s := join("relay", orUnknown(p.Version), p.Profile)
	if p.Revision != "" {
		s += ", " + join(p.Branch, p.Revision[:min(12, len(p.Revision))])
		if p.Dirty {
			s += " (dirty)"
		}
	}
	if p.SHA256 != "" {
		s += ", sha256 " + p.SHA256[:min(12, len(p.SHA256))]
	}
	return join(s, "("+p.Path+")")
}

func orUnknown(version string) string {
	if version == "" {
		return "of unknown version"
	}
	return version
}

func join(words ...string) string {
	var kept []string
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}
