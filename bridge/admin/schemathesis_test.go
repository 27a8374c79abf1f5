package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// selectPython, set to 1, selects the tests that need python3 and a package
// index (make test-api). There they fail without them and never skip.
const selectPython = "QUEENBRIDGE_TEST_PYTHON"

// A precondition comes before the body (RFC 9110 §13.2.1): with one that does
// not hold, a wrong body is refused with 412.
const schemathesisSettings = `
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415", "422", "428", "429"]
`

// TestPythonSchemathesis lets Schemathesis make requests from the OpenAPI
// document, right ones and wrong ones, and proves that every answer is as the
// document says: status, media type, headers, body; that wrong ones are
// refused; that none needs no token; and that none ends in a 5xx.
func TestPythonSchemathesis(t *testing.T) {
	if os.Getenv(selectPython) == "" {
		t.Skip("not selected: " + selectPython + "=1, or make test-api")
	}
	python := pythonWith(t, "testdata/requirements.txt")
	a := newAPI(t, func(ac *admin.Config, rc *rules.Config) {
		ac.Pauses, ac.Schemes, ac.WrongTokens = newPauses(), someSchemes, -1
		ac.Letters, ac.Tester, ac.Deliveries = newLetters(50), tester{}, newAttempts(50)
		rc.DrainAfter = time.Hour
	})
	a.put(bridge.KindTarget, "ci", targetDoc)
	a.put(bridge.KindRoute, "pushes", routeDoc)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "schemathesis"), "run", a.url+"/v1/openapi.json",
		"--header", "Authorization: Bearer "+adminToken, "--checks", "all",
		// A document may be right in form and still refused: it names a target
		// that there is not, or leaves out what its scheme needs.
		"--exclude-checks", "positive_data_acceptance",
		"--phases", "examples,coverage,fuzzing", "--max-examples", "40", "--seed", "1", "--workers", "1",
		"--no-color", "--no-shrink", "--generation-database", "none", "--continue-on-failure", "--warnings", "off")
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "schemathesis.toml"), []byte(schemathesisSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PYTHONUTF8=1", "NO_PROXY=127.0.0.1", "SCHEMATHESIS_HOOKS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, out)
	}
	t.Logf("%s", out[max(0, len(out)-2000):])
}

// pythonWith returns an interpreter that has what a list of requirements says.
// It is set up once per list, in the user's cache, and moved there when it is
// complete.
func pythonWith(t *testing.T, list string) string {
	t.Helper()
	requirements, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(requirements)
	venv := filepath.Join(cache, "queenbridge", "python-api-"+hex.EncodeToString(sum[:6]))
	python := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(filepath.Join(venv, "complete")); err == nil {
		return python
	}
	if err := os.RemoveAll(venv); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv}, // scripts hold the path: it is made in place
		{python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement", list},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: this needs python3 with venv and a package index\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(venv, "complete"), fmt.Appendln(nil, "yes"), 0o600); err != nil {
		t.Fatal(err)
	}
	return python
}
