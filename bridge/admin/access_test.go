package admin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *admin.Config, _ *rules.Config) { c.Pauses = newPauses() })
	a.put(bridge.KindTarget, "ci", targetDoc)
	ok, forbidden := adminapi.Code(""), adminapi.CodeForbidden
	read := func(c *adminapi.Client) error { _, err := c.Read(t.Context(), bridge.KindTarget, "ci"); return err }
	pause := func(c *adminapi.Client) error {
		_, err := c.Pause(t.Context(), bridge.KindTarget, "ci", "")
		return err
	}
	change := func(c *adminapi.Client) error {
		_, err := c.Patch(t.Context(), bridge.KindTarget, "ci", []byte(`{"concurrency":7}`), adminapi.WriteOptions{})
		return err
	}
	for _, tt := range []struct {
		name, token string
		do          func(*adminapi.Client) error
		want        adminapi.Code
	}{
		{"viewer reads", viewerToken, read, ok}, {"viewer pauses", viewerToken, pause, forbidden}, {"viewer changes", viewerToken, change, forbidden},
		{"operator reads", operatorToken, read, ok}, {"operator pauses", operatorToken, pause, ok}, {"operator changes", operatorToken, change, forbidden},
		{"admin reads", adminToken, read, ok}, {"admin pauses", adminToken, pause, ok}, {"admin changes", adminToken, change, ok},
		{"wrong token", "wrong", read, adminapi.CodeUnauthenticated}, {"no token", "", read, adminapi.CodeUnauthenticated},
		{"half a token", adminToken[:10], read, adminapi.CodeUnauthenticated},
	} {
		err := tt.do(a.as(bridge.Secret(tt.token)))
		if (tt.want == ok) != (err == nil) || tt.want != ok && !adminapi.IsCode(err, tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestTokensAreReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	renewed := settings
	renewed.Tokens = []bridge.AdminToken{{Name: "ann", Role: bridge.RoleViewer, Token: "another-token"}}
	if err := a.server.Retoken(renewed); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Status(t.Context()); !adminapi.IsCode(err, adminapi.CodeUnauthenticated) {
		t.Errorf("with the old token: %v", err)
	}
	if _, err := a.as("another-token").Status(t.Context()); err != nil {
		t.Errorf("with the new one: %v", err)
	}
	if err := a.server.Retoken(bridge.AdminConfig{}); !errors.Is(err, admin.ErrNoToken) {
		t.Errorf("Retoken without tokens = %v", err)
	}
	if _, err := a.as("").Status(t.Context()); !adminapi.IsCode(err, adminapi.CodeUnauthenticated) {
		t.Errorf("without a token: %v", err)
	}
}

func TestWrongTokensAreLimitedAndTheRightOneWaitsToo(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *admin.Config, _ *rules.Config) { c.WrongTokens = 3 })
	wrong := a.as("a-guess")
	for range 3 {
		if _, err := wrong.Status(t.Context()); !adminapi.IsCode(err, adminapi.CodeUnauthenticated) {
			t.Fatalf("Status = %v", err)
		}
	}
	if _, err := wrong.Status(t.Context()); !adminapi.IsCode(err, adminapi.CodeRateLimited) {
		t.Errorf("after three wrong tokens: %v", err)
	}
	// Or else the answer would tell which guess is right.
	if _, err := a.Status(t.Context()); !adminapi.IsCode(err, adminapi.CodeRateLimited) {
		t.Errorf("the right one from the same address: %v", err)
	}
}

func TestBrowsersAreRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, tt := range []struct {
		name   string
		header []string
		want   int
	}{
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another origin", []string{"Origin", "https://evil.example.com"}, 403},
		{"no origin", []string{"Origin", "null"}, 403},
		{"a form", []string{"Content-Type", "text/plain"}, 415},
		{"our own", []string{"Sec-Fetch-Site", "same-origin"}, 201},
	} {
		status, header, body := a.call("PUT", "/v1/targets/ci", targetDoc, tt.header...)
		if status != tt.want || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v, want %d: %s", tt.name, status, header, tt.want, body)
		}
	}
	if status, header, _ := a.call("OPTIONS", "/v1/targets/ci", "", "Origin", "https://evil.example.com", "Access-Control-Request-Method", "PUT"); status/100 == 2 || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight = %d %v", status, header)
	}
}

func TestWithoutTokensOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	_, err := admin.New(admin.Config{Rules: rules.New(rules.Config{}), Settings: bridge.AdminConfig{Addr: ":8081"}})
	if !errors.Is(err, admin.ErrNoToken) || !strings.Contains(err.Error(), "QUEENBRIDGE_ADMIN_TOKEN") {
		t.Errorf("New = %v", err)
	}
	a := newAPI(t, func(c *admin.Config, _ *rules.Config) { c.Settings = bridge.AdminConfig{Addr: "127.0.0.1:0"} })
	if _, err := a.as("").Status(t.Context()); err != nil {
		t.Errorf("Status = %v", err)
	}
	// A page of evil.example.com whose name now points to 127.0.0.1.
	if status, _, body := a.call("GET", "/v1/status", "", "Host", "evil.example.com"); status != http.StatusForbidden {
		t.Errorf("of another host name: %d %s", status, body)
	}
}

func TestRequestsAreRead(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, tt := range []struct {
		name, method, path, body string
		want                     int
		says                     string
	}{
		{"no JSON", "PUT", "/v1/targets/ci", `{`, 400, "read JSON"},
		{"NUL", "PUT", "/v1/targets/ci", `{"name":"a\u0000"}`, 400, "NUL"},
		{"lone surrogate", "PUT", "/v1/targets/ci", `{"name":"\ud800"}`, 400, "read JSON"},
		{"twice", "PUT", "/v1/targets/ci", `{"http":{"url":"http://a.example.com"},"concurrency":1,"concurrency":2}`, 422, "is set twice"},
		{"a list", "PUT", "/v1/targets/ci", `[]`, 400, "must be an object"},
		{"null", "PUT", "/v1/targets/ci", `null`, 400, "must be an object"},
		{"nothing", "PUT", "/v1/targets/ci", ``, 400, "a body is needed"},
		{"deep", "PUT", "/v1/targets/ci", strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100), 400, "levels"},
		{"large", "PUT", "/v1/targets/ci", `{"x":"` + strings.Repeat("x", 300<<10) + `"}`, 413, "larger than 256KiB"},
		{"another name", "PUT", "/v1/targets/ci", `{"name":"other","http":{"url":"http://a.example.com"}}`, 422, `must be \"ci\"`},
		{"name that none can have", "PUT", "/v1/targets/UPPER", targetDoc, 422, "must be"},
		{"unknown parameter", "GET", "/v1/targets?sort=name", "", 400, "no query parameter"},
		{"parameter as one says it", "PUT", "/v1/targets/ci?validate-only=true", targetDoc, 400, "did you mean"},
		{"parameter twice", "GET", "/v1/targets?page_size=1&page_size=2", "", 400, "more than once"},
		{"page size", "GET", "/v1/targets?page_size=0", "", 400, "page_size must be 1 to 1000"},
		{"page token", "GET", "/v1/targets?page_token=*", "", 400, "page_token"},
		{"no boolean", "PUT", "/v1/targets/ci?validate_only=yes", targetDoc, 400, "must be true or false"},
		{"no path", "GET", "/v1/nothing", "", 404, "there is nothing at this path"},
		{"no method", "POST", "/v1/targets/ci", targetDoc, 405, "allowed here: DELETE, GET, HEAD, PATCH, PUT"},
		{"patch of nothing", "PATCH", "/v1/targets/ci", `{}`, 404, "no such resource"},
	} {
		status, header, body := a.call(tt.method, tt.path, tt.body)
		if status != tt.want || !strings.Contains(body, tt.says) || header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s, want %d with %q: %.300s", tt.name, status, header.Get("Content-Type"), tt.want, tt.says, body)
		}
	}
}

func TestEveryChangeIsRecorded(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first := a.put(bridge.KindTarget, "ci", `{"http":{"url":"http://a.example.com"},"auth":{"type":"bearer","token":"a-literal-token"}}`)
	a.put(bridge.KindTarget, "ci", `{"http":{"url":"http://b.example.com"},"auth":{"type":"bearer","token":"another-literal"}}`)
	a.put(bridge.KindTarget, "ci", `{"http":{"url":"http://b.example.com"},"auth":{"type":"bearer","token":"another-literal"}}`) // nothing
	if _, err := a.Delete(t.Context(), bridge.KindTarget, "ci", ""); err != nil {
		t.Fatal(err)
	}
	log := a.log.String()
	var records []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"msg":"rule changed by the admin API"`) {
			records = append(records, line)
		}
	}
	wants := []string{`"action":"created","resource":"targets/ci","before":"","after":"` + first.Meta.Version + `"`,
		`"fields":["http.url","auth.token"]`, `"action":"deleted"`}
	if len(records) != len(wants) {
		t.Fatalf("%d records, want %d:\n%s", len(records), len(wants), log)
	}
	for i, want := range wants {
		if !strings.Contains(records[i], want) || !strings.Contains(records[i], `"by":"ann","role":"admin"`) {
			t.Errorf("record %d = %s, want %s", i, records[i], want)
		}
	}
	if strings.Contains(log, "literal") {
		t.Errorf("the log holds a secret:\n%s", log)
	}
}
