// Package deploy_test proves that what deploy/ holds works: it builds and runs
// the image, and holds manifests, units, alerts and dashboards against the
// program as it is built. It leaves to the tests of the packages what the
// program itself does.
//
// `make deploy-test` installs what it needs.
package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	root    = "../.."
	patient = time.Minute // the image is built and run on slow machines
)

var binary string // queenbridge as `make build` makes it; set by TestMain

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "queenbridge-deploy")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "queenbridge")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/queenbridge")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	code := 1
	if out, err := build.CombinedOutput(); err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// tool is the path of a program that a test needs: what the variable says, or
// what is on the PATH. A missing one fails the test, so that a green run means
// that all was checked.
func tool(t *testing.T, name, variable string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: run \"make deploy-test\", or set %s", name, variable)
	}
	return path
}

// output runs a command to its end and returns what it printed on stdout.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = string(exit.Stderr)
		}
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr)
	}
	return string(out)
}

// read is a file of this repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
