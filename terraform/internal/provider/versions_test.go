package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

var writeAny = adminapi.WriteOptions{}

// otherVersion is a bridge of another version: a proxy that changes bodies in
// both directions.
func otherVersion(t *testing.T, p *process, request, answer func([]byte) []byte) string {
	t.Helper()
	to, err := url.Parse(p.admin)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		body = answer(body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		body = request(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestFieldsOfANewerBridgeStay: a bridge that knows more than this provider
// answers with fields which are never written, not even as null.
func TestFieldsOfANewerBridgeStay(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	var mu sync.Mutex
	var written []string
	endpoint := otherVersion(t, p,
		func(body []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			if len(body) > 0 {
				written = append(written, string(body))
			}
			return body
		},
		func(body []byte) []byte {
			body = bytes.Replace(body, []byte(`"http":`), []byte(`"future":{"mode":["x",{"y":1}]},"http":`), 1)
			body = bytes.Replace(body, []byte(`"timeout":`), []byte(`"future_timeout":"9s","timeout":`), 1)
			return bytes.Replace(body, []byte(`"managed_by":`), []byte(`"future_meta":[1],"managed_by":`), 1)
		})
	name := unique("newer")
	hcl := "resource \"queenbridge_target\" \"t\" {\n  name = \"" + name + "\"\n  http = { url = \"http://x.example.com\", timeout = \"TIMEOUT\" }\n}\n"
	w := newWorkspace(t, endpoint).write(strings.Replace(hcl, "TIMEOUT", "5s", 1))
	w.apply()
	w.clean()
	w.write(strings.Replace(hcl, "TIMEOUT", "6s", 1)).apply()
	w.clean()
	var last map[string]any
	if err := json.Unmarshal([]byte(written[len(written)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(last); string(got) != `{"http":{"timeout":"6s"}}` {
		t.Errorf("the update wrote %s, want only what changed", got)
	}
	for _, body := range written {
		if strings.Contains(body, "future") {
			t.Errorf("a field that the provider does not know was written: %s", body)
		}
	}
}

// TestFieldsThatTheBridgeDoesNotKnowAreRefused: an older bridge says which
// argument it does not know, and nothing is dropped in silence.
func TestFieldsThatTheBridgeDoesNotKnowAreRefused(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	rename := func(from, to string) func([]byte) []byte {
		return func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(from), []byte(to)) }
	}
	endpoint := otherVersion(t, p, rename(`"disable_after"`, `"disable_after_v2"`), rename(`disable_after_v2`, `disable_after`))
	w := newWorkspace(t, endpoint).write("resource \"queenbridge_target\" \"t\" {\n  name = \"older\"\n" +
		"  http = { url = \"http://x.example.com\" }\n  disable_after = \"1h\"\n}\n")
	w.fails([]string{"disable_after: is unknown", "the bridge is perhaps older than this provider", `disable_after = "1h"`}, "plan")
	p.gone(bridge.KindTarget, "older")
}

// TestRemovedPreset: a source whose preset a newer bridge no longer has is
// shown with what is wrong, and can be changed.
func TestRemovedPreset(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("preset")
	hcl := "resource \"queenbridge_source\" \"s\" {\n  name = \"" + name + "\"\n  scheme = \"github\"\n  secrets = [\"$${env:FROM_ENV}\"]\n}\n"
	w := newWorkspace(t, p.admin).write(hcl)
	w.apply()
	p.rewriteRow(bridge.Resource{Kind: bridge.KindSource, Name: name}, `\"scheme\":\"github\"`, `\"scheme\":\"gone-hub\"`)
	w.differs(`scheme: scheme "gone-hub" is unknown`, "stored and not in use", `"gone-hub" -> "github"`)
	w.apply()
	w.clean()
	if status := p.webhook(name, "from-env", `{}`); status != http.StatusOK {
		t.Errorf("webhook = %d", status)
	}
}

// rewriteRow changes what Queen stores of a resource, as another version would
// have stored it, and waits until the bridge has seen it.
func (p *process) rewriteRow(r bridge.Resource, from, to string) {
	p.t.Helper()
	client, err := queen.New(queen.Config{URLs: []string{p.queen}})
	if err != nil {
		p.t.Fatal(err)
	}
	key := bridge.RuleKey(r)
	got, err := client.KV(p.t.Context(), []queen.KVOp{
		{Op: "get", Namespace: bridge.KVNamespace, Key: key}, {Op: "get", Namespace: bridge.KVNamespace, Key: bridge.RuleGenerationKey}})
	if err != nil || !got[0].Found {
		p.t.Fatalf("row %s: %v", key, err)
	}
	changed := strings.Replace(string(got[0].Value), from, to, 1)
	if changed == string(got[0].Value) {
		p.t.Fatalf("row = %s, want %s in it", changed, from)
	}
	if _, err := client.KV(p.t.Context(), []queen.KVOp{
		{Op: "put", Namespace: bridge.KVNamespace, Key: key, Value: json.RawMessage(changed)},
		{Op: "put", Namespace: bridge.KVNamespace, Key: bridge.RuleGenerationKey, Value: json.RawMessage(`{"write":"test"}`)},
	}); err != nil {
		p.t.Fatal(err)
	}
	deadline := time.Now().Add(patient)
	for {
		now, err := p.api().Read(p.t.Context(), r.Kind, r.Name)
		if err == nil && now.Meta.State == adminapi.StateInvalid {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s = %+v, %v, want it seen as invalid", r, now, err)
		}
		<-time.After(100 * time.Millisecond)
	}
}
