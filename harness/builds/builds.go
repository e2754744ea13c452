package builds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultCommand is what builds Relay in a checkout, for measurements.
const DefaultCommand = "cargo build --release -p relay"

// Build is a build that is kept.
type Build struct {
	Source
	Checkout string    `json:"checkout"` // that it was made from
	Command  string    `json:"command"`
	Settings []string  `json:"settings,omitempty"` // variables of the environment that change what is built
	Profile  string    `json:"profile,omitempty"`  // cargo's, from where the binary came to be: target/PROFILE
	SHA256   string    `json:"sha256"`             // of the binary
	Size     int64     `json:"size"`               // of the binary, bytes
	Made     time.Time `json:"made"`
	Took     int64     `json:"took"` // ns

	Binary string `json:"-"` // its path
}

// Kept are the builds of all repositories, in one folder that no other process
// uses:
//
//	NAME-HASH/repository     the git directory that the rest is of
//	NAME-HASH/kept/KEY       a build: relay and build.json
//	NAME-HASH/trees/REVISION a work tree that builds are made in
//	NAME-HASH/target         what cargo keeps between builds
//	NAME-HASH/log            what the last build printed
type Kept struct {
	dir string

	making sync.Mutex // held while a build is made, or some are taken away
}

// At are the builds that are kept in a folder, which is made when there is one.
func At(dir string) *Kept {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // as git calls it
	} else if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(real, filepath.Base(dir))
	}
	return &Kept{dir: dir}
}

const (
	binaryName = "relay"
	recordName = "build.json"
	keptDir    = "kept"
	treesDir   = "trees"
	targetDir  = "target"
	logName    = "log"
	repoName   = "repository"
)

// home is the folder of a repository's builds.
func (k *Kept) home(repository string) string {
	name := strings.TrimSuffix(filepath.Base(repository), ".git")
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(filepath.Dir(repository)), ".git")
	}
	return filepath.Join(k.dir, name+"-"+digest(repository)[:8])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// key is what a build is kept under: all that it depends on, as far as that is known.
func key(s Source, command string, settings []string) string {
	return digest(strings.Join(append([]string{s.Repository, s.Revision, s.Changes, command}, settings...), "\x00"))[:16]
}

// settings are the variables of the environment that change what cargo builds.
func settings() []string {
	var kept []string
	for _, pair := range environ() {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case value == "", name == "CARGO_TARGET_DIR", name == "CARGO_BUILD_TARGET_DIR", name == "CARGO_BUILD_JOBS":
		case name == "RUSTFLAGS", name == "CARGO_ENCODED_RUSTFLAGS", name == "RUSTUP_TOOLCHAIN", name == "RUSTC", name == "CFLAGS", name == "CXXFLAGS",
			strings.HasPrefix(name, "CARGO_PROFILE_"), strings.HasPrefix(name, "CARGO_BUILD_"), strings.HasPrefix(name, "CARGO_TARGET_"):
			kept = append(kept, pair)
		}
	}
	slices.Sort(kept)
	return kept
}

// Find is the build of a source that is kept: one by command, or, where that is
// empty, by the usual one, else the newest by any other.
func (k *Kept) Find(s Source, command string) (b Build, ok bool) {
	if command != "" {
		b, err := k.read(filepath.Join(k.home(s.Repository), keptDir, key(s, command, settings())))
		return b, err == nil
	}
	if b, ok = k.Find(s, DefaultCommand); ok {
		return b, true
	}
	for _, b := range k.list(k.home(s.Repository)) {
		if b.Revision == s.Revision && b.Changes == s.Changes {
			return b, true
		}
	}
	return Build{}, false
}

// At is the build whose binary has that path.
func (k *Kept) At(binary string) (Build, bool) {
	dir := filepath.Dir(binary)
	if filepath.Base(binary) != binaryName || filepath.Dir(filepath.Dir(filepath.Dir(dir))) != k.dir {
		return Build{}, false
	}
	b, err := k.read(dir)
	return b, err == nil
}

// List are all builds that are kept, the newest first.
func (k *Kept) List() []Build {
	homes, _ := os.ReadDir(k.dir) // there may be none yet
	var all []Build
	for _, h := range homes {
		all = append(all, k.list(filepath.Join(k.dir, h.Name()))...)
	}
	sortBuilds(all)
	return all
}

func (k *Kept) list(home string) []Build {
	found, _ := os.ReadDir(filepath.Join(home, keptDir))
	var all []Build
	for _, d := range found {
		if b, err := k.read(filepath.Join(home, keptDir, d.Name())); err == nil {
			all = append(all, b)
		}
	}
	sortBuilds(all)
	return all
}

func sortBuilds(all []Build) {
	slices.SortFunc(all, func(a, b Build) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.Binary, b.Binary)) })
}

// read reads the build in a folder. What was not kept to its end has no record.
func (k *Kept) read(dir string) (Build, error) {
	b := Build{Binary: filepath.Join(dir, binaryName)}
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%s: %w", filepath.Join(dir, recordName), err)
	}
	info, err := os.Stat(b.Binary)
	if err == nil && info.Size() != b.Size {
		err = fmt.Errorf("%s: %d bytes, and %d were kept", b.Binary, info.Size(), b.Size)
	}
	return b, err
}

// Usage is what the builds take of the disk, in bytes.
type Usage struct {
	Builds int64 // kept binaries
	Made   int64 // what can be made again for the next build: work trees, what cargo keeps, logs
}

// Usage looks at every file.
func (k *Kept) Usage() Usage {
	var u Usage
	homes, _ := os.ReadDir(k.dir)
	for _, h := range homes {
		home := filepath.Join(k.dir, h.Name())
		kept := sizeOf(filepath.Join(home, keptDir))
		u.Builds += kept
		u.Made += sizeOf(home) - kept
	}
	return u
}

func sizeOf(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// ErrBusy says that a build is being made.
var ErrBusy = errors.New("a build is being made")

// Prune takes away what can be made again for the next build, and the builds
// that keep does not want. It gives those, and how many bytes it freed.
func (k *Kept) Prune(ctx context.Context, keep func(Build) bool) (gone []Build, freed int64, err error) {
	if !k.making.TryLock() {
		return nil, 0, ErrBusy
	}
	defer k.making.Unlock()
	before := k.Usage()
	homes, _ := os.ReadDir(k.dir)
	for _, h := range homes {
		home := filepath.Join(k.dir, h.Name())
		err = errors.Join(err, k.pruneTrees(ctx, home))
		if ctx.Err() != nil {
			return gone, 0, context.Cause(ctx)
		}
		for _, name := range []string{targetDir, logName, "objects"} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(home, name)))
		}
		entries, _ := os.ReadDir(filepath.Join(home, keptDir))
		left := 0
		for _, e := range entries {
			dir := filepath.Join(home, keptDir, e.Name())
			b, bad := k.read(dir)
			if bad == nil && keep(b) {
				left++
				continue
			}
			if bad == nil {
				gone = append(gone, b)
			}
			err = errors.Join(err, os.RemoveAll(dir))
		}
		if left == 0 && err == nil {
			err = os.RemoveAll(home)
		}
	}
	after := k.Usage()
	return gone, before.Builds + before.Made - after.Builds - after.Made, err
}

// pruneTrees takes the work trees of a repository away, and their registrations where that is still there.
func (k *Kept) pruneTrees(ctx context.Context, home string) error {
	trees := filepath.Join(home, treesDir)
	if path, err := os.ReadFile(filepath.Join(home, repoName)); err == nil {
		if r, err := Open(ctx, string(path)); err == nil {
			found, _ := os.ReadDir(trees)
			for _, t := range found {
				if err := r.removeTree(ctx, filepath.Join(trees, t.Name())); err != nil {
					return err
				}
			}
			if err := r.forgetDead(ctx, trees); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(trees)
}
