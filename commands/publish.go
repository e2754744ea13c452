package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/store"
)

// publisher is by whom a folder of publish is known.
const publisher = "relaybench publish"

var publishCommand = command{
	name:    "publish",
	summary: "figures for a page, below their fine print",
	detail: `FOLDER is made, or must be empty. It gets
  summary.md    the figures of each cell (all runs that are equal in every condition) below their fine print
  runs.csv      a row a run: variables, marks, fine print, all metrics
  cells.csv     a row a cell and metric: median, quartiles, what marks left out
  versions.csv  the relays and relaybenches, with their sha256
  host-….json   what the reports say of each host, and how busy it was
  config-….yml  each effective config of a relay
  manifest.json sizes and sha256 of these
All of it is from the reports; what they do not tell is unknown. The same reports give the same
bytes. It is written whole or not at all.`,
	args: []arg{{name: "FOLDER", help: "a new or empty folder", path: anyPath},
		{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true, values: filterValues}},
	examples: []string{"publish page rate=max", "publish page relay-branch=main -n 168h --replace"},
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		newest := fs.StringP("number", "n", allNewest, "at most so many of the newest, `N`, or those of the last DURATION; all: no limit")
		replace := fs.Bool("replace", false, "write over what an earlier publish wrote there, where nobody changed it since; what else is there stays")
		return func(ctx context.Context, args []string) (Code, error) {
			filters, limit, err := parseSelection(args[1:], *newest)
			if err != nil {
				return Fine, err
			}
			path, err := s.path(args[0])
			if err != nil {
				return Fine, err
			}
			if absent, err := s.bench.absent(); absent || err != nil {
				if err == nil {
					err = errors.New("there is no report: no run was made here yet")
				}
				return Fine, err
			}
			db, err := s.indexed()
			if err != nil {
				return Fine, err
			}
			p := &publication{export: export{s: s, ctx: ctx, db: db, format: csvRows}}
			if p.entries, p.cut, err = db.Entries(filters, limit); err != nil {
				return Fine, err
			}
			if err := p.gather(); err != nil {
				return Fine, err
			}
			if len(p.ids) == 0 {
				return Fine, hinted(errors.New("no report that could be published"), nearestReport(db, filters))
			}
			files, err := store.NewFolder(path, publisher, *replace, p.write)
			if errors.Is(err, store.ErrInFolder) {
				err = hinted(err, "name a new or an empty folder; --replace writes over what an earlier publish wrote there")
			}
			if err != nil {
				return Fine, fmt.Errorf("folder %q: %w", path, err)
			}
			return Fine, p.answer(path, files)
		}
	},
}

// publishedJSON says what was written.
type publishedJSON struct {
	Folder     string          `json:"folder"`
	Runs       int             `json:"runs"`
	Cells      int             `json:"cells"`
	Cut        int             `json:"cut"` // left out by -n
	Unreadable []string        `json:"unreadable"`
	Files      []publishedFile `json:"files"`
}

type publishedFile struct {
	store.FolderFile
	What string `json:"what"`
}

// answer says what was written, and what was left out.
func (p *publication) answer(path string, files []store.FolderFile) error {
	j := publishedJSON{Folder: path, Runs: len(p.ids), Cells: len(p.cells), Cut: p.cut, Unreadable: append([]string{}, p.unreadable...)}
	t := &table.Table{Columns: []table.Column{{Key: "name", Head: "file"}, {Key: "bytes", Right: true}, {Key: "sha256", Data: true}, {Key: "what", Wrap: true}}}
	for _, f := range files {
		what := p.what[f.Name]
		j.Files = append(j.Files, publishedFile{f, what})
		t.Add(table.Text(f.Name), table.Int(f.Bytes).As(count(f.Bytes)), table.Text(f.SHA256), table.Text(what))
	}
	var err error
	if p.s.format == JSON {
		err = p.s.printJSON(j)
	} else {
		err = p.s.print(t)
	}
	if err == nil {
		err = p.s.say("%s\n", p.s.wrap(fmt.Sprintf("in %s: %s in %s; the fine print is in summary.md", table.Clean(path), plural(len(p.ids), "run", "runs"), plural(len(p.cells), "cell", "cells"))))
	}
	for _, note := range p.leftOutNotes() {
		if err == nil {
			err = p.s.say("%s\n", p.s.wrap(note))
		}
	}
	if err == nil && len(p.unreadable) > 0 {
		err = &told{error: fmt.Errorf("%s cannot be read, and left out", reports(len(p.unreadable))), detail: firstOf(p.unreadable, 10, "more")}
	}
	return err
}
