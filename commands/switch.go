package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/builds"
	"relaybench/harness/relay"
)

var relaySwitchCommand = command{
	name:    "relay switch",
	summary: "use a build of a branch or revision of the checkout",
	detail: `The checkout is the one that relay use FOLDER named. A build is made in a git work tree of its
own, with submodules, and kept by revision and build command, so that going back costs nothing;
your own tree, branch and index stay as they are. Without -b a kept build is taken.

BRANCH is a branch of the checkout, else of its remote (with -f the other way round, unless
yours has all of the remote's), a tag, a revision in full or its beginning, or . for the tree as
it is, with its changes and new files: such a build is marked dirty-tree. REVISION is one of BRANCH.

With -b it is a job. What is queued behind it waits for its build, and fails if that does.`,
	args: []arg{{name: "BRANCH", help: "or tag, revision, or . for the tree as it is", values: sourceValues},
		{name: "REVISION", help: "one that BRANCH has", optional: true}},
	examples: []string{"relay switch -fb main", "relay switch perf/ua-prefilter", "relay switch -b main 1a2b3c4d", "relay switch -b ."},
	store:    true,
	table:    true,
	queue: func(s *Session, fs *pflag.FlagSet) prepare {
		q := &switching{}
		fs.BoolVarP(&q.fetch, "fetch", "f", false, "fetch it from its remote first: no branch of yours is moved")
		fs.BoolVarP(&q.build, "build", "b", false, "build it, unless its build is kept")
		fs.BoolVarP(&q.verbose, "verbose", "v", false, "show what the build prints")
		fs.StringVar(&q.command, "build-command", "", "what builds, a `COMMAND` of a shell, done in the work tree; otherwise "+builds.DefaultCommand)
		pathFlag(fs, "build-command", anyPath)
		return func(ctx context.Context, args []string) (task, error) { return s.prepareSwitch(ctx, q, args) }
	},
}

// switching is what a line asks of relay switch.
type switching struct {
	fetch, build, verbose bool
	command               string
	names                 []string // BRANCH, and REVISION if one is given

	checkout string
	repo     *builds.Repo
	kept     *builds.Kept
}

// wholeTree stands for the tree of a checkout as it is.
const wholeTree = "."

// name is what was typed for the build.
func (q *switching) name() string { return strings.Join(q.names, " ") }

// ref is the relay that it chooses.
func (q *switching) ref() reference { return reference{Checkout: q.checkout, Name: q.name()} }

// prepareSwitch takes a kept build at once, where there is one and nothing has to be fetched for it.
func (s *Session) prepareSwitch(ctx context.Context, q *switching, args []string) (task, error) {
	for what, does := range map[string]bool{"relay switch --build": q.build, "relay switch --fetch": q.fetch} {
		if does {
			if err := s.mayBuild(what); err != nil {
				return task{}, err
			}
		}
	}
	if q.command != "" && strings.TrimSpace(q.command) == "" {
		return task{}, usageError(errors.New("--build-command is empty"), "")
	}
	q.names = args
	switch {
	case args[0] == wholeTree && len(args) > 1:
		return task{}, usageError(errors.New("the tree as it is has no REVISION"), "")
	case args[0] == wholeTree && q.fetch:
		return task{}, usageError(errors.New("the tree as it is, is not fetched"), "")
	}
	if err := s.checkout(ctx, q); err != nil {
		return task{}, err
	}
	if q.fetch && q.build {
		return s.making(q, nil), nil
	}
	if q.fetch {
		s.note("fetching %s …\n", table.Clean(q.name()))
		if err := q.repo.Fetch(ctx, q.names[len(q.names)-1]); err != nil {
			return task{}, err
		}
	}
	sources, err := sourcesOf(ctx, q.kept, q.repo, q.names, q.fetch)
	if err != nil {
		return task{}, err
	}
	if q.build {
		build, ok := q.kept.Find(sources[0], q.toBuild())
		if !ok {
			return s.making(q, &sources[0]), nil
		}
		build.Branch = sources[0].Branch
		return task{now: func() (Code, error) { return Fine, s.take(ctx, q, build) }}, nil
	}
	build, err := chosen(q.kept, sources, q.name(), q.command)
	if err != nil {
		return task{}, err
	}
	return task{now: func() (Code, error) { return Fine, s.take(ctx, q, build) }}, nil
}

// toBuild is the command that builds.
func (q *switching) toBuild() string {
	if q.command == "" {
		return builds.DefaultCommand
	}
	return q.command
}

// checkout opens the checkout in use.
func (s *Session) checkout(ctx context.Context, q *switching) error {
	ref, err := s.inUse()
	if err != nil {
		return err
	}
	if ref.Checkout == "" {
		return hinted(fmt.Errorf("no checkout is in use, but %s", ref), "relay use FOLDER takes a checkout of Relay")
	}
	if q.kept, err = s.bench.keptBuilds(); err != nil {
		return err
	}
	q.checkout = ref.Checkout
	q.repo, err = builds.Open(ctx, ref.Checkout)
	return err
}

// sourcesOf are what names may mean in a repository, the likeliest first: a name, or one and a revision of it.
func sourcesOf(ctx context.Context, kept *builds.Kept, repo *builds.Repo, names []string, fetched bool) ([]builds.Source, error) {
	switch {
	case names[0] == wholeTree:
		source, err := repo.Here(ctx, kept.Objects(repo))
		return []builds.Source{source}, err
	case len(names) == 2:
		source, err := repo.ResolveAt(ctx, names[0], names[1], fetched)
		return []builds.Source{source}, noRevision(err)
	}
	sources, err := repo.Resolve(ctx, names[0], fetched)
	return sources, noRevision(err)
}

// noRevision says what to do about a name that means nothing.
func noRevision(err error) error {
	var none *builds.NoRevisionError
	if errors.As(err, &none) {
		return usageError(err, "Tab lists branches and tags; -f fetches it")
	}
	return err
}

// take makes a kept build the relay in use.
func (s *Session) take(ctx context.Context, q *switching, build builds.Build) error {
	ref := q.ref()
	ref.What, ref.Branch = build.Binary, build.Branch
	if _, err := s.tellRelay(ctx, ref); err != nil {
		return err
	}
	s.relay = &ref
	if err := s.bench.keepRelay(ref); err != nil {
		return err
	}
	if q.names[0] != wholeTree && build.Branch != "" && build.Branch == q.repo.Branch(ctx) && q.repo.Changed(ctx) {
		return s.say("%s\n", s.wrap("the checkout has changes that are not in this build: relay switch -b . takes them"))
	}
	return nil
}

// making is the job that makes a build; source is nil where it is not known before a fetch.
func (s *Session) making(q *switching, source *builds.Source) task {
	m := &making{line: s.typed}
	ref := q.ref()
	ref.making = m
	t := task{do: func(ctx context.Context, s *Session) (code Code, err error) {
		build, err := builds.Build{}, errors.New("it was ended")
		defer func() { m.end(build, err) }()
		if build, err = s.makeBuild(ctx, q, source); err != nil {
			return Fine, err
		}
		return Fine, s.take(ctx, q, build)
	}, queued: func(j *job) {
		m.begin(j)
		s.relay = &ref
	}}
	for _, b := range q.kept.List() {
		if b.Checkout == q.repo.Path() && b.Command == q.toBuild() {
			t.about = time.Duration(b.Took)
			break
		}
	}
	return t
}

// makeBuild fetches what is to be fetched, and builds it.
func (s *Session) makeBuild(ctx context.Context, q *switching, source *builds.Source) (builds.Build, error) {
	client := s.client
	if q.verbose {
		client.Notes, client.Live = nil, 0 // it would stand between the lines
	}
	tell := startProgress(client, 0, s.format, place{}, s.goes)
	defer tell.Close()
	if source == nil {
		tell.Step("fetching " + table.Clean(q.name()))
		if err := q.repo.Fetch(ctx, q.names[len(q.names)-1]); err != nil {
			return builds.Build{}, err
		}
		sources, err := sourcesOf(ctx, q.kept, q.repo, q.names, true)
		if err != nil {
			return builds.Build{}, err
		}
		source = &sources[0]
	}
	name := table.Clean(source.String())
	order := builds.Order{Command: q.toBuild(),
		Tell: func(p builds.Progress) { tell.Step("building " + name + ": " + p.String()) },
		Note: func(line string) { _ = s.say("%s\n", s.wrap(table.Clean(line))) }, // to a voice, which never fails
		Check: func(ctx context.Context, binary string) error {
			_, err := relay.Find(ctx, binary, "")
			return err
		}}
	if q.verbose {
		order.Line = func(line string) { _ = s.say("%s\n", table.Clean(line)) }
	}
	build, err := q.kept.Make(ctx, q.repo, *source, order)
	var failed *builds.FailedError
	if errors.As(err, &failed) {
		t := &told{error: fmt.Errorf("build %s: %w", name, err), hint: "all that it printed: " + failed.Log}
		if !q.verbose {
			t.detail = failed.Lines
		}
		return build, t
	}
	build.Branch = source.Branch
	return build, err
}

// sourceValues are the branches and tags of the checkout in use.
func sourceValues(s *Session, before []string, _ string) []string {
	ref, err := s.inUse()
	if err != nil || ref.Checkout == "" || len(before) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
	defer cancel()
	repo, err := builds.Open(ctx, ref.Checkout)
	if err != nil {
		return nil
	}
	names, err := repo.Names(ctx)
	if err != nil {
		return nil
	}
	return append(names, wholeTree)
}

// completionLimit is how long git may take for a Tab.
const completionLimit = 2 * time.Second
