package signing_test

import (
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

// TestEverySchemeSaysHowItIsProven: a person can compare each with the
// provider's page.
func TestEverySchemeSaysHowItIsProven(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"github":   "X-Hub-Signature-256: sha256= HMAC-SHA256 hex over {body}",
		"stripe":   "Stripe-Signature: t=,v1= HMAC-SHA256 hex over {timestamp}.{body}",
		"svix":     "svix-signature: v1, HMAC-SHA256 base64 over {header:svix-id}.{timestamp}.{body}, time svix-timestamp",
		"telegram": "X-Telegram-Bot-Api-Secret-Token equals a secret; nothing is signed",
		"calendly": "Calendly-Webhook-Signature: t=,v1= HMAC-SHA256 hex over {timestamp}.{body}, window 180s",
		"discord":  "X-Signature-Ed25519: Ed25519 hex over {timestamp}{body}, time X-Signature-Timestamp",
		"vercel":   "x-vercel-signature: HMAC-SHA1 hex over {body}",
		"klaviyo":  "Klaviyo-Signature: HMAC-SHA256 hex over {body}{timestamp}, time Klaviyo-Timestamp (imf), no window",
		"none":     "nothing",
	}
	for _, p := range signing.Presets() {
		got := p.ProvenBy()
		if w, ok := want[p.Name]; ok && got != w {
			t.Errorf("ProvenBy(%s) = %q, want %q", p.Name, got, w)
		}
		if got == "" || strings.HasSuffix(got, " over ") || strings.HasPrefix(got, ":") || strings.Contains(got, "HMAC- ") {
			t.Errorf("ProvenBy(%s) = %q", p.Name, got)
		}
		if (p.SecretForm() == "") != takesNone(p.Name) {
			t.Errorf("SecretForm(%s) = %q", p.Name, p.SecretForm())
		}
	}
}

func takesNone(scheme string) bool {
	switch scheme {
	case "paypal", "aws-sns", "google-pubsub", "adobe-sign", "mtls", "none":
		return true
	}
	return false
}
