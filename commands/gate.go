package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/envelope"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

// The gate: what a client names of this host's files goes through here, and
// only here a command opens one. A client elsewhere (a remote one: every TCP client is)
// names none, unless relaybench was started with -allow-paths.
//
// What is a path is declared where the argument or flag is, so that it is
// refused before the command does anything. What was not declared is refused when
// its file would be opened.

// names says whether a text that was typed for an argument or a flag is a path, or has one in it.
type names func(text string) bool

// anyPath is for what is nothing but a path.
func anyPath(string) bool { return true }

// relayPath is for what `relay use` takes. An image by its name is one too: it is
// any program of any registry. The published one is not.
func relayPath(text string) bool {
	if relay.IsImage(text) {
		return strings.Contains(text, ":")
	}
	return text != relay.FormStandIn && text != relay.FormNone && text != lastUsed && !strings.Contains(text, "://")
}

// configPath is for the relay's config, which is one by name, or a file.
func configPath(text string) bool {
	_, bundled := relay.FindConfig(text)
	return !bundled
}

// mixPath is for what is sent: kinds, or a folder.
func mixPath(text string) bool { return plan.IsFolder(text) }

// knobPaths are the rules of the knobs that may be paths, by name. A server that
// Relay would send to is one too: who is elsewhere makes this host send nowhere.
var knobPaths = map[string]names{"mix": mixPath, "config": configPath, "statsd": statsdServer}

// statsdServer is for --statsd, which is on, off, or a server.
func statsdServer(text string) bool { return text != plan.StatsdOn && text != plan.StatsdOff }

// settingPath is for -E KEY=VALUE. Relay puts in the place of ${VAR} and
// ${file:PATH} what its environment and its host's files have.
func settingPath(text string) bool {
	key, value, _ := strings.Cut(text, "=")
	last := key[strings.LastIndexAny(key, "._")+1:]
	switch last {
	case "path", "file", "dir", "directory", "folder", "socket":
		return true
	}
	if strings.Contains(value, "${") || strings.Contains(value, `\`) { // YAML's escapes may spell anything
		return true
	}
	for _, w := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\",[]{}!|>&*", r) }) {
		for _, begins := range []string{"/", "~", "./", "../", "unix:", "unixgram:", "file:"} {
			if strings.HasPrefix(strings.ToLower(w), begins) {
				return true
			}
		}
	}
	return false
}

// pathFlag declares that what is typed for a flag may be a path.
func pathFlag(fs *pflag.FlagSet, name string, is names) { declared(fs, name).path = is }

// flagValue is the value of a flag of which more is known than how it is parsed.
type flagValue struct {
	pflag.Value
	path   names    // it may be a path; nil: it is none
	named  []string // paths that were typed
	values values   // for completion
}

func (v *flagValue) Set(text string) error {
	if v.path != nil && v.path(text) {
		v.named = append(v.named, text)
	}
	return v.Value.Set(text)
}

// declared is what is declared of a flag beside its value.
func declared(fs *pflag.FlagSet, name string) *flagValue {
	f := fs.Lookup(name)
	v, ok := f.Value.(*flagValue)
	if !ok {
		v = &flagValue{Value: f.Value}
		f.Value = v
	}
	return v
}

// gate refuses what a line names that its client may not.
func (s *Session) gate(c *command, flags *pflag.FlagSet, args []string) (err error) {
	for i, text := range args {
		if a := c.arg(i); a.path != nil && a.path(text) && err == nil {
			err = s.mayName(a.name, text)
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*flagValue); ok && len(v.named) > 0 && err == nil {
			err = s.mayName(dashed(f), v.named[0])
		}
	})
	return err
}

// mayName refuses a path to a client that may name none; what is the argument or flag that it was typed for.
func (s *Session) mayName(what, path string) error {
	if !s.client.Remote || s.bench.config.AllowPaths {
		return nil
	}
	return &told{error: fmt.Errorf("%s %q is refused: it names a file of this host, what is kept here, or a server, and this client is a remote one", what, path),
		hint: "on the host itself, relaybench -connect may name them; relaybench -allow-paths lets all clients do so", code: Usage}
}

// path is a typed path made absolute, with ~ for the home folder: what it
// names does not change with the folder that a later session is started in.
func (s *Session) path(typed string) (string, error) {
	if err := s.mayName("path", typed); err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(typed, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, rest), nil
	}
	return filepath.Abs(s.from(typed))
}

// from is a typed path as it is from this process's folder, where the client's is another one.
func (s *Session) from(typed string) string {
	if s.client.Dir == "" || filepath.IsAbs(typed) || typed == "~" || strings.HasPrefix(typed, "~/") {
		return typed
	}
	return filepath.Join(s.client.Dir, typed)
}

// isFolder says whether a typed path is a folder's.
func (s *Session) isFolder(typed string) bool {
	path, err := s.path(typed)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFile says whether a typed path is a file's.
func (s *Session) isFile(typed string) bool {
	path, err := s.path(typed)
	return err == nil && isThere(path)
}

// isThere says whether a file is where a report says that it was.
func isThere(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// mayBuild refuses what runs programs and writes files to a client that may name none of the host's; what is the flag or command.
func (s *Session) mayBuild(what string) error {
	if !s.client.Remote || s.bench.config.AllowPaths {
		return nil
	}
	return &told{error: fmt.Errorf("%s is refused: it runs programs and writes files on this host, and this client is a remote one", what),
		hint: "on the host itself, relaybench -connect may do so; relaybench -allow-paths lets all clients", code: Usage}
}

// maxFile is the size of the largest file that a command reads, in bytes.
const maxFile = 1 << 20

// readFile reads a file that was named in a line.
func (s *Session) readFile(typed string) (string, error) {
	path, err := s.path(typed)
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return string(b), nil
}

// readFolder reads the envelopes in a folder that was named in a line.
func (s *Session) readFolder(typed string) (*envelope.Folder, error) {
	path, err := s.path(typed)
	if err != nil {
		return nil, err
	}
	return openFolder(path)
}

// openFolder reads the envelopes in a folder. Of a path that is none, the system says it best.
func openFolder(path string) (*envelope.Folder, error) {
	dir, err := os.Open(path)
	if err == nil {
		_, err = dir.ReadDir(1)
		dir.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return envelope.ReadFolder(os.DirFS(path), path)
}

// newFile is the path of files that are to be written later, which differ in
// their endings. None of them is there yet, and their folder is.
func (s *Session) newFile(typed string, endings ...string) (string, error) {
	path, err := s.path(typed)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%q is no folder", filepath.Dir(path))
	}
	for _, ending := range endings {
		if _, err := os.Lstat(path + ending); err == nil {
			return "", hinted(fmt.Errorf("there is a file %q", path+ending), "name another, or remove it: nothing is written over")
		}
	}
	return path, nil
}

// folder is one that a command fills with new files.
type folder struct {
	path    string
	written []string
}

// newFolder makes a folder that was named in a line. One that is there must be empty.
func (s *Session) newFolder(typed string) (*folder, error) {
	path, err := s.path(typed)
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(path)
	switch {
	case err == nil && len(found) > 0:
		return nil, hinted(fmt.Errorf("folder %q is not empty: %q is in it", path, found[0].Name()), "name a new one, or an empty one: nothing is written over")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return &folder{path: path}, os.MkdirAll(path, 0o755)
}

// write writes a new file.
func (f *folder) write(name string, data []byte) error {
	path := filepath.Join(f.path, name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	f.written = append(f.written, path)
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// undo removes what was written.
func (f *folder) undo() error {
	var err error
	for _, path := range f.written {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// mostFiles is how many files of a folder are offered for completion.
const mostFiles = 200

// files are the files and folders, these with a slash at their end, that begin
// as was typed; none for a client that may name none.
func (s *Session) files(typed string) []string {
	if s.mayName("path", typed) != nil {
		return nil
	}
	dir, beginning := filepath.Split(typed)
	at := dir
	if at == "" {
		at = "."
	}
	path, err := s.path(at)
	if err != nil {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(50 * mostFiles) // in no order; of a larger folder a part has to do
	var found []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, beginning) || strings.HasPrefix(name, ".") && beginning == "" {
			continue
		}
		name = dir + name
		if e.IsDir() {
			name += "/"
		} else if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil && info.IsDir() {
			name += "/" // through a link
		}
		if found = append(found, name); len(found) == mostFiles {
			break
		}
	}
	slices.Sort(found)
	return found
}

// absent says that there is no store yet: looking for reports is no reason to make one.
func (b *Bench) absent() (bool, error) {
	if b.Opened() {
		return false, nil
	}
	path, err := b.Path()
	if err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	return errors.Is(err, fs.ErrNotExist), nil // any other error is for Open to tell
}
