package signing_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// testKeys are private keys made once for all tests.
type testKeys struct {
	ed  [2]ed25519.PrivateKey
	ec  [2]*ecdsa.PrivateKey
	rsa [2]*rsa.PrivateKey
}

var keysOnce = sync.OnceValue(func() *testKeys {
	var k testKeys
	for i := range 2 {
		_, k.ed[i], _ = ed25519.GenerateKey(rand.Reader)
		k.ec[i], _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		k.rsa[i], _ = rsa.GenerateKey(rand.Reader, 2048)
	}
	return &k
})

// spki is a public key in DER.
func spki(public crypto.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	return der
}

func pemOf(public crypto.PublicKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(public)}))
}

// plainSubject is a bare header; pairSubject one of k=v pairs.
func plainSubject(scheme, header, mark, encoding string) subject {
	return subject{name: scheme, options: signing.Options{Scheme: scheme}, header: header, mark: mark, encoding: encoding}
}

func pairSubject(scheme, header, stampKey, tag string, unit int64) subject {
	s := plainSubject(scheme, header, tag+"=", "hex")
	s.stampKey, s.unit, s.other = stampKey, unit, []string{tag + "x=", "v9="}
	s.many = func(signature, wrong string, n int) string {
		return stampKey + "=" + strconv.FormatInt(derivedNow*unit, 10) + "," + tagged(",", tag+"=")(signature, wrong, n)
	}
	return s
}

func (s subject) stamped(header string, unit int64, tolerance time.Duration) subject {
	s.stampHeader, s.unit, s.tolerance = header, unit, tolerance
	return s
}

func (s subject) stampedAs(form, header string, tolerance time.Duration) subject {
	s.stampForm = form
	return s.stamped(header, 1, tolerance)
}

func (s subject) noWindow() subject {
	s.loose = true
	return s
}

func (s subject) hexKeys() subject {
	s.secrets = [2]string{hex.EncodeToString([]byte(secretA)), strings.ToUpper(hex.EncodeToString([]byte(secretB)))}
	return s
}

func (s subject) base64Keys() subject {
	s.secrets = [2]string{secretA[6:], secretB[6:]}
	return s
}

func (s subject) withURL() subject {
	s.options.PublicURL = derivedURL
	return s
}

func (s subject) keyPair(format func(crypto.PublicKey) string, private ...crypto.Signer) subject {
	for i, p := range private {
		s.signers[i], s.secrets[i] = p, format(p.Public())
	}
	return s
}

func base64SPKI(p crypto.PublicKey) string { return base64.StdEncoding.EncodeToString(spki(p)) }

// presetSubjects puts every preset whose signature stands in a header under
// the negative set; those of subjects are not repeated.
func presetSubjects() []subject {
	k := keysOnce()
	trio := func(scheme, id, stamp, signature string) subject {
		_ = id
		s := plainSubject(scheme, signature, "v1,", "base64").stamped(stamp, 1, 0)
		s.other, s.many = []string{"v0,", "v2,", "v1a,"}, tagged(" ", "v1,")
		return s
	}
	webhook := func(scheme string) subject {
		return trio(scheme, "webhook-id", "webhook-timestamp", "webhook-signature")
	}
	svix := func(scheme string) subject { return trio(scheme, "svix-id", "svix-timestamp", "svix-signature") }
	tag := func(scheme, header, name string) subject {
		s := plainSubject(scheme, header, name+"=", "hex")
		s.other, s.many = []string{"v0=", "v2="}, tagged(",", name+"=")
		return s
	}
	mandrill := plainSubject("mandrill", "X-Mandrill-Signature", "", "base64").withURL()
	mandrill.contentType, mandrill.body, mandrill.float = form, "mandrill_events=%5B9007199254740993%5D", "mandrill_events=%5B9007199254740992%5D"
	plivo := plainSubject("plivo", "X-Plivo-Signature-V3", "", "base64").withURL()
	plivo.contentType, plivo.body, plivo.float, plivo.query = form, "n=9007199254740993&s=caf%C3%A9", "n=9007199254740992&s=caf%C3%A9", "z=1&a=%C3%A9"
	plivo.many = tagged(",", "")
	mercado := pairSubject("mercado-pago", "x-signature", "ts", "v1", 1).noWindow()
	mercado.query, mercado.uncovered = "data.id=ABC&type=payment", true
	paddle := pairSubject("paddle", "Paddle-Signature", "ts", "h1", 1)
	paddle.many = func(signature, wrong string, n int) string {
		return "ts=1700000000;" + tagged(";", "h1=")(signature, wrong, n)
	}
	persona := pairSubject("persona", "Persona-Signature", "t", "v1", 1)
	persona.many = func(signature, wrong string, n int) string {
		return strings.Repeat("t=1700000000,v1="+wrong+" ", n-1) + "t=1700000000,v1=" + signature
	}
	sanity := pairSubject("sanity", "sanity-webhook-signature", "t", "v1", 1000).noWindow()
	sanity.encoding = "base64url"
	recurly := plainSubject("recurly", "recurly-signature", ",", "hex")
	recurly.many = func(signature, wrong string, n int) string {
		return "1700000000000" + strings.Repeat(","+wrong, n-1) + "," + signature
	}
	workos := pairSubject("workos", "WorkOS-Signature", "t", "v1", 1000)
	workos.tolerance = 180 * time.Second
	calendly := pairSubject("calendly", "Calendly-Webhook-Signature", "t", "v1", 1)
	calendly.tolerance = 180 * time.Second
	return []subject{
		svix("clerk"), svix("resend"), webhook("openai"), webhook("supabase"), webhook("render"), webhook("brex").base64Keys(), webhook("replicate"),
		webhook("incident-io"), webhook("increase"), trio("finch", "Finch-Event-Id", "Finch-Timestamp", "Finch-Signature").base64Keys(), webhook("polar"), webhook("bigcommerce"),
		plainSubject("bitbucket", "X-Hub-Signature", "sha256=", "hex"), plainSubject("gitea", "X-Gitea-Signature", "", "hex"),
		plainSubject("forgejo", "X-Forgejo-Signature", "", "hex"), plainSubject("gogs", "X-Gogs-Signature", "", "hex"),
		plainSubject("linear", "Linear-Signature", "", "hex").stamped("Linear-Timestamp", 1000, 60*time.Second), plainSubject("jira", "X-Hub-Signature", "sha256=", "hex"),
		tag("circleci", "circleci-signature", "v1"), plainSubject("vercel", "x-vercel-signature", "", "hex"), plainSubject("heroku", "Heroku-Webhook-Hmac-SHA256", "", "base64"),
		plainSubject("npm", "x-npm-signature", "sha256=", "hex"), pairSubject("buildkite", "X-Buildkite-Signature", "timestamp", "signature", 1),
		plainSubject("sentry", "Sentry-Hook-Signature", "", "hex"), tag("pagerduty", "X-PagerDuty-Signature", "v1"), plainSubject("notion", "X-Notion-Signature", "sha256=", "hex"),
		plainSubject("asana", "X-Hook-Signature", "", "hex"), plainSubject("trello", "X-Trello-Webhook", "", "base64").withURL(),
		plainSubject("airtable", "X-Airtable-Content-MAC", "hmac-sha256=", "hex").base64Keys(), plainSubject("clickup", "X-Signature", "", "hex"),
		plainSubject("woocommerce", "X-WC-Webhook-Signature", "", "base64"), plainSubject("square", "x-square-hmacsha256-signature", "", "base64").withURL(),
		plainSubject("adyen-platform", "HmacSignature", "", "base64").hexKeys(), paddle, plainSubject("lemon-squeezy", "X-Signature", "", "hex"),
		plainSubject("coinbase-commerce", "X-CC-Webhook-Signature", "", "hex"), pairSubject("coinbase-cdp", "X-Hook0-Signature", "t", "v0", 1),
		plainSubject("razorpay", "X-Razorpay-Signature", "", "hex"), plainSubject("paystack", "x-paystack-signature", "", "hex"),
		plainSubject("authorize-net", "X-ANET-Signature", "sha512=", "hex").hexKeys(), plainSubject("checkout-com", "Cko-Signature", "", "hex"),
		plainSubject("gocardless", "Webhook-Signature", "", "hex"), plainSubject("dwolla", "X-Request-Signature-SHA-256", "", "hex"), recurly,
		plainSubject("chargify", "X-Chargify-Webhook-Signature-Hmac-Sha-256", "", "hex"), plainSubject("quickbooks", "intuit-signature", "", "base64"), mercado,
		plainSubject("wise", "X-Signature-SHA256", "", "base64").keyPair(pemOf, k.rsa[0], k.rsa[1]), plainSubject("xero", "x-xero-signature", "", "base64"),
		plainSubject("sendgrid", "X-Twilio-Email-Event-Webhook-Signature", "", "base64").stamped("X-Twilio-Email-Event-Webhook-Timestamp", 1, 0).noWindow().keyPair(base64SPKI, k.ec[0], k.ec[1]),
		mandrill, plainSubject("intercom", "X-Hub-Signature", "sha1=", "hex"),
		plainSubject("hubspot", "X-HubSpot-Signature-v3", "", "base64").withURL().stamped("X-HubSpot-Request-Timestamp", 1000, 0),
		plainSubject("zendesk", "X-Zendesk-Webhook-Signature", "", "base64").stampedAs("rfc3339", "X-Zendesk-Webhook-Signature-Timestamp", 0),
		plainSubject("zoom", "x-zm-signature", "v0=", "hex").stamped("x-zm-request-timestamp", 1, 0),
		plainSubject("discord", "X-Signature-Ed25519", "", "hex").stamped("X-Signature-Timestamp", 1, 0).
			keyPair(func(p crypto.PublicKey) string { return hex.EncodeToString(p.(ed25519.PublicKey)) }, k.ed[0], k.ed[1]),
		plainSubject("meta", "X-Hub-Signature-256", "sha256=", "hex"), plainSubject("line", "x-line-signature", "", "base64"),
		plainSubject("twitch", "Twitch-Eventsub-Message-Signature", "sha256=", "hex").stampedAs("rfc3339", "Twitch-Eventsub-Message-Timestamp", 600*time.Second),
		plainSubject("x", "x-twitter-webhooks-signature", "sha256=", "base64"), calendly, plainSubject("typeform", "Typeform-Signature", "sha256=", "base64"),
		plainSubject("docusign", "X-DocuSign-Signature-1", "", "base64"), plainSubject("dropbox", "X-Dropbox-Signature", "", "hex"),
		plainSubject("box", "BOX-SIGNATURE-PRIMARY", "", "base64").stampedAs("rfc3339", "BOX-DELIVERY-TIMESTAMP", 600*time.Second), workos,
		plainSubject("front", "X-Front-Signature", "", "base64").stamped("X-Front-Request-Timestamp", 1000, 0),
		plainSubject("klaviyo", "Klaviyo-Signature", "", "hex").stampedAs("imf", "Klaviyo-Timestamp", 0).noWindow(),
		plainSubject("customer-io", "X-CIO-Signature", "", "hex").stamped("X-CIO-Timestamp", 1, 0), plainSubject("nylas", "X-Nylas-Signature", "", "hex"),
		plainSubject("contentful", "x-contentful-signature", "", "hex").withURL().stamped("x-contentful-timestamp", 1000, 30*time.Second),
		plainSubject("webflow", "x-webflow-signature", "", "hex").stamped("x-webflow-timestamp", 1000, 0),
		plainSubject("telnyx", "telnyx-signature-ed25519", "", "base64").stamped("telnyx-timestamp", 1, 0).
			keyPair(func(p crypto.PublicKey) string { return base64.StdEncoding.EncodeToString(p.(ed25519.PublicKey)) }, k.ed[0], k.ed[1]),
		plivo, pairSubject("mux", "Mux-Signature", "t", "v1", 1), pairSubject("shippo", "Shippo-Auth-Signature", "t", "v1", 1), pairSubject("tiktok", "TikTok-Signature", "t", "s", 1),
		persona, pairSubject("cloudflare-stream", "Webhook-Signature", "time", "sig1", 1), sanity, plainSubject("linkedin", "X-LI-Signature", "", "hex"),
		plainSubject("deel", "x-deel-signature", "", "hex"), plainSubject("ms-teams", "Authorization", "HMAC ", "base64").base64Keys(),
		publicKeySubject("ed25519", "hex", pemOf, k.ed[0], k.ed[1]), publicKeySubject("ecdsa-p256-sha256", "base64", pemOf, k.ec[0], k.ec[1]),
		publicKeySubject("ecdsa-p256-sha1", "base64url", base64SPKI, k.ec[0], k.ec[1]), publicKeySubject("rsa-sha256", "base64", base64SPKI, k.rsa[0], k.rsa[1]),
		publicKeySubject("rsa-sha1", "hex", pemOf, k.rsa[0], k.rsa[1]),
	}
}

func publicKeySubject(algorithm, encoding string, format func(crypto.PublicKey) string, private ...crypto.Signer) subject {
	s := subject{name: "public-key " + algorithm, header: "X-Sig", encoding: encoding}.stamped("X-Time", 1, 0).keyPair(format, private...)
	s.options = signing.Options{Scheme: "public-key", SchemeOptions: opts("header", "X-Sig", "algorithm", algorithm, "encoding", encoding,
		"message", "{timestamp}.{body}", "timestamp", opts("header", "X-Time"))}
	return s
}
