package admin_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a running admin API on an embedded broker.
type api struct {
	*adminapi.Client
	t      *testing.T
	url    string
	server *admin.Server
	rules  *rules.Store
	log    *logBuffer
}

// The tokens of the API under test.
const (
	adminToken    = "admin-token-0123456789"
	operatorToken = "operator-token-0123456789"
	viewerToken   = "viewer-token-0123456789"
)

var settings = bridge.AdminConfig{Addr: "127.0.0.1:0", Tokens: []bridge.AdminToken{
	{Name: "ann", Role: bridge.RoleAdmin, Token: adminToken},
	{Name: "oto", Role: bridge.RoleOperator, Token: operatorToken},
	{Name: "vic", Role: bridge.RoleViewer, Token: viewerToken},
}}

func newAPI(t *testing.T, change func(*admin.Config, *rules.Config)) *api {
	t.Helper()
	b, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := queen.New(queen.Config{URLs: []string{"http://embedded"}, Transport: b.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := rules.NewKeyring(bytes.Repeat([]byte{1}, rules.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	rc := rules.Config{File: rules.File{Config: bridge.Defaults()}, Queen: client, Keys: keys}
	ac := admin.Config{Settings: settings, Logger: slog.New(slog.NewJSONHandler(log, nil))}
	if change != nil {
		change(&ac, &rc)
	}
	ac.Rules = rules.New(rc)
	server, err := admin.New(ac)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server)
	t.Cleanup(func() {
		h.Close()
		client.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	a := &api{t: t, url: h.URL, server: server, rules: ac.Rules, log: log}
	a.Client = a.as(adminToken)
	return a
}

// as is a client with a token.
func (a *api) as(token bridge.Secret) *adminapi.Client {
	a.t.Helper()
	c, err := adminapi.NewClient(adminapi.Config{Endpoint: a.url, Token: token, MaxRetries: -1, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// call makes one raw request as the admin.
func (a *api) call(method, path, body string, header ...string) (int, http.Header, string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	r.Close = true
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// logBuffer is what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
