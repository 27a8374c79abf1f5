package signing_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

// TestForge: every scheme accepts what Forge makes for it, with the headers
// the provider sends.
func TestForge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		options signing.Options
		headers []string
		query   string
	}{
		{signing.Options{Scheme: "github", Secrets: []string{"s"}}, []string{"X-Github-Delivery", "X-Github-Event", "X-Hub-Signature-256"}, ""},
		{signing.Options{Scheme: "stripe", Secrets: []string{"s"}}, []string{"Stripe-Signature"}, ""},
		{signing.Options{Scheme: "shopify", Secrets: []string{"s"}}, []string{"X-Shopify-Webhook-Id", "X-Shopify-Topic", "X-Shopify-Shop-Domain", "X-Shopify-Event-Id"}, ""},
		{signing.Options{Scheme: "svix", Secrets: []string{secretA}}, []string{"Svix-Id", "Svix-Timestamp", "Svix-Signature"}, ""},
		{signing.Options{Scheme: "gitlab", Secrets: []string{secretA}}, []string{"Webhook-Id", "Idempotency-Key", "X-Gitlab-Event"}, ""},
		{signing.Options{Scheme: "gitlab-token", Secrets: []string{"s"}}, []string{"X-Gitlab-Token", "Idempotency-Key", "X-Gitlab-Event"}, ""},
		{signing.Options{Scheme: "twilio", Secrets: []string{"s"}, PublicURL: derivedURL}, []string{"I-Twilio-Idempotency-Token"}, "a=1&bodySHA256="},
		{signing.Options{Scheme: "basic", Secrets: []string{"u:p"}}, []string{"Authorization"}, ""},
		{signing.Options{Scheme: "none"}, nil, ""},
		{signing.Options{Scheme: "token", Secrets: []string{"s &"}, SchemeOptions: opts("query", "code")}, nil, "a=1&code=s+%26"},
		{signing.Options{Scheme: "token", Secrets: []string{"s"}, SchemeOptions: opts("header", "X-K", "prefix", "Key ")}, []string{"X-K"}, ""},
		{signing.Options{Scheme: "token", Secrets: []string{"evt_1"}, SchemeOptions: opts("json", "id")}, nil, ""},
		{signing.Options{Scheme: "hmac", Secrets: []string{"s"}, SchemeOptions: opts("header", "X-S", "message", "{timestamp}{body}", "timestamp", opts("header", "X-T", "unit", "imf"))}, []string{"X-S", "X-T"}, ""},
		{signing.Options{Scheme: "hmac", Secrets: []string{"s"}, SchemeOptions: opts("header", "X-S", "message", "{body}", "timestamp", opts("json", "at", "unit", "ms"))}, []string{"X-S"}, ""},
	}
	for _, tt := range tests {
		for _, query := range []string{"", "a=1"} {
			r := &signing.Request{Method: http.MethodPost, Path: "/in/x", RawQuery: query, Body: []byte(`{"id":"evt_1","at":1700000000123}`), Now: time.Unix(derivedNow, 5e8)}
			if err := signing.Forge(tt.options, r); err != nil {
				t.Errorf("Forge(%s) = %v", tt.options.Scheme, err)
				continue
			}
			v, _ := signing.New(tt.options)
			if _, err := v.Verify(r); err != nil {
				t.Errorf("Verify(forged %s) = %v", tt.options.Scheme, err)
			}
			for _, name := range append(tt.headers, "Content-Type") {
				if r.Header.Get(name) == "" {
					t.Errorf("Forge(%s) set no %s", tt.options.Scheme, name)
				}
			}
			if query != "" && tt.query != "" && !strings.HasPrefix(r.RawQuery, tt.query) {
				t.Errorf("Forge(%s): query %q, want %q…", tt.options.Scheme, r.RawQuery, tt.query)
			}
		}
	}
}

// What the caller set stays; a second Forge gives the same request again.
func TestForgeKeeps(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "standard-webhooks", Secrets: []string{secretA}}
	r := &signing.Request{Method: http.MethodPost, Header: http.Header{"Webhook-Id": {"mine"}, "Webhook-Timestamp": {"1600000000"}, "Content-Type": {"text/plain"}}, Now: time.Unix(derivedNow, 0)}
	if err := signing.Forge(o, r); err != nil {
		t.Fatal(err)
	}
	first := r.Header.Clone()
	if r.Header.Get("Webhook-Id") != "mine" || r.Header.Get("Webhook-Timestamp") != "1600000000" || r.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("Forge replaced a header: %v", r.Header)
	}
	if err := signing.Forge(o, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, r.Header); diff != "" {
		t.Errorf("second Forge (-first +second):\n%s", diff)
	}
}

func TestForgedIDs(t *testing.T) {
	t.Parallel()
	uuid4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 100 {
		r := &signing.Request{Method: http.MethodPost}
		if err := signing.Forge(signing.Options{Scheme: "github", Secrets: []string{"s"}}, r); err != nil {
			t.Fatal(err)
		}
		id := r.Header.Get("X-GitHub-Delivery")
		if !uuid4.MatchString(id) || seen[id] {
			t.Fatalf("X-GitHub-Delivery = %q, want a fresh UUID", id)
		}
		seen[id] = true
	}
}

func TestForgeErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options signing.Options
		want    string
	}{
		{signing.Options{Scheme: "paypa"}, "is unknown"},
		{signing.Options{Scheme: "standard-webhooks", Secrets: []string{"whpk_" + rfc8032Public}}, "only the provider can sign"},
		{signing.Options{Scheme: "hmac", Secrets: []string{"s"}, SchemeOptions: opts("json", "sig", "message", "{query:a}")}, "stands in the body"},
		{signing.Options{Scheme: "hmac", Secrets: []string{"s"}, SchemeOptions: opts("header", "X", "message", "{query:a}{body}")}, "missing_part"},
		{signing.Options{Scheme: "hmac", Secrets: []string{"s"}, SchemeOptions: opts("header", "X", "timestamp", opts("json", "at"))}, "put it there"},
		{signing.Options{Scheme: "token", Secrets: []string{"s"}, SchemeOptions: opts("json", "at")}, "put it there"},
	} {
		if err := signing.Forge(tt.options, &signing.Request{Method: http.MethodPost}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Forge(%s %v) = %v, want %q", tt.options.Scheme, tt.options.SchemeOptions, err, tt.want)
		}
	}
}

func TestSlackChallenge(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "slack", Secrets: []string{"s"}}
	v, _ := signing.New(o)
	request := func(method, body string) *signing.Request {
		r := &signing.Request{Method: method, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
		if err := signing.Forge(o, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	tests := []struct {
		name, method, body string
		is                 bool
		status             int
		text               string
	}{
		{"challenge", "POST", `{"token":"x","challenge":"3eZ<b>\u00e9","type":"url_verification"}`, true, 200, "3eZ<b>é"},
		{"512 bytes", "POST", `{"type":"url_verification","challenge":"` + strings.Repeat("a", 512) + `"}`, true, 200, strings.Repeat("a", 512)},
		{"513 bytes", "POST", `{"type":"url_verification","challenge":"` + strings.Repeat("a", 513) + `"}`, true, 400, ""},
		{"empty", "POST", `{"type":"url_verification","challenge":""}`, true, 400, ""},
		{"missing", "POST", `{"type":"url_verification"}`, true, 400, ""},
		{"number", "POST", `{"type":"url_verification","challenge":12}`, true, 400, ""},
		{"object", "POST", `{"type":"url_verification","challenge":{"a":1}}`, true, 400, ""},
		{"two challenges", "POST", `{"type":"url_verification","challenge":"a","challenge":"b"}`, true, 400, ""},
		{"lone surrogate", "POST", `{"type":"url_verification","challenge":"\ud800"}`, true, 400, ""},
		{"event", "POST", `{"type":"event_callback","challenge":"a"}`, false, 0, ""},
		{"nested", "POST", `{"type":"event_callback","event":{"type":"url_verification"}}`, false, 0, ""},
		{"GET", "GET", `{"type":"url_verification","challenge":"a"}`, false, 0, ""},
	}
	for _, tt := range tests {
		reply, is, err := v.Handshake(request(tt.method, tt.body))
		if err != nil || is != tt.is || reply.Status != tt.status || string(reply.Body) != tt.text {
			t.Errorf("Handshake(%s) = %d %q, %t, %v, want %d %q, %t", tt.name, reply.Status, reply.Body, is, err, tt.status, tt.text, tt.is)
		}
		if reply.Status == 200 && (reply.ContentType != "text/plain" || reply.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("Handshake(%s): %q, %v", tt.name, reply.ContentType, reply.Header)
		}
	}
	unsigned := request("POST", tests[0].body)
	unsigned.Header.Set("X-Slack-Signature", "v0=00")
	if reply, is, err := v.Handshake(unsigned); !is || err == nil || reply.Status != 0 {
		t.Errorf("Handshake(unsigned) = %+v, %t, %v, want a rejection", reply, is, err)
	}
	other, _ := signing.New(signing.Options{Scheme: "github", Secrets: []string{"s"}})
	if _, is, err := other.Handshake(unsigned); is || err != nil {
		t.Errorf("Handshake(github) = %t, %v, want none", is, err)
	}
}
