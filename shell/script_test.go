package shell_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/data")
			e.Setenv("NO_COLOR", "")
			e.Setenv(goRace, os.Getenv(goRace))
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				e.Setenv("GIT_"+who+"_NAME", "ann")
				e.Setenv("GIT_"+who+"_EMAIL", "ann@example.com")
				e.Setenv("GIT_"+who+"_DATE", "2026-04-15T09:00:00Z")
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
		Condition: func(name string) (bool, error) {
			if name == "root" { // permissions do not hold it back
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}

// exits runs a program and checks its exit status:
//
//	exits CODE [<FILE] PROGRAM [ARGUMENT…]
//
// FILE is its standard input, which is empty otherwise.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE [<FILE] PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	if file, ok := strings.CutPrefix(args[0], "<"); ok {
		args = append([]string{"sh", "-c", `exec "$@" <"$0"`, ts.MkAbs(file)}, args[1:]...)
	}
	err = ts.Exec(args[0], args[1:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
