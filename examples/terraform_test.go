package examples_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTerraform(t *testing.T) {
	t.Parallel()
	const token, secret = "a-token-for-the-example", "secret-of-github"
	url, calls := function(t, ok)
	e := serve(t, "terraform", "QUEENBRIDGE_ADMIN_TOKEN="+token, "QUEENBRIDGE_ENCRYPTION_KEY=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=")
	work := t.TempDir()
	run := terraform(t, work, "QUEENBRIDGE_ENDPOINT="+e.addrs["admin listening"], "QUEENBRIDGE_TOKEN="+token,
		"TF_VAR_function_url="+url, "TF_VAR_github_secret="+secret)
	if out := run("apply", "-no-color", "-auto-approve"); !strings.Contains(out, "URL: http://127.0.0.1:8080/in/github") {
		t.Errorf("terraform apply said\n%s", out)
	}
	state, err := os.ReadFile(filepath.Join(work, "terraform.tfstate"))
	if err != nil || bytes.Contains(state, []byte(secret)) {
		t.Errorf("the state holds the secret, or is not there: %v", err)
	}
	for _, event := range []string{"issues", "push"} {
		postGitHub(t, e.addrs["ingress listening"]+"/in/github", event, secret, fmt.Sprintf(`{"this":%q}`, event))
	}
	if c := next(t, calls); c.body != `{"this":"push"}` {
		t.Errorf("called with %s", c.body)
	}
	run("plan", "-no-color", "-detailed-exitcode") // 0: nothing to do
}

// terraform prepares the example with the provider as it is built, and returns
// what runs a command that must succeed.
func terraform(t *testing.T, work string, env ...string) func(args ...string) string {
	t.Helper()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "terraform-provider-queenbridge"), ".")
	build.Dir = "../terraform"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v\n%s", err, out)
	}
	find := exec.Command("../terraform/tools/terraform.sh")
	find.Stderr = os.Stderr
	found, err := find.Output()
	if err != nil {
		t.Fatalf("find terraform: %v", err)
	}
	hcl, err := os.ReadFile("terraform/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"queenbridge/queenbridge\" = %q\n  }\n  direct {}\n}\n", bin)
	for name, data := range map[string][]byte{"main.tf": hcl, "dev.tfrc": []byte(rc)} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env = append(append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(work, "dev.tfrc"), "CHECKPOINT_DISABLE=1"), env...)
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(found)), args...)
		cmd.Dir, cmd.Env = work, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
}

// postGitHub posts a webhook as GitHub does.
func postGitHub(t *testing.T, url, event, secret, body string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Delivery", event+"-1")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("webhook = %d", resp.StatusCode)
	}
}
