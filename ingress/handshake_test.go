package ingress_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// handshake is a request of a provider that is no event.
type handshake struct {
	name    string
	signer  signer
	method  string // POST where it is ""
	query   string
	headers []string
	body    string
	signed  bool

	status  int // 200 where it is 0
	text    string
	kind    string // Content-Type
	header  map[string]string
	surface string
	queued  bool // it is an event after all
}

func (h *handshake) request(t *testing.T, now time.Time) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: h.method, Path: "/in/hook", RawQuery: h.query, Header: http.Header{}, Body: []byte(h.body), Now: now}
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	for i := 0; i < len(h.headers); i += 2 {
		r.Header.Add(h.headers[i], h.headers[i+1])
	}
	if h.signed {
		h.signer.sign(t, r)
	}
	return r
}

// surfaced collects what is shown to the operator.
type surfaced struct {
	mu    sync.Mutex
	texts []string
}

func (s *surfaced) show(source, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, source+" "+secret)
}

func (h *handshake) check(t *testing.T) {
	now, shown := time.Now(), &surfaced{}
	c := sources(h.signer.source)
	c.Now, c.ShowSecret = func() time.Time { return now }, shown.show
	w := serve(t, c)
	res, body := w.sendSigned(t, h.request(t, now))
	want := h.status
	if want == 0 {
		want = http.StatusOK
	}
	if res.StatusCode != want {
		t.Errorf("status %d, want %d; log:\n%s", res.StatusCode, want, w.logs)
	}
	if want < 300 && !h.queued && strings.TrimSpace(body) != h.text {
		t.Errorf("body %q, want %q", body, h.text)
	}
	if h.kind != "" && !strings.HasPrefix(res.Header.Get("Content-Type"), h.kind) {
		t.Errorf("content type %q, want %q", res.Header.Get("Content-Type"), h.kind)
	}
	for name, value := range h.header {
		if got := res.Header.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	if h.method != http.MethodHead {
		checkPlain(t, h.name, res)
	}
	if n := len(w.queen.Items()); n != 0 != h.queued {
		t.Errorf("%d events stored, want some: %t", n, h.queued)
	}
	h.checkSurface(t, w, shown.texts)
}

func (h *handshake) checkSurface(t *testing.T, w *world, shown []string) {
	t.Helper()
	if h.surface == "" && len(shown) > 0 || h.surface != "" && (len(shown) != 1 || shown[0] != "hook "+h.surface) {
		t.Errorf("shown to the operator: %q, want %q", shown, h.surface)
	}
	if h.surface != "" && strings.Contains(w.logs.String(), h.surface) {
		t.Error("the secret is in the log")
	}
}

// sendSigned sends a request as it stands.
func (w *world) sendSigned(t *testing.T, r *signing.Request) (*http.Response, string) {
	t.Helper()
	target := r.Path
	if r.RawQuery != "" {
		target += "?" + r.RawQuery
	}
	var headers []string
	for name, values := range r.Header {
		for _, v := range values {
			headers = append(headers, name, v)
		}
	}
	return w.send(t, r.Method, target, string(r.Body), headers...)
}

// probes are the handshakes that come by GET, HEAD and OPTIONS.
func probes(t *testing.T) []handshake {
	const get, origin = http.MethodGet, "WebHook-Request-Origin"
	meta, events := of("meta", "verify_token", "token"), of("cloudevents", "allowed_origins", []any{"emitter.example.com"})
	trello, mandrill := of("trello"), of("mandrill")
	trello.source.PublicURL, mandrill.source.PublicURL = "https://hooks.example.com/in/hook", "https://hooks.example.com/in/hook"
	ebay := of("ebay", "verification_token", "webhook-co-ebay-verify-token-0123456789abcdef", "keys", map[string]any{"k": publicPEM(t, ecKey(t).Public())})
	ebay.source.Secrets, ebay.source.PublicURL = nil, "https://wbhk.my/t/ebay-acct-deletion"
	adobe := of("adobe-sign", "client_ids", []any{"CLIENT1"})
	adobe.source.Secrets = nil
	return []handshake{
		{name: "hub", signer: meta, method: get, query: "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=token", text: "1158201444", kind: "text/plain"},
		{name: "hub, another token", signer: meta, method: get, query: "hub.mode=subscribe&hub.challenge=1&hub.verify_token=x", status: 403},
		{name: "hub, no mode", signer: meta, method: get, status: 405, header: map[string]string{"Allow": "POST, GET"}},
		{name: "echo", signer: of("dropbox"), method: get, query: "challenge=a%2Bb%3Cscript%3E", text: "a+b<script>", kind: "text/plain"},
		{name: "echo, too long", signer: of("nylas"), method: get, query: "challenge=" + strings.Repeat("a", 513), status: 400},
		{name: "echo, none", signer: of("dropbox"), method: get, status: 405},
		{name: "crc", signer: of("x"), method: get, query: "crc_token=foo", text: `{"response_token":"sha256=0NyVSA0JF88H5e0ONbcUFiGsDxbYo4AzXn7QbUyOYb4="}`, kind: "application/json"},
		{name: "crc, an event", signer: of("x"), method: get, query: "crc_token={}", status: 400},
		{name: "braintree", signer: of("braintree", "public_key", "pub"), method: get, query: "bt_challenge=20f9f8ed05f77439fe955c977e4c8a5z", status: 400},
		{name: "linkedin, an event", signer: of("linkedin"), method: get, query: "challengeCode=hmacsha256={}", status: 400},
		{name: "ebay", signer: ebay, method: get, query: "challenge_code=71745723-9b5e-4f8a-bc11-9f0e2a7d4c63", text: `{"challengeResponse":"d24cd543fe79a6b0b79e99e0b27939b4a01fce883ae11a63ca875183a5a07ba4"}`, kind: "application/json"},
		{name: "okta", signer: of("okta"), method: get, headers: []string{"X-Okta-Verification-Challenge", "a", "Authorization", "s3cret"}, text: `{"verification":"a"}`, kind: "application/json"},
		{name: "okta, no credential", signer: of("okta"), method: get, headers: []string{"X-Okta-Verification-Challenge", "a"}, status: 401},
		{name: "adobe", signer: adobe, method: get, headers: []string{"X-AdobeSign-ClientId", "CLIENT1"}, header: map[string]string{"X-AdobeSign-ClientId": "CLIENT1"}},
		{name: "adobe, another id", signer: adobe, method: get, headers: []string{"X-AdobeSign-ClientId", "CLIENT2"}, status: 401},
		{name: "head", signer: trello, method: http.MethodHead},
		{name: "head, mandrill", signer: mandrill, method: http.MethodHead},
		{name: "head, intercom", signer: of("intercom"), method: http.MethodHead},
		{name: "head, but GET", signer: of("intercom"), method: get, status: 405, header: map[string]string{"Allow": "POST, HEAD"}},
		{name: "head, where nobody asks", signer: of("github"), method: http.MethodHead, status: 405, header: map[string]string{"Allow": "POST"}},
		{name: "get probe", signer: of("mailchimp"), method: get},
		{name: "get probe, but HEAD", signer: of("mailchimp"), method: http.MethodHead, status: 405},
		{name: "options", signer: events, method: http.MethodOptions, headers: []string{origin, "emitter.example.com", "WebHook-Request-Rate", "120"},
			header: map[string]string{"WebHook-Allowed-Origin": "emitter.example.com", "WebHook-Allowed-Rate": "*", "Allow": "POST"}},
		{name: "options, another origin", signer: events, method: http.MethodOptions, headers: []string{origin, "evil.example.com"}, status: 403},
		{name: "options, no origin", signer: events, method: http.MethodOptions, status: 405, header: map[string]string{"Allow": "POST, OPTIONS"}},
	}
}

// posted are the handshakes that come the way of events.
func posted(t *testing.T) []handshake {
	const twitchType = "Twitch-Eventsub-Message-Type"
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	mandrill := of("mandrill")
	mandrill.source.PublicURL = "https://hooks.example.com/in/hook"
	interactions, asana := discord(t), of("asana", "armed", true)
	asana.source.Secrets = nil
	const plain = `{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event":"endpoint.url_validation"}`
	return []handshake{
		{name: "graph", signer: of("ms-graph"), query: "validationToken=Validation%3A+a%2Bb", text: "Validation: a+b", kind: "text/plain"},
		{name: "graph, empty", signer: of("ms-graph"), query: "validationToken=", status: 400},
		{name: "event grid", signer: of("azure-event-grid"), query: "code=s3cret", headers: []string{"aeg-event-type", "SubscriptionValidation"},
			body: `[{"data":{"validationCode":"512d38b6"}}]`, text: `{"validationResponse":"512d38b6"}`, kind: "application/json"},
		{name: "event grid, unproven", signer: of("azure-event-grid"), headers: []string{"aeg-event-type", "SubscriptionValidation"}, body: `[{"data":{"validationCode":"1"}}]`, status: 401},
		{name: "slack", signer: of("slack"), signed: true, body: `{"type":"url_verification","challenge":"<b>"}`, text: "<b>", kind: "text/plain"},
		{name: "slack, unsigned", signer: of("slack"), body: `{"type":"url_verification","challenge":"a"}`, status: 401},
		{name: "zoom", signer: of("zoom"), signed: true, body: plain, text: `{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"` + hmacHex("s3cret", []byte("qgg8vlvZRS6UYooatFL8Aw")) + `"}`, kind: "application/json"},
		{name: "zoom, a forged event", signer: of("zoom"), signed: true, body: `{"payload":{"plainToken":"v0:1:{}"},"event":"endpoint.url_validation"}`, status: 400},
		{name: "twitch", signer: of("twitch"), signed: true, headers: []string{twitchType, "webhook_callback_verification"}, body: `{"challenge":"pogchamp"}`, text: "pogchamp", kind: "text/plain"},
		{name: "twitch, unsigned", signer: of("twitch"), headers: []string{twitchType, "webhook_callback_verification"}, body: `{"challenge":"a"}`, status: 401},
		{name: "discord", signer: interactions, signed: true, body: `{"type":1}`, text: `{"type":1}`, kind: "application/json"},
		{name: "discord, unsigned", signer: interactions, body: `{"type":1}`, status: 401},
		{name: "discord, events", signer: interactions, signed: true, body: `{"type":0}`, status: 204, kind: "application/json"},
		{name: "asana", signer: asana, headers: []string{"X-Hook-Secret", "b537207f20cbfa02"}, header: map[string]string{"X-Hook-Secret": "b537207f20cbfa02"}, surface: "b537207f20cbfa02"},
		{name: "asana, not armed", signer: of("asana"), headers: []string{"X-Hook-Secret", "evil"}, status: 401},
		{name: "notion", signer: of("notion", "armed", true), body: `{"verification_token":"secret_tMrlL1qK5vuQ"}`, surface: "secret_tMrlL1qK5vuQ"},
		{name: "notion, not armed", signer: of("notion"), body: `{"verification_token":"secret_x"}`, status: 401},
		{name: "monday", signer: of("monday"), body: `{"challenge":"3eZb"}`, text: `{"challenge":"3eZb"}`, kind: "application/json"},
		{name: "woo", signer: of("woocommerce"), body: "webhook_id=123"},
		{name: "woo, more", signer: of("woocommerce"), body: "webhook_id=123&a=1", status: 401},
		{name: "mandrill", signer: mandrill, signed: true, headers: form, body: "mandrill_events=%5B%5D"},
		{name: "mandrill, unsigned", signer: mandrill, headers: form, body: "mandrill_events=%5B%5D", status: 401},
		{name: "an event is none", signer: of("slack"), signed: true, body: `{"type":"event_callback","event_id":"Ev1"}`, queued: true},
	}
}

// TestHandshakesOfTheProviders: each by the provider's own request, and its
// guard by one that is not.
func TestHandshakesOfTheProviders(t *testing.T) {
	t.Parallel()
	for _, h := range append(probes(t), posted(t)...) {
		t.Run(h.name, func(t *testing.T) { t.Parallel(); h.check(t) })
	}
}

// A secret that nobody would see must not be taken: the source could never be
// used.
func TestAHandedOverSecretThatNobodyWouldSeeIs503(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(of("asana", "armed", true).source))
	res, _ := w.post(t, "/in/hook", "", "X-Hook-Secret", "b537207f")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("X-Hook-Secret") != "" {
		t.Errorf("status %d, X-Hook-Secret %q; want 503 without", res.StatusCode, res.Header.Get("X-Hook-Secret"))
	}
}

// Whoever registers a webhook sees only "could not be verified" at the
// provider: the log must say what to mend, and not the tokens.
func TestARefusedHandshakeIsExplainedInTheLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ query, want string }{
		{"hub.mode=subscribe&hub.challenge=1&hub.verify_token=mistyped", "hub.verify_token is not scheme_options.verify_token"},
		{"hub.mode=subscribe&hub.verify_token=expected", "the text to repeat is missing"},
	} {
		w := serve(t, sources(of("meta", "verify_token", "expected").source))
		w.send(t, http.MethodGet, "/in/hook?"+tt.query, "")
		if err := w.stop(); err != nil { // the record follows the answer
			t.Fatal(err)
		}
		text := w.logs.String()
		if !strings.Contains(text, tt.want) || strings.Contains(text, "mistyped") || strings.Contains(text, "expected") {
			t.Errorf("GET ?%s is logged as %s, want %q and no token", tt.query, text, tt.want)
		}
	}
}

// TestHandshakesAreNotQuarantined: on_invalid is for events.
func TestHandshakesAreNotQuarantined(t *testing.T) {
	t.Parallel()
	src := of("slack").source
	src.OnInvalid = bridge.OnInvalidQuarantine
	w := serve(t, sources(src))
	if res, _ := w.post(t, "/in/hook", `{"type":"url_verification","challenge":"a"}`); res.StatusCode != http.StatusUnauthorized || len(w.queen.Items()) != 0 {
		t.Errorf("status %d, %d stored; want 401 and none", res.StatusCode, len(w.queen.Items()))
	}
}

// Anyone may hand over something to a source that waits for its secret: the
// operator must still be able to read what is shown.
func TestHandedOverSecretsAreShownAtABoundedRate(t *testing.T) {
	t.Parallel()
	shown := &surfaced{}
	c := sources(of("asana", "armed", true).source)
	c.ShowSecret = shown.show
	s, _ := newServer(t, c)
	refused := 0
	for range 100 {
		if call(s.Handler(), "/in/hook", "", "X-Hook-Secret", "evil").Code == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused < 80 || len(shown.texts) != 100-refused {
		t.Errorf("%d of 100 shown, %d refused; want about 10 shown", len(shown.texts), refused)
	}
}
