package deploy_test

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	chart       = "../helm/queenbridge"
	kubeVersion = "1.30.0" // the oldest the chart supports
)

var update = flag.Bool("update", false, "write the golden files anew")

func helm(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(tool(t, "helm", "HELM"), append(args, "--kube-version", kubeVersion)...)
}

// rendered is the chart with the values of a case.
func rendered(t *testing.T, name string) []byte {
	t.Helper()
	return []byte(output(t, helm(t, "template", "hooks", chart, "--namespace", "webhooks", "--values", valuesFile(name))))
}

func valuesFile(name string) string { return "testdata/helm/" + name + ".values.yaml" }

var chartCases = []string{"split", "one", "everything"}

// TestChartGolden compares what is rendered, byte for byte, and lints it.
func TestChartGolden(t *testing.T) {
	for _, name := range chartCases {
		t.Run(name, func(t *testing.T) {
			output(t, helm(t, "lint", "--strict", chart, "--values", valuesFile(name)))
			got, golden := rendered(t, name), filepath.Join("testdata/helm", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the chart renders otherwise (-update writes the file anew):\n%s", diff)
			}
		})
	}
}

// TestChartRefuses names values that cannot work, and what is said of them.
func TestChartRefuses(t *testing.T) {
	for _, tt := range []struct{ values, says string }{
		{`{queen: {urls: ["http://q:6632"]}}`, "admin.tokenSecret.name is required"},
		{`{admin: {tokenSecret: {name: a}}}`, "queen.urls is required"},
		{`{admin: {tokenSecret: {name: a}}, queen: {embedded: true}}`, "needs layout: one"},
		{`{admin: {tokenSecret: {name: a}}, queen: {embedded: true}, layout: one}`, "for one pod"},
		{`{admin: {tokenSecret: {name: a}}, queen: {embedded: true, urls: ["http://q:6632"]}, layout: one, bridge: {replicas: 1}}`, "exclude each other"},
		{`{admin: {tokenSecret: {name: a}}, queen: {urls: ["http://q:6632"]}, existingConfigMap: c, config: {queues: [{name: q}]}}`, "exclude each other"},
		{`{admin: {tokenSecret: {name: a}}, queen: {urls: ["http://q:6632"]}, spool: {enabled: true}, ingress: {autoscaling: {enabled: true}}}`, "scaled away"},
		{`{admin: {tokenSecret: {name: a}}, queen: {urls: ["http://q:6632"]}, http: {enabled: true}}`, "http.host is required"},
		{`{queen: {url: "http://q:6632"}}`, "url"},
		{`{config: {sauces: []}}`, "sauces"},
		{`{dispatch: {replica: 3}}`, "replica"},
		{`{layout: both}`, "layout"},
	} {
		cmd := helm(t, "template", "hooks", chart, "--values", "-")
		cmd.Stdin = strings.NewReader(tt.values)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s: %v, says %s, want %q", tt.values, err, out, tt.says)
		}
	}
}

// TestChartRollsPodsOnlyForProcessSettings proves that rules are changed
// without a restart, and that what needs one gets it.
func TestChartRollsPodsOnlyForProcessSettings(t *testing.T) {
	pods := func(set ...string) []byte {
		args := []string{"template", "hooks", chart, "--values", valuesFile("split"), "--show-only", "templates/workloads.yaml"}
		return []byte(output(t, helm(t, append(args, set...)...)))
	}
	was := pods()
	if !bytes.Equal(was, pods("--set", "config.queues[0].name=q")) {
		t.Error("a queue more rolls the pods")
	}
	if bytes.Equal(was, pods("--set", "config.dispatch.max_in_flight=7")) {
		t.Error("another process setting does not roll the pods")
	}
}

// TestChartReferences proves that objects name what is there.
func TestChartReferences(t *testing.T) {
	for _, name := range chartCases {
		t.Run(name, func(t *testing.T) {
			all := decodeAll(t, rendered(t, name))
			if len(all.workloads) == 0 || len(all.services) == 0 {
				t.Fatalf("%d workloads, %d services", len(all.workloads), len(all.services))
			}
			all.checkServices(t)
			all.checkPolicies(t)
			all.checkPods(t)
		})
	}
}

// TestChartConfigurationIsWhatRuns lets the program read what each container
// would: every variable must have its effect.
func TestChartConfigurationIsWhatRuns(t *testing.T) {
	for _, name := range chartCases {
		t.Run(name, func(t *testing.T) {
			all := decodeAll(t, rendered(t, name))
			for _, workload := range slices.Sorted(maps.Keys(all.workloads)) {
				pod := all.workloads[workload].template.Spec
				effective(t, []byte(all.configMaps[pod.Volumes[0].ConfigMap.Name].Data["bridge.yaml"]), environment(pod.Containers[0]))
			}
		})
	}
}

// TestChartRuns runs the containers of layout split as rendered, but for
// addresses of this machine, on one broker: a webhook that the pod ingress
// takes is delivered by the pod dispatch.
func TestChartRuns(t *testing.T) {
	calls := make(chan string, 10)
	function := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- string(body)
	}))
	defer function.Close()
	broker := startUntil(t, exec.Command(binary, "queen", "--addr", "127.0.0.1:0", "--memory", "--log-format", "json"), "embedded broker listening")
	all := decodeAll(t, rendered(t, "split"))
	pod := func(name string) *process {
		c := all.workloads["hooks-queenbridge-"+name].template.Spec.Containers[0]
		path := filepath.Join(t.TempDir(), "bridge.yaml")
		if err := os.WriteFile(path, []byte(all.configMaps["hooks-queenbridge"].Data["bridge.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		env := environment(c)
		maps.Copy(env, map[string]string{
			"QUEENBRIDGE_CONFIG": path, "QUEENBRIDGE_QUEEN_URLS": broker.urls["embedded broker listening"], "FUNCTION_URL": function.URL,
			"QUEENBRIDGE_INGRESS_ADDR": "127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR": "127.0.0.1:0", "GITHUB_WEBHOOK_SECRET": secret,
		})
		cmd := exec.Command(binary, c.Args...)
		cmd.Env = []string{"PATH=/nonexistent"}
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		return start(t, cmd)
	}
	in, out := pod("ingress"), pod("dispatch")
	if out.ingress() != "" || in.ingress() == "" {
		t.Errorf("webhooks arrive at %q and %q", in.ingress(), out.ingress())
	}
	smoke(t, in)
	select {
	case body := <-calls:
		if !strings.Contains(body, "Approachable") {
			t.Errorf("the function is called with %s", body)
		}
	case <-time.After(patient):
		t.Error("the function is not called")
	}
	in.stop(t)
	out.stop(t)
}
