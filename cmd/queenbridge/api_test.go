package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// These tests change rules, which every process on one Queen shares: each has
// an embedded broker of its own, also where others run on a real Queen.

const apiToken = "a-token-of-the-admin-api"

// apiEnv are an admin token and the key that seals literal secrets.
var apiEnv = []string{
	"QUEENBRIDGE_ADMIN_TOKEN=" + apiToken,
	"QUEENBRIDGE_ENCRYPTION_KEY=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
}

// startAPI starts a bridge whose Queen is as this line of YAML says.
func (w *world) startAPI(queen, more string, args ...string) *process {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "bridge.yaml")
	whole := queen + "\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n" + more
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p := launch(w.t, apiEnv, append([]string{"serve", "--config", path}, args...)...)
	p.config, p.admin = path, p.url("admin listening")
	if strings.Contains(queen, "embedded") {
		p.queen = p.url("embedded broker listening")
	}
	if len(args) == 0 {
		p.ingress = p.url("ingress listening")
	}
	return p
}

func (w *world) embedded() string {
	return fmt.Sprintf("queen: {embedded: %q, embedded_addr: \"127.0.0.1:0\"}", w.data)
}

func (p *process) api() *adminapi.Client {
	p.t.Helper()
	c, err := adminapi.NewClient(adminapi.Config{Endpoint: p.admin, Token: apiToken})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *process) put(kind bridge.Kind, name, doc string) adminapi.Resource {
	p.t.Helper()
	r, err := p.api().Put(p.t.Context(), kind, name, json.RawMessage(doc), adminapi.WriteOptions{})
	if err != nil {
		p.t.Fatalf("Put(%s/%s): %v", kind, name, err)
	}
	return r
}

// putPath makes a source, a target and a route between them.
func (p *process) putPath(name, url string) {
	p.t.Helper()
	p.put(bridge.KindTarget, name, fmt.Sprintf(`{"http":{"url":%q}}`, url))
	p.put(bridge.KindSource, name, fmt.Sprintf(`{"scheme":"github","secrets":[%q]}`, hexSecret))
	p.put(bridge.KindRoute, name, fmt.Sprintf(`{"queue":%q,"target":%q}`, name, name))
}

func (p *process) webhook(name, id string) int {
	return p.githubAs(hexSecret, "/in/"+name, id)
}

func TestRulesOfTheAPICarryWebhooksAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := newTarget(t, always(200)), newTarget(t, always(200))
	p := w.startAPI(w.embedded(), "")
	p.putPath("made", first.URL)
	if status := p.webhook("made", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	first.next()
	p.put(bridge.KindTarget, "made", fmt.Sprintf(`{"http":{"url":%q}}`, second.URL))
	if status := p.webhook("made", "two"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	second.next()

	if gone, err := p.api().Delete(t.Context(), bridge.KindRoute, "made", ""); err != nil || gone {
		t.Fatalf("Delete of the route = %t, %v, want it to drain", gone, err)
	}
	p.logged("route drains: it takes no new events", "made")
	if _, err := p.api().Redrive(t.Context(), "made", adminapi.Order{}); !adminapi.IsCode(err, adminapi.CodeConflict) || !strings.Contains(err.Error(), "it was deleted and drains") {
		t.Errorf("Redrive of a draining route = %v", err)
	}
	if status := p.webhook("made", "three"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	if gone, err := p.api().Delete(t.Context(), bridge.KindSource, "made", ""); err != nil || !gone {
		t.Fatalf("Delete of the source = %t, %v", gone, err)
	}
	if status := p.webhook("made", "four"); status != http.StatusNotFound {
		t.Errorf("webhook of a deleted source = %d", status)
	}
	if n := len(first.calls) + len(second.calls); n != 0 {
		t.Errorf("%d calls after the route was deleted", n)
	}
	if strings.Contains(p.log(), hexSecret) {
		t.Error("the log holds a secret")
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestADeletedRouteWithoutWorkIsGoneInSeconds: nothing is leased, so no lease is
// waited for, and its name and target are free again.
func TestADeletedRouteWithoutWorkIsGoneInSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, always(200))
	p := w.startAPI(w.embedded(), "")
	p.putPath("brief", f.URL)
	if status := p.webhook("brief", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	f.next()
	if gone, err := p.api().Delete(t.Context(), bridge.KindRoute, "brief", ""); err != nil || gone {
		t.Fatalf("Delete = %t, %v, want it to drain", gone, err)
	}
	within(t, 40*time.Second, "the route is gone", func() (bool, string) {
		_, err := p.api().Read(t.Context(), bridge.KindRoute, "brief")
		return adminapi.IsCode(err, adminapi.CodeNotFound), fmt.Sprint(err)
	})
	if gone, err := p.api().Delete(t.Context(), bridge.KindTarget, "brief", ""); err != nil || !gone {
		t.Errorf("Delete of its target = %t, %v", gone, err)
	}
}

func TestRulesSurviveARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, always(200))
	p := w.startAPI(w.embedded(), "")
	p.putPath("kept", f.URL)
	p.kill()
	p = w.startAPI(w.embedded(), "")
	if status := p.webhook("kept", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d, want the source there from the first request on", status)
	}
	f.next()
}

func TestReplicasAgreeWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, always(200))
	one := w.startAPI(w.embedded(), "", "--only", "admin")
	two := w.startAPI(fmt.Sprintf("queen: {urls: [%q]}", one.queen), "")
	two.awaitReady()
	// Three times: a busy machine may make one late, not most of them.
	var took []time.Duration
	for i := range 3 {
		name := fmt.Sprint("shared", i)
		one.putPath(name, f.URL)
		put := time.Now()
		eventually(t, "the other replica serves the source", func() (bool, string) {
			status := two.webhook(name, "one")
			return status == http.StatusOK, fmt.Sprint(status)
		})
		took = append(took, time.Since(put))
		f.next()
	}
	if slices.Sort(took); took[1] > 3*time.Second {
		t.Errorf("the other replica served the sources after %v, want 3s", took)
	}
	if r, err := two.api().Read(t.Context(), bridge.KindRoute, "shared2"); err != nil || r.Meta.State != adminapi.StateActive {
		t.Errorf("Read = %+v, %v", r.Meta, err)
	}
	status, err := two.api().Status(t.Context())
	if err != nil || !status.Ready || status.Rules.Counts["routes"] != 3 {
		t.Errorf("Status = %+v, %v", status, err)
	}
}

// TestUnknownSourceIsNotGoneWhileRulesAreUnknown: a provider that is told 404
// may never come again.
func TestUnknownSourceIsNotGoneWhileRulesAreUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.startAPI(fmt.Sprintf("queen: {urls: [%q]}", "http://"+unusedAddr(t)), "sources: [{name: file, scheme: none, dedup: strict}]\n")
	if status := p.webhook("made", "one"); status != http.StatusServiceUnavailable {
		t.Errorf("webhook of an unknown source = %d, want 503", status)
	}
	if _, body := get(t, p.admin+"/readyz"); !strings.Contains(body, "rules: the stored ones are not read yet") {
		t.Errorf("readyz = %q", body)
	}
	if r, err := p.api().Read(t.Context(), bridge.KindSource, "file"); err != nil || r.Meta.ManagedBy != adminapi.OwnerFile {
		t.Errorf("Read = %+v, %v, want the file's source", r.Meta, err)
	}
}

// failingUntil answers with a failure until all is well.
func failingUntil(well *atomic.Bool, status int) func(context.Context, call) int {
	return func(context.Context, call) int {
		if well.Load() {
			return http.StatusOK
		}
		return status
	}
}

func TestDeadLettersAreRedrivenOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var well atomic.Bool
	f := newTarget(t, failingUntil(&well, http.StatusBadRequest))
	p := w.startAPI(w.embedded(), "")
	p.putPath("fragile", f.URL)
	if status := p.webhook("fragile", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	first := f.next()
	var page adminapi.DeadLetterPage
	eventually(t, "a dead letter", func() (bool, string) {
		var err error
		page, err = p.api().DeadLetters(t.Context(), "fragile", adminapi.Selection{Classes: []string{"http_4xx"}}, adminapi.ListOptions{})
		return err == nil && len(page.Items) == 1, fmt.Sprint(page, err)
	})
	l, err := p.api().DeadLetter(t.Context(), "fragile", page.Items[0].ID, true)
	if err != nil || l.Reason.Status != http.StatusBadRequest || !strings.Contains(l.Payload, "github:one") {
		t.Fatalf("DeadLetter = %+v, %v", l, err)
	}
	well.Store(true)
	r, err := p.api().Redrive(t.Context(), "fragile", adminapi.Order{Selection: adminapi.Selection{IDs: []string{l.ID}}})
	if err != nil || r.Done != 1 {
		t.Fatalf("Redrive = %+v, %v", r, err)
	}
	if again := f.next(); again.id != first.id {
		t.Errorf("delivery %s, want %s as before", again.id, first.id)
	}
	if _, err := p.api().DeadLetter(t.Context(), "fragile", l.ID, false); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("DeadLetter after redrive = %v", err)
	}
	if _, err := p.api().Redrive(t.Context(), "none", adminapi.Order{}); !adminapi.IsCode(err, adminapi.CodeConflict) {
		t.Errorf("Redrive of no route = %v", err)
	}
}

// TestAllDeadLettersAreRedrivenHoweverMany: one request touches a part of them;
// what dies anew meanwhile is not redriven for ever.
func TestAllDeadLettersAreRedrivenHoweverMany(t *testing.T) {
	t.Parallel()
	const many = partSize + 30
	w := newWorld(t)
	f := newTarget(t, always(http.StatusBadRequest))
	p := w.startAPI(w.embedded(), "")
	p.putPath("many", f.URL)
	for i := range many {
		p.push("many", fmt.Sprint("lane-", i%8), fmt.Sprint("event-", i), `{"a":1}`)
	}
	for range many {
		f.next()
	}
	cli := func(args ...string) (int, string) {
		c := launch(t, []string{"QUEENBRIDGE_ENDPOINT=" + p.admin, "QUEENBRIDGE_TOKEN=" + apiToken}, append([]string{"dead-letters"}, args...)...)
		return c.wait(), c.log()
	}
	within(t, patient, "all are dead letters", func() (bool, string) {
		_, said := cli("redrive", "many", "--all", "--dry-run")
		return said == fmt.Sprintf("%d would be redriven", many), said
	})
	if code, said := cli("redrive", "many", "--all"); code != 0 || said != fmt.Sprintf("%d redriven", many) {
		t.Errorf("redrive --all: exit code %d, %q", code, said)
	}
	for range many {
		f.next()
	}
	if code, said := cli("redrive", "many", "no-such-id"); code != 1 || !strings.Contains(said, "1 of the 1 named are not among the dead letters of many") {
		t.Errorf("redrive of what there is not: exit code %d, %q", code, said)
	}
	if code, said := cli("redrive", "nowhere", "--all"); code != 1 || !strings.Contains(said, "there is no such route") {
		t.Errorf("redrive on no route: exit code %d, %q", code, said)
	}
}

// An operator who knows that a target is back need not wait for its breaker.
func TestRetriesNowReachABrokenTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var well atomic.Bool
	f := newTarget(t, failingUntil(&well, http.StatusUnauthorized))
	p := w.startAPI(w.embedded(), "")
	p.putPath("down", f.URL)
	for _, id := range []string{"one", "two"} { // each held for longer than the test lasts
		if status := p.webhook("down", id); status != http.StatusOK {
			t.Fatalf("webhook = %d", status)
		}
		f.next()
	}
	eventually(t, "two held events", func() (bool, string) {
		page, err := p.api().Retries(t.Context(), "down", false, adminapi.ListOptions{})
		return err == nil && len(page.Items) == 2, fmt.Sprint(page, err)
	})
	well.Store(true)
	cli := launch(t, []string{"QUEENBRIDGE_ENDPOINT=" + p.admin, "QUEENBRIDGE_TOKEN=" + apiToken}, "retries", "now", "down", "--all")
	if code := cli.wait(); code != 0 || cli.log() != "2 due" {
		t.Errorf("retries now --all: exit code %d, %q", code, cli.log())
	}
	f.next()
	f.next()
}

// TestFilesOfStoredRulesAreFollowed: a secret in a file that only a stored source
// names is replaced, and no signal is sent; nor when the configuration file is
// broken meanwhile.
func TestFilesOfStoredRulesAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := filepath.Join(t.TempDir(), "secret")
	rewrite(t, secret, "secret-one\n")
	p := w.startAPI(w.embedded(), "")
	p.awaitReady()
	p.put(bridge.KindSource, "filed", fmt.Sprintf(`{"scheme":"github","secrets":["${file:%s}"]}`, secret))
	follows := func(secret, id string) {
		t.Helper()
		within(t, patient, secret+" counts", func() (bool, string) {
			status := p.githubAs(secret, "/in/filed", id)
			return status == http.StatusOK, fmt.Sprint(status)
		})
	}
	follows("secret-one", "1")
	rewrite(t, secret, "secret-two\n")
	follows("secret-two", "2")
	if status := p.githubAs("secret-one", "/in/filed", "3"); status != http.StatusUnauthorized {
		t.Errorf("the secret that was replaced = %d", status)
	}
	rewrite(t, p.config, "sources: [\n")
	p.logged("configuration not reloaded: the running one stays", "")
	rewrite(t, secret, "secret-three\n")
	follows("secret-three", "4")
}

// TestAdminTokensFollowTheirFiles: a token is renewed, and the last one is not
// taken away without a restart.
func TestAdminTokensFollowTheirFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	path, token := filepath.Join(dir, "bridge.yaml"), filepath.Join(dir, "token")
	config := w.embedded() + "\ningress: {addr: \"127.0.0.1:0\"}\nadmin:\n  addr: \"127.0.0.1:0\"\n"
	rewrite(t, token, "token-one\n")
	rewrite(t, path, config+"  tokens: [{name: ci, role: admin, token: \"${file:token}\"}]\n")
	p := launch(t, nil, "serve", "--config", path)
	p.admin = p.url("admin listening")
	asks := func(token bridge.Secret) error {
		c, err := adminapi.NewClient(adminapi.Config{Endpoint: p.admin, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Schemes(t.Context())
		return err
	}
	if err := asks("token-one"); err != nil {
		t.Fatal(err)
	}
	rewrite(t, token, "token-two\n")
	p.logged("admin tokens reloaded", "")
	if err := asks("token-two"); err != nil {
		t.Errorf("the new token: %v", err)
	}
	if err := asks("token-one"); !adminapi.IsCode(err, adminapi.CodeUnauthenticated) {
		t.Errorf("the old token: %v", err)
	}
	rewrite(t, path, config)
	p.logged("configuration changed where only a restart applies it; running on as before", "admin.tokens[ci]")
	if err := asks(""); !adminapi.IsCode(err, adminapi.CodeUnauthenticated) {
		t.Errorf("no token: %v", err)
	}
}

// routeState is what a route does in the process that is asked.
func (p *process) routeState(name string) string {
	p.t.Helper()
	s, err := p.api().Status(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range s.Routes {
		if r.Route == name {
			return r.State
		}
	}
	return ""
}

// A source that is stored and cannot be used keeps its webhooks: its provider
// sends what was answered 503 again.
func TestASourceThatCannotBeUsedIsAnswered503(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.startAPI(w.embedded(), "")
	p.awaitReady()
	broken := `{"op":"put","ns":"queenbridge","key":"rule/sources/broken","forever":true,"value":{"queenbridge":1,"kind":"sources","name":"broken",` +
		`"document":"{\"name\":\"broken\",\"scheme\":\"fax\"}","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z","by":"x","write":"w"}}`
	resp, err := http.Post(p.queen+"/api/v1/kv", "application/json", strings.NewReader(`{"operations":[`+broken+`]}`)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	eventually(t, "the source is known", func() (bool, string) {
		status := p.webhook("broken", "one")
		return status == http.StatusServiceUnavailable, fmt.Sprint(status)
	})
	if status := p.webhook("other", "one"); status != http.StatusNotFound {
		t.Errorf("a source that there is not = %d", status)
	}
}

func TestPauseTestFireAndRetriesOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var well atomic.Bool
	f := newTarget(t, failingUntil(&well, http.StatusInternalServerError))
	p := w.startAPI(w.embedded(), "")
	p.putPath("held", f.URL)
	if status := p.webhook("held", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	f.next()
	var page adminapi.RetryPage
	eventually(t, "a pending retry", func() (bool, string) {
		var err error
		page, err = p.api().Retries(t.Context(), "held", true, adminapi.ListOptions{})
		return err == nil && len(page.Items) == 1 && page.Items[0].Last != nil, fmt.Sprint(page, err)
	})
	well.Store(true)
	if err := p.api().RetryNow(t.Context(), "held", page.Items[0].Key); err != nil {
		t.Fatal(err)
	}
	f.next()

	if _, err := p.api().Pause(t.Context(), bridge.KindRoute, "held", "a look"); err != nil {
		t.Fatal(err)
	}
	r, err := p.api().Read(t.Context(), bridge.KindRoute, "held")
	if err != nil || r.Meta.Paused == nil || r.Meta.Paused.Reason != "a look" {
		t.Errorf("Read = %+v, %v, want it paused", r.Meta, err)
	}
	if s := p.routeState("held"); s != "paused" {
		t.Errorf("state as soon as the pause was answered = %q", s)
	}
	fired, err := p.api().TestFire(t.Context(), "held", adminapi.TestEvent{Type: "ping", Body: json.RawMessage(`{"n":1.10}`)})
	if err != nil || fired.Outcome != "delivered" || fired.Status != http.StatusOK {
		t.Errorf("TestFire = %+v, %v", fired, err)
	}
	if c := f.next(); string(c.body) != `{"n":1.10}` {
		t.Errorf("body = %s", c.body)
	}
	if _, err := p.api().Resume(t.Context(), bridge.KindRoute, "held"); err != nil {
		t.Fatal(err)
	}
	if s := p.routeState("held"); s == "paused" {
		t.Errorf("state as soon as the end of the pause was answered = %q", s)
	}
	if status := p.webhook("held", "two"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	f.next()
}

func TestReplayOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, nil)
	p := w.startAPI(w.embedded(), "")
	p.putPath("again", f.URL)
	if status := p.webhook("again", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	first := f.next()
	if _, err := p.api().ReplayRoute(t.Context(), "none", time.Time{}); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("ReplayRoute of no route = %v", err)
	}
	if _, err := p.api().ReplayRoute(t.Context(), "again", time.Time{}); !adminapi.IsCode(err, adminapi.CodeConflict) || !strings.Contains(err.Error(), "pause it first") {
		t.Errorf("ReplayRoute of a running route = %v", err)
	}
	if _, err := p.api().Pause(t.Context(), bridge.KindRoute, "again", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := p.api().ReplayRoute(t.Context(), "again", time.Now().Add(-time.Hour)); err != nil || got.Pending != 1 || got.Partitions != 1 {
		t.Errorf("ReplayRoute = %+v, %v, want one pending event", got, err)
	}
	if _, err := p.api().Resume(t.Context(), bridge.KindRoute, "again"); err != nil {
		t.Fatal(err)
	}
	second := f.next()
	if a, b := first.header.Get("webhook-id"), second.header.Get("webhook-id"); a == "" || a != b || string(first.body) != string(second.body) {
		t.Errorf("webhook-ids %q and %q, bodies %s and %s", a, b, first.body, second.body)
	}
}
