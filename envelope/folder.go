package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Folder is envelopes of one's own, a file each, as [Pool.Append] writes them or an
// SDK sent them. It is read-only once it is read.
type Folder struct {
	// Path is where it was read.
	Path string
	// SHA256 is of the files' names and contents, in hex digits.
	SHA256 string
	// Kinds is the table of kinds that its files are of: [Kinds], and behind
	// them those that only folders have, where it has them.
	Kinds []Kind
	// Files is how many envelopes it has, by kind's name.
	Files map[string]int
	// Passed is how many files were passed over, as they are not named as envelopes are.
	Passed int

	files []recording
}

// FolderExt is how files are named that are envelopes. Where a folder has such files, it has no others.
const FolderExt = ".envelope"

// Bounds of a folder; of one file, Relay's limits.max_envelope_size.
const (
	maxFolderFiles = 100_000
	maxFolderBytes = 1 << 30
	maxFileBytes   = 200 << 20
)

// ReadFolder reads the envelopes in a file system, which is that of the folder
// at path: of files, also in folders below it, those that end in [FolderExt],
// or all where none does. An error names the file.
func ReadFolder(fsys fs.FS, path string) (*Folder, error) {
	f, err := readFolder(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", path, err)
	}
	return f, nil
}

func readFolder(fsys fs.FS, at string) (*Folder, error) {
	names, passed, err := folderNames(fsys)
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: at, Kinds: slices.Clone(Kinds), Files: map[string]int{}, Passed: passed}
	sum, left := sha256.New(), int64(maxFolderBytes)
	for _, name := range names {
		text, err := readWhole(fsys, name, min(left, maxFileBytes))
		if err != nil {
			return nil, err
		}
		if left -= int64(len(text)); left <= 0 {
			return nil, fmt.Errorf("more than %d bytes are in its files", maxFolderBytes)
		}
		fmt.Fprintf(sum, "%s\n%d\n", name, len(text))
		sum.Write(text)
		if err := f.add(text); err != nil {
			return nil, fmt.Errorf("file %q: %w", name, err)
		}
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// folderNames are the files of a folder that are its envelopes, in the order of their names.
func folderNames(fsys fs.FS) (names []string, passed int, err error) {
	var all []string
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			all = append(all, name)
		}
		if len(all) > maxFolderFiles {
			return fmt.Errorf("it has more than %d files", maxFolderFiles)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	names = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return path.Ext(name) != FolderExt })
	if len(names) == 0 {
		names = all
	}
	if len(names) == 0 {
		return nil, 0, errors.New("no file is in it")
	}
	return names, len(all) - len(names), nil
}

// readWhole reads a file of at most so many bytes.
func readWhole(fsys fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no file", name) // reading it could take for ever
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("file %q is larger than %d bytes", name, most)
	}
	return text, err
}

// add takes the envelope of a file.
func (f *Folder) add(text []byte) error {
	for magic, name := range map[string]string{"\x1f\x8b": "gzip", "\x28\xb5\x2f\xfd": "zstd"} {
		if bytes.HasPrefix(text, []byte(magic)) {
			return fmt.Errorf("it is compressed (%s): only envelopes as they are can be sent", name)
		}
	}
	var e Envelope
	if err := e.Parse(text); err != nil {
		return err
	}
	kind, err := kindOf(&e)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(f.Kinds, func(k Kind) bool { return k.Name == kind.Name })
	if at < 0 {
		at = len(f.Kinds)
		f.Kinds = append(f.Kinds, kind)
	}
	r, err := newRecording(&e, &f.Kinds[at])
	if err != nil {
		return err
	}
	r.kind = at
	f.files = append(f.files, r)
	f.Files[kind.Name]++
	return nil
}

// otherKinds are kinds that only a folder has: nothing makes them up.
var otherKinds = []Kind{
	{Name: "aggregates", Help: "sessions, as servers add them up", Items: []string{"sessions"}, Category: 5, Unit: "item", Elements: One, Silent: []int{429}},
	{Name: "spans", Help: "containers of spans", Items: []string{"span"}, Category: 12, Unit: "span", Elements: Contained},
	{Name: "metrics", Help: "containers of trace metrics", Items: []string{"trace_metric"}, Category: 33, Unit: "metric", Elements: Contained,
		Features: []string{"organizations:tracemetrics-ingestion"}},
	{Name: "feedback", Help: "user feedback", Items: []string{"feedback"}, Category: 14, Unit: "item", Elements: One},
}

// alone are the item types of which Relay sends on each one in an envelope of
// its own, so that two of one send could not be told from one that comes twice.
var alone = map[string]bool{"check_in": true}

// uncounted are item types that Relay 26.4 knows, of which an envelope without one of
// a kind's cannot be accounted for: they do not come out as they went in, or
// their losses are in no one category.
var uncounted = map[string]bool{
	"attachment": true, "client_report": true, "form_data": true, "metric_buckets": true, "nel": true, "profile": true, "profile_chunk": true,
	"raw_security": true, "replay_event": true, "replay_recording": true, "replay_video": true, "security": true, "statsd": true,
	"unreal_report": true, "user_report": true, "user_report_v2": true,
}

// kindOf is the kind of an envelope: that of the first item that is one's
// first. Items of other types go with it. An item type that nobody knows, Relay
// sends on as it is: it is a kind by its own name.
func kindOf(e *Envelope) (Kind, error) {
	if len(e.Items) == 0 {
		return Kind{}, errors.New("it has no items")
	}
	var kind *Kind
	for i := range e.Items {
		for _, table := range [][]Kind{Kinds, otherKinds} {
			for j := range table {
				if kind == nil && table[j].Items[0] == string(e.Items[i].Type) {
					kind = &table[j]
				}
			}
		}
	}
	var own Kind
	if kind == nil {
		typ := string(e.Items[0].Type)
		if uncounted[typ] {
			return Kind{}, fmt.Errorf("an envelope of %q alone cannot be accounted for behind the relay", typ)
		}
		own = Kind{Name: kindName(typ), Help: "items of a type that relaybench does not know", Items: []string{typ}, Unit: "item", Elements: One}
		kind = &own
	}
	n := 0
	for i := range e.Items {
		if string(e.Items[i].Type) == kind.Items[0] {
			n++
		}
	}
	if typ := kind.Items[0]; n > 1 && (alone[typ] || kind == &own) {
		return Kind{}, fmt.Errorf("it has %d items %q, which the relay sends on one by one: they cannot be told from repeats", n, typ)
	}
	return *kind, nil
}

// kindName is a kind's name for an item type, of letters that names have.
func kindName(typ string) string {
	return "item-" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(typ))
}

// mix is the folder's own weights.
func (f *Folder) mix() Mix {
	m := Mix{text: f.Path, weights: make([]float64, len(f.Kinds))}
	for _, r := range f.files {
		m.weights[r.kind]++
	}
	return m
}
