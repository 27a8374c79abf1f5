package signing_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/queenbridge/queenbridge/signing"
)

const (
	rfc8032Seed   = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
	rfc8032Public = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	v1aSignature  = "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw=="
)

func decode64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSignerVectors(t *testing.T) {
	t.Parallel()
	at := time.Unix(1614265330, 999_999_999)
	const id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	long := "whsk_" + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(decode64(t, rfc8032Seed)))
	tests := []struct {
		scheme  string
		secrets []string
		want    string
	}{
		{"v1", []string{standard1}, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{"v1a", []string{"whsk_" + rfc8032Seed}, v1aSignature},
		{"v1a", []string{long, rfc8032Seed}, v1aSignature + " " + v1aSignature},
	}
	for _, tt := range tests {
		s, err := signing.NewSigner(tt.scheme, tt.secrets)
		if err != nil {
			t.Errorf("NewSigner(%s) = %v", tt.scheme, err)
			continue
		}
		if got := s.Sign(id, at, []byte(body)); got != tt.want {
			t.Errorf("Sign(%s) = %q, want %q", tt.scheme, got, tt.want)
		}
	}
}

func TestSignerErrors(t *testing.T) {
	t.Parallel()
	mixed := append(decode64(t, rfc8032Seed), decode64(t, rfc8032Seed)...)
	for _, tt := range []struct {
		scheme  string
		secrets []string
		want    string
	}{
		{"v2", []string{standard1}, "must be v1 or v1a"},
		{"v1", nil, "at least one secret"},
		{"v1", []string{standard1, ""}, "secrets[1]: is empty"},
		{"v1", []string{"whsk_" + rfc8032Seed}, "secrets[0]: is an asymmetric key"},
		{"v1a", []string{"whpk_" + rfc8032Public}, "secrets[0]: is a public key"},
		{"v1a", []string{"whsk_AAAA"}, "secrets[0]: is no Ed25519 key: the base64 of 32 (seed) or 64 bytes"},
		{"v1a", []string{"whsk_!"}, "secrets[0]: is not base64"},
		{"v1a", []string{"whsk_" + base64.StdEncoding.EncodeToString(mixed)}, "its public half does not belong"},
	} {
		if _, err := signing.NewSigner(tt.scheme, tt.secrets); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewSigner(%s, %q) = %v, want %q", tt.scheme, tt.secrets, err, tt.want)
		}
	}
}

// TestStandardWebhooksLibrary: the reference library accepts what we sign,
// and we accept what it signs.
func TestStandardWebhooksLibrary(t *testing.T) {
	t.Parallel()
	theirs, err := standardwebhooks.NewWebhook(secretA)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := signing.NewSigner("v1", []string{secretB, secretA})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, body := range []string{derivedBody, "", "\x00\xff", strings.Repeat("x", 100_000)} {
		r := &signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now}
		if err := signing.Forge(signing.Options{Scheme: "standard-webhooks", Secrets: []string{secretA}}, r); err != nil {
			t.Fatal(err)
		}
		if err := theirs.Verify(r.Body, r.Header); err != nil {
			t.Errorf("library: Verify(forged, %d bytes) = %v", len(body), err)
		}
		id := r.Header.Get("webhook-id")
		r.Header.Set("webhook-signature", ours.Sign(id, now, r.Body))
		if err := theirs.Verify(r.Body, r.Header); err != nil {
			t.Errorf("library: Verify(signed, %d bytes) = %v", len(body), err)
		}
		signature, err := theirs.Sign(id, now, r.Body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("webhook-signature", signature)
		v, _ := signing.New(signing.Options{Scheme: "standard-webhooks", Secrets: []string{secretA}})
		if _, err := v.Verify(r); err != nil {
			t.Errorf("Verify(signed by the library, %d bytes) = %v", len(body), err)
		}
	}
}

// TestVersionPinning: the form of a secret decides which version counts, so
// that nobody chooses the weaker one for us.
func TestVersionPinning(t *testing.T) {
	t.Parallel()
	now := time.Unix(derivedNow, 0)
	sign := func(scheme, secret string) string {
		s, err := signing.NewSigner(scheme, []string{secret})
		if err != nil {
			t.Fatal(err)
		}
		return s.Sign("m", now, []byte("x"))
	}
	v1, v1a := sign("v1", secretA), sign("v1a", "whsk_"+rfc8032Seed)
	public := "whpk_" + rfc8032Public
	// The public key is no secret: an HMAC made with it must not count.
	confused := sign("v1", rfc8032Public)
	tests := []struct {
		secrets   []string
		signature string
		secret    int // -1 = refused
	}{
		{[]string{secretA}, v1, 0},
		{[]string{secretA}, v1a, -1},
		{[]string{secretA}, v1a + " " + v1, 0},
		{[]string{public}, v1a, 0},
		{[]string{public}, v1, -1},
		{[]string{public}, confused, -1},
		{[]string{public}, "v1a," + strings.TrimPrefix(confused, "v1,"), -1},
		{[]string{public}, v1a[:len(v1a)-4] + "AA==", -1},
		{[]string{public, secretA}, v1, 1},
		{[]string{secretA, public}, v1 + " " + v1a, 0},
		{[]string{secretA, public}, "v1a," + v1[3:], -1},
		{[]string{secretA, public}, "v1," + v1a[4:], -1},
	}
	for _, tt := range tests {
		v, problems := signing.New(signing.Options{Scheme: "standard-webhooks", Secrets: tt.secrets})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		h := http.Header{"Webhook-Id": {"m"}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Signature": {tt.signature}}
		proof, err := v.Verify(&signing.Request{Method: "POST", Header: h, Body: []byte("x"), Now: now})
		if (err == nil) != (tt.secret >= 0) || err == nil && proof.Secret != tt.secret {
			t.Errorf("Verify(%d secrets, %s…) = %+v, %v, want secret %d", len(tt.secrets), tt.signature[:4], proof, err, tt.secret)
		}
	}
}
