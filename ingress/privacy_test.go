package ingress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
)

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
	events := storedEvents(t, q)
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
		if !slices.ContainsFunc(storedEvents(t, w.queen)[0].Headers, func(h bridge.Header) bool { return h.Name == "i-twilio-idempotency-token" }) {
			t.Error("I-Twilio-Idempotency-Token was dropped")
		}
	}
}
