package signing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

const derivedBase64 = "0j2wOnorxGuNK8Z9hO1Xwgsi6qDIRQFsAXJ+fPLIG+Q="

// derivedOthers are presets that sign the derived body in one of a few ways:
// the header, and the value it must have.
var derivedOthers = map[string][2]string{
	"bitbucket": {"X-Hub-Signature", "sha256=" + derivedHex}, "jira": {"X-Hub-Signature", "sha256=" + derivedHex}, "notion": {"X-Notion-Signature", "sha256=" + derivedHex},
	"meta": {"X-Hub-Signature-256", "sha256=" + derivedHex}, "npm": {"x-npm-signature", "sha256=" + derivedHex},
	"intercom": {"X-Hub-Signature", "sha1=c3b56833fb0896196fc5b204d9f3c69edeb1c798"}, "vercel": {"x-vercel-signature", "c3b56833fb0896196fc5b204d9f3c69edeb1c798"},
	"gitea": {"X-Gitea-Signature", derivedHex}, "forgejo": {"X-Forgejo-Signature", derivedHex}, "gogs": {"X-Gogs-Signature", derivedHex}, "dropbox": {"X-Dropbox-Signature", derivedHex},
	"sentry": {"Sentry-Hook-Signature", derivedHex}, "razorpay": {"X-Razorpay-Signature", derivedHex}, "lemon-squeezy": {"X-Signature", derivedHex},
	"coinbase-commerce": {"X-CC-Webhook-Signature", derivedHex}, "asana": {"X-Hook-Signature", derivedHex}, "clickup": {"X-Signature", derivedHex}, "nylas": {"X-Nylas-Signature", derivedHex},
	"checkout-com": {"Cko-Signature", derivedHex}, "gocardless": {"Webhook-Signature", derivedHex}, "dwolla": {"X-Request-Signature-SHA-256", derivedHex},
	"chargify": {"X-Chargify-Webhook-Signature-Hmac-Sha-256", derivedHex}, "pagerduty": {"X-PagerDuty-Signature", "v0=00,v1=" + derivedHex}, "circleci": {"circleci-signature", "v1=" + derivedHex + ",v2=00"},
	"woocommerce": {"X-WC-Webhook-Signature", derivedBase64}, "xero": {"x-xero-signature", derivedBase64}, "line": {"x-line-signature", derivedBase64},
	"docusign": {"X-DocuSign-Signature-42", derivedBase64}, "quickbooks": {"intuit-signature", derivedBase64}, "heroku": {"Heroku-Webhook-Hmac-SHA256", derivedBase64},
	"x":        {"x-twitter-webhooks-signature", "sha256=" + derivedBase64},
	"calendly": {"Calendly-Webhook-Signature", "t=1700000000,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"},
	"mux":      {"Mux-Signature", "t=1700000000,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"},
	"shippo":   {"Shippo-Auth-Signature", "t=1700000000,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"},
	"tiktok":   {"TikTok-Signature", "t=1700000000,s=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"},
	// Only v0 of Coinbase is checked: what else stands there does not count.
	"coinbase-cdp": {"X-Hook0-Signature", "t=1700000000,v0=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef,h=x-a x-b,v1=00"},
	"buildkite":    {"X-Buildkite-Signature", "timestamp=1700000000,signature=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"},
	"netlify":      {"X-Webhook-Signature", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJuZXRsaWZ5Iiwic2hhMjU2IjoiMWJlODFlNGM3YzBlNDE5NDI2Nzc0ZDVjZTU3MjdhOTA4NzczNWQxM2JhYTI0Y2M4ZjI4YTUzOTFmYzA1Y2Q0ZiJ9.MSK5mryLaOsTUuKTutVnmpkUNp6EnIbBrXbExz584Mc"},
}

func TestDerivedVectorsOfPresets(t *testing.T) {
	t.Parallel()
	for scheme, header := range derivedOthers {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			p := published{scheme: scheme, secret: derivedSecret, body: derivedBody, url: derivedURL, now: derivedNow, headers: header[:]}
			p.check(t)
		})
	}
	for scheme, headers := range map[string][]string{
		"zoom":        {"x-zm-request-timestamp", "1700000000", "x-zm-signature", "v0=af51c390a046011b3bff03f9182d5491de32ea2d58bc46a9f7549f7c6d840eb2"},
		"customer-io": {"X-CIO-Timestamp", "1700000000", "X-CIO-Signature", "af51c390a046011b3bff03f9182d5491de32ea2d58bc46a9f7549f7c6d840eb2"},
		"gitlab":      {"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="},
		"finch":       {"Finch-Event-Id", "msg_test_0001", "Finch-Timestamp", "1700000000", "Finch-Signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="},
	} {
		secret := derivedSecret
		if strings.HasPrefix(headers[len(headers)-1], "v1,") {
			secret = derivedWhsec
		}
		p := published{scheme: scheme, secret: secret, body: derivedBody, now: derivedNow, headers: headers}
		t.Run(scheme, func(t *testing.T) { t.Parallel(); p.check(t) })
	}
	hexKey := published{
		scheme: "adyen-platform", secret: "3031323334353637383961626364656630313233343536373839616263646566", body: derivedBody, now: derivedNow,
		headers: []string{"HmacSignature", "ovZ3uEvDRZWrEbrR5Il64cOrCLVCIyp7ud8rt/D4NNI="},
	}
	hexKey.check(t)
}

// Mailgun's signature stands in the body.
func TestDerivedMailgun(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "mailgun", Secrets: []string{derivedSecret}})
	const signed = `{"signature":{"timestamp":"1700000000","token":"tok_0123456789","signature":"ede40c5e1ccd8631ef2985faf0bb75d8832da3fe33d9303eee511bcb03e6b627"},"event-data":{"id":"1"}}`
	for body, want := range map[string]bool{
		signed: true, strings.Replace(signed, "tok_0", "tok_1", 1): false, strings.Replace(signed, `"1700000000"`, `"1700000001"`, 1): false,
		strings.Replace(signed, `"token":"tok_0123456789",`, "", 1): false, strings.Replace(signed, "ede4", "EDE4", 1): true, `{"event-data":{"id":"1"}}`: false, "": false,
		strings.Replace(signed, `"token"`, `"token":"x","token"`, 1): false,
	} {
		proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: time.Unix(derivedNow, 0)})
		if (err == nil) != want || err == nil && proof.Class != signing.Authenticated {
			t.Errorf("Verify(%s) = %+v, %v, want ok %t", body, proof, err, want)
		}
	}
}

// Braintree's payload is the derived body in base64, its line break included.
func TestDerivedBraintree(t *testing.T) {
	t.Parallel()
	const payload = "eyJpZCI6ImV2dF90ZXN0XzAwMDEiLCJ0eXBlIjoidGVzdC5ldmVudCIsIm4iOjkwMDcxOTkyNTQ3NDA5OTMsInMiOiJjYWbDqSDwn5KpLzwmPiJ9"
	v, problems := signing.New(signing.Options{Scheme: "braintree", Secrets: []string{derivedSecret}, SchemeOptions: opts("public_key", "pub")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	escaped := strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D").Replace(payload)
	for body, want := range map[string]bool{
		"bt_signature=pub%7Cb8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=" + escaped:                       true,
		"bt_signature=x%7C00%26pub%7Cb8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=" + escaped:              true,
		"bt_signature=other%7Cb8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=" + escaped:                     false,
		"bt_signature=b8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=" + escaped:                             false,
		"bt_signature=pub%7Cb8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=" + escaped + "A":                 false,
		"bt_signature=pub%7Cb8d9d56002d0d0a2923c713a388dfaaf19ff1296&bt_payload=x&bt_payload=" + escaped:          false,
		"bt_signature=pub%7C90b165b936ee3d0b0978d055e7976864f3413fbc&bt_payload=20f9f8ed05f77439fe955c977e4c8a53": false, // the answer to a challenge
		"bt_payload=" + escaped: false,
	} {
		r := &signing.Request{Method: "POST", Header: http.Header{"Content-Type": {form}}, Body: []byte(body)}
		if proof, err := v.Verify(r); (err == nil) != want {
			t.Errorf("Verify(%s) = %+v, %v, want ok %t", body, proof, err, want)
		}
	}
}
