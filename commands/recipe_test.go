package commands

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

// The README's recipe for CI does what it says: its commands are run, on made-up runs.
func TestRecipe(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "\n### In CI\n")
	_, after, _ = strings.Cut(after, "\n```sh\n")
	recipe, _, found := strings.Cut(after, "```\n")
	line := regexp.MustCompile(`relaybench -markdown -c '([^']+)'`).FindStringSubmatch(recipe)
	if !found || line == nil {
		t.Fatalf("no recipe: %q", recipe)
	}

	dir := t.TempDir()
	fakeRelay(t, filepath.Join(dir, "relay-base"), "26.4.0")
	fakeRelay(t, filepath.Join(dir, "relay-head"), "26.5.0")
	var out strings.Builder
	s, _ := staged(t, &stage{cost: func(_ plan.Plan, r relay.Program) float64 {
		if r.Version == "26.5.0" {
			return 1.2
		}
		return 1
	}}, &out)
	s.client.Dir, s.client.Format, s.format = dir, Markdown, Markdown
	code, body := do(t, s, &out, line[1])
	wants(t, body, "A: relay 26.4.0, sha256 ", "worse: cpu-per-envelope ", "\n| metric | A ./relay-base | B ./relay-head | shift | interval | verdict |\n", "| worse |\n")
	if code != Worse || strings.Contains(body, "run 1 of") {
		t.Errorf("code %d:\n%s", code, body)
	}

	for name, text := range map[string]string{
		"relaybench": "cat \"$TABLE\"; exit \"$CODE\"",
		"gh":         "echo \"$*\" >called; cp comment.md posted",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(dir, "made")
	if err := os.WriteFile(made, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	for was, want := range map[string]int{"0": 0, "1": 1, "2": 0, "4": 4, "130": 130} {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", recipe)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PR=7", "CODE="+was, "TABLE="+made)
		said, err := cmd.CombinedOutput()
		got := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("where relaybench ends with %s: exit status %d, want %d: %s", was, got, want, said)
		}
		called, err := os.ReadFile(filepath.Join(dir, "called"))
		if err != nil || strings.TrimSpace(string(called)) != "pr comment 7 --body-file comment.md" {
			t.Errorf("gh was called with %q, %v", called, err)
		}
		if posted, err := os.ReadFile(filepath.Join(dir, "posted")); err != nil || string(posted) != body {
			t.Errorf("posted %q, %v", posted, err)
		}
	}
}
