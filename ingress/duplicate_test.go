package ingress_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

func TestDuplicateIsStoredOnceAndAnsweredTheSame(t *testing.T) {
	t.Parallel()
	s, q := newServer(t, sources(github("gh", "s")))
	first := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...)
	again := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...)
	if first.Code != 200 || again.Code != 200 || first.Body.String() != again.Body.String() {
		t.Errorf("answers %d %q and %d %q, want the same 200", first.Code, first.Body, again.Code, again.Body)
	}
	if got := first.Header().Get("Queen-Duplicate") + again.Header().Get("Queen-Duplicate"); got != "1" {
		t.Errorf("Queen-Duplicate = %q, want it on the second answer only", got)
	}
	if len(q.Items()) != 1 || len(q.Pushes()) != 1 {
		t.Errorf("%d items by %d pushes, want 1 by 1: a recent id does not reach Queen", len(q.Items()), len(q.Pushes()))
	}
}

func TestRecentIdsAreForgottenAndQueenDecides(t *testing.T) {
	t.Parallel()
	q := &queentest.Shelf{}
	s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a"), keyed("k")}, Queen: q})
	h := s.Handler()
	call(h, "/in/a", "{}", "X-Id", "old")
	for i := range 5000 {
		call(h, "/in/a", "{}", "X-Id", fmt.Sprint(i))
	}
	before := len(q.Pushes())
	rec := call(h, "/in/a", "{}", "X-Id", "old")
	if len(q.Pushes()) != before+1 || rec.Header().Get("Queen-Duplicate") != "1" {
		t.Errorf("an id behind 5000 others: %d pushes, Queen-Duplicate %q; want 1 more and Queen's own verdict", len(q.Pushes())-before, rec.Header().Get("Queen-Duplicate"))
	}
	// The same id in another partition is another event, as it is in Queen.
	call(h, "/in/k", "{}", "X-Id", "1", "X-Key", "p")
	if rec := call(h, "/in/k", "{}", "X-Id", "1", "X-Key", "q"); rec.Header().Get("Queen-Duplicate") != "" {
		t.Error("an id was taken for a duplicate in another partition")
	}
}

func TestConcurrentIdenticalDeliveriesAreOneItem(t *testing.T) {
	t.Parallel()
	s, q := newServer(t, sources(github("gh", "s")))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if rec := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...); rec.Code != 200 {
				t.Errorf("status %d, want 200", rec.Code)
			}
		})
	}
	wg.Wait()
	if n := len(q.Items()); n != 1 {
		t.Errorf("%d items, want 1", n)
	}
}

func TestAForgedRequestBurnsNoId(t *testing.T) {
	t.Parallel()
	s, q := newServer(t, sources(github("gh", "s")))
	if rec := call(s.Handler(), "/in/gh", `{"forged":1}`, signed("wrong", "1", `{"forged":1}`)...); rec.Code != 401 {
		t.Errorf("forged: status %d, want 401", rec.Code)
	}
	if rec := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...); rec.Code != 200 || rec.Header().Get("Queen-Duplicate") != "" {
		t.Errorf("the real one: status %d, duplicate %q", rec.Code, rec.Header().Get("Queen-Duplicate"))
	}
	if n := len(q.Items()); n != 1 {
		t.Errorf("%d items, want 1", n)
	}
}

func TestEmptyBodiesWithoutIdsAreDifferentEvents(t *testing.T) {
	t.Parallel()
	s, q := newServer(t, sources(open("a")))
	for range 3 {
		call(s.Handler(), "/in/a", "")
	}
	if n := len(q.Items()); n != 3 {
		t.Errorf("%d items, want 3", n)
	}
}

func TestDedupOffMakesEveryRequestANewEvent(t *testing.T) {
	t.Parallel()
	src := github("gh", "s")
	src.Dedup = "off"
	s, q := newServer(t, sources(src))
	for range 3 {
		if rec := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...); rec.Code != 200 || rec.Header().Get("Queen-Duplicate") != "" {
			t.Errorf("status %d, Queen-Duplicate %q", rec.Code, rec.Header().Get("Queen-Duplicate"))
		}
	}
	for _, id := range ids(q.Items()) {
		if !strings.HasPrefix(id, "github:uuid:") {
			t.Errorf("transaction id %q, want a random one", id)
		}
	}
	if n := len(q.Items()); n != 3 {
		t.Errorf("%d items, want 3", n)
	}
}

func TestAttemptHeadersNeverDropAnything(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	c := sources(bridge.Source{Name: "slack", Scheme: "slack", Secrets: []bridge.Secret{"s"}})
	c.Now = func() time.Time { return now }
	s, q := newServer(t, c)
	stamp, body := fmt.Sprint(now.Unix()), `{"team_id":"T","event_id":"E","type":"event_callback"}`
	rec := call(s.Handler(), "/in/slack", body, "X-Slack-Request-Timestamp", stamp, "X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout",
		"X-Slack-Signature", "v0="+hmacHex("s", []byte("v0:"+stamp+":"+body)))
	if rec.Code != 200 || len(q.Items()) != 1 {
		t.Errorf("status %d, %d items; want 200, 1", rec.Code, len(q.Items()))
	}
}

// What a provider sends again tells early that it was answered too slowly: it
// is counted, and the record of the event says it, with the secret that
// matched and the skew.
func TestResendsAreCountedAndLoggedWithTheProof(t *testing.T) {
	t.Parallel()
	now, reg := time.Unix(1767323045, 0), prometheus.NewRegistry()
	c := sources(bridge.Source{Name: "slack", Scheme: "slack", Secrets: []bridge.Secret{"new", "old"}})
	c.Now, c.Metrics = func() time.Time { return now }, reg
	w := serve(t, c)
	stamp := fmt.Sprint(now.Unix() - 7)
	send := func(body string, headers ...string) {
		w.post(t, "/in/slack", body, append(headers, "X-Slack-Request-Timestamp", stamp,
			"X-Slack-Signature", "v0="+hmacHex("old", []byte("v0:"+stamp+":"+body)))...)
	}
	send(`{"team_id":"T","event_id":"E1"}`)
	send(`{"team_id":"T","event_id":"E2"}`, "X-Slack-Retry-Num", "2")
	w.post(t, "/in/slack", "{}", "X-Slack-Retry-Num", "1") // not proven: anybody may say so
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if got := metric(t, reg, "queenbridge_ingress_resends_total", "source", "slack"); got != 1 {
		t.Errorf("%v resends counted, want 1", got)
	}
	for _, want := range []string{`"secret_index":1,"skew":"7s","resend":0`, `"secret_index":1,"skew":"7s","resend":2`} {
		if !strings.Contains(strings.ReplaceAll(w.logs.String(), "7000000000", `"7s"`), want) {
			t.Errorf("log lacks %s:\n%s", want, w.logs)
		}
	}
}
