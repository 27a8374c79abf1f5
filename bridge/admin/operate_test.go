package admin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func withLetters(n int) func(*admin.Config, *rules.Config) {
	return func(c *admin.Config, _ *rules.Config) { c.Letters, c.Tester = newLetters(n), tester{} }
}

func TestDeadLettersComeInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(5))
	seen, token := 0, ""
	for {
		page, err := a.DeadLetters(t.Context(), "pushes", adminapi.Selection{Classes: []string{"http_4xx"}}, adminapi.ListOptions{Size: 2, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page.Items)
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if seen != 5 {
		t.Errorf("%d dead letters in all, want 5", seen)
	}
}

// A class that there is not chooses nothing: it is said, not answered with
// nothing done.
func TestAMistypedClassIsSaid(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(1))
	typo := adminapi.Selection{Classes: []string{"htpp_4xx"}}
	_, err := a.DeadLetters(t.Context(), "pushes", typo, adminapi.ListOptions{})
	if !adminapi.IsCode(err, adminapi.CodeMalformed) || !strings.Contains(err.Error(), `did you mean "http_4xx"`) {
		t.Errorf("DeadLetters = %v", err)
	}
	_, err = a.Redrive(t.Context(), "pushes", adminapi.Order{Selection: typo})
	if !adminapi.IsCode(err, adminapi.CodeInvalid) || !strings.Contains(err.Error(), `classes: "htpp_4xx" is unknown`) {
		t.Errorf("Redrive = %v", err)
	}
}

func TestBodiesAreForOperators(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(1))
	l, err := a.as(operatorToken).DeadLetter(t.Context(), "pushes", "letter-0", true)
	if err != nil || l.Payload != "the-payload" || l.Reason.Response != "the-response" {
		t.Errorf("as an operator: %+v, %v", l, err)
	}
	if l, err = a.as(operatorToken).DeadLetter(t.Context(), "pushes", "letter-0", false); err != nil || l.Payload != "" {
		t.Errorf("without asking: %+v, %v", l, err)
	}
	l, err = a.as(viewerToken).DeadLetter(t.Context(), "pushes", "letter-0", false)
	if err != nil || l.Payload != "" || l.Reason.Response != "" {
		t.Errorf("as a viewer: %+v, %v", l, err)
	}
	if _, err := a.as(viewerToken).DeadLetter(t.Context(), "pushes", "letter-0", true); !adminapi.IsCode(err, adminapi.CodeForbidden) {
		t.Errorf("the payload as a viewer: %v", err)
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(3))
	c := a.as(operatorToken)
	if r, err := c.Redrive(t.Context(), "pushes", adminapi.Order{DryRun: true}); err != nil || r.Done != 3 {
		t.Errorf("dry run = %+v, %v", r, err)
	}
	if r, err := c.Redrive(t.Context(), "pushes", adminapi.Order{Limit: 1}); err != nil || r.Done != 1 {
		t.Errorf("Redrive = %+v, %v", r, err)
	}
	if _, err := c.Redrive(t.Context(), "draining", adminapi.Order{}); !adminapi.IsCode(err, adminapi.CodeConflict) {
		t.Errorf("Redrive of a draining route = %v", err)
	}
	if r, err := c.DeleteDeadLetters(t.Context(), "pushes", adminapi.Order{Selection: adminapi.Selection{IDs: []string{"letter-2"}}}); err != nil || r.Done != 1 {
		t.Errorf("DeleteDeadLetters = %+v, %v", r, err)
	}
	if status, _, body := a.call("DELETE", "/v1/routes/pushes/dead-letters/letter-1", ""); status != 204 {
		t.Errorf("DELETE = %d %s", status, body)
	}
	if status, _, _ := a.call("DELETE", "/v1/routes/pushes/dead-letters/letter-1", ""); status != 404 {
		t.Errorf("second DELETE = %d", status)
	}
	if log := a.log.String(); strings.Count(log, `"msg":"order carried out by the admin API"`) != 3 || strings.Contains(log, "the-payload") {
		t.Errorf("log = %s", log)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(0))
	page, err := a.Retries(t.Context(), "pushes", true, adminapi.ListOptions{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Last == nil {
		t.Fatalf("Retries = %+v, %v", page, err)
	}
	if err := a.RetryNow(t.Context(), "pushes", page.Items[0].Key); err != nil {
		t.Error(err)
	}
	if err := a.RetryNow(t.Context(), "pushes", "other/1"); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("RetryNow of none = %v", err)
	}
}

func TestTestFire(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(0))
	for body, want := range map[string]string{"": "application/json {}", `{"a":1.10}`: `application/json {"a":1.10}`, `"plain"`: "application/json plain"} {
		r, err := a.TestFire(t.Context(), "pushes", adminapi.TestEvent{Body: json.RawMessage(body)})
		if err != nil || r.Body != want {
			t.Errorf("TestFire(%s) = %+v, %v, want body %q", body, r, err, want)
		}
	}
	if _, err := a.TestFire(t.Context(), "none", adminapi.TestEvent{}); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("TestFire of no route = %v", err)
	}
}

func TestWhatIsNotRunHereIsSaid(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	if _, err := a.TestFire(t.Context(), "pushes", adminapi.TestEvent{}); !adminapi.IsCode(err, adminapi.CodeNotServed) {
		t.Errorf("TestFire = %v", err)
	}
	if _, err := a.Pause(t.Context(), "routes", "none", ""); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("Pause = %v", err)
	}
}

func TestReplays(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withLetters(0))
	c, at := a.as(operatorToken), time.Date(2026, 1, 2, 15, 4, 5, 600, time.FixedZone("", 3600))
	r, err := c.ReplayRoute(t.Context(), "paused", at)
	if want := (adminapi.ReplayResult{Since: at.UTC(), Partitions: 2, Pending: 7}); err != nil || r != want {
		t.Errorf("ReplayRoute = %+v, %v, want %+v", r, err, want)
	}
	if r, err := c.ReplayRoute(t.Context(), "paused", time.Time{}); err != nil || !r.Since.IsZero() {
		t.Errorf("ReplayRoute from the beginning = %+v, %v", r, err)
	}
	if log := a.log.String(); strings.Count(log, `"action":"route replayed","route":"paused","since":"2026-01-02T14:04:05.0000006Z","partitions":2,"pending":7`) != 1 {
		t.Errorf("log = %s", log)
	}
	if _, err := c.ReplayRoute(t.Context(), "pushes", at); !adminapi.IsCode(err, adminapi.CodeConflict) || !strings.Contains(err.Error(), "pause it first") {
		t.Errorf("ReplayRoute of a running route = %v", err)
	}
	if _, err := c.ReplayRoute(t.Context(), "none", at); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		t.Errorf("ReplayRoute of no route = %v", err)
	}
	if _, err := c.ReplayRoute(t.Context(), "paused", time.Now().Add(time.Minute)); !adminapi.IsCode(err, adminapi.CodeInvalid) || !strings.Contains(err.Error(), "since: must not be in the future") {
		t.Errorf("ReplayRoute from the future = %v", err)
	}
	if _, err := a.as(viewerToken).ReplayRoute(t.Context(), "paused", at); !adminapi.IsCode(err, adminapi.CodeForbidden) {
		t.Errorf("ReplayRoute as a viewer = %v", err)
	}
	for _, body := range []string{``, `{}`, `{"since":""}`, `{"since":"2h"}`, `{"since":"2026-01-02"}`, `{"since":5}`, `{"sincce":"beginning"}`} {
		if status, _, text := a.call("POST", "/v1/routes/paused/replay", body); status != 422 && status != 400 {
			t.Errorf("replay with %q = %d %s", body, status, text)
		}
	}
}
