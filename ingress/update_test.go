package ingress_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// runFails says that Run ends at once with an error that names what is wrong.
func runFails(t *testing.T, c ingress.Config, want string) {
	t.Helper()
	s, _ := newServer(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run = %v, want an error that names %s", err, want)
	}
}

// TestSecretsRotateUnderLoadWithoutA401: senders change over while the
// configuration does.
func TestSecretsRotateUnderLoadWithoutA401(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(github("gh", "old")))
	stop, secret := make(chan struct{}), make(chan string, 1)
	secret <- "old"
	var senders sync.WaitGroup
	for sender := range 4 {
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				current := <-secret
				secret <- current
				id := fmt.Sprintf("%d-%d", sender, i)
				if res, _ := w.post(t, "/in/gh", "{}", signed(current, id, "{}")...); res.StatusCode != 200 {
					t.Errorf("%s with secret %s: status %d", id, current, res.StatusCode)
					return
				}
			}
		})
	}
	for range 20 {
		w.must(t, w.Update([]bridge.Source{github("gh", "new", "old")}))
		<-secret
		secret <- "new"
		w.must(t, w.Update([]bridge.Source{github("gh", "old", "new")}))
		<-secret
		secret <- "old"
	}
	close(stop)
	senders.Wait()
	w.must(t, w.Update([]bridge.Source{github("gh", "new")}))
	if res, _ := w.post(t, "/in/gh", "{}", signed("old", "x", "{}")...); res.StatusCode != 401 {
		t.Errorf("the old secret after the rotation: status %d, want 401", res.StatusCode)
	}
	if res, _ := w.post(t, "/in/gh", "{}", signed("new", "x", "{}")...); res.StatusCode != 200 {
		t.Errorf("the new secret: status %d, want 200", res.StatusCode)
	}
}

func TestRequestsUnderWayEndOnTheirOldSource(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	c := sources(open("a"))
	c.Queen = &queentest.Shelf{Before: blockUntil(entered, leave)}
	w := serve(t, c)
	done := make(chan int, 1)
	go func() { res, _ := w.post(t, "/in/a", "{}"); done <- res.StatusCode }()
	<-entered
	gone := open("b")
	gone.Respond = bridge.Respond{Status: 202}
	w.must(t, w.Update([]bridge.Source{gone}))
	if res, _ := w.post(t, "/in/a", "{}"); res.StatusCode != 404 {
		t.Errorf("a source that is gone: status %d, want 404", res.StatusCode)
	}
	close(leave)
	if got := <-done; got != 200 {
		t.Errorf("the request under way: status %d, want 200", got)
	}
	if res, _ := w.post(t, "/in/b", "{}"); res.StatusCode != 202 {
		t.Errorf("the new source: status %d, want 202", res.StatusCode)
	}
}

// TestWhatASourceBuiltUpSurvives: the limit, the ids it remembers and the
// requests it counts.
func TestWhatASourceBuiltUpSurvives(t *testing.T) {
	t.Parallel()
	slow, same, moved := github("slow", "a"), github("same", "a"), github("moved", "a")
	slow.Rate = bridge.SourceRate{PerSecond: 0.001, Burst: 1}
	w := serve(t, sources(slow, same, moved))
	send := func(path, secret, id string) *http.Response {
		res, _ := w.post(t, path, "{}", signed(secret, id, "{}")...)
		return res
	}
	for _, path := range []string{"/in/slow", "/in/same", "/in/moved"} {
		if res := send(path, "a", "1"); res.StatusCode != 200 {
			t.Fatalf("POST %s = %d", path, res.StatusCode)
		}
	}
	slow.Secrets, same.Secrets = []bridge.Secret{"b"}, []bridge.Secret{"b"}
	moved.Queue = "elsewhere"
	w.must(t, w.Update([]bridge.Source{slow, same, moved}))
	if res := send("/in/slow", "b", "2"); res.StatusCode != 429 {
		t.Errorf("a rate limit forgot what it let pass: status %d, want 429", res.StatusCode)
	}
	pushes := len(w.queen.Pushes())
	if res := send("/in/same", "b", "1"); res.Header.Get("Queen-Duplicate") != "1" || len(w.queen.Pushes()) != pushes {
		t.Errorf("a known id: Queen-Duplicate %q after %d pushes, want 1 without one", res.Header.Get("Queen-Duplicate"), len(w.queen.Pushes())-pushes)
	}
	if res := send("/in/moved", "a", "1"); res.Header.Get("Queen-Duplicate") != "" {
		t.Error("another queue does not hold the event yet, but it is called a duplicate")
	}
}

func TestInFlightCountsAcrossAnUpdate(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	a := open("a")
	a.MaxInFlight = 1
	c := sources(a)
	c.Queen = &queentest.Shelf{Before: blockUntil(entered, leave)}
	w := serve(t, c)
	done := make(chan int, 1)
	go func() { res, _ := w.post(t, "/in/a", "{}"); done <- res.StatusCode }()
	<-entered
	a.DropHeaders = []string{"X-A"}
	w.must(t, w.Update([]bridge.Source{a}))
	if res, _ := w.post(t, "/in/a", "{}"); res.StatusCode != 429 {
		t.Errorf("a second request at once: status %d, want 429", res.StatusCode)
	}
	close(leave)
	<-done
	if res, _ := w.post(t, "/in/a", "{}"); res.StatusCode != 200 {
		t.Errorf("once it is done: status %d, want 200", res.StatusCode)
	}
}

func TestAnUpdateWithMistakesChangesNothing(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(github("gh", "old")))
	err := w.Update([]bridge.Source{github("gh", "new"), {Name: "x", Scheme: "githup"}, {Name: "y", Scheme: "none", Spool: true}})
	if err == nil || !strings.Contains(err.Error(), "githup") || !strings.Contains(err.Error(), "spool") || strings.Contains(err.Error(), "new") {
		t.Errorf("Update = %v, want every mistake and no secret", err)
	}
	if res, _ := w.post(t, "/in/gh", "{}", signed("old", "1", "{}")...); res.StatusCode != 200 {
		t.Errorf("status %d, want 200 by the secret that is still in force", res.StatusCode)
	}
}

func TestAStoppingServerTakesNoUpdate(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, sources(open("a")))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, l); err != nil {
		t.Fatal(err)
	}
	if err := s.Update([]bridge.Source{open("b")}); err == nil {
		t.Error("Update = nil, want an error")
	}
}

// "Events stop, nobody notices": the age of the last verified event tells. A
// source that has had none since the start has no age, or every start would
// raise alarms.
func TestTheLastVerifiedEventIsToldFromTheFirstOn(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := sources(github("gh", "s"))
	c.Metrics, c.Now = reg, func() time.Time { return time.Unix(1767323045, 0) }
	s, _ := newServer(t, c)
	const name = "queenbridge_ingress_last_verified_timestamp_seconds"
	call(s.Handler(), "/in/gh", "{}", signed("forged", "1", "{}")...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			t.Errorf("%s has %d values before the first proven request, want none", name, len(f.GetMetric()))
		}
	}
	call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...)
	if got := metric(t, reg, name, "source", "gh"); got != 1767323045 {
		t.Errorf("last verified at %v, want 1767323045", got)
	}
}

// The age of the last verified event of a source that is gone would raise
// alarms for ever.
func TestARemovedSourceHasNoLastVerifiedEvent(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := sources(github("gh", "s"), github("other", "s"))
	c.Metrics = reg
	now := time.Unix(1767323045, 0)
	c.Now = func() time.Time { return now }
	s, _ := newServer(t, c)
	call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...)
	const name = "queenbridge_ingress_last_verified_timestamp_seconds"
	if got := metric(t, reg, name, "source", "gh"); got != 1767323045 {
		t.Errorf("last verified at %v, want 1767323045", got)
	}
	if err := s.Update([]bridge.Source{github("other", "s")}); err != nil {
		t.Fatal(err)
	}
	if got := metric(t, reg, name, "source", "gh"); got != 0 {
		t.Errorf("last verified at %v after the source was removed, want none", got)
	}
}
