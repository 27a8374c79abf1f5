package ingress_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

// This file holds what people who receive webhooks ran into.

func github(name string, secrets ...bridge.Secret) bridge.Source {
	return bridge.Source{Name: name, Scheme: "github", Secrets: secrets}
}

// signed are the headers of a GitHub delivery.
func signed(secret, id, body string) []string {
	return []string{"X-Hub-Signature-256", "sha256=" + hmacHex(secret, []byte(body)), "X-GitHub-Delivery", id, "X-GitHub-Event", "push"}
}

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
	if len(q.stored()) != 1 || len(q.calls()) != 1 {
		t.Errorf("%d items by %d pushes, want 1 by 1: a recent id does not reach Queen", len(q.stored()), len(q.calls()))
	}
}

func TestRecentIdsAreForgottenAndQueenDecides(t *testing.T) {
	t.Parallel()
	q := &fakeQueen{}
	s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a"), keyed("k")}, Queen: q})
	h := s.Handler()
	call(h, "/in/a", "{}", "X-Id", "old")
	for i := range 5000 {
		call(h, "/in/a", "{}", "X-Id", fmt.Sprint(i))
	}
	before := len(q.calls())
	rec := call(h, "/in/a", "{}", "X-Id", "old")
	if len(q.calls()) != before+1 || rec.Header().Get("Queen-Duplicate") != "1" {
		t.Errorf("an id behind 5000 others: %d pushes, Queen-Duplicate %q; want 1 more and Queen's own verdict", len(q.calls())-before, rec.Header().Get("Queen-Duplicate"))
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
	if n := len(q.stored()); n != 1 {
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
	if n := len(q.stored()); n != 1 {
		t.Errorf("%d items, want 1", n)
	}
}

func TestRefusalTellsTheSenderNothingAndTheLogTheReason(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(github("gh", "top-secret")))
	body := `{"password":"hunter2"}`
	good := hmacHex("top-secret", []byte(body))
	res, text := w.post(t, "/in/gh?access_token=querysecret", body, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64), "X-Private", "headersecret")
	if res.StatusCode != 401 {
		t.Fatalf("status %d, want 401", res.StatusCode)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(text, "not authenticated (request "), ")\n")
	if len(id) != 16 {
		t.Fatalf("body %q, want a short text with a request id", text)
	}
	logs := w.logs.String()
	for _, want := range []string{id, "bad_signature", `"route":"/in/:source"`, `"source":"gh"`} {
		if !strings.Contains(logs, want) {
			t.Errorf("log lacks %s:\n%s", want, logs)
		}
	}
	for _, secret := range []string{"top-secret", good, "hunter2", "querysecret", "headersecret"} {
		if strings.Contains(logs+text, secret) {
			t.Errorf("%s leaked:\n%s\n%s", secret, logs, text)
		}
	}
}

func TestRotationAcceptsEverySecretAndTellsWhichMatched(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := sources(github("gh", "new", "old"))
	c.Metrics = reg
	s, _ := newServer(t, c)
	for i, secret := range []string{"new", "old", "old", "none"} {
		want := 200
		if secret == "none" {
			want = 401
		}
		if rec := call(s.Handler(), "/in/gh", "{}", signed(secret, fmt.Sprint(i), "{}")...); rec.Code != want {
			t.Errorf("secret %q: status %d, want %d", secret, rec.Code, want)
		}
	}
	wantMetric(t, reg, "secret_matches_total", map[string]float64{
		"secret=0,source=gh": 1,
		"secret=1,source=gh": 2,
	})
	wantMetric(t, reg, "rejections_total", map[string]float64{
		"reason=bad_signature,source=gh": 1,
	})
	wantMetric(t, reg, "requests_total", map[string]float64{
		"code=200,source=gh": 3,
		"code=401,source=gh": 1,
	})
	wantMetric(t, reg, "events_total", map[string]float64{
		"source=gh,verdict=duplicate": 0,
		"source=gh,verdict=queued":    3,
	})
}

// wantMetric compares every sample of a counter, by its labels.
func wantMetric(t *testing.T, reg *prometheus.Registry, name string, want map[string]float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "queenbridge_ingress_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got[strings.Join(labels, ",")] = m.GetCounter().GetValue()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestStrangersMakeNoLabels(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := sources(open("a"))
	c.Metrics = reg
	s, _ := newServer(t, c)
	for i := range 100 {
		call(s.Handler(), fmt.Sprintf("/in/x%d", i), "{}")
	}
	wantMetric(t, reg, "requests_total", map[string]float64{
		"code=200,source=a": 0,
		"code=404,source=":  100,
	})
}

func TestTimestampWindowIsSymmetricAndTheSkewIsLogged(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	c := sources(bridge.Source{Name: "st", Scheme: "stripe", Secrets: []bridge.Secret{"s"}})
	c.Now = func() time.Time { return now }
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
}

func TestCredentialsNeverReachTheEvent(t *testing.T) {
	t.Parallel()
	src := bridge.Source{Name: "tok", Scheme: "token", Secrets: []bridge.Secret{"s3cret"},
		SchemeOptions: map[string]any{"header": "X-Sesame"}, DropHeaders: []string{"x-internal", "X-Gitlab-Event"}}
	query := bridge.Source{Name: "q", Scheme: "token", Secrets: []bridge.Secret{"s3cret"}, SchemeOptions: map[string]any{"query": "sesame"}}
	hub := github("gh", "s")
	s, q := newServer(t, sources(src, query, hub))
	r := call(s.Handler(), "/in/tok?access_token=s3cret&code=s3cret&sig=s3cret&%74oken=s3cret&key=s3cret&secret=s3cret&a=%zz;b=1&client_secret=s3cret&plain&x=1", "{}",
		"X-Sesame", "s3cret", "Authorization", "s3cret", "Proxy-Authorization", "s3cret", "Cookie", "s3cret", "Set-Cookie", "s3cret",
		"X-Github-Encoded-Secret", "s3cret", "X-My-Token-Id", "s3cret", "X-Api-Key", "s3cret", "X-Internal", "s3cret", "X-Gitlab-Event", "push",
		"Connection", "keep-alive, X-Hop", "X-Hop", "s3cret", "Keep-Alive", "5", "Te", "trailers", "Upgrade", "h2c", "X-Kept", "yes")
	if r.Code != 200 {
		t.Fatalf("status %d, want 200", r.Code)
	}
	if r := call(s.Handler(), "/in/q?sesame=s3cret&x=1", "{}"); r.Code != 200 {
		t.Fatalf("status %d, want 200", r.Code)
	}
	if r := call(s.Handler(), "/in/gh", "{}", append(signed("s", "1", "{}"), "X-Hub-Signature", "sha1=x")...); r.Code != 200 {
		t.Fatalf("status %d, want 200", r.Code)
	}
	events := q.events(t)
	if diff := cmp.Diff([]bridge.Header{{Name: "x-kept", Value: "yes"}}, events[0].Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	want := "access_token=***&code=***&sig=***&%74oken=***&key=***&secret=***&a=%zz;b=1&client_secret=***&plain&x=1"
	if events[0].Query != want || events[1].Query != "sesame=***&x=1" {
		t.Errorf("queries %q, %q; want %q and the scheme's own redacted", events[0].Query, events[1].Query, want)
	}
	var names []string
	for _, h := range events[2].Headers {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"x-github-delivery", "x-github-event", "x-hub-signature", "x-hub-signature-256"}, names); diff != "" {
		t.Errorf("a consumer must be able to verify again; headers (-want +got):\n%s", diff)
	}
}

func TestTheIdHeaderOfAPresetStaysThoughItSaysToken(t *testing.T) {
	t.Parallel()
	for _, tc := range fixedCases(t) {
		if tc.Preset != "twilio" || tc.Class != "positive" {
			continue
		}
		c := sources(tc.Source.source("hook"))
		c.Now = func() time.Time { return time.Unix(tc.Now, 0) }
		w := serve(t, c)
		tc.check(t, w)
		if !slices.ContainsFunc(w.queen.events(t)[0].Headers, func(h bridge.Header) bool { return h.Name == "i-twilio-idempotency-token" }) {
			t.Error("I-Twilio-Idempotency-Token was dropped")
		}
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
	e := q.events(t)[0]
	e.Headers = nil
	want := bridge.Event{ID: "github:id-1", Source: "gh", Type: "push", Received: now.UTC().Truncate(time.Microsecond), Class: bridge.ClassVerified,
		Method: "POST", Path: "/in/gh/", Query: "a=1", ContentType: "application/json", Body: []byte("{}"), Traceparent: trace}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	item := q.stored()[0]
	if item.Queue != "gh" || item.Partition != bridge.SourceLane("gh", "github:id-1", 16) {
		t.Errorf("item goes to %s/%s", item.Queue, item.Partition)
	}
}

func TestEmptyBodiesWithoutIdsAreDifferentEvents(t *testing.T) {
	t.Parallel()
	s, q := newServer(t, sources(open("a")))
	for range 3 {
		call(s.Handler(), "/in/a", "")
	}
	if n := len(q.stored()); n != 3 {
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
	for _, id := range ids(q.stored()) {
		if !strings.HasPrefix(id, "github:uuid:") {
			t.Errorf("transaction id %q, want a random one", id)
		}
	}
	if n := len(q.stored()); n != 3 {
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
	if rec.Code != 200 || len(q.stored()) != 1 {
		t.Errorf("status %d, %d items; want 200, 1", rec.Code, len(q.stored()))
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
	if n := len(w.queen.stored()); n != 0 {
		t.Errorf("%d items, want 0", n)
	}
}

func TestSplitBatchIsOneEventPerItemInOnePush(t *testing.T) {
	t.Parallel()
	src := bridge.Source{Name: "sg", Scheme: "none", Split: "@this", TransactionID: "body:id", EventType: "body:type", Partition: "body:key"}
	s, q := newServer(t, sources(src))
	body := `[{"id":"1","type":"a","key":"k"}, {"id":2,"type":"b"},{"x" : 1.10},"text"]`
	if rec := call(s.Handler(), "/in/sg", body); rec.Code != 200 {
		t.Fatalf("status %d, want 200", rec.Code)
	}
	var got []string
	for _, e := range q.events(t) {
		got = append(got, e.ID+" "+e.Type+" "+string(e.Body))
	}
	want := []string{
		`none:1 a {"id":"1","type":"a","key":"k"}`, `none:2 b {"id":2,"type":"b"}`,
		"none:sha256:" + sha256Hex(`{"x" : 1.10}`) + `  {"x" : 1.10}`, "none:sha256:" + sha256Hex(`"text"`) + `  "text"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := len(q.calls()); n != 1 {
		t.Errorf("%d pushes, want 1", n)
	}
	if q.stored()[0].Partition != "k" {
		t.Errorf("partition %q, want k", q.stored()[0].Partition)
	}
	for _, body := range []string{"[]", `{"id":"doc"}`, "no json"} {
		if rec := call(s.Handler(), "/in/sg", body); rec.Code != 200 {
			t.Errorf("body %s: status %d, want 200", body, rec.Code)
		}
	}
	if n := len(q.stored()); n != 6 {
		t.Errorf("%d items, want 6: none of an empty batch, one of what is no array", n)
	}
	if rec := call(s.Handler(), "/in/sg", "["+strings.Repeat("1,", 2000)+"1]"); rec.Code != 413 {
		t.Errorf("2001 items: status %d, want 413", rec.Code)
	}
}

func TestItemsOfABatchWithOneIdForAllAreKeptApart(t *testing.T) {
	t.Parallel()
	src := github("gh", "s")
	src.Split = "commits"
	s, q := newServer(t, sources(src))
	body := `{"commits":[{"n":1},{"n":2},{"n":1}]}`
	call(s.Handler(), "/in/gh", body, signed("s", "one", body)...)
	if n := len(q.stored()); n != 2 {
		t.Errorf("%d items, want 2 (one of the three is a repetition): %v", n, ids(q.stored()))
	}
}

func TestABatchWithAFailingItemIs503AndItsResendCompletesIt(t *testing.T) {
	t.Parallel()
	failing := true
	q := &fakeQueen{verdict: func(it queen.Item) queen.PushStatus {
		if failing && it.TransactionID == "none:777" {
			return queen.PushBuffered
		}
		return ""
	}}
	src := bridge.Source{Name: "b", Scheme: "none", Split: "@this", TransactionID: "body:id"}
	s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{src}, Queen: q})
	var items []string
	for i := range 1000 {
		items = append(items, fmt.Sprintf(`{"id":%d}`, i))
	}
	body := "[" + strings.Join(items, ",") + "]"
	if rec := call(s.Handler(), "/in/b", body); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, want 503 with Retry-After", rec.Code)
	}
	failing = false
	if rec := call(s.Handler(), "/in/b", body); rec.Code != 200 {
		t.Errorf("resend: status %d, want 200", rec.Code)
	}
	if n := len(q.stored()); n != 1000 {
		t.Errorf("%d items, want exactly 1000", n)
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
	if got := q.stored(); len(got) != 1 || string(got[0].Payload) != body {
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
	for i, e := range q.events(t) {
		got = append(got, q.stored()[i].Queue+" "+string(e.Class))
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
	for _, it := range q.stored() {
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
