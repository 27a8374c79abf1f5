package signing_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

// handshakeCase is a request of a provider and what it must be answered.
type handshakeCase struct {
	name    string
	options signing.Options
	method  string // POST where it is ""
	query   string
	headers []string
	body    string
	signed  bool // by Forge

	none    bool // no handshake
	refused bool // a rejection: 401
	status  int  // 200 where it is 0
	text    string
	json    string
	answer  map[string]string // headers of the answer
	surface string
	confirm string
}

func (c *handshakeCase) request(t *testing.T) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: c.method, RawQuery: c.query, Header: http.Header{}, Body: []byte(c.body), Now: time.Unix(derivedNow, 0)}
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	for i := 0; i+1 < len(c.headers); i += 2 {
		r.Header.Add(c.headers[i], c.headers[i+1])
	}
	if c.signed {
		if err := signing.Forge(c.options, r); err != nil {
			t.Fatalf("Forge = %v", err)
		}
	}
	return r
}

func (c *handshakeCase) check(t *testing.T) {
	t.Helper()
	v, problems := signing.New(c.options)
	if len(problems) > 0 {
		t.Fatalf("New = %v", problems)
	}
	reply, is, err := v.Handshake(c.request(t))
	var rejection *signing.Rejection
	switch {
	case c.none:
		if is || err != nil {
			t.Errorf("Handshake = %+v, %t, %v, want none", reply, is, err)
		}
		return
	case c.refused:
		if !is || !errors.As(err, &rejection) || reply.Status != 0 || reply.Surface != "" {
			t.Errorf("Handshake = %+v, %t, %v, want a rejection", reply, is, err)
		}
		return
	}
	want := c.status
	if want == 0 {
		want = http.StatusOK
	}
	if !is || err != nil || reply.Status != want || reply.Surface != c.surface || reply.Confirm != c.confirm {
		t.Fatalf("Handshake = %+v, %t, %v, want status %d, surface %q, confirm %q", reply, is, err, want, c.surface, c.confirm)
	}
	if refused := want >= http.StatusBadRequest; refused != (reply.Detail != "") {
		t.Errorf("status %d with detail %q, want a detail for the log where a guard refused, and only there", want, reply.Detail)
	}
	c.checkBody(t, reply)
	for name, value := range c.answer {
		if got := reply.Header.Get(name); got != value {
			t.Errorf("header %s = %q, want %q", name, got, value)
		}
	}
}

func (c *handshakeCase) checkBody(t *testing.T, reply signing.Reply) {
	t.Helper()
	if c.json == "" {
		if string(reply.Body) != c.text {
			t.Errorf("body = %q, want %q", reply.Body, c.text)
		}
		if c.text != "" && (reply.ContentType != "text/plain" || reply.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("echo as %q with %v, want text/plain and nosniff", reply.ContentType, reply.Header)
		}
		return
	}
	var got, want any
	if err := json.Unmarshal(reply.Body, &got); err != nil {
		t.Fatalf("body %q: %v", reply.Body, err)
	}
	if err := json.Unmarshal([]byte(c.json), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || reply.ContentType != "application/json" {
		t.Errorf("%s body (-want +got):\n%s", reply.ContentType, diff)
	}
}

func of(scheme string, pairs ...any) signing.Options {
	return signing.Options{Scheme: scheme, Secrets: []string{derivedSecret}, SchemeOptions: opts(pairs...)}
}

func long(n int) string { return strings.Repeat("a", n) }

// getHandshakes are GET, HEAD and OPTIONS.
func getHandshakes() []handshakeCase {
	meta, dropbox, x := of("meta", "verify_token", "token & more"), of("dropbox"), of("x")
	braintree := signing.Options{Scheme: "braintree", Secrets: []string{"integration_private_key", "old"}, SchemeOptions: opts("public_key", "integration_public_key")}
	linkedin, okta, events := of("linkedin"), of("okta"), of("cloudevents", "allowed_origins", []any{"eventemitter.example.com"})
	ebay := signing.Options{Scheme: "ebay", PublicURL: "https://wbhk.my/t/ebay-acct-deletion", SchemeOptions: opts("verification_token", "webhook-co-ebay-verify-token-0123456789abcdef", "keys", opts("k", pemOf(keysOnce().ec[0].Public())))}
	adobe := signing.Options{Scheme: "adobe-sign", SchemeOptions: opts("client_ids", []any{"CLIENT1", "CLIENT2"})}
	const token, origin = "X-Okta-Verification-Challenge", "WebHook-Request-Origin"
	grid := of("azure-event-grid")
	return []handshakeCase{
		{name: "hub", options: meta, method: "GET", query: "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=token+%26+more", text: "1158201444"},
		{name: "hub, another token", options: meta, method: "GET", query: "hub.mode=subscribe&hub.challenge=1&hub.verify_token=token", status: 403},
		{name: "hub, no token", options: meta, method: "GET", query: "hub.mode=subscribe&hub.challenge=1", status: 403},
		{name: "hub, two tokens", options: meta, method: "GET", query: "hub.mode=subscribe&hub.challenge=1&hub.verify_token=token+%26+more&hub.verify_token=x", status: 403},
		{name: "hub, another mode", options: meta, method: "GET", query: "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=token+%26+more", status: 403},
		{name: "hub, nothing configured", options: of("meta"), method: "GET", query: "hub.mode=subscribe&hub.challenge=1&hub.verify_token=", status: 403},
		{name: "hub, no challenge", options: meta, method: "GET", query: "hub.mode=subscribe&hub.verify_token=token+%26+more", status: 400},
		{name: "hub, no mode", options: meta, method: "GET", query: "hub.challenge=1", none: true},
		{name: "hub, POST", options: meta, query: "hub.mode=subscribe&hub.challenge=1&hub.verify_token=token+%26+more", none: true},
		{name: "echo", options: dropbox, method: "GET", query: "challenge=a%2Bb%3Cscript%3E", text: "a+b<script>"},
		{name: "echo, 512 bytes", options: of("nylas"), method: "GET", query: "challenge=" + long(512), text: long(512)},
		{name: "echo, 513 bytes", options: dropbox, method: "GET", query: "challenge=" + long(513), status: 400},
		{name: "echo, empty", options: dropbox, method: "GET", query: "challenge=", status: 400},
		{name: "echo, two values", options: dropbox, method: "GET", query: "challenge=a&challenge=b", status: 400},
		{name: "echo, not UTF-8", options: dropbox, method: "GET", query: "challenge=%ff", status: 400},
		{name: "echo, no challenge", options: dropbox, method: "GET", none: true},
		{name: "crc", options: x, method: "GET", query: "crc_token=foo", json: `{"response_token":"sha256=yN+V+1kmt7hzsoYtbVHHeEnEcj0UbOVFRfs0dKOwhSE="}`},
		{name: "crc, registry fixture", options: signing.Options{Scheme: "x", Secrets: []string{"z3ZX4v7mAAUGykl3EcmkqbartmuW8VFOOzCloLx9Q45P0hLrFu", "old"}}, method: "GET", query: "crc_token=9b4507b3-9040-4669-9ca3-6b94edb50553&nonce=1", json: `{"response_token":"sha256=Cytd4Sq+NvEcV3MMrXxWJGJx5A+y/lXzzU2Maartkx8="}`},
		{name: "crc, 256 characters", options: x, method: "GET", query: "crc_token=" + long(257), status: 400},
		{name: "crc, JSON", options: x, method: "GET", query: `crc_token={"for_user_id":"1"}`, status: 400},
		{name: "crc, a line break", options: x, method: "GET", query: "crc_token=foo%0a", status: 400},
		{name: "crc, empty", options: x, method: "GET", query: "crc_token=", status: 400},
		{name: "braintree", options: braintree, method: "GET", query: "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53", text: "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"},
		{name: "braintree, derived", options: of("braintree", "public_key", "pub"), method: "GET", query: "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53", text: "pub|90b165b936ee3d0b0978d055e7976864f3413fbc"},
		{name: "braintree, a payload", options: braintree, method: "GET", query: "bt_challenge=PHN1YnNjcmlwdGlvbj4K", status: 400},
		{name: "braintree, upper case", options: braintree, method: "GET", query: "bt_challenge=20F9F8ED05F77439FE955C977E4C8A53", status: 400},
		{name: "braintree, too short", options: braintree, method: "GET", query: "bt_challenge=20f9f8ed05f77439fe9", status: 400},
		{name: "braintree, a line break", options: braintree, method: "GET", query: "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53%0a", status: 400},
		{name: "linkedin", options: linkedin, method: "GET", query: "challengeCode=890e4665-4dfe-4ab1-b689-ed553bceeed0", json: `{"challengeCode":"890e4665-4dfe-4ab1-b689-ed553bceeed0","challengeResponse":"` + hmacHex("890e4665-4dfe-4ab1-b689-ed553bceeed0") + `"}`},
		{name: "linkedin, an event", options: linkedin, method: "GET", query: "challengeCode=hmacsha256={}", status: 400},
		{name: "linkedin, more than a UUID", options: linkedin, method: "GET", query: "challengeCode=890e4665-4dfe-4ab1-b689-ed553bceeed0%0a", status: 400},
		{name: "ebay", options: ebay, method: "GET", query: "challenge_code=71745723-9b5e-4f8a-bc11-9f0e2a7d4c63", json: `{"challengeResponse":"d24cd543fe79a6b0b79e99e0b27939b4a01fce883ae11a63ca875183a5a07ba4"}`},
		{name: "ebay, empty", options: ebay, method: "GET", query: "challenge_code=", status: 400},
		{name: "ebay, long", options: ebay, method: "GET", query: "challenge_code=" + long(513), status: 400},
		{name: "okta", options: okta, method: "GET", headers: []string{token, `a"b`, "Authorization", derivedSecret}, json: `{"verification":"a\"b"}`},
		{name: "okta, another header", options: of("okta", "header", "X-Key"), method: "GET", headers: []string{token, "a", "X-Key", derivedSecret}, json: `{"verification":"a"}`},
		{name: "okta, no credential", options: okta, method: "GET", headers: []string{token, "a"}, refused: true},
		{name: "okta, another credential", options: okta, method: "GET", headers: []string{token, "a", "Authorization", derivedSecret + "x"}, refused: true},
		{name: "okta, empty", options: okta, method: "GET", headers: []string{token, "", "Authorization", derivedSecret}, status: 400},
		{name: "okta, long", options: okta, method: "GET", headers: []string{token, long(513), "Authorization", derivedSecret}, status: 400},
		{name: "okta, no challenge", options: okta, method: "GET", headers: []string{"Authorization", derivedSecret}, none: true},
		{name: "adobe", options: adobe, method: "GET", headers: []string{"X-AdobeSign-ClientId", "CLIENT2"}, answer: map[string]string{"X-AdobeSign-ClientId": "CLIENT2"}},
		{name: "adobe, another id", options: adobe, method: "GET", headers: []string{"X-AdobeSign-ClientId", "CLIENT3"}, refused: true},
		{name: "adobe, two ids", options: adobe, method: "GET", headers: []string{"X-AdobeSign-ClientId", "CLIENT1", "X-AdobeSign-ClientId", "CLIENT2"}, refused: true},
		{name: "adobe, no id", options: adobe, method: "GET", none: true},
		{name: "head", options: signing.Options{Scheme: "trello", Secrets: []string{"s"}, PublicURL: derivedURL}, method: "HEAD"},
		{name: "head, mandrill", options: signing.Options{Scheme: "mandrill", Secrets: []string{"s"}, PublicURL: derivedURL}, method: "HEAD"},
		{name: "head, intercom", options: of("intercom"), method: "HEAD"},
		{name: "head, GET", options: of("intercom"), method: "GET", none: true},
		{name: "get probe", options: of("mailchimp"), method: "GET"},
		{name: "get probe, POST", options: of("mailchimp"), none: true},
		{name: "options", options: events, method: "OPTIONS", headers: []string{origin, "eventemitter.example.com", "WebHook-Request-Rate", "120"}, answer: map[string]string{"WebHook-Allowed-Origin": "eventemitter.example.com", "WebHook-Allowed-Rate": "*", "Allow": "POST"}},
		{name: "options, no rate", options: events, method: "OPTIONS", headers: []string{origin, "EventEmitter.example.com"}, answer: map[string]string{"WebHook-Allowed-Origin": "EventEmitter.example.com", "WebHook-Allowed-Rate": ""}},
		{name: "options, everyone", options: of("cloudevents", "allowed_origins", "*"), method: "OPTIONS", headers: []string{origin, "x.example"}, answer: map[string]string{"WebHook-Allowed-Origin": "*"}},
		{name: "options, another origin", options: events, method: "OPTIONS", headers: []string{origin, "evil.example.com"}, status: 403},
		{name: "options, nobody", options: of("cloudevents"), method: "OPTIONS", headers: []string{origin, "x"}, status: 403},
		{name: "options, event grid", options: grid, method: "OPTIONS", headers: []string{origin, "eventgrid.azure.net"}, answer: map[string]string{"WebHook-Allowed-Origin": "eventgrid.azure.net"}},
		{name: "options, event grid, another", options: grid, method: "OPTIONS", headers: []string{origin, "x"}, status: 403},
		{name: "options, empty", options: events, method: "OPTIONS", headers: []string{origin, ""}, status: 400},
		{name: "options, no origin", options: events, method: "OPTIONS", none: true},
	}
}

// postHandshakes come the way of events.
func postHandshakes() []handshakeCase {
	zoom, twitch, graph, grid := of("zoom"), of("twitch"), of("ms-graph"), of("azure-event-grid")
	asana, notion, monday, woo := of("asana", "armed", true), of("notion", "armed", true), of("monday"), of("woocommerce")
	mandrill := signing.Options{Scheme: "mandrill", Secrets: []string{"s3cret"}, PublicURL: "https://example.com/webhook"}
	discord := signing.Options{Scheme: "discord", Secrets: []string{discordKey}}
	ping := func(body, signature string) handshakeCase {
		return handshakeCase{options: discord, body: body, headers: []string{"X-Signature-Timestamp", "1610000000", "X-Signature-Ed25519", signature}}
	}
	const kind, verification = "Twitch-Eventsub-Message-Type", "webhook_callback_verification"
	cases := []handshakeCase{
		{name: "zoom", options: zoom, signed: true, body: `{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1654503849680,"event":"endpoint.url_validation"}`, json: `{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"ad6981da64b807929f91b46485fb52cd990318fe235fd1ded1dcf9dfce2eb265"}`},
		{name: "zoom, a forged event", options: zoom, signed: true, body: `{"payload":{"plainToken":"v0:1700000000:{}"},"event":"endpoint.url_validation"}`, status: 400},
		{name: "zoom, unsigned", options: zoom, headers: []string{"x-zm-request-timestamp", "1700000000", "x-zm-signature", "v0=00"}, body: `{"payload":{"plainToken":"a"},"event":"endpoint.url_validation"}`, refused: true},
		{name: "zoom, no token", options: zoom, signed: true, body: `{"payload":{},"event":"endpoint.url_validation"}`, status: 400},
		{name: "zoom, a number", options: zoom, signed: true, body: `{"payload":{"plainToken":1},"event":"endpoint.url_validation"}`, status: 400},
		{name: "zoom, long", options: zoom, signed: true, body: `{"payload":{"plainToken":"` + long(513) + `"},"event":"endpoint.url_validation"}`, status: 400},
		{name: "zoom, an event", options: zoom, signed: true, body: `{"event":"meeting.started"}`, none: true},
		{name: "twitch", options: twitch, signed: true, headers: []string{kind, verification}, body: `{"challenge":"pogchamp-kappa-360noscope-vohiyo"}`, text: "pogchamp-kappa-360noscope-vohiyo"},
		{name: "twitch, unsigned", options: twitch, headers: []string{kind, verification}, body: `{"challenge":"a"}`, refused: true},
		{name: "twitch, no challenge", options: twitch, signed: true, headers: []string{kind, verification}, body: `{}`, status: 400},
		{name: "twitch, revocation", options: twitch, signed: true, headers: []string{kind, "revocation"}, body: `{"challenge":"a"}`, none: true},
		{name: "graph", options: graph, query: "validationToken=Validation%3A+Testing+client%2Bapp%253d", text: "Validation: Testing client+app%3d"},
		{name: "graph, empty", options: graph, query: "validationToken=", status: 400},
		{name: "graph, long", options: graph, query: "validationToken=" + long(513), status: 400},
		{name: "graph, GET", options: graph, method: "GET", query: "validationToken=a", none: true},
		{name: "graph, an event", options: graph, body: `{"value":[]}`, none: true},
		{name: "event grid", options: grid, query: "code=" + derivedSecret, headers: []string{"aeg-event-type", "SubscriptionValidation"}, body: `[{"id":"1","data":{"validationCode":"512d38b6-c7b8-40c8-89fe-f46f9e9622b6","validationUrl":"https://x"}}]`, json: `{"validationResponse":"512d38b6-c7b8-40c8-89fe-f46f9e9622b6"}`},
		{name: "event grid, no secret", options: grid, headers: []string{"aeg-event-type", "SubscriptionValidation"}, body: `[{"data":{"validationCode":"1"}}]`, refused: true},
		{name: "event grid, no code", options: grid, query: "code=" + derivedSecret, headers: []string{"aeg-event-type", "SubscriptionValidation"}, body: `[]`, status: 400},
		{name: "event grid, an event", options: grid, query: "code=" + derivedSecret, headers: []string{"aeg-event-type", "Notification"}, body: `[]`, none: true},
		{name: "asana", options: asana, headers: []string{"X-Hook-Secret", "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"}, answer: map[string]string{"X-Hook-Secret": "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"}, surface: "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"},
		{name: "asana, not armed", options: of("asana"), headers: []string{"X-Hook-Secret", "evil"}, refused: true},
		{name: "asana, not armed but signed", options: of("asana"), signed: true, headers: []string{"X-Hook-Secret", "evil"}, body: `{"events":[]}`, refused: true},
		{name: "asana, empty", options: asana, headers: []string{"X-Hook-Secret", ""}, status: 400},
		{name: "asana, two secrets", options: asana, headers: []string{"X-Hook-Secret", "a", "X-Hook-Secret", "b"}, status: 400},
		{name: "asana, long", options: asana, headers: []string{"X-Hook-Secret", long(513)}, status: 400},
		{name: "asana, not printable", options: asana, headers: []string{"X-Hook-Secret", "a\u00e9"}, status: 400},
		{name: "asana, an event", options: asana, signed: true, body: `{"events":[]}`, none: true},
		{name: "notion", options: notion, body: `{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}`, surface: "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"},
		{name: "notion, not armed", options: of("notion"), body: `{"verification_token":"secret_x"}`, none: true},
		{name: "notion, more than the token", options: notion, body: `{"verification_token":"secret_x","type":"page.created"}`, none: true},
		{name: "notion, a number", options: notion, body: `{"verification_token":1}`, status: 400},
		{name: "notion, long", options: notion, body: `{"verification_token":"` + long(513) + `"}`, status: 400},
		{name: "notion, two tokens", options: notion, body: `{"verification_token":"a","verification_token":"b"}`, status: 400},
		{name: "monday", options: monday, body: `{ "challenge" : "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" }`, json: `{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}`},
		{name: "monday, a number", options: monday, body: `{"challenge":1}`, status: 400},
		{name: "monday, long", options: monday, body: `{"challenge":"` + long(513) + `"}`, status: 400},
		{name: "monday, an event", options: monday, body: `{"challenge":"a","event":{}}`, none: true},
		{name: "woo", options: woo, body: "webhook_id=123"},
		{name: "woo, more", options: woo, body: "webhook_id=123&x=1", none: true},
		{name: "woo, a line break", options: woo, body: "webhook_id=123\n", none: true},
		{name: "woo, 21 digits", options: woo, body: "webhook_id=" + strings.Repeat("1", 21), none: true},
		{name: "woo, GET", options: woo, method: "GET", body: "webhook_id=123", none: true},
		{name: "mandrill, its test key", options: mandrill, headers: []string{"Content-Type", form, "X-Mandrill-Signature", "w0287Pp/mlZMgekXJ4ut/zSzSwc="}, body: "mandrill_events=%5B%5D"},
		{name: "mandrill, our key", options: mandrill, signed: true, headers: []string{"Content-Type", form}, body: "mandrill_events=%5B%5D"},
		{name: "mandrill, no key", options: mandrill, headers: []string{"Content-Type", form, "X-Mandrill-Signature", "JOiao7SCu2gXj37t3Zi9NUDyTbk="}, body: "mandrill_events=%5B%5D", refused: true},
		{name: "mandrill, no signature", options: mandrill, headers: []string{"Content-Type", form}, body: "mandrill_events=%5B%5D", refused: true},
		{name: "mandrill, an event", options: mandrill, headers: []string{"Content-Type", form}, body: "mandrill_events=%5B%7B%7D%5D", none: true},
		{name: "mandrill, no form", options: mandrill, body: "mandrill_events=%5B%5D", none: true},
	}
	good := ping(`{"type":1}`, "50db4086e890c41c26b539f0dd95af18b4d8b03d2f4203964d238b4946943ee2cc6fd52c47ddb355d267086a8c4e299d1054d3d655dba6e0f237a779f634800d")
	good.name, good.options.SchemeOptions, good.json = "discord", opts("tolerance", "0s"), `{"type":1}`
	bad := ping(`{"type":1}`, strings.Repeat("0", 128))
	bad.name, bad.refused = "discord, a bad signature", true
	event := ping(`{"type":1,"event":{}}`, "00")
	event.name, event.none = "discord, an event", true
	command := ping(`{"type":2}`, "00")
	command.name, command.none = "discord, a command", true
	own := signing.Options{Scheme: "discord", Secrets: []string{pemOf(keysOnce().ed[0].Public())}, ForgeKey: keysOnce().ed[0]}
	return append(cases, good, bad, event, command,
		handshakeCase{name: "discord, events", options: own, signed: true, body: `{"version":1,"application_id":"1","type":0}`, status: 204},
		handshakeCase{name: "discord, type as text", options: own, signed: true, body: `{"type":"1"}`, none: true})
}

func TestHandshakes(t *testing.T) {
	t.Parallel()
	for _, c := range append(getHandshakes(), postHandshakes()...) {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.check(t) })
	}
}

// What armed is for: until the provider has handed over its secret, there is
// none; afterwards it is required.
func TestArmed(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"asana", "notion"} {
		armed := signing.Options{Scheme: scheme, SchemeOptions: opts("armed", true)}
		v, problems := signing.New(armed)
		if len(problems) > 0 {
			t.Fatalf("New(%s, armed) = %v", scheme, problems)
		}
		r := &signing.Request{Method: "POST", Header: http.Header{"X-Hook-Signature": {hmacHex("x")}, "X-Notion-Signature": {"sha256=" + hmacHex("x")}}, Body: []byte("x")}
		if proof, err := v.Verify(r); err == nil {
			t.Errorf("Verify(%s without secrets) = %+v, want a rejection", scheme, proof)
		}
		if _, problems := signing.New(signing.Options{Scheme: scheme}); len(problems) != 1 || problems[0].Path != "secrets" {
			t.Errorf("New(%s, not armed, no secrets) = %v, want a problem", scheme, problems)
		}
		if _, problems := signing.New(signing.Options{Scheme: scheme, SchemeOptions: opts("armed", "yes")}); len(problems) == 0 || problems[0].Path != "scheme_options.armed" {
			t.Errorf("New(%s, armed: yes) = %v, want a problem", scheme, problems)
		}
	}
}

// The confirmation of a topic: proven, allowed, and of Amazon's host alone.
func TestSNSConfirm(t *testing.T) {
	t.Parallel()
	const subscribe = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + snsTopic + "&Token=2336412f37"
	body := func(kind, topic, address string) string {
		return `{"Type":"` + kind + `","Message":"m","Token":"t","TopicArn":"` + topic + `","SubscribeURL":"` + address + `"}`
	}
	base := optionsFor(t, "aws-sns")
	silent := base
	silent.SchemeOptions = opts("topics", snsTopic, "keys", base.SchemeOptions["keys"], "confirm", false)
	for _, c := range []handshakeCase{
		{name: "subscribe", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic, subscribe), confirm: subscribe},
		{name: "unsubscribe", options: base, signed: true, body: body("UnsubscribeConfirmation", snsTopic, subscribe), confirm: subscribe},
		{name: "confirm: false", options: silent, signed: true, body: body("SubscriptionConfirmation", snsTopic, subscribe)},
		{name: "another topic", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic+"2", subscribe), refused: true},
		{name: "unsigned", options: base, body: body("SubscriptionConfirmation", snsTopic, subscribe), refused: true},
		{name: "another host", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic, "https://evil.example/?a=https://sns.us-east-1.amazonaws.com/"), status: 400},
		{name: "a user", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic, "https://sns.us-east-1.amazonaws.com@evil.example/"), status: 400},
		{name: "a port", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic, "https://sns.us-east-1.amazonaws.com:8443/"), status: 400},
		{name: "http", options: base, signed: true, body: body("SubscriptionConfirmation", snsTopic, "http://sns.us-east-1.amazonaws.com/"), status: 400},
		{name: "notification", options: base, signed: true, body: `{"Message":"m"}`, none: true},
		{name: "not JSON", options: base, body: "x", none: true},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.check(t) })
	}
}
