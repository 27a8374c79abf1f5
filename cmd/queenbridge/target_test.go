package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// secured is a function behind TLS that wants a bearer token, and the server
// that gives tokens.
type secured struct {
	*httptest.Server
	tokens *httptest.Server
	refuse atomic.Int32 // how many token requests are refused first
	calls  chan http.Header
	ca     string
}

func newSecured(t *testing.T, dir string) *secured {
	t.Helper()
	s := &secured{calls: make(chan http.Header, 100), ca: filepath.Join(dir, "ca.pem")}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer s3cret-access-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.calls <- r.Header.Clone()
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.tokens = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if s.refuse.Add(-1) >= 0 || password != "s3cret-client" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"s3cret-access-token","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(s.tokens.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(s.ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *secured) pin() string {
	sum := sha256.Sum256(s.Certificate().RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// An event waits while no token can be had: that is not its fault, and no
// attempt of it.
func TestTargetBehindTLSAndOAuth2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fn := newSecured(t, w.dir)
	fn.refuse.Store(4)
	name := w.name("main")
	config := strings.Replace(w.route("github", hexSecret, fn.URL, "    retry: {backoff: [200ms], jitter: none, max_attempts: 1}\n"), "routes:\n", fmt.Sprintf(
		"    auth: {type: oauth2, token_url: %q, client_id: me, client_secret: s3cret-client, scopes: [call]}\n    tls: {ca: %q, pins: [%q]}\n    breaker: {enabled: false}\nroutes:\n",
		fn.tokens.URL, fn.ca, fn.pin()), 1)
	p := w.start(config, "QUEENBRIDGE_LOG_LEVEL=debug")
	p.storedAs(w.path(), "1", `{"n":1}`)
	var header http.Header
	select {
	case header = <-fn.calls:
	case <-time.After(patient):
		t.Fatal("the function was not called")
	}
	if header.Get("Queen-Attempt") != "1" || header.Get("Queen-Queue") != name {
		t.Errorf("attempt %q of queue %q, want 1 of %s", header.Get("Queen-Attempt"), header.Get("Queen-Queue"), name)
	}
	p.stop()
	if strings.Contains(p.log(), "s3cret") {
		t.Errorf("the log holds a secret:\n%s", p.log())
	}
	if !strings.Contains(p.log(), "auth.token_url answered 401") {
		t.Errorf("the log does not say why the event waited:\n%s", p.log())
	}
}

func TestUnreadableFileOfATargetStopsTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, missing := filepath.Join(w.dir, "bridge.yaml"), filepath.Join(w.dir, "missing.pem")
	config := "queen: {embedded: memory}\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n" +
		strings.Replace(w.route("github", hexSecret, "https://fn.example/", ""), "routes:\n", fmt.Sprintf("    tls: {ca: %q}\nroutes:\n", missing), 1)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "serve", "--config", path)
	if code := p.wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if want := "target " + w.name("main") + ": tls.ca: open " + missing; !strings.Contains(p.log(), want) {
		t.Errorf("%q is not in %s", want, p.log())
	}
}
