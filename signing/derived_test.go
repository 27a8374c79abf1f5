package signing_test

import (
	"testing"
)

// One body, one secret, every scheme: the values were computed with other
// tools for the schemes whose providers publish no vector.
const (
	derivedBody   = `{"id":"evt_test_0001","type":"test.event","n":9007199254740993,"s":"café 💩/<&>"}`
	derivedSecret = "qk_test_secret"
	derivedWhsec  = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	derivedURL    = "https://hooks.example.com/in/abc"
	derivedNow    = 1700000000
	derivedHex    = "d23db03a7a2bc46b8d2bc67d84ed57c20b22eaa0c845016c01727e7cf2c81be4"
	derivedForm   = "AccountSid=AC123&Body=caf%C3%A9+%26+%2B1&From=%2B14155550100&MessageSid=SM123&NumMedia=0"
)

var derivedVectors = []published{
	{name: "standard-webhooks", scheme: "standard-webhooks", secret: derivedWhsec, headers: []string{"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="}},
	{name: "svix", scheme: "svix", secret: derivedWhsec, headers: []string{"svix-id", "msg_test_0001", "svix-timestamp", "1700000000", "svix-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="}},
	{name: "svix, the other trio", scheme: "svix", secret: derivedWhsec, headers: []string{"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="}},
	{name: "gitlab", scheme: "gitlab", secret: derivedWhsec, headers: []string{"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="}},
	{name: "github", scheme: "github", headers: []string{"X-Hub-Signature-256", "sha256=" + derivedHex}},
	{name: "stripe", scheme: "stripe", headers: []string{"Stripe-Signature", "t=1700000000,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"}},
	{name: "stripe, unknown entries and spaces", scheme: "stripe", headers: []string{"Stripe-Signature", "t=1700000000, v1=zz,v0=9a, nonsense,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef,v2=1"}},
	{name: "slack", scheme: "slack", headers: []string{"X-Slack-Request-Timestamp", "1700000000", "X-Slack-Signature", "v0=af51c390a046011b3bff03f9182d5491de32ea2d58bc46a9f7549f7c6d840eb2"}},
	{name: "shopify", scheme: "shopify", headers: []string{"X-Shopify-Hmac-SHA256", "0j2wOnorxGuNK8Z9hO1Xwgsi6qDIRQFsAXJ+fPLIG+Q="}},
	{name: "shopify events", scheme: "shopify", headers: []string{"Shopify-Hmac-Sha256", "0j2wOnorxGuNK8Z9hO1Xwgsi6qDIRQFsAXJ+fPLIG+Q="}},
	{name: "twilio form", scheme: "twilio", query: "src=1", body: derivedForm, headers: []string{"Content-Type", form, "X-Twilio-Signature", "z4jOQQjQXG+nTpr6HJg6BxVT+6c="}},
	{name: "twilio json", scheme: "twilio", query: "src=1&bodySHA256=1be81e4c7c0e419426774d5ce5727a9087735d13baa24cc8f28a5391fc05cd4f", headers: []string{"X-Twilio-Signature", "sMnZzBbIpKcbzM5fFe6su7SUR2g="}},

	{name: "polar", preset: "polar", scheme: "hmac", options: opts("header", "webhook-signature", "format", "tags", "signature_key", "v1", "encoding", "base64", "message", "{header:webhook-id}.{timestamp}.{body}", "timestamp", opts("header", "webhook-timestamp")), headers: []string{"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1a,xx v1,YJJ1SQuLux3Jp+TZHF+WC4L2yTQ+apY4M/B/ImQU2p8="}},
	{name: "standard webhooks as hmac", scheme: "hmac", secret: derivedWhsec, options: opts("header", "webhook-signature", "format", "tags", "signature_key", "v1", "encoding", "base64", "key", "whsec", "message", "{header:webhook-id}.{timestamp}.{body}", "timestamp", opts("header", "webhook-timestamp")), headers: []string{"webhook-id", "msg_test_0001", "webhook-timestamp", "1700000000", "webhook-signature", "v1,s4HxVueXpl0GaIKygs9/IvWmW24G4rLiRfKGMi8nMZg="}},
	{name: "github legacy", scheme: "hmac", options: opts("header", "X-Hub-Signature", "prefix", "sha1=", "digest", "sha1"), headers: []string{"X-Hub-Signature", "sha1=c3b56833fb0896196fc5b204d9f3c69edeb1c798"}},
	{name: "paystack", preset: "paystack", scheme: "hmac", options: opts("header", "x-paystack-signature", "digest", "sha512"), headers: []string{"x-paystack-signature", "3ee2d6bcbffb84c9316756a27ef351efdaa87a000b68b98b566b24730b4e83d58779525a488bfb9ab16d1260bacb38aa7c6cf2a4a0f49d30838d8bdfbd21acd6"}},
	{name: "typeform", preset: "typeform", scheme: "hmac", options: opts("header", "Typeform-Signature", "prefix", "sha256=", "encoding", "base64"), headers: []string{"Typeform-Signature", "sha256=0j2wOnorxGuNK8Z9hO1Xwgsi6qDIRQFsAXJ+fPLIG+Q="}},
	{name: "workos", preset: "workos", scheme: "hmac", options: opts("header", "WorkOS-Signature", "format", "pairs", "timestamp_key", "t", "signature_key", "v1", "message", "{timestamp}.{body}", "timestamp", opts("unit", "ms")), headers: []string{"WorkOS-Signature", "t=1700000000123, v1=59833a442e30dc0c76f026a5324d9a7a4bebf55037989f34df72ac85fa9f80aa"}},
	{name: "persona", preset: "persona", scheme: "hmac", options: opts("header", "Persona-Signature", "format", "groups", "timestamp_key", "t", "signature_key", "v1", "message", "{timestamp}.{body}"), headers: []string{"Persona-Signature", "t=1700000000,v1=00 t=1700000000,v1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"}},
	{name: "recurly", preset: "recurly", scheme: "hmac", options: opts("header", "recurly-signature", "format", "positional", "message", "{timestamp}.{body}", "timestamp", opts("unit", "ms")), headers: []string{"recurly-signature", "1700000000123,00,59833a442e30dc0c76f026a5324d9a7a4bebf55037989f34df72ac85fa9f80aa"}},
	{name: "list", scheme: "hmac", options: opts("header", "X-Sig", "format", "list", "prefix", "sha256="), headers: []string{"X-Sig", "sha256=00, sha256=" + derivedHex}},
	{name: "paddle", preset: "paddle", scheme: "hmac", options: opts("header", "Paddle-Signature", "format", "pairs", "delimiter", ";", "timestamp_key", "ts", "signature_key", "h1", "message", "{timestamp}:{body}"), headers: []string{"Paddle-Signature", "ts=1700000000;h1=4b4cac650900591baa5b635e534a97f9d8b38d962659642222284d8155dbbd65"}},
	{name: "zendesk", preset: "zendesk", scheme: "hmac", options: opts("header", "X-Zendesk-Webhook-Signature", "encoding", "base64", "message", "{timestamp}{body}", "timestamp", opts("header", "X-Zendesk-Webhook-Signature-Timestamp", "unit", "rfc3339")), headers: []string{"X-Zendesk-Webhook-Signature-Timestamp", "2023-11-14T22:13:20Z", "X-Zendesk-Webhook-Signature", "U14No63fW2kQLxQxoh1QWSIb4SZ2ZyRxRUYlsOAvjMo="}},
	{name: "twitch", preset: "twitch", scheme: "hmac", options: opts("header", "Twitch-Eventsub-Message-Signature", "prefix", "sha256=", "message", "{header:Twitch-Eventsub-Message-Id}{timestamp}{body}", "timestamp", opts("header", "Twitch-Eventsub-Message-Timestamp", "unit", "rfc3339")), headers: []string{"Twitch-Eventsub-Message-Id", "msg_test_0001", "Twitch-Eventsub-Message-Timestamp", "2023-11-14T22:13:20Z", "Twitch-Eventsub-Message-Signature", "sha256=40920f7650414dbc45b017570d6541056c782fb15c7e8f142d2400e0a9560263"}},
	{name: "hubspot", preset: "hubspot", scheme: "hmac", query: "src=1", options: opts("header", "X-HubSpot-Signature-v3", "encoding", "base64", "message", "{method}{url}{body}{timestamp}", "timestamp", opts("header", "X-HubSpot-Request-Timestamp", "unit", "ms")), headers: []string{"X-HubSpot-Request-Timestamp", "1700000000123", "X-HubSpot-Signature-v3", "VKuYnOsdL/Yb0BqeBsr18kDX1OXxBfyNPv8fXE7hHxE="}},
	{name: "square", preset: "square", scheme: "hmac", query: "src=1", options: opts("header", "x-square-hmacsha256-signature", "encoding", "base64", "message", "{url}{body}"), headers: []string{"x-square-hmacsha256-signature", "Y6Pvs6LNk0BcOMO1OFeD38DxyQ03reKeqZNvVw6/7EI="}},
	{name: "trello", preset: "trello", scheme: "hmac", query: "src=1", options: opts("header", "X-Trello-Webhook", "encoding", "base64", "digest", "sha1", "message", "{body}{url}"), headers: []string{"X-Trello-Webhook", "Ymx901B0d4ULyJo4v3yD36qJLm0="}},
	{name: "box", preset: "box", scheme: "hmac", options: opts("headers", []any{"BOX-SIGNATURE-PRIMARY", "BOX-SIGNATURE-SECONDARY"}, "encoding", "base64", "message", "{body}{timestamp}", "timestamp", opts("header", "BOX-DELIVERY-TIMESTAMP", "unit", "rfc3339")), headers: []string{"BOX-SIGNATURE-VERSION", "1", "BOX-SIGNATURE-ALGORITHM", "HmacSHA256", "BOX-DELIVERY-TIMESTAMP", "2023-11-14T14:13:20-08:00", "BOX-SIGNATURE-SECONDARY", "M7z+Bxx2+1ebqtVKbaNKokZbAuUfH7pWml1mF6slG7A="}},
	{name: "klaviyo", preset: "klaviyo", scheme: "hmac", options: opts("header", "Klaviyo-Signature", "message", "{body}{timestamp}", "timestamp", opts("header", "Klaviyo-Timestamp", "unit", "imf")), headers: []string{"Klaviyo-Timestamp", "Tue, 14 Nov 2023 22:13:20 GMT", "Klaviyo-Signature", "072a39e034c5cad19ae15eaef30b53cb792a6c398bbd253d4d2d00c6db80ed5f"}},
	{name: "cloudflare stream", preset: "cloudflare-stream", scheme: "hmac", options: opts("header", "Webhook-Signature", "format", "pairs", "timestamp_key", "time", "signature_key", "sig1", "message", "{timestamp}.{body}"), headers: []string{"Webhook-Signature", "time=1700000000,sig1=9a9d8a307f32b1273aa4cdb1b864d4e9ee7eab536d9b6f247d3836820ecfffef"}},
	{name: "ms teams", preset: "ms-teams", scheme: "hmac", secret: derivedWhsec[6:], options: opts("header", "Authorization", "prefix", "HMAC ", "encoding", "base64", "key", "base64"), headers: []string{"Authorization", "HMAC ovZ3uEvDRZWrEbrR5Il64cOrCLVCIyp7ud8rt/D4NNI="}},
	{name: "twilio form as hmac", scheme: "hmac", query: "src=1", body: derivedForm, options: opts("header", "X-Twilio-Signature", "encoding", "base64", "digest", "sha1", "message", "{url}{form}"), headers: []string{"Content-Type", form, "X-Twilio-Signature", "z4jOQQjQXG+nTpr6HJg6BxVT+6c="}},
}

func TestDerivedVectors(t *testing.T) {
	t.Parallel()
	for _, p := range derivedVectors {
		if p.secret == "" {
			p.secret = derivedSecret
		}
		if p.body == "" {
			p.body = derivedBody
		}
		p.url, p.now = derivedURL, derivedNow
		t.Run(p.name, func(t *testing.T) { t.Parallel(); p.check(t); p.checkPreset(t) })
	}
}
