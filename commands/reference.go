package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"relaybench/commands/table"
	"relaybench/harness/builds"
	"relaybench/harness/relay"
	"relaybench/harness/variable"
)

// reference is a relay as it was named: it is found when it is used.
type reference struct {
	What     string `json:"what,omitempty"` // what [relay.Find] takes; empty: a build of Checkout
	Upstream string `json:"upstream,omitempty"`
	Checkout string `json:"checkout,omitempty"` // the folder that switch takes builds from
	Name     string `json:"name,omitempty"`     // of the branch, tag or revision in it; empty: none was chosen yet
	Branch   string `json:"branch,omitempty"`   // the same, once it is known to be one
	making   *making
}

// String is the relay as it was named, in a few words.
func (r reference) String() string {
	switch {
	case r.Checkout == "":
		return r.What
	case r.Name == "":
		return "checkout " + r.Checkout + ", of which no build is chosen"
	}
	return r.Name + " of " + r.Checkout
}

// form is that of the relay, as [relay.Find] would have it.
func (r reference) form() string {
	switch {
	case r.What == relay.FormStandIn || r.What == relay.FormNone:
		return r.What
	case strings.Contains(r.What, "://"):
		return relay.FormURL
	case relay.IsImage(r.What):
		return relay.FormImage
	}
	return relay.FormPath
}

// making is a build that was asked for, and that a job is to make: what is
// queued behind that job takes it, or fails as it did.
type making struct {
	line string // that asked for it

	mu    sync.Mutex
	job   string
	ended bool
	build builds.Build
	err   error
}

// begin says which job is to make it.
func (m *making) begin(j *job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.job = j.id()
}

func (m *making) end(b builds.Build, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.build, m.err = true, b, err
}

// made is the build, or why there is none.
func (m *making) made() (builds.Build, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.ended:
		return m.build, hinted(fmt.Errorf("%s, job %s, has not made its build", m.line, m.job), "status says how it goes; one that was cancelled makes none")
	case m.err != nil:
		return m.build, hinted(fmt.Errorf("%s, job %s, made no build", m.line, m.job), "relay switch takes another one")
	}
	return m.build, nil
}

// keptBuilds are the builds that are kept: in a folder beside the store, so
// that whoever has that is the only one who makes and takes away builds there.
func (b *Bench) keptBuilds() (*builds.Kept, error) {
	db, err := b.open()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		path := db.Path()
		b.kept = builds.At(strings.TrimSuffix(path, filepath.Ext(path)) + ".builds")
	}
	return b.kept, nil
}

// settled is the reference with what it says now: a build is one of the kept ones from then on.
func (b *Bench) settled(ctx context.Context, ref reference) (reference, error) {
	if ref.What != "" {
		return ref, nil
	}
	if ref.Name == "" {
		return ref, hinted(fmt.Errorf("no build of the checkout %s was chosen", ref.Checkout), "relay switch -b BRANCH builds one")
	}
	var build builds.Build
	var err error
	if ref.making != nil {
		build, err = ref.making.made()
	} else {
		build, err = b.keptOf(ctx, ref.Checkout, ref.Name)
	}
	if err != nil {
		return ref, err
	}
	ref.What, ref.Branch, ref.making = build.Binary, build.Branch, nil
	return ref, nil
}

// keptOf is the kept build that a name means in a checkout now.
func (b *Bench) keptOf(ctx context.Context, checkout, name string) (builds.Build, error) {
	kept, err := b.keptBuilds()
	if err != nil {
		return builds.Build{}, err
	}
	repo, err := builds.Open(ctx, checkout)
	if err != nil {
		return builds.Build{}, err
	}
	sources, err := sourcesOf(ctx, kept, repo, []string{name}, false)
	if err != nil {
		return builds.Build{}, err
	}
	return chosen(kept, sources, name, "")
}

// chosen is the kept build of the first of some sources that has one.
func chosen(kept *builds.Kept, sources []builds.Source, name, command string) (builds.Build, error) {
	for _, source := range sources {
		if build, ok := kept.Find(source, command); ok {
			build.Branch = source.Branch
			return build, nil
		}
	}
	s := sources[0]
	err := fmt.Errorf("no build of %s is kept", s)
	if s.Branch != "" {
		for _, other := range kept.List() {
			if other.Branch == s.Branch && other.Repository == s.Repository {
				err = fmt.Errorf("%w (there is one of %s)", err, other.Source)
				break
			}
		}
	}
	return builds.Build{}, hinted(err, "relay switch -b "+name+" builds it")
}

// findRelay finds and identifies a relay that was named.
func (b *Bench) findRelay(ctx context.Context, ref reference) (relay.Program, error) {
	ref, err := b.settled(ctx, ref)
	if err != nil {
		return relay.Program{}, err
	}
	program, err := b.identify(ctx, ref)
	if err != nil && ctx.Err() != nil {
		return program, context.Cause(ctx)
	}
	if err != nil {
		return program, hinted(err, cmp.Or(imageHint(err), "relay use stand-in, or relay use PATH"))
	}
	return program, nil
}

// identify is what is known of a relay, with what was kept of it where it is a build of ours.
func (b *Bench) identify(ctx context.Context, ref reference) (relay.Program, error) {
	program, err := relay.Find(ctx, ref.What, ref.Upstream)
	if err != nil || program.Form != relay.FormPath {
		return program, err
	}
	kept, err := b.keptBuilds()
	if err != nil {
		return program, err
	}
	if build, ok := kept.At(program.Path); ok && build.SHA256 == program.SHA256 {
		program.Branch, program.Revision, program.RevisionDate = build.Branch, build.Revision, build.Date
		program.Dirty, program.Profile = build.Changes != "", build.Profile
		if ref.Branch != "" {
			program.Branch = ref.Branch
		}
	}
	return program, nil
}

// relaySetting is the name under which the store keeps the relay last used.
const relaySetting = "relay"

// lastRelay is the relay that the store knows; ok is false where none was used yet.
func (b *Bench) lastRelay() (r reference, ok bool, err error) {
	db, err := b.open()
	if err != nil {
		return r, false, err
	}
	text, ok, err := db.Setting(relaySetting)
	if err != nil || !ok {
		return r, false, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, false, fmt.Errorf("relay last used: %w", err)
	}
	return r, true, nil
}

// inUse is the relay that the session uses: what it said itself, else the last
// one that the store knows, else the stand-in.
func (s *Session) inUse() (reference, error) {
	if s.relay == nil {
		r, ok, err := s.bench.lastRelay()
		if err != nil {
			return r, err
		}
		if !ok {
			r.What = relay.FormStandIn
		}
		s.relay = &r // what another client uses from now on is that one's
	}
	return *s.relay, nil
}

// lastUsed stands for the relay that was used last.
const lastUsed = "last"

// named is the reference that was typed.
func (s *Session) named(what, upstream string) (reference, error) {
	if what != lastUsed {
		if relayPath(what) && what != "" && !relay.IsImage(what) {
			what = s.from(what)
			if upstream == "" && s.isFolder(what) {
				path, err := s.path(what)
				return reference{Checkout: path}, err
			}
		}
		return reference{What: what, Upstream: upstream}, nil
	}
	ref, ok, err := s.bench.lastRelay()
	if err == nil && !ok {
		err = hinted(errors.New("no relay was used yet"), "name one: relay use PATH")
	}
	return ref, err
}

// tellRelay finds the relay and says what it is. It gives the reference that
// means the same wherever a later session is started.
func (s *Session) tellRelay(ctx context.Context, ref reference) (reference, error) {
	if ref.Checkout != "" && ref.Name == "" {
		return s.tellCheckout(ctx, ref)
	}
	ref, err := s.bench.settled(ctx, ref)
	if err != nil {
		return ref, err
	}
	p, err := s.bench.identify(ctx, ref)
	if err != nil {
		return ref, misnamed(ref, err)
	}
	if p.Form == relay.FormPath {
		ref.What = p.Path
	}
	if s.format == Text {
		return ref, s.printf("relay in use: %s\n", p)
	}
	return ref, s.print(relayRecord(p))
}

// tellCheckout says what a checkout is, of which no build is chosen.
func (s *Session) tellCheckout(ctx context.Context, ref reference) (reference, error) {
	repo, err := builds.Open(ctx, ref.Checkout)
	if errors.Is(err, builds.ErrNoCheckout) {
		return ref, hinted(err, "a folder is a checkout of Relay, or a bare repository; of another one, give the binary in it, such as "+filepath.Join(ref.Checkout, "target", "release", "relay"))
	}
	if err != nil {
		return ref, err
	}
	kept, err := s.bench.keptBuilds()
	if err != nil {
		return ref, err
	}
	ref.Checkout = repo.Path()
	branch, number := repo.Branch(ctx), 0
	for _, b := range kept.List() {
		if b.Checkout == ref.Checkout {
			number++
		}
	}
	if s.format != Text {
		r := table.Record()
		r.Field("checkout", "", table.Text(ref.Checkout))
		r.Field("branch", "", optional(branch))
		r.Field("dirty", "", table.Bool(repo.Changed(ctx)))
		r.Field("builds", "", table.Int(number))
		return ref, s.print(r)
	}
	on := ""
	if branch != "" {
		on = ", on " + branch
	}
	if repo.Changed(ctx) {
		on += ", with changes"
	}
	return ref, s.printf("%s\n", s.wrap(table.Clean(fmt.Sprintf("checkout %s%s; %s kept of it. No build is in use yet: relay switch BRANCH takes a kept one, relay switch -b BRANCH builds", ref.Checkout, on, plural(number, "build is", "builds are")))))
}

// imageHint is what to do where an image could not be used, "" for any other error.
func imageHint(err error) string {
	switch {
	case errors.Is(err, relay.ErrNoImage):
		return "relay use docker:IMAGE fetches it, where it is not here"
	case errors.Is(err, relay.ErrNoEngine) && strings.Contains(err.Error(), "permission denied"):
		return "this user may not use the engine: docker's group may, and podman needs none"
	case errors.Is(err, relay.ErrNoEngine):
		return "an image needs docker or podman on this host; relay use PATH takes a binary"
	}
	return ""
}

// misnamed is the error of a relay that was not found, with what was probably meant.
func misnamed(ref reference, err error) error {
	var typed *relay.UsageError
	words := []string{relay.FormStandIn, relay.FormNone, lastUsed, relay.ImageWord}
	switch {
	case errors.As(err, &typed):
		return usageError(err, "")
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(ref.What, '/'):
		return hinted(err, didYouMean(variable.Nearest(ref.What, words), "what is no path and no URL is "+oneOf(words)))
	case imageHint(err) != "":
		return hinted(err, imageHint(err))
	}
	return err
}

// keepRelay makes the relay the one that new sessions use.
func (b *Bench) keepRelay(ref reference) error {
	db, err := b.open()
	if err != nil {
		return err
	}
	text, err := json.Marshal(ref)
	if err != nil {
		return err
	}
	if err := db.SetSetting(relaySetting, string(text)); err != nil {
		return fmt.Errorf("remember the relay: %w", err)
	}
	return nil
}
