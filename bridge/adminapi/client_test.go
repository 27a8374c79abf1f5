package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

func newClient(t *testing.T, h http.HandlerFunc) *adminapi.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := adminapi.NewClient(adminapi.Config{Endpoint: s.URL + "/", Token: "the-token", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func refuse(w http.ResponseWriter, status int, code adminapi.Code) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(adminapi.Error{Status: status, Code: code, Detail: "no"})
}

func TestResourceKeepsItsDocument(t *testing.T) {
	t.Parallel()
	const doc = `{"name":"ci","b":1.10,"a":{"z":[1,2]},"big":12345678901234567890}`
	in := adminapi.Resource{Document: json.RawMessage(doc), Meta: adminapi.Meta{ManagedBy: adminapi.OwnerAPI, Version: "7"}}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out adminapi.Resource
	if err := json.Unmarshal(data, &out); err != nil || string(out.Document) != doc || out.Meta.Version != "7" || out.Name() != "ci" {
		t.Errorf("%s is read as %s, %+v, %v", data, out.Document, out.Meta, err)
	}
	// A newer bridge says more about a resource than this client knows.
	newer := `{"name":"ci","colour":"red","meta":{"managed_by":"api","state":"active","version":"8","mood":"fine"}}`
	if err := json.Unmarshal([]byte(newer), &out); err != nil || string(out.Document) != `{"name":"ci","colour":"red"}` || out.Meta.Version != "8" {
		t.Errorf("%s is read as %s, %+v, %v", newer, out.Document, out.Meta, err)
	}
	for _, bad := range []string{`[]`, `{"a":`, `{"meta":7}`, `"x"`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s is read as a resource", bad)
		}
	}
	if _, err := json.Marshal(adminapi.Resource{Document: json.RawMessage(`[1]`)}); err == nil {
		t.Error("a list is written as a resource")
	}
}

func TestBusyAndUnavailableAreAskedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != `{"a":1}` || r.Header.Get("Authorization") != "Bearer the-token" || r.Header.Get("If-Match") != `"7"` {
			t.Errorf("try %d: %s %v", tries.Load(), body, r.Header)
		}
		switch tries.Add(1) {
		case 1:
			refuse(w, http.StatusTooManyRequests, adminapi.CodeRateLimited)
		case 2:
			refuse(w, http.StatusServiceUnavailable, adminapi.CodeUnavailable)
		default:
			_, _ = io.WriteString(w, `{"name":"ci","meta":{"version":"8"}}`)
		}
	})
	r, err := c.Put(t.Context(), bridge.KindTarget, "ci", json.RawMessage(`{"a":1}`), adminapi.WriteOptions{IfMatch: "7"})
	if err != nil || r.Meta.Version != "8" || tries.Load() != 3 {
		t.Errorf("Put = %+v, %v after %d tries", r.Meta, err, tries.Load())
	}
}

func TestWhatWillNotChangeIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]adminapi.Code{412: adminapi.CodePrecondition, 422: adminapi.CodeInvalid, 401: adminapi.CodeUnauthenticated,
		409: adminapi.CodeInUse, 404: adminapi.CodeNotFound, 500: adminapi.CodeInternal, 503: adminapi.CodeNotServed} {
		var tries atomic.Int32
		c := newClient(t, func(w http.ResponseWriter, _ *http.Request) { tries.Add(1); refuse(w, status, code) })
		_, err := c.Read(t.Context(), bridge.KindRoute, "x")
		if !adminapi.IsCode(err, code) || tries.Load() != 1 {
			t.Errorf("%d: %v after %d tries", status, err, tries.Load())
		}
	}
}

func TestATestFireIsNeverSentTwice(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		refuse(w, http.StatusServiceUnavailable, adminapi.CodeUnavailable)
	})
	if _, err := c.TestFire(t.Context(), "x", adminapi.TestEvent{}); err == nil || tries.Load() != 1 {
		t.Errorf("TestFire = %v after %d tries", err, tries.Load())
	}
}

func TestForeignAnswersAreNoResources(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"a page":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"a 404 page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nothing", http.StatusNotFound) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed with the token")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
	} {
		c := newClient(t, h)
		_, err := c.Read(t.Context(), bridge.KindRoute, "x")
		if err == nil || adminapi.IsCode(err, adminapi.CodeNotFound) || !strings.Contains(err.Error(), "no answer of the admin API") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEndOfTheContextEndsTheWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		refuse(w, http.StatusTooManyRequests, adminapi.CodeRateLimited)
		cancel()
	})
	begun := time.Now()
	if _, err := c.Status(ctx); err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("Status = %v after %s", err, time.Since(begun))
	}
}

func TestEndpointsAreChecked(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"127.0.0.1:8081", "ftp://x", "http://", "http://user:pw@x", "http://x?a=1", "http://x#a", "://"} {
		_, err := adminapi.NewClient(adminapi.Config{Endpoint: endpoint})
		if err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("NewClient(%s) = %v", endpoint, err)
		}
	}
	if _, err := adminapi.NewClient(adminapi.Config{}); err != nil {
		t.Error(err)
	}
}

func TestErrorsListTheirProblems(t *testing.T) {
	t.Parallel()
	e := &adminapi.Error{Status: 422, Code: adminapi.CodeInvalid, Detail: "problems of routes/x", Problems: []adminapi.Problem{
		{Path: "retry.max_attempts", Text: "must be 1 or more, got 0"}, {Path: "queue", Text: "is odd", Warning: true}, {Text: "is strange"}}}
	const want = "422 invalid: problems of routes/x\nretry.max_attempts: must be 1 or more, got 0\nqueue: warning: is odd\nis strange"
	if e.Error() != want {
		t.Errorf("Error = %q, want %q", e, want)
	}
	if !adminapi.IsCode(errors.Join(errors.New("x"), e), adminapi.CodeInvalid) {
		t.Error("IsCode does not look inside")
	}
}
