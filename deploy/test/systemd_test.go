package deploy_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unit is the service with the program as it is built here.
func unit(t *testing.T) (path string, settings map[string][]string) {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, "deploy/systemd/queenbridge.service")), "/usr/bin/queenbridge", binary)
	path = filepath.Join(t.TempDir(), "queenbridge.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	settings = make(map[string][]string)
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), "="); ok && !strings.HasPrefix(name, "#") {
			settings[name] = append(settings[name], value)
		}
	}
	return path, settings
}

// TestUnitIsValid: systemd knows every setting, and the exposure it computes
// is at most 1.5 of 10.
func TestUnitIsValid(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "SYSTEMD_ANALYZE")
	path, _ := unit(t)
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=15", "--no-pager", path).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// TestUnitUser makes the user the unit names.
func TestUnitUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, settings := unit(t)
	output(t, exec.Command(tool(t, "systemd-sysusers", "SYSTEMD_SYSUSERS"), "--root="+dir, filepath.Join(mustAbs(t, root), "deploy/systemd/queenbridge.sysusers")))
	passwd, err := os.ReadFile(filepath.Join(dir, "etc/passwd"))
	if err != nil || !strings.HasPrefix(string(passwd), settings["User"][0]+":") {
		t.Errorf("%v, users %s", err, passwd)
	}
}

// TestUnitRuns starts what the unit starts, with its environment and its
// credential, on folders of the test.
func TestUnitRuns(t *testing.T) {
	_, settings := unit(t)
	dir := t.TempDir()
	credential := filepath.Join(dir, "github")
	if err := os.WriteFile(credential, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	name, file, _ := strings.Cut(settings["LoadCredential"][0], ":")
	config := string(read(t, "deploy/systemd/bridge.yaml"))
	mounted := "/run/credentials/queenbridge.service/" + name
	if !strings.Contains(config, "${file:"+mounted+"}") || file != "/etc/queenbridge/credentials/github" {
		t.Errorf("the configuration does not refer to the credential %s of %s", name, file)
	}
	env := make(map[string]string)
	for line := range strings.Lines(string(read(t, "deploy/systemd/queenbridge.env"))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			env[key] = value
		}
	}
	effective(t, []byte(config), env)
	if state := "/var/lib/" + settings["StateDirectory"][0]; !strings.HasPrefix(env["QUEENBRIDGE_QUEEN_EMBEDDED"], state+"/") {
		t.Errorf("the broker stores in %s", env["QUEENBRIDGE_QUEEN_EMBEDDED"])
	}

	path := filepath.Join(dir, "bridge.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(config, mounted, credential)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := strings.Fields(strings.ReplaceAll(settings["ExecStart"][0], "/etc/queenbridge/bridge.yaml", path))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{"QUEENBRIDGE_QUEEN_EMBEDDED=" + dir + "/queen", "QUEENBRIDGE_INGRESS_ADDR=127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR=127.0.0.1:0"}
	p := start(t, cmd)
	smoke(t, p)
	p.stop(t)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
