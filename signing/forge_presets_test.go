package signing_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

const (
	snsCert    = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem"
	snsTopic   = "arn:aws:sns:us-east-1:123456789012:orders"
	payPalCert = "https://api.paypal.com/v1/notifications/certs/CERT-1"
)

// selfSigned is a certificate in PEM.
func selfSigned(t testing.TB, key crypto.Signer, name string) string {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Unix(derivedNow, 0).Add(-time.Hour), NotAfter: time.Unix(derivedNow, 0).Add(time.Hour),
	}
	der, err := x509.CreateCertificate(nil, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// optionsFor are options that New takes for a scheme, with a private key for
// Forge where one is needed.
func optionsFor(t testing.TB, scheme string) signing.Options {
	t.Helper()
	k := keysOnce()
	o := signing.Options{Scheme: scheme, Secrets: []string{secretA}, PublicURL: derivedURL, SchemeOptions: map[string]any{}}
	set := func(key crypto.Signer, secrets []string, pairs ...any) {
		o.ForgeKey, o.Secrets, o.SchemeOptions = key, secrets, opts(pairs...)
	}
	switch scheme {
	case "airtable", "ms-teams":
		o.Secrets = []string{secretA[6:]}
	case "adyen", "adyen-platform", "authorize-net":
		o.Secrets = []string{hex.EncodeToString([]byte(secretA))}
	case "postmark", "basic":
		o.Secrets = []string{"user:pass"}
	case "braintree":
		set(nil, o.Secrets, "public_key", "pub")
	case "wise":
		set(k.rsa[0], []string{pemOf(k.rsa[0].Public())})
	case "sendgrid":
		set(k.ec[0], []string{base64SPKI(k.ec[0].Public())})
	case "discord":
		set(k.ed[0], []string{hex.EncodeToString(k.ed[0].Public().(ed25519.PublicKey))})
	case "telnyx":
		set(k.ed[0], []string{base64.StdEncoding.EncodeToString(k.ed[0].Public().(ed25519.PublicKey))})
	case "paypal":
		set(k.rsa[0], nil, "webhook_id", "1JE4291016473214C", "keys", opts(payPalCert, selfSigned(t, k.rsa[0], "x.paypal.com")), "fetch_keys", false)
	case "aws-sns":
		set(k.rsa[0], nil, "topics", []any{snsTopic}, "keys", opts(snsCert, selfSigned(t, k.rsa[0], "sns.amazonaws.com")), "fetch_keys", false)
	case "plaid":
		set(k.ec[0], nil, "keys", opts("kid-1", pemOf(k.ec[0].Public())), "fetch_keys", false)
	case "ebay":
		set(k.ec[0], nil, "verification_token", "token", "keys", opts("kid-1", pemOf(k.ec[0].Public())), "fetch_keys", false)
	case "google-pubsub":
		set(k.rsa[0], nil, "audience", derivedURL, "email", "push@p.iam.gserviceaccount.com", "keys", opts("kid-1", pemOf(k.rsa[0].Public())), "fetch_keys", false)
	case "adobe-sign":
		set(nil, nil, "client_ids", []any{"CLIENT1", "CLIENT2"})
	case "hmac":
		set(nil, o.Secrets, "header", "X-Sig")
	case "public-key":
		set(k.ed[0], []string{pemOf(k.ed[0].Public())}, "header", "X-Sig", "algorithm", "ed25519", "encoding", "base64")
	case "token":
		set(nil, o.Secrets, "header", "X-Token")
	case "jwt":
		set(nil, o.Secrets, "algorithms", []any{"HS256"}, "body_hash_claim", "https://example.com/body")
	case "rfc9421":
		set(nil, []string{secretA[6:]}, "algorithm", "hmac-sha256")
	case "none":
		o.Secrets = nil
	}
	return o
}

// sample is a request with the preset's sample body.
func sample(p signing.Preset) *signing.Request {
	body := p.Sample
	if body == "" {
		body = numberBody
	}
	return &signing.Request{Method: http.MethodPost, Path: "/in/abc", RawQuery: "a=1", Body: []byte(body), Now: time.Unix(derivedNow, 0)}
}

// TestForgeEveryScheme: what Forge makes is accepted by every scheme, with an
// id and without words that only a forger would write; another body is not,
// where the body is covered; nor is a request without its proof.
func TestForgeEveryScheme(t *testing.T) {
	t.Parallel()
	for _, p := range signing.Presets() {
		if p.Name == "mtls" { // its proof is in the connection
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o := optionsFor(t, p.Name)
			v, problems := signing.New(o)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			r := sample(p)
			if err := signing.Forge(o, r); err != nil {
				t.Fatalf("Forge = %v", err)
			}
			proof, err := v.Verify(r)
			if err != nil || proof.Class != p.Class && p.Name != "jwt" {
				t.Fatalf("Verify = %+v, %v, want class %s", proof, err, p.Class)
			}
			if proof.Skew < 0 || proof.Skew >= time.Second {
				t.Errorf("Verify: skew %s of a request signed now", proof.Skew)
			}
			checkDeclared(t, p, o, r)
			checkTampered(t, p, v, r)
		})
	}
}

// checkDeclared: the headers the preset says to keep are there.
func checkDeclared(t *testing.T, p signing.Preset, o signing.Options, r *signing.Request) {
	t.Helper()
	for _, name := range p.KeepHeaders(o) {
		if strings.EqualFold(name, "Authorization") {
			t.Errorf("KeepHeaders = %q: Authorization is never stored", name)
		}
	}
	for _, name := range p.CredentialHeaders(o) {
		if slices.Contains(p.KeepHeaders(o), name) {
			t.Errorf("%s is both kept and dropped", name)
		}
	}
	if p.Class == signing.Authenticated && !p.Generic && len(p.CredentialHeaders(o))+len(p.CredentialQuery(o)) == 0 {
		switch p.Name {
		case "mailgun", "mercado-pago", "ms-graph": // in the body, or a signature
		default:
			t.Errorf("class %s, but nothing is dropped from events", p.Class)
		}
	}
	again := &signing.Request{Method: r.Method, Path: r.Path, RawQuery: r.RawQuery, Header: r.Header.Clone(), Body: slices.Clone(r.Body), Now: r.Now}
	if err := signing.Forge(o, again); err != nil {
		t.Errorf("second Forge = %v", err)
	} else if diff := cmp.Diff(string(r.Body), string(again.Body)); diff != "" && p.Name != "aws-sns" && p.Name != "braintree" {
		t.Errorf("second Forge changed the body:\n%s", diff)
	}
}

func checkTampered(t *testing.T, p signing.Preset, v *signing.Verifier, r *signing.Request) {
	t.Helper()
	if p.Name == "none" {
		return
	}
	if p.Class == signing.Verified && p.Name != "aws-sns" && p.Name != "adyen" { // these sign values of the body
		changed := *r
		changed.Body = append(slices.Clone(r.Body), 'x')
		if proof, err := v.Verify(&changed); err == nil {
			t.Errorf("Verify(another body) = %+v, want a rejection", proof)
		}
	}
	bare := *r
	bare.Header = http.Header{"Content-Type": r.Header["Content-Type"]}
	bare.RawQuery, bare.Body = "", []byte("{}")
	if proof, err := v.Verify(&bare); err == nil {
		t.Errorf("Verify(no proof) = %+v, want a rejection", proof)
	}
	empty := *r
	empty.Header, empty.RawQuery, empty.Body = http.Header{}, "", nil
	if proof, err := v.Verify(&empty); err == nil {
		t.Errorf("Verify(nothing at all) = %+v, want a rejection", proof)
	}
}
