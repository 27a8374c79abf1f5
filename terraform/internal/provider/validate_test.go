package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

func TestMistakesAreFoundWithoutABridge(t *testing.T) {
	t.Parallel()
	target := func(more string) string {
		return "resource \"queenbridge_target\" \"t\" {\n  name = \"t\"\n" + more + "\n}\n"
	}
	route := func(more string) string {
		return "resource \"queenbridge_route\" \"r\" {\n  name = \"r\"\n  queue = \"q\"\n  target = \"t\"\n" + more + "\n}\n"
	}
	for _, tt := range []struct{ hcl, want string }{
		{target(""), "http: a target needs exactly one of http and lambda"},
		{target(`http = { url = "http://x" }` + "\n" + `lambda = { function = "f" }`), "lambda: excludes http"},
		{target(`http = { url = "http://x", timeout = "soon" }`), "http.timeout: must be a duration such as 30s, got"},
		{target(`http = { url = "http://x" }` + "\n" + `auth = { type = "magic" }`), "auth.type: must be one of none, basic, bearer"},
		{strings.Replace(target(`http = { url = "http://x" }`), `"t"`+"\n", `"T t"`+"\n", 1), "name: must be 1 to 63 of a-z"},
		{target(`http = { url = "http://x" }` + "\n" + `timeouts = { delete = "-1s" }`), "must be a duration such as 90s"},
		{route(`filter = "true"` + "\n" + `pattern = { type = ["push"] }`), "pattern: excludes filter"},
		{route(`ordering = "total"`), "ordering: must be one of none, partition"},
		{route(`retry = { backoff = ["5s", "later"] }`), "retry.backoff[1]: must be a duration such as 30s, got"},
	} {
		newWorkspace(t, "http://127.0.0.1:9").write(tt.hcl).fails([]string{tt.want}, "validate")
	}
	newWorkspace(t, "http://127.0.0.1:9").write(target(`http = { url = "http://x", timeout = "$${env:T}" }`)).do("validate")
}

func TestPlansAreValidatedByTheBridge(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("judged")
	w := newWorkspace(t, p.admin).write(fmt.Sprintf(`
resource "queenbridge_source" "s" {
  name      = %[1]q
  scheme    = "no-such-provider"
  split     = "a[b"
  allow_ips = ["300.1.2.3/8"]
}
`, name))
	w.fails([]string{"scheme:", "no-such-provider", "allow_ips[0]:", "Invalid source", "in resource \"queenbridge_source\" \"s\""}, "plan")
	p.gone(bridge.KindSource, name)

	t.Log("what is made in the same run is no problem of the plan, and one of the apply where it is not made")
	w.write(fmt.Sprintf(`
resource "queenbridge_route" "r" {
  name   = %[1]q
  queue  = %[1]q
  target = "nowhere"
}
`, name))
	w.differs("1 to add")
	w.fails([]string{`target: no target is called "nowhere"`, "queenbridge_target.ci.name"}, "apply", "-auto-approve")
}

func TestProtectedResourcesAreNotDestroyed(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("protected")
	hcl := func(name string, protected bool) string {
		return fmt.Sprintf("resource \"queenbridge_target\" \"t\" {\n  name = %q\n  http = { url = \"http://x.example.com\" }\n  deletion_protection = %t\n}\n", name, protected)
	}
	w := newWorkspace(t, p.admin).write(hcl(name, true))
	w.apply()
	w.clean()
	const want = "is not destroyed or replaced while deletion_protection is true"
	w.fails([]string{want}, "destroy", "-auto-approve")
	w.write(hcl("other", true)).fails([]string{want}, "plan")
	w.write("").fails([]string{want}, "apply", "-auto-approve")
	before, _ := p.api().Read(t.Context(), bridge.KindTarget, name)
	w.write(hcl(name, false)).apply()
	if after, _ := p.api().Read(t.Context(), bridge.KindTarget, name); after.Meta.Version != before.Meta.Version {
		t.Error("deletion_protection is Terraform's own, and wrote to the bridge")
	}
	w.destroy()
	p.gone(bridge.KindTarget, name)
}

// TestEndpointFromAnotherResource: while the endpoint is not known, a plan is
// made without the bridge.
func TestEndpointFromAnotherResource(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("later")
	w := newWorkspace(t, "http://127.0.0.1:9").write(fmt.Sprintf(`
resource "terraform_data" "bridge" {
  input = { url = %[2]q, name = %[1]q }
}

provider "queenbridge" {
  endpoint = terraform_data.bridge.output.url
}

resource "queenbridge_target" "t" {
  name = terraform_data.bridge.output.name
  http = { url = "${terraform_data.bridge.output.url}/hook" }
}
`, name, p.admin))
	w.differs("2 to add")
	w.apply()
	w.clean()
	w.destroy()
}

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	p := start(t, "targets: [{name: of-the-file, http: {url: \"http://x.example.com\"}}]\n")
	target := func(name string) string {
		return fmt.Sprintf("resource \"queenbridge_target\" \"t\" {\n  name = %q\n  http = { url = \"http://x.example.com/other\" }\n}\n", name)
	}
	w := newWorkspace(t, p.admin).write(target("of-the-file"))
	w.fails([]string{"managed by file"}, "plan")
	w.fails([]string{"Managed by file", "stands in the bridge's configuration file"}, "import", "queenbridge_target.t", "of-the-file")

	name := unique("taken")
	newWorkspace(t, p.admin).write(strings.Replace(target(name), "/other", "", 1)).apply()
	w.write(target(name)).fails([]string{"Already there", "import {", fmt.Sprintf("id = %q", name)}, "apply", "-auto-approve")

	wrong := newWorkspace(t, p.admin).write(target(unique("x")))
	wrong.env = append(wrong.env, "QUEENBRIDGE_TOKEN=wrong")
	wrong.fails([]string{"401 unauthenticated", "Set the provider's token"}, "apply", "-auto-approve")

	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	newWorkspace(t, site.URL).write(target(unique("x"))).
		fails([]string{"is the endpoint that of a bridge's admin listener"}, "apply", "-auto-approve")
	newWorkspace(t, "ftp://x").write(target(unique("x"))).fails([]string{"Invalid endpoint"}, "plan")
}

// TestViewersMayPlan: a plan needs no right to change anything, and says that
// the bridge did not judge it.
func TestViewersMayPlan(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("viewed")
	w := newWorkspace(t, p.admin).write(pathHCL(name, "http://127.0.0.1:9/", ""))
	w.env = append(w.env, "QUEENBRIDGE_TOKEN="+viewerToken)
	w.differs("4 to add", "Plan not validated", "403 forbidden")
	w.fails([]string{"403 forbidden"}, "apply", "-auto-approve")
}

func TestDataSources(t *testing.T) {
	t.Parallel()
	p := start(t, "sources: [{name: of-the-file, scheme: github, secrets: [a-secret-of-the-file], lanes: 4}]\n")
	w := newWorkspace(t, p.admin).write(`
data "queenbridge_source" "s" {
  name = "of-the-file"
}
data "queenbridge_schemes" "all" {}
data "queenbridge_status" "now" {}
output "source" {
  value = {
    lanes      = data.queenbridge_source.s.lanes
    managed_by = data.queenbridge_source.s.managed_by
    url        = data.queenbridge_source.s.ingress_url
    state      = data.queenbridge_source.s.state
  }
}
output "proof" { value = data.queenbridge_schemes.all.schemes["stripe"].proof }
output "parts" { value = data.queenbridge_status.now.parts }
output "sources" { value = data.queenbridge_status.now.rules.counts["sources"] }
`)
	w.apply()
	var source map[string]any
	w.output("source", &source)
	if source["lanes"] != 4.0 || source["managed_by"] != string(adminapi.OwnerFile) || source["url"] != "/in/of-the-file" || source["state"] != "active" {
		t.Errorf("source = %v", source)
	}
	var proof string
	w.output("proof", &proof)
	if !strings.Contains(proof, "Stripe-Signature") {
		t.Errorf("proof = %q", proof)
	}
	var parts []string
	w.output("parts", &parts)
	if len(parts) != 3 {
		t.Errorf("parts = %q", parts)
	}
	if strings.Contains(w.state(), "a-secret-of-the-file") {
		t.Error("the state holds a secret of the file")
	}
	w.write("data \"queenbridge_route\" \"r\" {\n  name = \"nowhere\"\n}\n").fails([]string{`The bridge has no route "nowhere"`}, "plan")
}
