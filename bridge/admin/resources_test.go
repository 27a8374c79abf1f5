package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

const (
	targetDoc = `{"name":"ci","http":{"url":"http://ci.example.com/hook","timeout":"60s"}}`
	routeDoc  = `{"name":"pushes","queue":"github","target":"ci"}`
)

func (a *api) put(kind bridge.Kind, name, doc string) adminapi.Resource {
	a.t.Helper()
	r, err := a.Put(a.t.Context(), kind, name, json.RawMessage(doc), adminapi.WriteOptions{})
	if err != nil {
		a.t.Fatalf("Put(%s/%s): %v", kind, name, err)
	}
	return r
}

func TestResourceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	status, header, _ := a.call("PUT", "/v1/targets/ci", targetDoc)
	if status != http.StatusCreated || header.Get("Location") != "/v1/targets/ci" || header.Get("ETag") == "" {
		t.Errorf("PUT = %d %v", status, header)
	}
	r, err := a.Read(t.Context(), bridge.KindTarget, "ci")
	if err != nil || string(r.Document) != targetDoc {
		t.Errorf("Read = %s, %v, want %s", r.Document, err, targetDoc)
	}
	if r.Meta.ManagedBy != adminapi.OwnerAPI || r.Meta.State != adminapi.StateActive || r.Meta.UpdatedBy != "ann" {
		t.Errorf("meta = %+v", r.Meta)
	}
	whole, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	status, again, _ := a.call("PUT", "/v1/targets/ci", string(whole))
	if status != http.StatusOK || again.Get("ETag") != header.Get("ETag") {
		t.Errorf("writing back what was read = %d, ETag %s, want 200, %s", status, again.Get("ETag"), header.Get("ETag"))
	}
}

func TestLiteralSecretsNeverComeBack(t *testing.T) {
	t.Parallel()
	const secret, second = "whsec-literal-4711", "whsec-literal-0815"
	a := newAPI(t, nil)
	first := a.put(bridge.KindSource, "github", `{"scheme":"github","secrets":["`+secret+`"]}`)
	if !strings.Contains(string(first.Document), "${sealed:") {
		t.Errorf("document = %s, want a sealed secret", first.Document)
	}
	same := a.put(bridge.KindSource, "github", `{"scheme":"github","secrets":["`+secret+`"]}`)
	if same.Meta.Version != first.Meta.Version {
		t.Error("writing the same secret again changed the resource")
	}
	var doc struct{ Secrets []string }
	if err := json.Unmarshal(first.Document, &doc); err != nil {
		t.Fatal(err)
	}
	rotated := a.put(bridge.KindSource, "github", fmt.Sprintf(`{"scheme":"github","secrets":[%q,%q]}`, second, doc.Secrets[0]))
	if got := a.rules.Catalog().Config.Sources[0].Secrets; len(got) != 2 || got[0].Reveal() != second || got[1].Reveal() != secret {
		t.Error("the secrets in use are not the new one and the old one")
	}
	patched, err := a.Patch(t.Context(), bridge.KindSource, "github", json.RawMessage(`{"lanes":4}`), adminapi.WriteOptions{})
	if err != nil || len(a.rules.Catalog().Config.Sources[0].Secrets) != 2 {
		t.Errorf("Patch = %s, %v, want the secrets kept", patched.Document, err)
	}
	page, err := a.ListPage(t.Context(), bridge.KindSource, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	everything := a.log.String() + string(first.Document) + string(rotated.Document) + string(patched.Document) + string(page.Items[0].Document)
	for _, s := range []string{secret, second} {
		if strings.Contains(everything, s) {
			t.Errorf("secret %s came back", s)
		}
	}
}

func TestEveryProblemHasItsPath(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	_, err := a.Put(t.Context(), bridge.KindRoute, "pushes",
		json.RawMessage(`{"queue":"","target":"nowhere","retry":{"max_attempts":0},"filtr":"x"}`), adminapi.WriteOptions{})
	e, ok := errors.AsType[*adminapi.Error](err)
	if !ok || e.Status != http.StatusUnprocessableEntity || e.Code != adminapi.CodeInvalid {
		t.Fatalf("error = %v", err)
	}
	found := map[string]string{}
	for _, p := range e.Problems {
		found[p.Path] = p.Value
	}
	for path, value := range map[string]string{"queue": "", "target": "", "retry.max_attempts": "0", "filtr": ""} {
		if got, ok := found[path]; !ok || got != value {
			t.Errorf("problems = %v, want one at %s with value %q", e.Problems, path, value)
		}
	}
}

func TestValidateOnlyWritesNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	if _, err := a.Put(t.Context(), bridge.KindTarget, "ci", json.RawMessage(targetDoc), adminapi.WriteOptions{ValidateOnly: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(t.Context(), bridge.KindTarget, "ci"); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("Read = %v, want not found", err)
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	r := a.put(bridge.KindTarget, "ci", targetDoc)
	other := `{"http":{"url":"http://other.example.com"}}`
	tests := []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"wrong ETag", "PUT", "/v1/targets/ci", other, []string{"If-Match", `"999"`}, 412},
		{"weak ETag", "PUT", "/v1/targets/ci", other, []string{"If-Match", `W/"` + r.Meta.Version + `"`}, 412},
		{"must not exist", "PUT", "/v1/targets/ci", other, []string{"If-None-Match", "*"}, 412},
		{"must exist", "PUT", "/v1/targets/new", other, []string{"If-Match", "*"}, 412},
		{"no ETag", "PUT", "/v1/targets/ci", other, []string{"If-Match", "17"}, 400},
		{"delete of another version", "DELETE", "/v1/targets/ci", "", []string{"If-Match", `"999"`}, 412},
		{"the right one", "PUT", "/v1/targets/ci", other, []string{"If-Match", `"1", "` + r.Meta.Version + `"`}, 200},
		{"an old one, and the same again", "PUT", "/v1/targets/ci", other, []string{"If-Match", `"` + r.Meta.Version + `"`}, 200},
		{"must not exist, and is the same", "PUT", "/v1/targets/ci", other, []string{"If-None-Match", "*"}, 412},
	}
	for _, tt := range tests {
		if status, _, body := a.call(tt.method, tt.path, tt.body, tt.header...); status != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, status, tt.want, body)
		}
	}
}

func TestWhatTheCallerHasIsNotSentAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	tag := `"` + a.put(bridge.KindTarget, "ci", targetDoc).Meta.Version + `"`
	for _, tt := range []struct {
		have string
		want int
	}{{tag, 304}, {`"x", W/` + tag, 304}, {"*", 304}, {`"x"`, 200}, {"", 200}} {
		for _, method := range []string{"GET", "HEAD"} {
			status, header, body := a.call(method, "/v1/targets/ci", "", "If-None-Match", tt.have)
			if status != tt.want || header.Get("ETag") != tag || (method == "GET" && status == 200) != (body != "") {
				t.Errorf("%s with If-None-Match %s = %d, ETag %s, %q, want %d", method, tt.have, status, header.Get("ETag"), body, tt.want)
			}
		}
	}
}

func TestAWrongNameIsAProblemOfWhatWouldBeMade(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	_, err := a.Put(t.Context(), bridge.KindTarget, "Big Name", json.RawMessage(`{"http":{"url":"nope"}}`), adminapi.WriteOptions{})
	e, ok := errors.AsType[*adminapi.Error](err)
	if !ok || e.Code != adminapi.CodeInvalid || len(e.Problems) != 2 || e.Problems[0].Path != "name" || e.Problems[1].Path != "http.url" {
		t.Errorf("Put = %v, want problems of name and http.url", err)
	}
	if _, err := a.Read(t.Context(), bridge.KindTarget, "Big Name"); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("Read = %v", err)
	}
}

func TestProblemsOfAResourceAreNotToldAgainOfThoseThatUseIt(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.put(bridge.KindTarget, "ci", targetDoc)
	a.put(bridge.KindRoute, "pushes", routeDoc)
	_, err := a.Put(t.Context(), bridge.KindTarget, "ci", json.RawMessage(`{"http":{"url":"nope"}}`), adminapi.WriteOptions{})
	if e, ok := errors.AsType[*adminapi.Error](err); !ok || len(e.Problems) != 1 || e.Problems[0].Path != "http.url" {
		t.Errorf("Put = %v, want the problem of http.url alone", err)
	}
}

func TestWhatNeedsNoBodyNeedsNoContentType(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *admin.Config, _ *rules.Config) { c.Pauses = newPauses() })
	a.put(bridge.KindTarget, "ci", targetDoc)
	for _, action := range []string{"pause", "resume"} {
		if status, _, body := a.call("POST", "/v1/targets/ci/"+action, "", "Content-Type", ""); status != http.StatusOK {
			t.Errorf("%s without a body = %d %s", action, status, body)
		}
	}
	if status, _, _ := a.call("POST", "/v1/targets/ci/pause", `{"reason":"x"}`, "Content-Type", "text/plain"); status != http.StatusUnsupportedMediaType {
		t.Errorf("a body of another type = %d", status)
	}
}

func TestALostAnswerToAFirstWriteIsNoConflict(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first := a.put(bridge.KindTarget, "ci", targetDoc) // the answer to which was lost
	must := adminapi.WriteOptions{MustNotExist: true}
	again, err := a.Put(t.Context(), bridge.KindTarget, "ci", json.RawMessage(targetDoc), must)
	if err != nil || again.Meta.Version != first.Meta.Version {
		t.Errorf("Put = %+v, %v, want version %s", again.Meta, err, first.Meta.Version)
	}
	_, err = a.Put(t.Context(), bridge.KindTarget, "ci", json.RawMessage(`{"http":{"url":"http://other.example.com"}}`), must)
	if !adminapi.IsCode(err, adminapi.CodePrecondition) {
		t.Errorf("Put of another document = %v", err)
	}
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for i := range 5 {
		a.put(bridge.KindTarget, fmt.Sprintf("t%d", i), `{"http":{"url":"http://x.example.com"}}`)
	}
	var names []string
	token := ""
	for pages := 1; ; pages++ {
		page, err := a.ListPage(t.Context(), bridge.KindTarget, 2, token)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			names = append(names, r.Name())
		}
		if token = page.NextPageToken; token == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	if got := strings.Join(names, " "); got != "t0 t1 t2 t3 t4" {
		t.Errorf("names = %s", got)
	}
}

func TestDeleting(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.put(bridge.KindTarget, "ci", targetDoc)
	a.put(bridge.KindRoute, "pushes", routeDoc)
	if _, err := a.Delete(t.Context(), bridge.KindTarget, "ci", ""); !adminapi.IsCode(err, adminapi.CodeInUse) || !strings.Contains(err.Error(), "routes/pushes") {
		t.Errorf("Delete of a target in use = %v", err)
	}
	if gone, err := a.Delete(t.Context(), bridge.KindRoute, "pushes", ""); err != nil || gone {
		t.Errorf("Delete of a route = %t, %v, want it to drain", gone, err)
	}
	if r, err := a.Read(t.Context(), bridge.KindRoute, "pushes"); err != nil || r.Meta.State != adminapi.StateDraining {
		t.Errorf("Read = %+v, %v", r.Meta, err)
	}
	a.put(bridge.KindTarget, "unused", targetDoc[:1]+targetDoc[len(`{"name":"ci",`):])
	if gone, err := a.Delete(t.Context(), bridge.KindTarget, "unused", ""); err != nil || !gone {
		t.Errorf("Delete = %t, %v", gone, err)
	}
	if _, err := a.Delete(t.Context(), bridge.KindTarget, "unused", ""); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("second Delete = %v", err)
	}
}

func TestATargetInUseIsDeletedWhenAskedToDrain(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.put(bridge.KindTarget, "ci", targetDoc)
	a.put(bridge.KindRoute, "pushes", routeDoc)
	if status, _, body := a.call("DELETE", "/v1/targets/ci?drain=false", ""); status != http.StatusConflict {
		t.Errorf("not asked to drain: %d %s", status, body)
	}
	gone, err := a.DeleteTarget(t.Context(), "ci", "")
	if err != nil || gone {
		t.Fatalf("DeleteTarget = %t, %v, want it draining", gone, err)
	}
	for kind, name := range map[bridge.Kind]string{bridge.KindTarget: "ci", bridge.KindRoute: "pushes"} {
		if r, err := a.Read(t.Context(), kind, name); err != nil || r.Meta.State != adminapi.StateDraining {
			t.Errorf("%s/%s: %+v, %v", kind, name, r.Meta, err)
		}
		if !strings.Contains(a.log.String(), `"action":"deleted, drains","resource":"`+string(kind)+"/"+name+`"`) {
			t.Errorf("the log does not say that %s/%s was deleted", kind, name)
		}
	}
}

func TestNamesMayHoldAnything(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, name := range []string{"a/b", "..", ".", "ä ö%2F?#", strings.Repeat("日", 255)} {
		a.put(bridge.KindQueue, name, `{"retention":"24h"}`)
		if r, err := a.Read(t.Context(), bridge.KindQueue, name); err != nil || r.Name() != name {
			t.Errorf("Read(%q) = %q, %v", name, r.Name(), err)
		}
	}
}
