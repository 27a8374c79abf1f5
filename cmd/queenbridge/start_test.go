package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unusedAddr is an address nobody listens on. Its port is below those the
// system hands out, so that no other test gets it meanwhile.
func unusedAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// TestUnreachableQueenIsSaidOnce starts the bridge before Queen.
func TestUnreachableQueenIsSaidOnce(t *testing.T) {
	t.Parallel()
	addr := unusedAddr(t)

	w, f := newWorld(t), newTarget(t, always(200))
	path := filepath.Join(w.dir, "bridge.yaml")
	config := fmt.Sprintf("queen: {urls: [\"http://%s\"]}\ningress: {addr: \"127.0.0.1:0\", enqueue_timeout: 300ms}\nadmin: {addr: \"127.0.0.1:0\"}\n", addr) +
		w.route("github", hexSecret, f.URL, "")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "serve", "--config", path)
	p.ingress, p.admin = p.url("ingress listening"), p.url("admin listening")
	p.await("the Queen's URL", func(line string) bool {
		return strings.Contains(line, "cannot reach queen") && strings.Contains(line, "http://"+addr)
	})
	status, header, _ := p.github(w.path(), "1", `{"n":1}`)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("without Queen a webhook is answered %d, Retry-After %q, want 503 with one", status, header.Get("Retry-After"))
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, addr) {
		t.Errorf("/readyz is %d %q, want 503 and the URL", status, body)
	}

	queen := launch(t, nil, "queen", "--addr", addr, "--memory")
	queen.url("embedded broker listening")
	p.awaitReady()
	// A push that failed a moment ago may still be waiting for its next try:
	// the provider sends again, as it does after a 503.
	eventually(t, "with Queen the webhook is accepted", func() (bool, string) {
		status, _, answer := p.github(w.path(), "1", `{"n":1}`)
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	})
	f.next()
	if n := strings.Count(p.log(), "cannot reach queen"); n != 1 {
		t.Errorf("said %d times that Queen cannot be reached, want once:\n%s", n, p.log())
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestBrokerWithoutTimersIsRefused starts the bridge beside a broker of
// another age.
func TestBrokerWithoutTimersIsRefused(t *testing.T) {
	t.Parallel()
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			_, _ = w.Write([]byte(`{"status":"healthy","database":"connected","engine":"segments-rust","version":"1.0.1"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"Not Found","code":"no_such_route"}`))
	}))
	defer old.Close()
	w, f := newWorld(t), newTarget(t, always(200))
	path := filepath.Join(w.dir, "bridge.yaml")
	config := fmt.Sprintf("queen: {urls: [%q]}\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n", old.URL) + w.route("github", hexSecret, f.URL, "")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "serve", "--config", path)
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if log := p.log(); !strings.Contains(log, "1.0.1") || !strings.Contains(log, "1.3.0") {
		t.Errorf("the refusal names neither the version seen nor the one needed:\n%s", log)
	}
}

// Whoever collects JSON lines gets nothing else: what the configuration is
// warned of is a record, too, and commands that only use it say nothing of it.
func TestServeWarnsOfItsConfigurationInTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	const config = "log: {format: json}\nqueen: {embedded: memory}\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n" +
		"sources:\n  - {name: github, scheme: github, secrets: [literal]}\n"
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "serve", "--config", path)
	p.await("the warning", func(line string) bool {
		return strings.Contains(line, `"level":"WARN","msg":"configuration","warning":`) && strings.Contains(line, "sources[0].secrets[0]: is a literal secret")
	})
	p.url("admin listening")
	p.stop()
	for line := range strings.Lines(p.log()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("this is no record: %s", line)
		}
	}
	sign := launch(t, nil, "sign", "--source", "github", "--config", path)
	if code := sign.wait(); code != 0 || strings.Contains(sign.log(), "literal secret") {
		t.Errorf("sign ends with %d and says:\n%s", code, sign.log())
	}
}

// TestLogsHoldNoSecrets has everything go wrong at debug level.
func TestLogsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const secret, token, body = "very-secret-hmac-key-0123456789", "target-bearer-token-987654321", "body-text-nobody-may-log"
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	computed := hex.EncodeToString(mac.Sum(nil)) // what the refused webhook should have carried
	w, f := newWorld(t), newTarget(t, always(500))
	p := w.start(strings.Replace(w.route("github", secret, f.URL+"/hook?key=url-credential-555", "    retry: {backoff: [100ms], max_attempts: 2}\n"),
		"  - name: "+w.name("main")+"\n    http", "  - name: "+w.name("main")+"\n    auth: {type: bearer, token: "+token+"}\n    signing: {secrets: ["+whsecSecret+"]}\n    http", 1),
		"QUEENBRIDGE_LOG_LEVEL=debug")
	p.stored(webhook{scheme: "github", secret: secret, path: w.path(), query: "access_token=query-credential-777", body: []byte(body),
		header: http.Header{"X-Github-Delivery": {"1"}, "Authorization": {"Bearer header-credential-333"}}})
	p.post(webhook{scheme: "github", secret: "wrong", path: w.path(), body: []byte(body)})
	called := f.next().header
	if got := called.Get("Authorization"); got != "Bearer "+token {
		t.Errorf("the target got Authorization %q", got)
	}
	_, signature, signed := strings.Cut(called.Get("Webhook-Signature"), ",")
	if !signed {
		t.Errorf("the target got Webhook-Signature %q", called.Get("Webhook-Signature"))
	}
	f.next()
	eventually(t, "a dead letter", func() (bool, string) { return len(p.deadLetters(w.name("main"))) == 1, "" })
	p.stop()
	log := p.log()
	for _, hidden := range []string{secret, token, body, "url-credential-555", "query-credential-777", "header-credential-333", whsecSecret, computed, signature} {
		if strings.Contains(log, hidden) {
			t.Errorf("the log holds %q:\n%s", hidden, log)
		}
	}
	if !strings.Contains(log, "bad_signature") {
		t.Errorf("the log does not say why a webhook was refused:\n%s", log)
	}
}
