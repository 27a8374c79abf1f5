package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const dashboardFile, rulesFile = "deploy/grafana/queenbridge.json", "deploy/prometheus/queenbridge.rules.yaml"

// TestAlerts runs the checks and tests of promtool, as smoke.sh does, and
// asks that every alert has a test in which it is raised.
func TestAlerts(t *testing.T) {
	cmd := exec.Command("sh", "../prometheus/smoke.sh")
	cmd.Env = append(os.Environ(), "PROMTOOL="+mustAbs(t, tool(t, "promtool", "PROMTOOL")))
	output(t, cmd)
	tests := string(read(t, "deploy/prometheus/queenbridge.rules.test.yaml"))
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(read(t, rulesFile)), -1) {
		raised := regexp.MustCompile(`alertname: ` + m[1] + `\b[^{}]*exp_alerts`)
		if !raised.MatchString(tests) {
			t.Errorf("no test raises %s", m[1])
		}
	}
}

// expressions are those of the dashboard, with its variables filled in.
func expressions(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, dashboardFile), &dashboard); err != nil {
		t.Fatal(err)
	}
	var all []string
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$instance", ".*", "$source", ".*", "$route", ".*", "$__rate_interval", "1m").Replace(target.Expr))
		}
	}
	return all
}

// TestDashboardExpressions lets promtool read them, as recording rules.
func TestDashboardExpressions(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	g := group{Name: "dashboard"}
	for i, expr := range expressions(t) {
		g.Rules = append(g.Rules, rule{fmt.Sprintf("panel:%d", i), expr})
	}
	if len(g.Rules) < 20 {
		t.Fatalf("%d expressions", len(g.Rules))
	}
	rules, err := yaml.Marshal(map[string][]group{"groups": {g}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool(t, "promtool", "PROMTOOL"), "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var series = regexp.MustCompile(`\b(queenbridge_\w+)`)

// named are the metrics that a text names, without the suffixes of
// histograms.
func named(text string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range series.FindAllString(text, -1) {
		all[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m, "")] = true
	}
	return all
}

// rare are metrics that show themselves only in trouble that a test cannot
// make here; the source that registers them must name them.
var rare = map[string]string{
	"queenbridge_rules_invalid":              "bridge/rules/metrics.go: \"queenbridge_rules_invalid\"",
	"queenbridge_dispatch_leases_lost_total": "dispatch/metrics.go: \"leases_lost_total\"",
}

// TestMetricsExist runs a bridge with much trouble: what alerts and dashboard
// name is there.
func TestMetricsExist(t *testing.T) {
	p := trouble(t)
	used := named(string(read(t, rulesFile)) + strings.Join(expressions(t), "\n"))
	for name, where := range rare {
		file, text, _ := strings.Cut(where, ": ")
		if !strings.Contains(string(read(t, file)), text) {
			t.Errorf("%s does not register %s", file, name)
		}
		delete(used, name)
	}
	deadline := time.Now().Add(patient)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, metrics := get(t, p.admin()+"/metrics")
		has := make(map[string]bool)
		for line := range strings.Lines(metrics) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
				has[strings.Fields(name)[0]] = true
			}
		}
		missing := maps.Clone(used)
		maps.DeleteFunc(missing, func(name string, _ bool) bool { return has[name] })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a running bridge does not export %v", slices.Sorted(maps.Keys(missing)))
		}
		<-tick.C
	}
}

// trouble is a bridge to which a webhook and a forgery have been sent, whose
// functions fail, and one of whose routes is paused.
func trouble(t *testing.T) *process {
	t.Helper()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(refuses.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "bridge.yaml")
	text := `
ingress: {spool: {dir: ` + dir + `/spool}}
sources:
  - {name: github, scheme: github, secrets: ["${env:GITHUB_WEBHOOK_SECRET}"], spool: true}
targets:
  - {name: refuses, http: {url: "` + refuses.URL + `"}}
  - {name: away, http: {url: "http://127.0.0.1:9/"}}
routes:
  - {name: dead, queue: github, target: refuses}
  - {name: waits, queue: github, target: away}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"GITHUB_WEBHOOK_SECRET=" + secret, "QUEENBRIDGE_QUEEN_EMBEDDED=memory", "QUEENBRIDGE_INGRESS_ADDR=127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR=127.0.0.1:0"}
	cmd := exec.Command(binary, "serve", "--config", config)
	cmd.Env = env
	p := start(t, cmd)
	smoke(t, p)
	pause := exec.Command(binary, "routes", "pause", "waits")
	pause.Env = append(env, "QUEENBRIDGE_ENDPOINT="+p.admin())
	output(t, pause)
	return p
}
