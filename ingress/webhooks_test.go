package ingress_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/signing"
)

// More of what people who receive webhooks ran into, by provider.

// delivery is a signed request of a provider.
func (s signer) delivery(t testing.TB, body string, headers ...string) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: http.MethodPost, Path: "/in/hook", Header: http.Header{}, Body: []byte(body), Now: time.Now()}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	s.sign(t, r)
	return r
}

// accepts sends a request and wants a 2xx.
func (w *world) accepts(t *testing.T, r *signing.Request) *http.Response {
	t.Helper()
	res, _ := w.sendSigned(t, r)
	if res.StatusCode/100 != 2 {
		t.Errorf("status %d, want 2xx; log:\n%s", res.StatusCode, w.logs)
	}
	return res
}

// "No signatures found matching", but only with accents, emoji or escapes:
// whoever decodes and encodes changes bytes.
func TestAccentsEmojiAndEscapesAreVerifiedAndCarriedAsSent(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"github", "stripe", "shopify", "slack"} {
		s := of(scheme)
		w := serve(t, sources(s.source))
		body := "{ \"id\":\"evt_1\",\"a\":\"é 😀 <b> \\u00e9 \\ud83d\\ude00 \\/ @\" ,\"b\":1.50e3}\r\n"
		w.accepts(t, s.delivery(t, body))
		if got := string(storedEvents(t, w.queen)[0].Body); got != body {
			t.Errorf("%s: carried %q, want the bytes that were sent", scheme, got)
		}
	}
}

// A TLS terminator rewrites scheme, host and port, so the URL that is signed
// is public_url; and since X-Forwarded-* may come from anyone, they must not
// choose it.
func TestTheSignedURLIsPublicURLWhateverProxiesSay(t *testing.T) {
	t.Parallel()
	s := of("twilio")
	s.source.PublicURL = "https://hooks.example.com/in/hook"
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	forwarded := []string{"X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http", "X-Forwarded-Port", "8080", "Forwarded", "host=evil.example"}
	w := serve(t, sources(s.source)) // its own address is http://127.0.0.1:<port>
	w.accepts(t, s.delivery(t, "CallSid=CA1&CallStatus=ringing", append(slices.Clone(form), forwarded...)...))
	evil := s
	evil.source.PublicURL = "http://evil.example:8080/in/hook"
	if res, _ := w.sendSigned(t, evil.delivery(t, "CallSid=CA2", append(form, forwarded...)...)); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("signed for the forwarded host: status %d, want 401", res.StatusCode)
	}
}

// Ids over 2^53 lose their last digits in a float.
func TestNumericIdsKeepTheirLastDigits(t *testing.T) {
	t.Parallel()
	s := of("github")
	s.source.TransactionID = "body:id"
	w := serve(t, sources(s.source))
	for _, id := range []string{"9007199254740993", "9007199254740992", "1.50e3"} {
		w.accepts(t, s.delivery(t, `{"id":`+id+`}`))
	}
	want := []string{"github:9007199254740993", "github:9007199254740992", "github:1.50e3"}
	if diff := cmp.Diff(want, ids(w.queen.Items())); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// Shopify's Event-Id is shared by all topics of one change: the webhook id is
// the delivery's.
func TestShopifyTopicsOfOneChangeAreDifferentEvents(t *testing.T) {
	t.Parallel()
	s := of("shopify")
	w := serve(t, sources(s.source))
	for _, topic := range []string{"orders/create", "orders/paid"} {
		w.accepts(t, s.delivery(t, `{"id":1}`, "X-Shopify-Event-Id", "same", "X-Shopify-Topic", topic, "X-Shopify-Webhook-Id", "id-of-"+topic))
	}
	again := s.delivery(t, `{"id":1}`, "X-Shopify-Event-Id", "same", "X-Shopify-Topic", "orders/paid", "X-Shopify-Webhook-Id", "id-of-orders/paid",
		"X-Shopify-Triggered-At", "2026-01-02T03:04:05Z")
	if res := w.accepts(t, again); res.Header.Get("Queen-Duplicate") != "1" {
		t.Error("a retry is a new event")
	}
	if diff := cmp.Diff([]string{"shopify:id-of-orders/create", "shopify:id-of-orders/paid"}, ids(w.queen.Items())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// SendGrid batches anew when it resends: only the id of an item tells.
func TestSendGridItemsAreStoredOnceHoweverTheyAreBatched(t *testing.T) {
	t.Parallel()
	s := sendGrid(t)
	w := serve(t, sources(s.source))
	item := func(n int) string { return fmt.Sprintf(`{"sg_event_id":"e%d","sg_message_id":"m","event":"open"}`, n) }
	for _, batch := range [][]int{{1, 2, 3}, {2, 3}, {3, 4}, {1}} {
		var items []string
		for _, n := range batch {
			items = append(items, item(n))
		}
		w.accepts(t, s.delivery(t, "["+strings.Join(items, ",\r\n")+"]"))
	}
	if diff := cmp.Diff([]string{"sendgrid:e1", "sendgrid:e2", "sendgrid:e3", "sendgrid:e4"}, ids(w.queen.Items())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Some ids are of the subscription: then the source names its own.
func TestTheSourcesOwnIdReplacesThePresets(t *testing.T) {
	t.Parallel()
	s := of("github")
	s.source.TransactionID, s.source.EventType = "body:object.id", "literal:order"
	w := serve(t, sources(s.source))
	w.accepts(t, s.delivery(t, `{"object":{"id":"o-1"}}`, "X-GitHub-Delivery", "d-1"))
	if res := w.accepts(t, s.delivery(t, `{"object":{"id":"o-1"}}`, "X-GitHub-Delivery", "d-2")); res.Header.Get("Queen-Duplicate") != "1" {
		t.Error("the same object under another delivery is a new event")
	}
	if e := storedEvents(t, w.queen)[0]; e.ID != "github:o-1" || e.Type != "order" {
		t.Errorf("event %s of type %s", e.ID, e.Type)
	}
}

// SNS sends JSON as text/plain: the Content-Type decides nothing.
func TestSNSSendsItsJSONAsText(t *testing.T) {
	t.Parallel()
	s := sns(t)
	w := serve(t, sources(s.source))
	w.accepts(t, s.delivery(t, `{"Message":"m","MessageId":"id-1"}`, "Content-Type", "text/plain; charset=UTF-8"))
	if got := ids(w.queen.Items()); len(got) != 1 || !strings.Contains(got[0], "id-1") {
		t.Errorf("events %v, want the one with the message's id", got)
	}
}

// HTTP/2 proxies lower the case of header names, and others raise it.
func TestHeaderNamesInAnyCase(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(github("gh", "s")))
	headers := signed("s", "1", "{}")
	for i, change := range []func(string) string{strings.ToLower, strings.ToUpper} {
		var lines []string
		for j := 0; j < len(headers); j += 2 {
			value := strings.Replace(headers[j+1], "1", fmt.Sprint(i), min(1, len(headers[j+1])%2))
			if headers[j] != "X-GitHub-Delivery" {
				value = headers[j+1]
			}
			lines = append(lines, change(headers[j])+": "+value)
		}
		if res := w.raw(t, 1, request("POST /in/gh", "{}", lines...))[0]; res.StatusCode != 200 {
			t.Errorf("%v: status %d, want 200", lines, res.StatusCode)
		}
	}
	for _, h := range storedEvents(t, w.queen)[1].Headers {
		if h.Name != strings.ToLower(h.Name) {
			t.Errorf("header %s is stored in upper case", h.Name)
		}
	}
}

// The old GitLab design has a plaintext token and no id in the body.
func TestGitLabsIdempotencyKeyIsTheId(t *testing.T) {
	t.Parallel()
	s := of("gitlab-token")
	w := serve(t, sources(s.source))
	key := []string{"Idempotency-Key", "k-1", "X-Gitlab-Event", "Push Hook", "X-Gitlab-Webhook-UUID", "u"}
	w.accepts(t, s.delivery(t, `{"a":1}`, key...))
	w.accepts(t, s.delivery(t, `{"a":1}`, key...))
	if diff := cmp.Diff([]string{"gitlab-token:k-1"}, ids(w.queen.Items())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, h := range storedEvents(t, w.queen)[0].Headers {
		if h.Value == "s3cret" {
			t.Error("the token is in the event")
		}
	}
}

// BigCommerce names the field that marks a duplicate: hash.
func TestBigCommercesHashMarksADuplicate(t *testing.T) {
	t.Parallel()
	s := of("bigcommerce")
	w := serve(t, sources(s.source))
	body := `{"store_id":"11111","producer":"stores/abcde","scope":"store/order/statusUpdated","data":{"id":173331},"hash":"3f9ea420af83450d7ef9f78b08c8af25b2213637","created_at":%d}`
	w.accepts(t, s.delivery(t, fmt.Sprintf(body, 1561482670)))
	if n := len(w.queen.Items()); n != 1 || !strings.Contains(w.queen.Items()[0].TransactionID, "3f9ea420") {
		t.Errorf("%d events, %v; want one by its hash", n, ids(w.queen.Items()))
	}
}

// Xero's "intent to receive" sends bad signatures on purpose: 401 and nothing
// else, and GoCardless wants 498.
func TestRefusalsAsTheProviderWantsThem(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]struct {
		status int
		body   string
	}{
		"xero":       {http.StatusUnauthorized, ""},
		"gocardless": {498, ""},
	} {
		s := of(scheme)
		w := serve(t, sources(s.source))
		good := s.delivery(t, `{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4nd0mt3xt"}`)
		bad := *good
		bad.Body = append([]byte(" "), good.Body...)
		res, body := w.sendSigned(t, &bad)
		if res.StatusCode != want.status || scheme == "xero" && (body != want.body || res.Header.Get("Content-Type") != "") {
			t.Errorf("%s refused %d %q as %q, want %d %q", scheme, res.StatusCode, body, res.Header.Get("Content-Type"), want.status, want.body)
		}
		if res, body := w.sendSigned(t, good); res.StatusCode != 200 || body != "" {
			t.Errorf("%s accepted %d %q, want 200 without a body", scheme, res.StatusCode, body)
		}
		// An empty batch is accepted, and nothing is queued.
		if n := len(w.queen.Items()); n != 0 {
			t.Errorf("%s: %d events, want none", scheme, n)
		}
	}
}

// A client that is given a user and password shows them only when it is asked.
func TestAPasswordIsAskedFor(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]string{"basic": `Basic realm="webhooks", charset="UTF-8"`, "postmark": `Basic realm="webhooks", charset="UTF-8"`, "github": ""} {
		w := serve(t, sources(bridge.Source{Name: "hook", Scheme: scheme, Secrets: []bridge.Secret{"user:pass"}}))
		res, _ := w.post(t, "/in/hook", "{}")
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != http.StatusUnauthorized || got != want {
			t.Errorf("%s: status %d, WWW-Authenticate %q, want 401 with %q", scheme, res.StatusCode, got, want)
		}
	}
}

// Answers that depend on the request are the same for a duplicate, and
// respond replaces them.
func TestAnswersThatDependOnTheRequest(t *testing.T) {
	t.Parallel()
	s := discord(t)
	w := serve(t, sources(s.source))
	command := s.delivery(t, `{"id":"1","application_id":"a","type":2}`)
	for range 2 {
		if res, body := w.sendSigned(t, command); res.StatusCode != 200 || body != `{"type":5}` || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("answered %d %q as %q, want {\"type\":5}", res.StatusCode, body, res.Header.Get("Content-Type"))
		}
	}
	res, _ := w.sendSigned(t, s.delivery(t, `{"version":1,"application_id":"a","type":1,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2026-01-02T03:04:05","data":{"id":"2"}}}`))
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Content-Type") == "" {
		t.Errorf("an event: %d with Content-Type %q, want 204 with one", res.StatusCode, res.Header.Get("Content-Type"))
	}
	s.source.Respond = bridge.Respond{Status: 202}
	w.must(t, w.Update([]bridge.Source{s.source}))
	if res, body := w.sendSigned(t, s.delivery(t, `{"id":"3","application_id":"a","type":2}`)); res.StatusCode != 202 || body != "" {
		t.Errorf("respond: %d %q, want 202 and nothing", res.StatusCode, body)
	}
}

// Adobe disables a webhook whose answers lack its client id, duplicates too.
func TestHeadersOfAnswers(t *testing.T) {
	t.Parallel()
	s := of("adobe-sign", "client_ids", []any{"CLIENT1"})
	s.source.Secrets = nil
	w := serve(t, sources(s.source))
	r := s.delivery(t, `{"webhookNotificationId":"n-1","event":"AGREEMENT_CREATED"}`, "X-AdobeSign-ClientId", "CLIENT1")
	for range 2 {
		if res := w.accepts(t, r); res.Header.Get("X-AdobeSign-ClientId") != "CLIENT1" {
			t.Error("the answer lacks the client id")
		}
	}
}

// TestMetaChangesAreOneEventEach: the split of Meta is no path.
func TestMetaChangesAreOneEventEach(t *testing.T) {
	t.Parallel()
	s := of("meta")
	body := `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[` +
		`{"field":"messages","value":{"messages":[{"id":"wamid.1"}]}},{"field":"messages","value":{"statuses":[{"id":"wamid.2","status":"read"}]}}]},` +
		`{"id":"2","messaging":[{"message":{"mid":"m_3"}}]}]}`
	w := serve(t, sources(s.source))
	w.accepts(t, s.delivery(t, body))
	var got []string
	for _, e := range storedEvents(t, w.queen) {
		got = append(got, e.ID+" "+e.Type)
	}
	want := []string{"meta:8:messages,7:wamid.1 messages", "meta:8:statuses,7:wamid.2,4:read messages", "meta:7:message,3:m_3 messaging"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.source.Split = bridge.SplitNone
	w = serve(t, sources(s.source))
	w.accepts(t, s.delivery(t, body))
	if n := len(w.queen.Items()); n != 1 {
		t.Errorf("split: none stored %d events, want 1", n)
	}
}

// A batch over the bound is refused whole, whichever way it is split.
func TestTooManyItemsAre413(t *testing.T) {
	t.Parallel()
	s := sendGrid(t)
	w := serve(t, sources(s.source))
	for n, want := range map[int]int{2000: 200, 2001: 413, 10001: 413} {
		body := "[" + strings.TrimSuffix(strings.Repeat(`{"sg_event_id":"e"},`, n), ",") + "]"
		if res, _ := w.sendSigned(t, s.delivery(t, body)); res.StatusCode != want {
			t.Errorf("%d items: status %d, want %d", n, res.StatusCode, want)
		}
	}
}

// noKeys cannot fetch anything.
type noKeys struct{}

func (noKeys) Fetch(r signing.KeyRequest) ([]byte, error) {
	return nil, &signing.FetchError{URL: r.URL, Err: errAway}
}

// A key that cannot be had is our trouble: 503, and never quarantine, which
// would take a genuine event for a forged one.
func TestAKeyThatCannotBeFetchedIs503(t *testing.T) {
	t.Parallel()
	s := sns(t)
	signer := s // signs by a key the source does not pin
	s.source.SchemeOptions = map[string]any{"topics": []any{snsTopic}}
	s.source.OnInvalid = bridge.OnInvalidQuarantine
	c := sources(s.source)
	c.Fetcher = noKeys{}
	reg := prometheus.NewRegistry()
	c.Metrics = reg
	w := serve(t, c)
	for name, r := range map[string]*signing.Request{
		"event": signer.delivery(t, `{"Message":"m"}`), "handshake": confirmation(t, signer, subscribeURL),
	} {
		if res, _ := w.sendSigned(t, r); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d, Retry-After %q; want 503 with one", name, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d events stored, want none", n)
	}
	if got := metric(t, reg, "queenbridge_ingress_rejections_total", "reason", "key_unavailable"); got != 2 {
		t.Errorf("%v rejections for lack of a key, want 2", got)
	}
}

// The wait for Queen ends half a second before the provider hangs up.
func TestTheProvidersDeadlineBoundsTheWait(t *testing.T) {
	t.Parallel()
	s := of("sentry") // 1 s
	c := sources(s.source)
	c.Queen = &queentest.Shelf{Before: blockUntil(make(chan struct{}, 8), nil)}
	w := serve(t, c)
	start := time.Now()
	res, _ := w.sendSigned(t, s.delivery(t, `{"a":1}`))
	if took := time.Since(start); res.StatusCode != http.StatusServiceUnavailable || took < 400*time.Millisecond || took > 3*time.Second { // enqueue_timeout would be 5 s
		t.Errorf("answered %d after %v, want 503 after 0.5 s", res.StatusCode, took)
	}
}

// A burst of zero is a second's worth.
func TestARateWithoutABurstLetsASecondsWorthPass(t *testing.T) {
	t.Parallel()
	src := open("a")
	src.Rate = bridge.SourceRate{PerSecond: 5}
	now := time.Unix(1767323045, 0)
	c := sources(src)
	c.Now = func() time.Time { return now }
	s, _ := newServer(t, c)
	passed := 0
	for i := range 20 {
		if call(s.Handler(), "/in/a", "{}", "X-Id", fmt.Sprint(i)).Code == 200 {
			passed++
		}
	}
	if passed < 5 || passed > 6 {
		t.Errorf("%d of 20 passed at once, want 5", passed)
	}
}

// An address and a rule may be IPv4 or IPv4 in IPv6, each way.
func TestMappedAddressesAreWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"127.0.0.0/8", "::ffff:127.0.0.0/104", "127.0.0.1", "::ffff:127.0.0.1"} {
		src := open("a")
		src.AllowIPs = []string{rule}
		c := sources(src)
		c.Settings.TrustedProxies = []string{"10.0.0.0/8"}
		s, _ := newServer(t, c)
		for _, remote := range []string{"127.0.0.1:1", "[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1%eth0]:1"} {
			rec := callFrom(s.Handler(), remote, "/in/a", "{}")
			if rec.Code != 200 {
				t.Errorf("rule %s, from %s: status %d, want 200", rule, remote, rec.Code)
			}
		}
		if rec := callFrom(s.Handler(), "[::ffff:10.0.0.1]:1", "/in/a", "{}"); rec.Code != 403 {
			t.Errorf("rule %s, from 10.0.0.1: status %d, want 403", rule, rec.Code)
		}
	}
}
