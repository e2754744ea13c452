package builds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Repo is a git repository that builds are made from. Its work tree, branches
// and index are only read; a fetch brings its remote branches up to date.
type Repo struct {
	git     string
	path    string // the top of the work tree, or the bare repository
	common  string // its git directory
	bare    bool
	shallow bool
}

// Source is what a build is of.
type Source struct {
	Repository string    `json:"repository"`       // git directory
	Branch     string    `json:"branch,omitempty"` // or tag, by which it was named
	Revision   string    `json:"revision"`         // whole
	Date       time.Time `json:"date"`             // when that was committed
	// Changes is git's hash of a tree with changes that no revision has; "" where there are none.
	Changes string `json:"changes,omitempty"`
}

// Short is the revision, and the changes, in a few letters.
func (s Source) Short() string {
	short := s.Revision[:min(12, len(s.Revision))]
	if s.Changes != "" {
		short += "+" + s.Changes[:min(8, len(s.Changes))]
	}
	return short
}

// String is the source in a few words.
func (s Source) String() string {
	if s.Branch == "" {
		return s.Short()
	}
	return s.Branch + " " + s.Short()
}

// ErrNoCheckout is in the error of a folder that is no git checkout.
var ErrNoCheckout = errors.New("no git checkout")

// NoRevisionError says that a repository has no branch, tag or revision of a name.
type NoRevisionError struct {
	Name    string
	Shallow bool // the repository is a shallow clone
	Why     string
}

func (e *NoRevisionError) Error() string {
	s := fmt.Sprintf("no branch, tag or revision %q", e.Name)
	if e.Why != "" {
		s += ": " + e.Why
	}
	if e.Shallow {
		s += " (the repository is a shallow clone)"
	}
	return s
}

// Open opens the checkout, or bare repository, that a folder is: not one that it lies in.
func Open(ctx context.Context, path string) (*Repo, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	r := &Repo{git: git, path: path}
	answer, err := r.ask(ctx, "rev-parse", "--path-format=absolute", "--is-bare-repository", "--is-shallow-repository", "--git-common-dir")
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%q: %w: %w", path, ErrNoCheckout, err)
	}
	lines := strings.Split(answer, "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("%q: %w", path, ErrNoCheckout)
	}
	r.bare, r.shallow = lines[0] == "true", lines[1] == "true"
	if r.common, err = filepath.EvalSymlinks(lines[2]); err != nil {
		return nil, err
	}
	top := r.common
	if !r.bare {
		if top, err = r.ask(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel"); err != nil {
			return nil, fmt.Errorf("%q: %w: %w", path, ErrNoCheckout, err)
		}
	}
	if top != path {
		return nil, fmt.Errorf("%q: %w: it lies in one, %q", path, ErrNoCheckout, top)
	}
	return r, nil
}

// Path is the folder of the checkout, without links in it.
func (r *Repo) Path() string { return r.path }

// ask asks git in the repository.
func (r *Repo) ask(ctx context.Context, args ...string) (string, error) {
	return r.askIn(ctx, r.path, nil, args...)
}

// askIn runs git in a folder, and gives what it printed without its last
// newline. No hook is run, no lock is taken only to be quicker, and nothing goes on in the background.
func (r *Repo) askIn(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	args = append([]string{"-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "log.showSignature=false", "-c", "core.quotePath=false", "-c", "advice.detachedHead=false"}, args...)
	var out, errs bounded
	err := child{path: r.git, args: args, env: append(append(environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"), env...), out: &out, errs: &errs}.run(ctx)
	if err != nil && ctx.Err() == nil {
		err = said(err, errs.buf.String())
	}
	return strings.TrimSuffix(out.buf.String(), "\n"), err
}

// Branch is the branch that the checkout is on; "" where it is on none.
func (r *Repo) Branch(ctx context.Context) string {
	name, err := r.ask(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	if err != nil {
		return ""
	}
	return name
}

// Names are the names of branches and tags, those of remotes without the remote's.
func (r *Repo) Names(ctx context.Context) ([]string, error) {
	answer, err := r.ask(ctx, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var names []string
	for ref := range strings.SplitSeq(answer, "\n") {
		name := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
		if rest, ok := strings.CutPrefix(ref, "refs/remotes/"); ok {
			_, name, _ = strings.Cut(rest, "/")
		}
		if name != "" && name != "HEAD" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// Resolve gives what a name may mean, the likeliest first: a branch (of the
// repository, then of its remote), a tag, a revision in full or its beginning.
// Once fetched, a remote's branch counts more than the repository's own, unless that has all of it.
func (r *Repo) Resolve(ctx context.Context, name string, fetched bool) ([]Source, error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\x00\n") {
		return nil, &NoRevisionError{Name: name}
	}
	remote := r.remote(ctx, name)
	var found []Source
	add := func(ref, branch string) error {
		revision, err := r.commit(ctx, ref)
		if err != nil {
			return err
		}
		for _, s := range found {
			if s.Revision == revision {
				return nil
			}
		}
		s, err := r.source(ctx, branch, revision)
		found = append(found, s)
		return err
	}
	refs := []string{"refs/heads/" + name, "refs/remotes/" + remote + "/" + name}
	if fetched {
		if _, err := r.ask(ctx, "merge-base", "--is-ancestor", refs[1], refs[0]); err != nil {
			refs[0], refs[1] = refs[1], refs[0]
		}
	}
	if strings.ContainsAny(name, "~^: ") || strings.Contains(name, "@{") { // an expression, and the name of nothing
		refs = nil
	} else {
		refs = append(refs, "refs/tags/"+name)
	}
	for _, ref := range refs {
		if err := add(ref, name); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		branch := ""
		if _, err := r.commit(ctx, "refs/remotes/"+name); err == nil {
			_, branch, _ = strings.Cut(name, "/")
		}
		if err := add(name, branch); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			why := ""
			if strings.Contains(err.Error(), "ambiguous") {
				why = "several begin so"
			}
			return nil, &NoRevisionError{Name: name, Shallow: r.shallow, Why: why}
		}
	}
	return found, nil
}

// ResolveAt gives a revision of a branch, which must have it.
func (r *Repo) ResolveAt(ctx context.Context, name, revision string, fetched bool) (Source, error) {
	of, err := r.Resolve(ctx, name, fetched)
	if err != nil {
		return Source{}, err
	}
	at, err := r.Resolve(ctx, revision, fetched)
	if err != nil {
		return Source{}, err
	}
	s := at[0]
	s.Branch = name
	if r.shallow {
		return s, nil // what comes before what is not known
	}
	for _, b := range of {
		if _, err = r.ask(ctx, "merge-base", "--is-ancestor", s.Revision, b.Revision); err == nil {
			return s, nil
		}
	}
	if ctx.Err() != nil {
		return Source{}, err
	}
	return Source{}, fmt.Errorf("revision %s is not on %q", s.Short(), name)
}

// commit is the revision that a name means to git.
func (r *Repo) commit(ctx context.Context, name string) (string, error) {
	return r.ask(ctx, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
}

func (r *Repo) source(ctx context.Context, branch, revision string) (Source, error) {
	s := Source{Repository: r.common, Branch: branch, Revision: revision}
	text, err := r.ask(ctx, "show", "-s", "--format=%ct", revision)
	if err != nil {
		return s, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return s, fmt.Errorf("date of %s: %w", s.Short(), err)
	}
	s.Date = time.Unix(seconds, 0).UTC()
	return s, nil
}

// remote is the remote of a branch.
func (r *Repo) remote(ctx context.Context, branch string) string {
	if name, err := r.ask(ctx, "config", "branch."+branch+".remote"); err == nil && name != "." {
		return name
	}
	all, err := r.ask(ctx, "remote")
	names := strings.Split(all, "\n")
	for _, n := range names {
		if n == "origin" {
			return n
		}
	}
	if err != nil || names[0] == "" {
		return "origin"
	}
	return names[0]
}

// Fetch brings what a name means up to date, from the remote: a branch, a tag,
// or a whole revision. Branches of the repository itself stay as they are.
func (r *Repo) Fetch(ctx context.Context, name string) error {
	if strings.HasPrefix(name, "-") {
		return &NoRevisionError{Name: name}
	}
	remote := r.remote(ctx, name)
	fetch := func(refspec string) error {
		_, err := r.ask(ctx, "fetch", "--quiet", "--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options", remote, refspec)
		return err
	}
	first := fetch("+refs/heads/" + name + ":refs/remotes/" + remote + "/" + name)
	if first == nil || ctx.Err() != nil {
		return first
	}
	if !strings.Contains(first.Error(), "couldn't find remote ref") {
		return fmt.Errorf("git fetch %s: %w", remote, first)
	}
	err := fetch("+refs/tags/" + name + ":refs/tags/" + name)
	if err != nil && ctx.Err() == nil && len(name) >= 40 && isHex(name) {
		err = fetch(name)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case isHex(name): // the beginning of a revision, which no remote can be asked for: of a branch it may have come
		_, err = r.ask(ctx, "fetch", "--quiet", "--no-recurse-submodules", "--no-write-fetch-head", remote)
	default:
		if _, here := r.commit(ctx, name); here == nil {
			return nil // only here, or an expression such as main~1
		}
	}
	if err != nil {
		return fmt.Errorf("git fetch %s: %w", remote, err)
	}
	return nil
}

func isHex(s string) bool {
	return len(s) >= 4 && strings.Trim(s, "0123456789abcdef") == ""
}

// Here is the tree of the checkout as it is, with the changes that no revision
// has: those of tracked files, and new files that are not ignored. scratch is a
// folder that takes their objects.
func (r *Repo) Here(ctx context.Context, scratch string) (Source, error) {
	if r.bare {
		return Source{}, errors.New("a bare repository has no tree of its own: name a branch")
	}
	head, err := r.commit(ctx, "HEAD")
	if err != nil {
		return Source{}, err
	}
	s, err := r.source(ctx, r.Branch(ctx), head)
	if err != nil {
		return s, err
	}
	status, err := r.ask(ctx, "status", "--porcelain=v2")
	if err != nil || status == "" {
		return s, err
	}
	for line := range strings.SplitSeq(status, "\n") {
		if f := strings.Fields(line); len(f) > 8 && f[0] == "1" && f[2][0] == 'S' && f[2][2:] != ".." {
			return s, fmt.Errorf("submodule %q has changes that are not committed: they cannot be built", strings.Join(f[8:], " "))
		}
	}
	if err := os.MkdirAll(objects(scratch), 0o755); err != nil {
		return s, err
	}
	own, err := os.MkdirTemp(scratch, "index-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(own)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(own, "index"), "GIT_OBJECT_DIRECTORY=" + objects(scratch), "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(r.common, "objects")}
	for _, args := range [][]string{{"read-tree", "HEAD"}, {"add", "--all"}, {"write-tree", "--missing-ok"}} { // a clone may be without files that its tree leaves out
		if s.Changes, err = r.askIn(ctx, r.path, env, args...); err != nil {
			return s, fmt.Errorf("git %s: %w", args[0], err)
		}
	}
	if clean, err := r.ask(ctx, "rev-parse", "HEAD^{tree}"); err == nil && clean == s.Changes {
		s.Changes = ""
	}
	return s, nil
}

// objects is where the objects of changes are.
func objects(scratch string) string { return filepath.Join(scratch, "objects") }

// Changed says whether the checkout has changes that no revision has.
func (r *Repo) Changed(ctx context.Context) bool {
	if r.bare {
		return false
	}
	status, err := r.ask(ctx, "status", "--porcelain")
	return err == nil && status != ""
}
