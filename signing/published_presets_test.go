package signing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

const (
	sendGridKey  = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	sendGridBody = `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]` + "\r\n"
	hubSpotV1    = `[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]`
	hubSpotKey   = "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy"
	discordKey   = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664"
	contentful64 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	contentful1  = `{"sys":{"id":"5KsDBWseXY6QegucYAoacS","type":"Entry"},"fields":{"title":{"en-US":"Hello, World!"}}}`
)

// customVectors are published for schemes that no generic verifier covers.
var customVectors = []published{
	{name: "openai", scheme: "openai", secret: "whsec_RdvaYFYUXuIFuEbvZHwMfYFhUf7aMYjYcmM24+Aj40c=", now: 1750861210, body: openAI, headers: []string{"webhook-id", "wh_685c059ae39c8190af8c71ed1022a24d", "webhook-timestamp", "1750861210", "webhook-signature", "v1,gUAg4R2hWouRZqRQG4uJypNS8YK885G838+EHb4nKBY="}},
	{name: "sendgrid", scheme: "sendgrid", secret: sendGridKey, now: 1600112502, body: sendGridBody, headers: []string{"X-Twilio-Email-Event-Webhook-Timestamp", "1600112502", "X-Twilio-Email-Event-Webhook-Signature", "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="}},
	{name: "discord", scheme: "discord", secret: discordKey, now: 1610000000, body: `{"type":1}`, headers: []string{"X-Signature-Timestamp", "1610000000", "X-Signature-Ed25519", "50db4086e890c41c26b539f0dd95af18b4d8b03d2f4203964d238b4946943ee2cc6fd52c47ddb355d267086a8c4e299d1054d3d655dba6e0f237a779f634800d"}},
	{name: "discord as public-key", scheme: "public-key", secret: discordKey, options: opts("header", "X-Signature-Ed25519", "algorithm", "ed25519", "message", "{timestamp}{body}", "timestamp", opts("header", "X-Signature-Timestamp")), now: 1610000000, body: `{"type":1}`, headers: []string{"X-Signature-Timestamp", "1610000000", "X-Signature-Ed25519", "50db4086e890c41c26b539f0dd95af18b4d8b03d2f4203964d238b4946943ee2cc6fd52c47ddb355d267086a8c4e299d1054d3d655dba6e0f237a779f634800d"}},
	{name: "hubspot v1", scheme: "hubspot", secret: hubSpotKey, url: "https://www.example.com/webhook_uri", options: opts("versions", []any{"v3", "v1"}), body: hubSpotV1, headers: []string{"X-HubSpot-Signature-Version", "v1", "X-HubSpot-Signature", "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de"}},
	{name: "hubspot v2 GET", scheme: "hubspot", secret: hubSpotKey, url: "https://www.example.com/webhook_uri", options: opts("versions", []any{"v2"}), method: "GET", headers: []string{"X-HubSpot-Signature-Version", "v2", "X-HubSpot-Signature", "eee2dddcc73c94d699f5e395f4b9d454a069a6855fbfa152e91e88823087200e"}},
	{name: "hubspot v2 POST", scheme: "hubspot", secret: hubSpotKey, url: "https://www.example.com/webhook_uri", options: opts("versions", []any{"v1", "v2"}), body: `{"example_field":"example_value"}`, headers: []string{"X-HubSpot-Signature", "9569219f8ba981ffa6f6f16aa0f48637d35d728c7e4d93d0d52efaa512af7900"}},
	{name: "circleci docs 3", scheme: "circleci", secret: "hunter123", body: "an-important-request-payload", headers: []string{"circleci-signature", "v1=9be2242094a9a8c00c64306f382a7f9d691de910b4a266f67bd314ef18ac49fa"}},
	{name: "circleci docs 4", scheme: "circleci", secret: "secret", body: "foo", headers: []string{"circleci-signature", "v1=773ba44693c7553d6ee20f61ea5d2757a9a4f4a44d2841ae4e95b52e4cd62db4"}},
	{name: "razorpay 2", scheme: "razorpay", secret: "123456", body: "{c:1, d:2}", headers: []string{"X-Razorpay-Signature", "58fd9fac909b57d776606e9313e83a26a9e67a3488b9ca7259134e09f4badfb1"}},
	{name: "mandrill", scheme: "mandrill", secret: "test-webhook", url: "https://example.com/webhook", body: "mandrill_events=%5B%5D", headers: []string{"Content-Type", form, "X-Mandrill-Signature", "w0287Pp/mlZMgekXJ4ut/zSzSwc="}},
	{name: "contentful toolkit", scheme: "contentful", secret: contentful64, url: "https://example.com/trigger/SW5zdGFuY2VGbG93Q29uZmlnOjE=", now: 1767225600, body: contentful1, headers: []string{
		"Content-Type", "application/vnd.contentful.management.v1+json", "X-Contentful-Topic", "ContentManagement.Entry.publish", "x-contentful-timestamp", "1767225600000",
		"x-contentful-signed-headers", "content-type,x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic", "x-contentful-signature", "8dec81505760a10b542fbc36d3aa0a772b11f759eca7b2351daaf5bba8c7c6f1",
	}},
	{name: "contentful toolkit, query", scheme: "contentful", secret: contentful64, url: "https://example.com/trigger/abc", query: "foo=bar baz&x=1", now: 1767225600, body: contentful1, headers: []string{
		"x-contentful-webhook-name", " My Hook ", "x-contentful-timestamp", "1767225600000",
		"x-contentful-signed-headers", "x-contentful-signed-headers,x-contentful-timestamp,x-contentful-webhook-name", "x-contentful-signature", "c8c83deb1a865012752f66594e6228056c826fd7227a70361b3a304e124555ec",
	}},
}

func TestPublishedVectorsOfPresets(t *testing.T) {
	t.Parallel()
	for _, p := range customVectors {
		t.Run(p.name, func(t *testing.T) { t.Parallel(); p.check(t) })
	}
}

// The plain hashes of HubSpot count only where they are listed, and a v3
// signature that is there decides alone.
func TestHubSpotVersions(t *testing.T) {
	t.Parallel()
	v1 := map[string]string{"X-Hubspot-Signature": "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de"}
	for _, tt := range []struct {
		versions []any
		headers  map[string]string
		want     bool
	}{
		{nil, v1, false}, {[]any{"v3"}, v1, false}, {[]any{"v2"}, v1, false}, {[]any{"v1"}, v1, true}, {[]any{"v3", "v1"}, v1, true},
		{[]any{"v1"}, map[string]string{"X-Hubspot-Signature": v1["X-Hubspot-Signature"], "X-Hubspot-Signature-Version": "v2"}, false},
		{[]any{"v3", "v1"}, map[string]string{"X-Hubspot-Signature": v1["X-Hubspot-Signature"], "X-Hubspot-Signature-V3": "AAAA", "X-Hubspot-Request-Timestamp": "1700000000000"}, false},
		{[]any{"v1"}, map[string]string{}, false},
	} {
		o := signing.Options{Scheme: "hubspot", Secrets: []string{hubSpotKey}, PublicURL: "https://www.example.com/webhook_uri"}
		if tt.versions != nil {
			o.SchemeOptions = opts("versions", tt.versions)
		}
		v, problems := signing.New(o)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		r := &signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(hubSpotV1), Now: time.Unix(derivedNow, 0)}
		for name, value := range tt.headers {
			r.Header.Set(name, value)
		}
		if proof, err := v.Verify(r); (err == nil) != tt.want {
			t.Errorf("Verify(versions %v, %v) = %+v, %v, want ok %t", tt.versions, tt.headers, proof, err, tt.want)
		}
	}
	if _, problems := signing.New(signing.Options{Scheme: "hubspot", Secrets: []string{"s"}, PublicURL: derivedURL, SchemeOptions: opts("versions", []any{"v4"})}); len(problems) != 1 {
		t.Errorf("New(versions v4) = %v, want one problem", problems)
	}
}

// HubSpot decodes some escapes of the URL before it signs.
func TestHubSpotDecodedURL(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "hubspot", Secrets: []string{"s"}, PublicURL: derivedURL}
	v, _ := signing.New(o)
	for query, signed := range map[string]string{"a=%3A%2F%20": "a=:/%20", "a=%26%3d%3Ab": "a=&=:b", "a=%5B": "a=%5B"} {
		r := &signing.Request{Method: "POST", RawQuery: signed, Body: []byte("x"), Now: time.Unix(derivedNow, 0)}
		if err := signing.Forge(o, r); err != nil {
			t.Fatal(err)
		}
		r.RawQuery = query
		if _, err := v.Verify(r); err != nil {
			t.Errorf("Verify(%s signed as %s) = %v", query, signed, err)
		}
		r.RawQuery += "%20"
		if _, err := v.Verify(r); err == nil {
			t.Errorf("Verify(%s) was accepted", r.RawQuery)
		}
	}
}

// adyenBody is a batch of items; %s is the additionalData.
const adyenBody = `{"live":"false","notificationItems":[%s]}`

func adyenItemOf(merchantReference, value, success, signature string) string {
	return fmt.Sprintf(`{"NotificationRequestItem":{"pspReference":"pspReference","originalReference":"originalReference","merchantAccountCode":"merchantAccount","merchantReference":%q,"amount":{"value":%s,"currency":"EUR"},"eventCode":"EVENT","success":%q,"additionalData":{"hmacSignature":%q}}}`,
		merchantReference, value, success, signature)
}

// TestAdyenItems: the SDK's and the documents' items, and that every item
// must be signed.
func TestAdyenItems(t *testing.T) {
	t.Parallel()
	const signature = "ipnxGCaUZ4l8TUW75a71/ghd2Fe5ffvX0pV4TLTntIc="
	sdk := adyenItemOf("reference", "1000", "true", signature)
	docs := `{"NotificationRequestItem":{"pspReference":"7914073381342284","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true","additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="}}}`
	v, problems := signing.New(signing.Options{Scheme: "adyen", Secrets: []string{
		"DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00", "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for items, want := range map[string]int{
		sdk: 0, docs: 1, sdk + "," + docs: 1, sdk + "," + sdk: 0,
		"": -1, sdk + "," + strings.Replace(docs, "1130", "1131", 1): -1, strings.Replace(docs, "AUTH", "XXXX", 1) + "," + sdk: -1,
		strings.Replace(sdk, "true", "false", 1): -1, strings.Replace(sdk, `"reference"`, `["reference"]`, 1): -1, sdk + ",{}": -1,
		strings.Replace(sdk, "hmacSignature", "other", 1): -1,
		// An empty value that is given one afterwards, beside a second empty one.
		strings.Replace(docs, `"eventCode"`, `"originalReference":"a","originalReference":"b","eventCode"`, 1): -1,
		strings.Replace(docs, `"eventCode"`, `"originalReference":null,"eventCode"`, 1):                        1,
		strings.Replace(sdk, "1000", "1000.0", 1):                                                              -1,
	} {
		proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{}, Body: fmt.Appendf(nil, adyenBody, items)})
		if (err == nil) != (want >= 0) || err == nil && proof.Secret != want {
			t.Errorf("Verify(%s) = %+v, %v, want secret %d", items, proof, err, want)
		}
	}
	for _, body := range []string{"", "[]", "{}", `{"notificationItems":{}}`, "x"} {
		if proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(body)}); err == nil {
			t.Errorf("Verify(%s) = %+v, want a rejection", body, proof)
		}
	}
}

// Microsoft Graph: every notification must show the secret.
func TestGraphItems(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "ms-graph", Secrets: []string{"new", "old"}})
	for states, want := range map[string]int{
		`"new"`: 0, `"old"`: 1, `"new","old"`: 1, `"new","x"`: -1, `"x","new"`: -1, `"new",null`: -1, `"new",["new"]`: -1, ``: -1, `"ne"`: -1, `"new "`: -1,
	} {
		var items []string
		var list []json.RawMessage
		if err := json.Unmarshal([]byte("["+states+"]"), &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			items = append(items, `{"id":"1","clientState":`+string(s)+`}`)
		}
		body := `{"value":[` + strings.Join(items, ",") + `]}`
		proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(body)})
		if (err == nil) != (want >= 0) || err == nil && (proof.Secret != want || proof.Class != signing.Authenticated) {
			t.Errorf("Verify(%s) = %+v, %v, want secret %d", body, proof, err, want)
		}
	}
}
