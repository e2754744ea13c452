package builds

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree makes dir a work tree of a source, detached, with submodules. One that
// is there is used again. What of the submodules could not be had is in the notes.
func (r *Repo) tree(ctx context.Context, dir string, s Source, scratch string) (notes []string, err error) {
	if err := r.forgetDead(ctx, filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if !r.isTree(ctx, dir) {
		if err := r.removeTree(ctx, dir); err != nil {
			return nil, err
		}
		if _, err := r.ask(ctx, "worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", dir, s.Revision); err != nil {
			return nil, fmt.Errorf("git worktree add: %w", err)
		}
	}
	of, env := s.Revision, []string(nil)
	if s.Changes != "" {
		of, env = s.Changes, []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects(scratch)}
	}
	for _, args := range [][]string{{"update-ref", "--no-deref", "HEAD", s.Revision}, {"read-tree", "--reset", "-u", of}, {"clean", "--quiet", "-ffd"}} {
		if _, err := r.askIn(ctx, dir, env, args...); err != nil {
			return nil, fmt.Errorf("check out %s: git %s: %w", s.Short(), args[0], err)
		}
	}
	return r.submodules(ctx, dir, env)
}

// isTree says whether a folder is a work tree of the repository.
func (r *Repo) isTree(ctx context.Context, dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		return false
	}
	answer, err := r.askIn(ctx, dir, nil, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
	return err == nil && answer == dir+"\n"+r.common
}

// forgetDead takes the registrations of work trees in a folder away that are
// not there any more. Those elsewhere are not ours.
func (r *Repo) forgetDead(ctx context.Context, trees string) error {
	answer, err := r.ask(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return fmt.Errorf("git worktree list: %w", err)
	}
	for line := range strings.SplitSeq(answer, "\n") {
		dir, ok := strings.CutPrefix(line, "worktree ")
		if !ok || filepath.Dir(dir) != trees {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
			if err := r.removeTree(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTree takes a work tree of ours away, and its registration.
func (r *Repo) removeTree(ctx context.Context, dir string) error {
	// Note: git refuses a folder that has lost its .git, and forgets one that is not there.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	answer, err := r.ask(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return fmt.Errorf("git worktree list: %w", err)
	}
	if !strings.Contains("\n"+answer+"\n", "\nworktree "+dir+"\n") {
		return nil
	}
	if _, err := r.ask(ctx, "worktree", "remove", "--force", "--force", dir); err != nil {
		return fmt.Errorf("git worktree remove: %w", err)
	}
	return nil
}

// submodules checks the submodules of a work tree out, from the repository's
// own copies where it has them. The repository's config stays as it is.
func (r *Repo) submodules(ctx context.Context, dir string, env []string) (notes []string, err error) {
	listed, err := r.askIn(ctx, dir, env, "ls-files", "--stage")
	if err != nil {
		return nil, err
	}
	copies := r.modules()
	names := r.moduleNames(ctx, dir)
	for line := range strings.SplitSeq(listed, "\n") {
		facts, path, ok := strings.Cut(line, "\t")
		of := strings.Fields(facts) // mode, object, stage
		if !ok || len(of) != 3 || of[0] != "160000" {
			continue
		}
		args := []string{"-c", "submodule.active=."}
		local := false
		for name, copied := range copies {
			if name == names[path] {
				if _, err := r.askIn(ctx, copied, nil, "cat-file", "-e", of[1]+"^{commit}"); err != nil {
					continue
				}
			}
			args, local = append(args, "-c", "submodule."+name+".url="+copied), true
		}
		if local { // git takes no submodule from a folder, unless it is told to
			args = append(args, "-c", "protocol.file.allow=always")
		}
		args = append(args, "submodule", "--quiet", "update", "--force", "--recursive", "--", path)
		if _, err := r.askIn(ctx, dir, env, args...); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			notes = append(notes, fmt.Sprintf("submodule %q could not be had: %v", path, err))
		}
	}
	return notes, nil
}

// moduleNames are the names of a work tree's submodules, by their paths.
func (r *Repo) moduleNames(ctx context.Context, dir string) map[string]string {
	names := map[string]string{}
	answer, err := r.askIn(ctx, dir, nil, "config", "--file", ".gitmodules", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return names
	}
	for line := range strings.SplitSeq(answer, "\n") {
		if key, path, ok := strings.Cut(line, " "); ok {
			names[path] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		}
	}
	return names
}

// modules are the submodules that the repository has a copy of, by name, those within submodules too.
func (r *Repo) modules() map[string]string {
	found := map[string]string{}
	var look func(dir string)
	look = func(dir string) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			if _, err := os.Stat(filepath.Join(path, "HEAD")); err != nil || path == dir {
				return nil
			}
			if name, err := filepath.Rel(dir, path); err == nil {
				found[filepath.ToSlash(name)] = path
			}
			look(filepath.Join(path, "modules"))
			return filepath.SkipDir
		})
	}
	look(filepath.Join(r.common, "modules"))
	return found
}
