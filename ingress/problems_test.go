package ingress_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
)

// This file holds what people who receive webhooks ran into.
func github(name string, secrets ...bridge.Secret) bridge.Source {
	return bridge.Source{Name: name, Scheme: "github", Secrets: secrets}
}

// signed are the headers of a GitHub delivery.
func signed(secret, id, body string) []string {
	return []string{"X-Hub-Signature-256", "sha256=" + hmacHex(secret, []byte(body)), "X-GitHub-Delivery", id, "X-GitHub-Event", "push"}
}

// "Timestamp outside the tolerance zone": how far the clocks are apart is told,
// most of all where it is too far.
func TestTimestampWindowIsSymmetricAndTheSkewIsTold(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	c := sources(bridge.Source{Name: "st", Scheme: "stripe", Secrets: []bridge.Secret{"s"}})
	reg := prometheus.NewRegistry()
	c.Now, c.Metrics = func() time.Time { return now }, reg
	w := serve(t, c)
	for i, tc := range []struct {
		offset int64
		status int
	}{{0, 200}, {-300, 200}, {300, 200}, {-301, 401}, {301, 401}} {
		stamp := fmt.Sprint(now.Unix() + tc.offset)
		body := fmt.Sprintf(`{"id":"evt_%d"}`, i)
		res, _ := w.post(t, "/in/st", body, "Stripe-Signature", "t="+stamp+",v1="+hmacHex("s", []byte(stamp+"."+body)))
		if res.StatusCode != tc.status {
			t.Errorf("timestamp %+d s: status %d, want %d", tc.offset, res.StatusCode, tc.status)
		}
	}
	if logs := w.logs.String(); !strings.Contains(logs, "timestamp_outside_window") || !strings.Contains(logs, "301") && !strings.Contains(logs, "5m1s") {
		t.Errorf("log names no skew:\n%s", logs)
	}
	// A bad signature says nothing about clocks.
	stamp := fmt.Sprint(now.Unix() - 999)
	if res, _ := w.post(t, "/in/st", "{}", "Stripe-Signature", "t="+stamp+",v1="+hmacHex("x", []byte(stamp+".{}"))); res.StatusCode != 401 {
		t.Errorf("bad signature: status %d, want 401", res.StatusCode)
	}
	const skew = "queenbridge_ingress_timestamp_skew_seconds"
	for bound, want := range map[float64]uint64{-600: 0, -300: 2, 0: 2, 300: 3, 600: 4, 86400: 4} {
		if got := bucket(t, reg, skew, bound); got != want {
			t.Errorf("skews up to %g s: %d, want %d", bound, got, want)
		}
	}
	if got := metric(t, reg, "queenbridge_ingress_rejections_total", "reason", "timestamp_outside_window"); got != 2 {
		t.Errorf("rejections for the timestamp: %g, want 2", got)
	}
}

func TestEventCarriesWhatTheReceiverSaw(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("x", 3600))
	c := sources(github("gh", "s"))
	c.Now = func() time.Time { return now }
	s, q := newServer(t, c)
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	call(s.Handler(), "/in/gh/?a=1", "{}", append(signed("s", "id-1", "{}"), "Traceparent", trace, "Content-Type", "application/json")...)
	e := storedEvents(t, q)[0]
	e.Headers = nil
	want := bridge.Event{ID: "github:id-1", Source: "gh", Type: "push", Received: now.UTC().Truncate(time.Microsecond), Class: bridge.ClassVerified,
		Method: "POST", Path: "/in/gh/", Query: "a=1", ContentType: "application/json", Body: []byte("{}"), Traceparent: trace}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	item := q.Items()[0]
	if item.Queue != "gh" || item.Partition != bridge.SourceLane("gh", "github:id-1", 16) {
		t.Errorf("item goes to %s/%s", item.Queue, item.Partition)
	}
}

func TestSlackChallengeIsAnsweredAndNotQueued(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	c := sources(bridge.Source{Name: "slack", Scheme: "slack", Secrets: []bridge.Secret{"s"}})
	c.Now = func() time.Time { return now }
	w := serve(t, c)
	stamp, body := fmt.Sprint(now.Unix()), `{"type":"url_verification","challenge":"<b>3eZb</b>"}`
	sig := "v0=" + hmacHex("s", []byte("v0:"+stamp+":"+body))
	res, text := w.post(t, "/in/slack", body, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", sig)
	if res.StatusCode != 200 || text != "<b>3eZb</b>" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("answer %d %q as %q", res.StatusCode, text, res.Header.Get("Content-Type"))
	}
	checkPlain(t, "challenge", res)
	if res, _ := w.post(t, "/in/slack", body, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+strings.Repeat("0", 64)); res.StatusCode != 401 {
		t.Errorf("unsigned challenge: status %d, want 401", res.StatusCode)
	}
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d items, want 0", n)
	}
}

func TestPayloadJSONPushesTheBodyItself(t *testing.T) {
	t.Parallel()
	src := open("j")
	src.Payload = "json"
	s, q := newServer(t, sources(src))
	body := ` {"b":1, "a":9007199254740993,"c":"\u0000"}`
	if rec := call(s.Handler(), "/in/j", body, "X-Id", "1"); rec.Code != 200 {
		t.Errorf("status %d, want 200", rec.Code)
	}
	for _, bad := range []string{"", "a=b", `{"a":1} {"b":2}`, "{\"a\":\"\xff\"}"} {
		if rec := call(s.Handler(), "/in/j", bad); rec.Code != 400 {
			t.Errorf("body %q: status %d, want 400", bad, rec.Code)
		}
	}
	if got := q.Items(); len(got) != 1 || string(got[0].Payload) != body {
		t.Errorf("stored %v, want the one body", got)
	}
}

func TestQuarantineKeepsWhatCouldNotBeProvenApart(t *testing.T) {
	t.Parallel()
	src := github("gh", "s")
	src.OnInvalid = "quarantine"
	s, q := newServer(t, sources(src))
	if rec := call(s.Handler(), "/in/gh", "{}", signed("wrong", "1", "{}")...); rec.Code != 200 {
		t.Errorf("status %d, want 200", rec.Code)
	}
	if rec := call(s.Handler(), "/in/gh", "{}", signed("s", "1", "{}")...); rec.Code != 200 || rec.Header().Get("Queen-Duplicate") != "" {
		t.Errorf("the real one: status %d, duplicate %q", rec.Code, rec.Header().Get("Queen-Duplicate"))
	}
	var got []string
	for i, e := range storedEvents(t, q) {
		got = append(got, q.Items()[i].Queue+" "+string(e.Class))
	}
	if diff := cmp.Diff([]string{"gh.quarantine none", "gh verified"}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	full := 0
	for i := range 300 {
		if call(s.Handler(), "/in/gh", "{}", signed("wrong", fmt.Sprint(i), "{}")...).Code == 429 {
			full++
		}
	}
	if full < 100 {
		t.Errorf("%d of 300 forged requests were limited, want most of them after the first 100", full)
	}
}

func TestRespondReplacesThePresetsAnswer(t *testing.T) {
	t.Parallel()
	src := open("a")
	src.Respond = bridge.Respond{Status: 202, Body: `{"ok":true}`, ContentType: "application/json"}
	none := open("n")
	none.Respond = bridge.Respond{Status: 204}
	w := serve(t, sources(src, none))
	res, body := w.post(t, "/in/a", "{}")
	if res.StatusCode != 202 || body != `{"ok":true}` || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("answer %d %q as %q", res.StatusCode, body, res.Header.Get("Content-Type"))
	}
	if res, _ := w.post(t, "/in/n", "{}"); res.StatusCode != 204 {
		t.Errorf("status %d, want 204", res.StatusCode)
	}
}

func TestPartitionOfASource(t *testing.T) {
	t.Parallel()
	by := func(name, partition string) bridge.Source {
		s := open(name)
		s.Partition = partition
		return s
	}
	list := []bridge.Source{by("body", "body:repo.name"), by("header", "header:X-Key"), by("query", "query:k"), by("literal", "literal:all of it")}
	s, q := newServer(t, sources(list...))
	call(s.Handler(), "/in/body", `{"repo":{"name":"a/b"}}`)
	call(s.Handler(), "/in/header", "{}", "X-Key", "é")
	call(s.Handler(), "/in/header", "{}", "X-Key", strings.Repeat("k", 201), "X-Id", "2")
	call(s.Handler(), "/in/query", "{}", "X-Id", "3")
	call(s.Handler(), "/in/literal", "{}")
	want := []string{"a/b", "sha256:" + sha256Hex("é"), "sha256:" + sha256Hex(strings.Repeat("k", 201)), bridge.SourceLane("query", "none:3", 16), "all of it"}
	var got []string
	for _, it := range q.Items() {
		got = append(got, it.Partition)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
}

func TestPanicIsA500AndTheServerLives(t *testing.T) {
	t.Parallel()
	c := sources(open("a"))
	calls := 0
	c.Now = func() time.Time {
		if calls++; calls == 1 {
			panic("clock fell down")
		}
		return time.Unix(1, 0)
	}
	w := serve(t, c)
	res, _ := w.post(t, "/in/a", "{}")
	if res.StatusCode != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", res.StatusCode)
	}
	if res, _ := w.post(t, "/in/a", "{}"); res.StatusCode != 200 {
		t.Errorf("the next request: status %d, want 200", res.StatusCode)
	}
	if !strings.Contains(w.logs.String(), "clock fell down") {
		t.Error("the panic is not in the log")
	}
}

// TestAFormFromGitHubIsVerifiedAsItWasSent: the JSON stands in a field, the
// signature covers the form.
func TestAFormFromGitHubIsVerifiedAsItWasSent(t *testing.T) {
	t.Parallel()
	src := github("gh", "s")
	src.Partition = "body:repository.full_name"
	s, q := newServer(t, sources(src))
	body := "payload=%7B%22repository%22%3A%7B%22full_name%22%3A%22octo%2Fhello%22%7D%7D"
	rec := call(s.Handler(), "/in/gh", body, append(signed("s", "1", body), "Content-Type", "application/x-www-form-urlencoded")...)
	if rec.Code != 200 {
		t.Fatalf("status %d, want 200", rec.Code)
	}
	if got := string(storedEvents(t, q)[0].Body); got != body {
		t.Errorf("body %q, want the form as it was sent", got)
	}
	if got := q.Items()[0].Partition; got != "octo/hello" {
		t.Errorf("partition %q, want octo/hello", got)
	}
}

// A stamp that is checked on one side only lives for ever once it is far
// enough ahead.
func TestATimestampOfTheFutureIsRefusedLikeAnOldOne(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	c := sources(bridge.Source{Name: "st", Scheme: "stripe", Secrets: []bridge.Secret{"s"}})
	c.Now = func() time.Time { return now }
	w := serve(t, c)
	for _, ahead := range []time.Duration{301 * time.Second, time.Hour, 200 * 365 * 24 * time.Hour} {
		stamp := fmt.Sprint(now.Add(ahead).Unix())
		res, _ := w.post(t, "/in/st", `{"id":"evt"}`, "Stripe-Signature", "t="+stamp+",v1="+hmacHex("s", []byte(stamp+`.{"id":"evt"}`)))
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("signed %s ahead: status %d, want 401", ahead, res.StatusCode)
		}
	}
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d events stored, want none", n)
	}
}

// Trello: "did not return 200 status code". A webhook that is being made is
// asked for first, and only those presets answer it.
func TestProbesOfAWebhookThatIsBeingMade(t *testing.T) {
	t.Parallel()
	var list []bridge.Source
	for _, scheme := range []string{"trello", "mandrill", "intercom", "mailchimp", "github"} {
		list = append(list, bridge.Source{Name: scheme, Scheme: scheme, Secrets: []bridge.Secret{"s"}, PublicURL: "https://h.example/in/" + scheme})
	}
	w := serve(t, sources(list...))
	for _, tt := range []struct {
		method, source string
		status         int
		allow          string
	}{
		{"HEAD", "trello", 200, ""}, {"HEAD", "mandrill", 200, ""}, {"HEAD", "intercom", 200, ""}, {"GET", "mailchimp", 200, ""},
		{"GET", "trello", 405, "POST, HEAD"}, {"HEAD", "github", 405, "POST"}, {"GET", "github", 405, "POST"},
	} {
		for _, slash := range []string{"", "/"} {
			res, body := w.send(t, tt.method, "/in/"+tt.source+slash, "")
			if res.StatusCode != tt.status || res.Header.Get("Allow") != tt.allow || tt.status == 200 && body != "" {
				t.Errorf("%s %s%s = %d %q, Allow %q; want %d, %q", tt.method, tt.source, slash, res.StatusCode, body, res.Header.Get("Allow"), tt.status, tt.allow)
			}
		}
	}
}
