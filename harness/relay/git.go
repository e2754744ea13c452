package relay

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// claim fills in the revision that the binary was built from, where that may
// be claimed: it lies in a cargo checkout, is not tracked itself, and HEAD and
// all tracked files are older than it. Where git cannot tell, nothing is claimed.
func (p *Program) claim(ctx context.Context) {
	binary, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return
	}
	info, err := os.Stat(binary)
	if err != nil {
		return
	}
	git, err := openCheckout(ctx, filepath.Dir(binary))
	if err != nil || !git.olderThan(ctx, binary, info.ModTime()) {
		return
	}
	revision, err := git.ask(ctx, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return
	}
	date, err := git.ask(ctx, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return
	}
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return
	}
	changes, err := git.ask(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return
	}
	branch, err := git.ask(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	if err != nil {
		branch = "" // detached
	}
	p.Branch, p.Revision, p.RevisionDate = branch, revision, time.Unix(seconds, 0).UTC()
	p.Dirty = changes != ""
}

// checkout is a git work tree, read and never written.
type checkout struct{ git, top string }

// gitLimit bounds one question to git: a work tree of 100,000 files takes seconds cold.
const gitLimit = 20 * time.Second

func openCheckout(ctx context.Context, dir string) (checkout, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return checkout{}, err
	}
	c := checkout{git: git, top: dir}
	c.top, err = c.ask(ctx, "rev-parse", "--show-toplevel")
	return c, err
}

// ask runs git in the work tree. GIT_* of our environment would point it to
// another repository; a prompt, a lock or a program named by the repository's
// config would leave the user's tree other than it was.
func (c checkout) ask(ctx context.Context, args ...string) (string, error) {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "GIT_") && !strings.HasPrefix(pair, "LC_ALL=") {
			env = append(env, pair)
		}
	}
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	args = append([]string{"-C", c.top, "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"}, args...)
	said, err := question{path: c.git, args: args, env: env, limit: gitLimit}.ask(ctx)
	return strings.TrimSuffix(said, "\n"), err
}

// olderThan says that HEAD and all tracked files are older than built, the
// time of the binary, and that the checkout is one that cargo builds in.
func (c checkout) olderThan(ctx context.Context, binary string, built time.Time) bool {
	moved, err := c.headMoved(ctx)
	if err != nil || moved.After(built) {
		return false
	}
	files, err := c.ask(ctx, "ls-files", "-z", "--recurse-submodules")
	if err != nil {
		return false
	}
	cargo := false
	for name := range strings.SplitSeq(files, "\x00") {
		if name == "" {
			continue
		}
		cargo = cargo || name == "Cargo.toml"
		path := filepath.Join(c.top, name)
		info, err := os.Lstat(path)
		if err != nil || path == binary {
			return false
		}
		if !info.IsDir() && info.ModTime().After(built) { // a folder: a submodule that is not checked out
			return false
		}
	}
	return cargo
}

// headMoved is when HEAD last came to name another commit: by its reflog, or,
// where none is kept, by the files that name it.
func (c checkout) headMoved(ctx context.Context) (time.Time, error) {
	if entry, err := c.ask(ctx, "reflog", "-1", "--date=unix", "--format=%gd", "HEAD"); err == nil {
		at := strings.TrimSuffix(strings.TrimPrefix(entry, "HEAD@{"), "}")
		if seconds, err := strconv.ParseInt(at, 10, 64); err == nil {
			return time.Unix(seconds, 0), nil
		}
	}
	var moved time.Time
	names := []string{"HEAD"}
	if ref, err := c.ask(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil {
		names = append(names, ref, "packed-refs")
	}
	for _, name := range names {
		path, err := c.ask(ctx, "rev-parse", "--path-format=absolute", "--git-path", name)
		if err != nil {
			return moved, err
		}
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return moved, err
		}
		if info.ModTime().After(moved) {
			moved = info.ModTime()
		}
	}
	if moved.IsZero() {
		return moved, fs.ErrNotExist
	}
	return moved, nil
}
