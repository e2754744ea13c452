package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/store"
)

// buildsFound are the builds that reports are of, all else equal.
type buildsFound struct {
	db     *store.DB
	c      *store.Collated // of one group
	rows   []*store.Row    // oldest first
	newest int             // which of them is in question: those before it are the earlier ones
}

// By what builds are told apart.
const (
	byRevision = "relay-revision"
	byHash     = "relay-sha256"
)

// findBuilds finds the builds of which a line asks; where there is nothing to
// be compared, the finding says why.
func (s *Session) findBuilds(q *verifying) (*buildsFound, *finding, error) {
	db, err := s.indexed()
	if err != nil {
		return nil, nil, err
	}
	filters := slices.Clone(q.filters)
	var like *store.Entry
	if q.like != "" {
		r, err := db.Get(q.like)
		if err != nil {
			return nil, nil, err
		}
		like = store.EntryOf(r)
		filters = append(filters, conditionsOf(like)...)
	}
	entries, cut, err := db.Entries(filters, q.limit)
	if err != nil {
		return nil, nil, err
	}
	if like != nil {
		entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Group(byHash) != like.Group(byHash) })
		if !slices.ContainsFunc(entries, func(e store.Entry) bool { return e.ID == like.ID }) {
			return nil, noVerdict("report %s is not one of those that the filters match within -n %s", like.ID, q.newest), nil
		}
	}
	if len(entries) == 0 {
		return nil, nothingMatches(db, q, cut), nil
	}
	c, err := db.Collate(store.Collation{Variable: toldApartBy(entries), Filters: filters, Limit: q.limit,
		Metrics: []string{q.metric.Name}, Primary: q.metric.Name, Margin: q.margin})
	if err != nil {
		return nil, nil, err
	}
	if like != nil {
		c.Groups = slices.DeleteFunc(c.Groups, func(p store.Peers) bool {
			return !slices.ContainsFunc(p.Rows, func(r store.Row) bool { return hasRun(&r, like.ID) })
		})
	}
	switch len(c.Groups) {
	case 0:
		return nil, noVerdict("nothing tells of which build %s are", reports(len(entries))), nil
	case 1:
	default:
		return nil, nil, mixed(c)
	}
	b := &buildsFound{db: db, c: c}
	rows := c.Groups[0].Rows
	for i := range rows {
		b.rows = append(b.rows, &rows[i])
	}
	slices.SortStableFunc(b.rows, func(x, y *store.Row) int { return b.order(x, y) })
	b.newest = len(b.rows) - 1
	if like != nil {
		b.newest = slices.IndexFunc(b.rows, func(r *store.Row) bool { return hasRun(r, like.ID) })
	}
	return b, nil, nil
}

func hasRun(r *store.Row, id string) bool {
	return slices.ContainsFunc(r.Runs, func(run store.Run) bool { return run.ID == id })
}

// toldApartBy is the variable that tells builds apart: the revision, where every report has one that is all of it.
func toldApartBy(entries []store.Entry) string {
	for i := range entries {
		e := &entries[i]
		_, known := e.Var(byRevision)
		if dirty, _ := e.Var("relay-dirty"); e.Problem == "" && (!known || dirty == "yes") {
			return byHash
		}
	}
	return byRevision
}

// conditionsOf are filters for the conditions of a report that do not follow others.
func conditionsOf(e *store.Entry) []store.Filter {
	var filters []store.Filter
	for i := range store.Variables {
		v := &store.Variables[i]
		value, known := e.Var(v.Name)
		if v.Role != store.Condition || !known {
			continue
		}
		if f, err := store.ParseFilter(v.Name+"="+value, time.Now()); err == nil {
			filters = append(filters, f)
		}
	}
	return filters
}

// nothingMatches says why the filters match no report.
func nothingMatches(db *store.DB, q *verifying, cut int) *finding {
	if cut > 0 {
		return noVerdict("no report within -n %s, and %s older", q.newest, count(cut))
	}
	if near := nearestReport(db, q.filters); near != "" {
		return noVerdict("no report: %s", near)
	}
	if len(q.filters) == 0 {
		return noVerdict("there is no report yet")
	}
	var words []string
	for _, f := range q.filters {
		words = append(words, f.String())
	}
	return noVerdict("no report has all of %s", strings.Join(words, ", "))
}

// order is that of two builds in time: by the dates of their revisions, else by their first runs.
func (b *buildsFound) order(x, y *store.Row) int {
	first := x.Runs[0].Start.Compare(y.Runs[0].Start)
	if b.c.Variable.Name != byRevision {
		return first
	}
	p, q := revisionDate(x), revisionDate(y)
	if p.IsZero() || q.IsZero() {
		return first
	}
	return cmp.Or(p.Compare(q), first)
}

func revisionDate(r *store.Row) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, r.Follows["revision-date"])
	return t
}

// name is a build in a word.
func (b *buildsFound) name(r *store.Row) string { return rowName(b.c.Variable, r.Value) }

// describe is a build in a line.
func (b *buildsFound) describe(r *store.Row) string {
	parts := []string{strings.TrimPrefix(b.c.Variable.Name, "relay-") + " " + b.name(r)}
	for _, name := range []string{"relay-version", "relay-branch"} {
		if v := r.Follows[name]; v != "" {
			parts = append(parts, strings.TrimPrefix(name, "relay-")+" "+v)
		}
	}
	if t := revisionDate(r); !t.IsZero() {
		parts = append(parts, "of "+t.Format(time.DateOnly))
	}
	first, last := r.Runs[0].Start.Local(), r.Runs[len(r.Runs)-1].Start.Local()
	when := first.Format("2006-01-02 15:04")
	if to := last.Format("2006-01-02 15:04"); to != when {
		when += " to " + strings.TrimPrefix(to, first.Format("2006-01-02 "))
	}
	return table.Clean(fmt.Sprintf("%s: %s, %s", strings.Join(parts, ", "), plural(len(r.Runs), "run", "runs"), when))
}
