package builds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Order is how a build is to be made. Its functions may be nil.
type Order struct {
	Command string // of a POSIX shell, done in the work tree; empty: DefaultCommand
	// Tell is called about once a second, and never after Make has returned.
	Tell func(Progress)
	// Note is told what may be why the build fails.
	Note func(line string)
	// Line is called with each line that the build prints.
	Line func(line string)
	// Check says why a binary is none to be kept.
	Check func(ctx context.Context, binary string) error
}

// Progress is how a build goes.
type Progress struct {
	Step    string // what is done before the build itself; empty: it is being built
	Done    int    // crates; of 0: that is not known
	Of      int    // crates that there are to build
	Elapsed time.Duration
}

// String is the progress in a few words.
func (p Progress) String() string {
	took := p.Elapsed.Round(time.Second).String()
	switch {
	case p.Step != "":
		return p.Step + ", " + took
	case p.Of > 0:
		return fmt.Sprintf("%d of %d crates, %s", p.Done, p.Of, took)
	}
	return took
}

// FailedError is the error of a build command that failed, or made no binary.
type FailedError struct {
	Command string
	Lines   []string // what the compiler said of it, else the last lines
	Log     string   // the file with all that was printed
	err     error
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s: %v", e.Command, e.err) }

func (e *FailedError) Unwrap() error { return e.err }

// errNoBinary says that a build made no binary where cargo makes one.
var errNoBinary = errors.New("it made no target/PROFILE/relay")

// Make makes a build of a source and keeps it, or gives the one that is kept.
// There is one at a time: others wait. When ctx ends, all that was started is
// ended and waited for, and the error is ctx's cause.
func (k *Kept) Make(ctx context.Context, r *Repo, s Source, o Order) (Build, error) {
	if o.Command == "" {
		o.Command = DefaultCommand
	}
	k.making.Lock()
	defer k.making.Unlock()
	if b, ok := k.Find(s, o.Command); ok {
		return b, nil
	}
	begun := time.Now()
	home := k.home(s.Repository)
	if err := os.MkdirAll(filepath.Join(home, treesDir), 0o755); err != nil {
		return Build{}, err
	}
	if err := os.WriteFile(filepath.Join(home, repoName), []byte(r.path), 0o644); err != nil {
		return Build{}, err
	}
	w := watch(o, begun)
	defer w.close()
	w.step("checking " + s.Short() + " out")
	dir := filepath.Join(home, treesDir, s.Revision[:min(12, len(s.Revision))])
	if s.Changes != "" {
		// One folder for all changes: what did not change is not compiled again.
		dir = filepath.Join(home, treesDir, "changes")
	}
	notes, err := r.tree(ctx, dir, s, home)
	if err != nil {
		return Build{}, err
	}
	for _, n := range notes {
		if o.Note != nil {
			o.Note(n)
		}
	}
	w.step("")
	target := filepath.Join(home, targetDir)
	binary, err := compile(ctx, w, o, dir, target, filepath.Join(home, logName))
	if err != nil {
		return Build{}, err
	}
	if o.Check != nil {
		if err := o.Check(ctx, binary); err != nil {
			return Build{}, err
		}
	}
	b := Build{Source: s, Checkout: r.path, Command: o.Command, Settings: settings(), Profile: filepath.Base(filepath.Dir(binary)), Made: time.Now().UTC(), Took: int64(time.Since(begun))}
	return k.keep(b, binary)
}

// Objects is the folder that takes the objects of a repository's changes: see [Repo.Here].
func (k *Kept) Objects(r *Repo) string { return k.home(r.common) }

// compile runs the build command, and gives the binary that it made.
func compile(ctx context.Context, w *watcher, o Order, dir, target, log string) (string, error) {
	file, err := os.Create(log)
	if err != nil {
		return "", err
	}
	defer file.Close()
	// What an earlier build left is not to be taken for this one's.
	for _, old := range binaries(target, filepath.Join(dir, "target")) {
		if err := os.Remove(old); err != nil {
			return "", err
		}
	}
	out := &output{log: file, room: mostLog, line: o.Line, seen: w.seen}
	env := append(environ(), "CARGO_TARGET_DIR="+target, "CARGO_TERM_COLOR=never", "CARGO_TERM_PROGRESS_WHEN=always", "CARGO_TERM_PROGRESS_WIDTH=80")
	err = child{path: "/bin/sh", args: []string{"-c", o.Command}, dir: dir, env: env, out: out}.run(ctx)
	out.end()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var found []string
	if err == nil {
		if found = binaries(target, filepath.Join(dir, "target")); len(found) == 0 {
			err = errNoBinary
		}
	}
	if err != nil {
		return "", &FailedError{Command: o.Command, Lines: out.why(), Log: log, err: err}
	}
	return newest(found), nil
}

// binaries are those that cargo made, of every profile.
func binaries(targets ...string) []string {
	var found []string
	for _, t := range targets {
		for _, pattern := range []string{"*/relay", "*/*/relay"} { // PROFILE, TRIPLE/PROFILE
			names, _ := filepath.Glob(filepath.Join(t, pattern))
			for _, n := range names {
				if info, err := os.Stat(n); err == nil && info.Mode().IsRegular() {
					found = append(found, n)
				}
			}
		}
	}
	return found
}

func newest(files []string) string {
	best, at := "", time.Time{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && (best == "" || info.ModTime().After(at)) {
			best, at = f, info.ModTime()
		}
	}
	return best
}

// keep copies a binary to where builds are kept, whole or not at all.
func (k *Kept) keep(b Build, binary string) (Build, error) {
	dir := filepath.Join(k.home(b.Repository), keptDir, key(b.Source, b.Command, b.Settings))
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return b, err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return b, err
	}
	defer os.RemoveAll(part)
	var err error
	if b.SHA256, b.Size, err = copyFile(filepath.Join(part, binaryName), binary); err != nil {
		return b, fmt.Errorf("keep the build: %w", err)
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(filepath.Join(part, recordName), append(text, '\n'), 0o644); err != nil {
		return b, fmt.Errorf("keep the build: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil { // one that cannot be read
		return b, err
	}
	b.Binary = filepath.Join(dir, binaryName)
	return b, os.Rename(part, dir)
}

func copyFile(to, from string) (sum string, size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(out, h), in)
	return hex.EncodeToString(h.Sum(nil)), size, errors.Join(err, out.Close())
}

// Name is the build in a few words: its source, and its command where that is not the usual one.
func (b Build) Name() string {
	if b.Command == DefaultCommand {
		return b.String()
	}
	return b.String() + " by " + strings.TrimSpace(b.Command)
}
