package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Manifest is the name of the file by which a folder that [NewFolder] wrote is known.
const Manifest = "manifest.json"

// FolderFile is a file of such a folder.
type FolderFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// manifest is what the file of that name holds.
type manifest struct {
	Writer string       `json:"written_by"`
	Files  []FolderFile `json:"files"` // all but itself, by name
}

// ErrInFolder says that what is in a folder stands in the way of what was to be put there.
var ErrInFolder = errors.New("nothing is written over")

// AddFile adds a file to a folder that is being written.
type AddFile func(name string, write func(io.Writer) error) error

// NewFolder writes a folder of files, all or nothing: they are written aside,
// and put in place when all are on the disk. write adds them, and what it
// returns is in the error. writer names who writes, in the manifest.
//
// A folder that is there must be empty. With replace it may be one that the
// same writer wrote: then what it wrote is replaced, if it is still as it was
// written, and what else is there stays. The error is ErrInFolder where that is not so.
//
// Note: a process that is killed while files are put into a folder that is there leaves some of
// both; into a new one, none.
func NewFolder(path, writer string, replace bool, write func(AddFile) error) (files []FolderFile, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, there, err := folderThere(path, writer, replace)
	if err != nil {
		return nil, err
	}
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strings.ToLower(rand.Text()[:8]))
	if there { // its own file system, which need not be that of the folder above it
		aside = filepath.Join(path, ".new."+strings.ToLower(rand.Text()[:8]))
	}
	if err := os.Mkdir(aside, 0o755); err != nil {
		return nil, bare(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	f := folder{dir: aside}
	if there {
		f.dir = filepath.Join(aside, "new")
		if err := errors.Join(os.Mkdir(f.dir, 0o755), os.Mkdir(filepath.Join(aside, "old"), 0o755)); err != nil {
			return nil, err
		}
	}
	if err := write(f.add); err != nil {
		return nil, err
	}
	slices.SortFunc(f.files, func(a, b FolderFile) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(manifest{writer, f.files}, "", "  ")
	if err != nil {
		return nil, err
	}
	files = f.files
	if err := f.add(Manifest, func(w io.Writer) error { _, err := fmt.Fprintf(w, "%s\n", text); return err }); err != nil {
		return nil, err
	}
	if err := syncDir(f.dir); err != nil {
		return nil, err
	}
	if there {
		return files, f.into(path, aside, old)
	}
	if err := os.Rename(aside, path); err != nil {
		return nil, bare(err)
	}
	return files, syncDir(filepath.Dir(path))
}

// folderThere says whether a folder is there, and which of its files are to be replaced.
func folderThere(path, writer string, replace bool) (old []string, there bool, err error) {
	found, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, bare(err)
	case len(found) == 0:
		return nil, true, nil
	}
	var m manifest
	text, err := os.ReadFile(filepath.Join(path, Manifest))
	if err != nil || json.Unmarshal(text, &m) != nil || m.Writer != writer {
		return nil, true, fmt.Errorf("it is not empty, and was not written by %s: %q is in it: %w", writer, found[0].Name(), ErrInFolder)
	}
	if !replace {
		return nil, true, fmt.Errorf("%s wrote to it before: %w", writer, ErrInFolder)
	}
	for _, f := range m.Files {
		if !plainName(f.Name) {
			return nil, true, fmt.Errorf("its %s names %q, which is none of its files: %w", Manifest, f.Name, ErrInFolder)
		}
		sum, size, err := sumOf(filepath.Join(path, f.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, true, bare(err)
		}
		if sum != f.SHA256 || size != f.Bytes {
			return nil, true, fmt.Errorf("%q in it was changed since: %w", f.Name, ErrInFolder)
		}
		old = append(old, f.Name)
	}
	return append(old, Manifest), true, nil
}

// plainName says that a name is that of a file in a folder, and no way out of it.
func plainName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != Manifest
}

func sumOf(path string) (sum string, size int64, err error) {
	f, err := openRegular(path)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, errors.Join(err, f.Close())
}

// folder is one that is being written aside.
type folder struct {
	dir   string
	files []FolderFile
}

// add is an [AddFile].
func (f *folder) add(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", name, bare(err))
	}
	h, size := sha256.New(), new(counter)
	if err = write(io.MultiWriter(file, h, size)); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, bare(err))
	}
	f.files = append(f.files, FolderFile{name, int64(*size), hex.EncodeToString(h.Sum(nil))})
	return nil
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// into puts the files into a folder that is there, in place of old ones; where that does not go, all is as it was.
func (f *folder) into(path, aside string, old []string) error {
	var undo []func() error
	move := func(from, to string) error {
		if err := putInPlace(from, to); err != nil {
			return err
		}
		if err := os.Remove(from); err != nil && !errors.Is(err, fs.ErrNotExist) { // where there are no links it was moved
			return errors.Join(err, os.Remove(to))
		}
		undo = append(undo, func() error { return os.Rename(to, from) })
		return nil
	}
	var err error
	for _, name := range old {
		if err = move(filepath.Join(path, name), filepath.Join(aside, "old", name)); err != nil {
			break
		}
	}
	for _, file := range f.files { // the manifest is the last
		if err != nil {
			break
		}
		if err = move(filepath.Join(f.dir, file.Name), filepath.Join(path, file.Name)); errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("there is a %q that is of somebody else: %w", file.Name, ErrInFolder)
		}
	}
	if err == nil {
		return nil
	}
	for _, back := range slices.Backward(undo) {
		err = errors.Join(err, back())
	}
	return err
}
