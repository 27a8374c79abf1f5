package queentest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// These tests drive a broker with Queen's official Python client, so they
// show what a program that was written for Queen sees. The cases are in
// python; each is a subtest. The real broker is their control: they hold for
// it as it is. They need python3 and a package index, and are selected like
// the other tests of real things.

func TestRealPythonClientOnQueen(t *testing.T) {
	pythonCases(t, real(t).URL, "")
}

func TestRealPythonClientOnEmbedded(t *testing.T) {
	const token = "a token"
	b, err := devbroker.Open(devbroker.Config{Dir: t.TempDir(), RiderRate: 100, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	pythonCases(t, server.URL, token)
}

// pythonCases runs python/run.py against a broker and reports its cases.
func pythonCases(t *testing.T, url, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, pythonWithClient(t), "run.py")
	cmd.Dir = "python"
	cmd.Env = pythonEnv("QUEEN_URL="+url, "QUEEN_TOKEN="+token)
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	cases, problem := parseCases(stdout)
	for _, c := range cases {
		t.Run(c.Case, func(t *testing.T) { c.report(t) })
	}
	if err := errors.Join(err, problem); err != nil {
		t.Errorf("python/run.py: %v\n%s", err, tail(stderr.String(), 4000))
	}
}

// pythonEnv is the environment without what could change a run: proxies, and
// settings of the client or of the interpreter.
func pythonEnv(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		if !strings.HasPrefix(name, "QUEEN_") && !strings.HasPrefix(name, "PYTHON") && !strings.HasSuffix(name, "_PROXY") {
			out = append(out, v)
		}
	}
	return append(append(out, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1"), more...)
}

// pythonCase is one line of run.py.
type pythonCase struct {
	Case    string
	Seconds float64
	Failed  string
	Skipped string
	Done    *int // the last line: how many cases there are
}

func (c pythonCase) report(t *testing.T) {
	switch {
	case c.Failed != "":
		t.Errorf("after %g s: %s", c.Seconds, c.Failed)
	case c.Skipped != "":
		t.Skip(c.Skipped)
	default:
		t.Logf("%g s", c.Seconds)
	}
}

// parseCases reads what run.py printed. It says so when that is not all of it.
func parseCases(out []byte) (cases []pythonCase, err error) {
	for line := range bytes.Lines(out) {
		var c pythonCase
		if err := json.Unmarshal(line, &c); err != nil {
			return cases, fmt.Errorf("read %q: %w", line, err)
		}
		switch {
		case c.Done == nil:
			cases = append(cases, c)
		case *c.Done != len(cases) || *c.Done == 0:
			return cases, fmt.Errorf("%d cases are reported, %d were to be run", len(cases), *c.Done)
		default:
			return cases, nil
		}
	}
	return cases, fmt.Errorf("it ended after %d cases", len(cases))
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// pythonWithClient returns an interpreter that has the client. It is set up
// once per user and list of requirements, in the cache beside the real broker.
func pythonWithClient(t *testing.T) string {
	t.Helper()
	requirements, err := os.ReadFile("python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(cacheDir(t), "python-"+clientVersion(t, requirements))
	python := filepath.Join(venv, "bin", "python")
	if installed, err := os.ReadFile(filepath.Join(venv, "requirements.txt")); err == nil && bytes.Equal(installed, requirements) {
		return python
	}
	if err := setUpPython(t.Context(), venv, requirements); err != nil {
		t.Fatal(err)
	}
	return python
}

// clientVersion is the name and version of the client, from its line of the
// requirements.
func clientVersion(t *testing.T, requirements []byte) string {
	t.Helper()
	for line := range strings.Lines(string(requirements)) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "=="); ok && name == "queen-mq" {
			return name + "-" + version
		}
	}
	t.Fatal("python/requirements.txt does not pin queen-mq")
	return ""
}

func cacheDir(t *testing.T) string {
	t.Helper()
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "queenbridge")
}

// setUpPython makes a virtual environment beside its place and moves it there
// when it is complete, so that nobody finds half of one.
func setUpPython(ctx context.Context, venv string, requirements []byte) error {
	if _, err := exec.LookPath("python3"); err != nil {
		return errors.New("no python3; hint: apt-get install python3 python3-venv python3-pip")
	}
	if err := os.MkdirAll(filepath.Dir(venv), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(venv), "python-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := run(ctx, "python3", "-m", "venv", dir); err != nil {
		return fmt.Errorf("make a virtual environment: %w; hint: apt-get install python3-venv", err)
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list+".new", requirements, 0o644); err != nil {
		return err
	}
	pip := []string{"-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement", list + ".new"}
	if err := run(ctx, filepath.Join(dir, "bin", "python"), pip...); err != nil {
		return fmt.Errorf("install the client: %w; hint: pip needs a package index", err)
	}
	if err := os.Rename(list+".new", list); err != nil {
		return err
	}
	if err := os.RemoveAll(venv); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(dir, venv)
}

func run(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, tail(string(out), 2000))
	}
	return nil
}

// TestParseCases: a run that was cut short must not pass.
func TestParseCases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out   string
		cases int
		ok    bool
	}{
		{`{"case":"a","seconds":1}` + "\n" + `{"case":"b","seconds":1,"failed":"x"}` + "\n" + `{"done":2}` + "\n", 2, true},
		{`{"case":"a","seconds":1}` + "\n", 1, false},
		{`{"case":"a","seconds":1}` + "\n" + `{"done":2}` + "\n", 1, false},
		{`{"done":0}` + "\n", 0, false},
		{"", 0, false},
		{"Traceback\n", 0, false},
	} {
		cases, err := parseCases([]byte(tt.out))
		if len(cases) != tt.cases || (err == nil) != tt.ok {
			t.Errorf("%q = %d cases, %v", tt.out, len(cases), err)
		}
	}
}
