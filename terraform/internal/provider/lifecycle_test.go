package provider_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// unique makes a name of this test's own: on a real Queen all share the rules.
func unique(s string) string { return s + "-" + strings.ToLower(rand.Text()[:8]) }

// serve starts a server and hands out the bodies of its requests.
func serve(t *testing.T, answer http.HandlerFunc) (url string, bodies <-chan string) {
	t.Helper()
	c := make(chan string, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer(w, r)
		c <- string(body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, c
}

func next(t *testing.T, bodies <-chan string) string {
	t.Helper()
	select {
	case body := <-bodies:
		return body
	case <-time.After(patient):
		t.Fatal("the function was not called")
		return ""
	}
}

// webhook posts a signed event as GitHub does.
func (p *process) webhook(source, secret, body string) int {
	p.t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.ingress+"/in/"+source, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-GitHub-Delivery", rand.Text())
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

// webhookUntilCalled posts events until a function gets one: other replicas of
// the bridge, as there are on a real Queen, may use the old rules for 3 s.
func (p *process) webhookUntilCalled(source, secret string, bodies <-chan string) {
	p.t.Helper()
	deadline := time.After(patient)
	for {
		if status := p.webhook(source, secret, `{"kind":"push"}`); status != http.StatusOK {
			p.t.Fatalf("webhook = %d", status)
		}
		select {
		case <-bodies:
			return
		case <-time.After(time.Second):
		case <-deadline:
			p.t.Fatal("the function was not called")
		}
	}
}

// pathHCL is a source, a queue, a target and a route between them.
func pathHCL(name, url, more string) string {
	return fmt.Sprintf(`
provider "queenbridge" {
  ingress_base_url = "https://hooks.example.com/"
}

resource "queenbridge_queue" "q" {
  name      = %[1]q
  retention = "24h"
}

resource "queenbridge_source" "s" {
  name     = %[1]q
  scheme   = "github"
  secrets  = ["the-first-secret", "$${env:FROM_ENV}"]
  queue    = queenbridge_queue.q.name
  max_body = "1MiB"
  rate     = { per_second = 2000.5, burst = 1000 }
}

resource "queenbridge_target" "t" {
  name = %[1]q
  http = {
    url     = %[2]q
    timeout = "60s"
    headers = { X-Team = "ci" }
  }
}

resource "queenbridge_route" "r" {
  name    = %[1]q
  queue   = queenbridge_source.s.queue
  target  = queenbridge_target.t.name
  pattern = { body = { kind = ["push", null, 1, 0.1, { prefix = "pu" }] } }
  retry   = { max_attempts = 3, backoff = ["1s", "60s"] }
%[3]s
}

output "ingress_url" { value = queenbridge_source.s.ingress_url }
output "setup_hint" { value = queenbridge_source.s.setup_hint }
`, name, url, more)
}

func TestResourcesLiveAndWebhooksFlow(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("path")
	url, bodies := function(t)
	w := newWorkspace(t, p.admin).write(pathHCL(name, url, ""))
	w.do("validate")
	w.apply()
	w.clean()

	var ingress, hint string
	w.output("ingress_url", &ingress)
	w.output("setup_hint", &hint)
	if ingress != "https://hooks.example.com/in/"+name || !strings.Contains(hint, "Webhooks") {
		t.Errorf("ingress_url = %q, setup_hint = %q", ingress, hint)
	}
	for i, secret := range []string{"the-first-secret", "from-env"} {
		body := fmt.Sprintf(`{"kind":"push","n":%d}`, i)
		if status := p.webhook(name, secret, body); status != http.StatusOK {
			t.Fatalf("webhook = %d", status)
		}
		if got := next(t, bodies); got != body {
			t.Errorf("the function got %s, want %s", got, body)
		}
	}

	t.Log("update in place")
	second, secondBodies := function(t)
	w.write(pathHCL(name, second, "concurrency = 7"))
	w.differs("2 to change, 0 to destroy", "queenbridge_target.t will be updated in-place", "queenbridge_route.r will be updated in-place")
	w.apply()
	w.clean()
	p.webhookUntilCalled(name, "the-first-secret", secondBodies)
	w.write(pathHCL(name, second, ""))
	w.apply()
	if doc := p.document(bridge.KindRoute, name); strings.Contains(doc, "concurrency") {
		t.Errorf("a field that was taken out of the configuration is still there: %s", doc)
	}

	t.Log("drift")
	p.patch(bridge.KindTarget, name, `{"http":{"timeout":"5s","method":"PUT"},"concurrency":3}`)
	p.patch(bridge.KindQueue, name, `{"retention":"1h"}`)
	w.differs(`"5s" -> "60s"`, `"PUT" -> null`, "3 -> null", `"1h" -> "24h"`)
	w.apply()
	w.clean()
	if doc := p.document(bridge.KindTarget, name); strings.Contains(doc, "PUT") || strings.Contains(doc, "concurrency") {
		t.Errorf("drift was not repaired: %s", doc)
	}
	p.patch(bridge.KindTarget, name, `{"http":{"timeout":"1m"}}`)
	w.differs(`"1m" -> "60s"`) // the same time, but not what the configuration says
	w.apply()

	t.Log("destroy")
	w.destroy()
	for _, kind := range bridge.Kinds() {
		p.gone(kind, name)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("imported")
	hcl := pathHCL(name, "http://127.0.0.1:9/hook", "")
	newWorkspace(t, p.admin).write(hcl).apply()

	w := newWorkspace(t, p.admin)
	w.write(hcl + fmt.Sprintf(`
import {
  to = queenbridge_queue.q
  id = %[1]q
}
import {
  to = queenbridge_source.s
  id = %[1]q
}
import {
  to = queenbridge_target.t
  id = %[1]q
}
import {
  to = queenbridge_route.r
  id = %[1]q
}
`, name))
	// Only the literal secret cannot be compared: the source is written again,
	// which changes nothing there.
	before := p.document(bridge.KindSource, name)
	w.says(w.apply(), "4 imported, 0 added, 1 changed, 0 destroyed")
	w.clean()
	if after := p.document(bridge.KindSource, name); after != before {
		t.Errorf("source = %s, want %s", after, before)
	}
	w.do("state", "rm", "queenbridge_target.t")
	w.fails([]string{"Cannot import non-existent remote object"}, "import", "-input=false", "queenbridge_target.t", "nowhere")
}

func TestRenamedResourcesAreReplaced(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("old")
	w := newWorkspace(t, p.admin).write(pathHCL(name, "http://127.0.0.1:9/hook", ""))
	w.apply()
	fresh := unique("new")
	w.write(pathHCL(fresh, "http://127.0.0.1:9/hook", ""))
	w.differs("4 to add, 0 to change, 4 to destroy", "must be replaced")
	w.apply()
	w.clean()
	for _, kind := range bridge.Kinds() {
		p.gone(kind, name)
		p.document(kind, fresh)
	}
}

func TestWhatWasDeletedOutsideIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("lost")
	w := newWorkspace(t, p.admin).write(pathHCL(name, "http://127.0.0.1:9/hook", ""))
	w.apply()
	if gone, err := p.api().Delete(t.Context(), bridge.KindRoute, name, ""); gone || err != nil {
		t.Fatalf("Delete = %t, %v, want the route to drain", gone, err)
	}
	// The route still drains: creating it again waits for that.
	w.differs("queenbridge_route.r will be created")
	w.apply()
	w.clean()
	if r, err := p.api().Read(t.Context(), bridge.KindRoute, name); err != nil || r.Meta.State != adminapi.StateActive {
		t.Errorf("route = %+v, %v, want it active", r.Meta, err)
	}
}

func TestDestroyGivesUpInTimeAndGoesOnLater(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("slow")
	w := newWorkspace(t, p.admin).write(pathHCL(name, "http://127.0.0.1:9/hook", `timeouts = { delete = "3s" }`))
	w.apply()
	w.fails([]string{"Still draining", "After 3s the route", "run Terraform again later"}, "destroy", "-auto-approve")
	w.destroy() // the target waits for the route, which is no longer Terraform's
	p.gone(bridge.KindRoute, name)
	p.gone(bridge.KindTarget, name)
}
