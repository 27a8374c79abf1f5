package deploy_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// composeFile are the elements of the Compose specification that compose.yaml
// uses; any other is an error.
type composeFile struct {
	Name     string                    `json:"name"`
	Services map[string]composeService `json:"services"`
	Secrets  map[string]struct {
		File string `json:"file"`
	} `json:"secrets"`
	Volumes map[string]struct{} `json:"volumes"`
}

type composeService struct {
	Image string `json:"image"`
	Build struct {
		Context    string `json:"context"`
		Dockerfile string `json:"dockerfile"`
	} `json:"build"`
	Restart     string            `json:"restart"`
	DependsOn   any               `json:"depends_on"` // a list, or name → {condition}
	ReadOnly    bool              `json:"read_only"`
	CapDrop     []string          `json:"cap_drop"`
	SecurityOpt []string          `json:"security_opt"`
	StopGrace   string            `json:"stop_grace_period"`
	Environment map[string]string `json:"environment"`
	Secrets     []string          `json:"secrets"`
	Ports       []string          `json:"ports"`
	ExtraHosts  []string          `json:"extra_hosts"`
	Volumes     []string          `json:"volumes"`
	Healthcheck *struct {
		Test        []string `json:"test"`
		Interval    string   `json:"interval"`
		Timeout     string   `json:"timeout"`
		Retries     int      `json:"retries"`
		StartPeriod string   `json:"start_period"`
	} `json:"healthcheck"`
}

var interpolated = regexp.MustCompile(`\$\{(\w+)(?::([-?])([^}]*))?\}`)

// compose is compose.yaml with the variables of .env.example.
func compose(t *testing.T) (file composeFile) {
	t.Helper()
	env := make(map[string]string)
	for line := range strings.Lines(string(read(t, "deploy/compose/.env.example"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[name] = value
		}
	}
	text := interpolated.ReplaceAllStringFunc(string(read(t, "deploy/compose/compose.yaml")), func(s string) string {
		m := interpolated.FindStringSubmatch(s)
		switch value, set := env[m[1]]; {
		case set:
			return value
		case m[2] == "-":
			return m[3]
		default:
			t.Errorf(".env.example lacks %s", m[1])
			return ""
		}
	})
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestComposeReferences: what a service names is there.
func TestComposeReferences(t *testing.T) {
	file := compose(t)
	for name, s := range file.Services {
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, named := file.Volumes[from]; !named && !strings.HasPrefix(from, "./") {
				t.Errorf("%s mounts %s, which is not there", name, from)
			}
		}
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s has no secret %s", name, secret)
			}
		}
		for _, other := range dependsOn(s.DependsOn) {
			if _, there := file.Services[other]; !there {
				t.Errorf("%s depends on %s", name, other)
			}
		}
	}
	queen, bridge := file.Services["queen"].Environment, file.Services["bridge"]
	if url := "http://queen:" + queen["PORT"]; bridge.Environment["QUEENBRIDGE_QUEEN_URLS"] != url {
		t.Errorf("the bridge asks %s, Queen is at %s", bridge.Environment["QUEENBRIDGE_QUEEN_URLS"], url)
	}
	postgres := file.Services["postgres"].Environment
	if queen["PG_USER"] != postgres["POSTGRES_USER"] || queen["PG_PASSWORD"] != postgres["POSTGRES_PASSWORD"] ||
		queen["PG_DATABASE"] != postgres["POSTGRES_DB"] || queen["PG_HOST"] != "postgres" {
		t.Errorf("Queen logs in with %v, the database is %v", queen, postgres)
	}
	for _, port := range bridge.Ports {
		if _, inside, _ := cutLast(port, ":"); !slices.Contains([]string{bridge.Environment["QUEENBRIDGE_INGRESS_ADDR"], bridge.Environment["QUEENBRIDGE_ADMIN_ADDR"]}, ":"+inside) {
			t.Errorf("port %s reaches nothing", port)
		}
	}
	if _, err := os.Stat(filepath.Join("../compose", bridge.Build.Context, bridge.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	return s[:max(i, 0)], s[i+1:], i >= 0
}

func dependsOn(v any) []string {
	switch v := v.(type) {
	case map[string]any:
		return slices.Collect(maps.Keys(v))
	case []any:
		var names []string
		for _, name := range v {
			names = append(names, name.(string))
		}
		return names
	}
	return nil
}

// TestComposeRuns runs the service bridge beside an embedded broker in the
// place of Queen: its environment, its configuration, its health check.
func TestComposeRuns(t *testing.T) {
	bridge := compose(t).Services["bridge"]
	config := read(t, "deploy/compose/etc/bridge.yaml")
	effective(t, config, bridge.Environment)

	dir := t.TempDir()
	github, path := filepath.Join(dir, "github"), filepath.Join(dir, "bridge.yaml")
	for file, content := range map[string]string{github: secret, path: strings.ReplaceAll(string(config), "/run/secrets/"+bridge.Secrets[0], github)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broker := startUntil(t, exec.Command(binary, "queen", "--addr", "127.0.0.1:0", "--memory", "--log-format", "json"), "embedded broker listening")
	env := maps.Clone(bridge.Environment)
	maps.Copy(env, map[string]string{
		"QUEENBRIDGE_CONFIG": path, "QUEENBRIDGE_QUEEN_URLS": broker.urls["embedded broker listening"],
		"QUEENBRIDGE_INGRESS_ADDR": "127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR": "127.0.0.1:0", "QUEENBRIDGE_INGRESS_SPOOL_DIR": dir + "/spool",
	})
	in := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Env = []string{"PATH=/nonexistent"}
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		return cmd
	}
	p := start(t, in(exec.Command(binary, "serve")))
	smoke(t, p)
	test := bridge.Healthcheck.Test
	if test[0] != "CMD" || test[1] != "/queenbridge" {
		t.Fatalf("the health check is %q", test)
	}
	env["QUEENBRIDGE_ENDPOINT"] = p.admin() // the port is the test's
	if out, err := in(exec.Command(binary, test[2:]...)).CombinedOutput(); err != nil {
		t.Errorf("a healthy bridge is unhealthy: %v\n%s", err, out)
	}
	env["QUEENBRIDGE_TOKEN"] = "wrong"
	if in(exec.Command(binary, test[2:]...)).Run() == nil {
		t.Error("the health check does not fail without its token")
	}
	p.stop(t)
}
