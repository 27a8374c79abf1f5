package signing_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// TestSchemeOptions: what each scheme takes besides secrets, and what New says
// where it is wrong. The words of a problem are not the point: its path is.
func TestSchemeOptions(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	public := pemOf(k.rsa[0].Public())
	keys := opts("k", public)
	caPEM := pemCert(newAuthority(t).certificate.Raw)
	tests := []struct {
		scheme  string
		secrets []string
		options map[string]any
		paths   string // of the problems, in order
	}{
		{"paypal", nil, opts("webhook_id", "1"), ""},
		{"paypal", nil, nil, "scheme_options.webhook_id"},
		{"paypal", []string{"s"}, opts("webhook_id", "1"), "secrets"},
		{"paypal", nil, opts("webhook_id", "1", "fetch_keys", false), "scheme_options.keys"},
		{"paypal", nil, opts("webhook_id", "1", "keys", opts("https://evil.example/x", public)), ""}, // never looked up
		{"paypal", nil, opts("webhook_id", "1", "keys", opts("u", "x")), "scheme_options.keys.u"},
		{"paypal", nil, opts("webhook_id", "1", "keys", opts("u", pemOf(k.ec[0].Public()))), "scheme_options.keys.u"},
		{"paypal", nil, opts("webhook_id", "1", "keys", "x"), "scheme_options.keys"},
		{"paypal", nil, opts("webhook_id", "1", "keys", opts("u", 1)), "scheme_options.keys.u"},
		{"paypal", nil, opts("webhook_id", "1", "fetch_keys", "no"), "scheme_options.fetch_keys"},
		{"paypal", nil, opts("webhook_id", "1", "tolerance", "5m"), "scheme_options.tolerance"},
		{"aws-sns", nil, nil, "scheme_options.topics"},
		{"aws-sns", nil, opts("topics", []any{}), "scheme_options.topics"},
		{"aws-sns", nil, opts("topics", []any{snsTopic}, "confirm", "false"), ""},
		{"aws-sns", nil, opts("topics", snsTopic, "confirm", 1), "scheme_options.confirm"},
		{"plaid", nil, opts("keys", keys), "scheme_options.keys.k"}, // RSA
		{"plaid", []string{"s"}, opts("client_id", "c", "tolerance", "10m"), ""},
		{"plaid", []string{""}, opts("client_id", "c"), "secrets[0]"},
		{"plaid", nil, nil, ""},
		{"ebay", nil, opts("verification_token", "t"), ""},
		{"ebay", nil, opts("verification_tokn", "t"), "scheme_options.verification_tokn"},
		{"braintree", []string{"s"}, nil, "scheme_options.public_key"},
		{"braintree", nil, opts("public_key", "p"), "secrets"},
		{"adobe-sign", nil, nil, "scheme_options.client_ids"},
		{"google-pubsub", nil, nil, "scheme_options.audience scheme_options.email"},
		{"meta", []string{"s"}, opts("verify_token", ""), "scheme_options.verify_token"},
		{"okta", []string{"s"}, opts("header", "X Y"), "scheme_options.header"},
		{"azure-event-grid", []string{"s"}, opts("query", "sig", "allowed_origins", []any{"a", "b"}), ""},
		{"cloudevents", []string{"s"}, opts("allowed_origins", []any{1}), "scheme_options.allowed_origins[0]"},
		{"hubspot", []string{"s"}, opts("versions", []any{"v3", "v0"}), "scheme_options.versions[1]"},
		{"hubspot", []string{"s"}, opts("versions", "v1", "tolerance", "1m"), ""},
		{"vonage", []string{"s"}, opts("tolerance", "1m"), ""},
		{"monday", []string{"s"}, opts("tolerance", "1m"), "scheme_options.tolerance"},
		{"github", []string{"s"}, opts("tolerance", "1m"), "scheme_options.tolerance"},
		{"adyen", []string{"xyz"}, nil, "secrets[0]"},
		{"wise", []string{"x"}, nil, "secrets[0]"},
		{"wise", []string{pemOf(k.ec[0].Public())}, nil, "secrets[0]"},
		{"discord", []string{discordKey[1:]}, nil, "secrets[0]"},
		{"discord", []string{base64SPKI(k.ed[0].Public()), pemOf(k.ed[1].Public()), strings.ToUpper(discordKey)}, nil, ""},
		{"sendgrid", []string{strings.ReplaceAll(pemOf(k.ec[0].Public()), "\n", `\n`)}, nil, ""},
		{"sendgrid", []string{"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----"}, nil, "secrets[0]"},
		{"sendgrid", []string{"-----BEGIN PUBLIC KEY-----\nAAAA"}, nil, "secrets[0]"},
		{"sendgrid", []string{"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"}, nil, "secrets[0]"},
		{"sendgrid", []string{"-----BEGIN DH PARAMETERS-----\nAAAA\n-----END DH PARAMETERS-----"}, nil, "secrets[0]"},
		{"sendgrid", []string{strings.Repeat("-----BEGIN ", 10_000)}, nil, "secrets[0]"},
		{"public-key", []string{public}, opts("header", "X"), "scheme_options.algorithm secrets[0]"},
		{"public-key", []string{public}, opts("header", "X", "algorithm", "rsa-sha256"), ""},
		{"public-key", []string{public}, opts("header", "X", "algorithm", "rsa-sha512"), "scheme_options.algorithm secrets[0]"},
		{"public-key", []string{public}, opts("header", "X", "algorithm", "rsa-sha256", "digest", "sha1"), "scheme_options.digest"},
		{"jwt", []string{"s"}, nil, "scheme_options.algorithms secrets"},
		{"jwt", []string{"s"}, opts("algorithms", []any{"none"}), "scheme_options.algorithms[0]"},
		{"jwt", []string{"s"}, opts("algorithms", "HS256"), ""},
		{"jwt", nil, opts("algorithms", []any{"HS256"}), "secrets"},
		{"jwt", nil, opts("algorithms", []any{"RS256"}), "scheme_options.keys"},
		{"jwt", []string{"s"}, opts("algorithms", []any{"RS256"}, "keys", keys), "secrets"},
		{"jwt", []string{"s"}, opts("algorithms", []any{"RS256", "HS256"}, "keys", keys), ""},
		{"jwt", nil, opts("algorithms", []any{"RS256"}, "jwks_url", "http://x/jwks"), "scheme_options.jwks_url"},
		{"jwt", nil, opts("algorithms", []any{"RS256"}, "jwks_url", "https://u@x/jwks"), "scheme_options.jwks_url"},
		{"jwt", nil, opts("algorithms", []any{"RS256"}, "jwks_url", "https://x/jwks", "fetch_keys", false), "scheme_options.keys"},
		{"jwt", nil, opts("algorithms", []any{"RS256"}, "keys", opts("k", pemOf(k.ed[0].Public()))), "scheme_options.keys.k"},
		{"jwt", []string{"s"}, opts("algorithms", []any{"HS256"}, "header", "X:Y"), "scheme_options.header"},
		{"rfc9421", []string{rfcHMAC}, nil, "scheme_options.algorithm"},
		{"rfc9421", []string{rfcHMAC}, opts("algorithm", "hmac-sha256", "components", []any{"@method", `@query-param;name="a"`}, "label", "sig1", "tolerance", "0s"), ""},
		{"rfc9421", []string{"no-key-of-ours!"}, opts("algorithm", "hmac-sha256"), "secrets[0]"},
		{"rfc9421", []string{rfcHMAC}, opts("algorithm", "hmac-sha256", "components", []any{`a"b`, "x;"}), "scheme_options.components[0] scheme_options.components[1]"},
		{"mtls", nil, opts("ca", caPEM, "sans", "x"), ""},
		{"mtls", nil, nil, "scheme_options.ca scheme_options"},
		{"mtls", nil, opts("ca", "x", "cns", "x"), "scheme_options.ca"},
		{"mtls", nil, opts("ca", public, "cns", "x"), "scheme_options.ca"},
		{"mtls", []string{"s"}, opts("ca", caPEM, "cns", "x"), "secrets"},
		{"mtls", nil, opts("ca", caPEM, "cns", "x", "forwarded_header", "X-C"), "scheme_options.forwarded_header"},
		{"mtls", nil, opts("ca", caPEM, "cns", "x", "forwarded_header", "X-C", "trusted_proxies", []any{"10.0.0.0/40"}), "scheme_options.trusted_proxies"},
	}
	for _, tt := range tests {
		v, problems := signing.New(signing.Options{Scheme: tt.scheme, Secrets: tt.secrets, SchemeOptions: tt.options, PublicURL: derivedURL})
		var paths []string
		for _, p := range problems {
			paths = append(paths, p.Path)
			for _, secret := range tt.secrets {
				if len(secret) > 8 && strings.Contains(p.Text, secret) {
					t.Errorf("New(%s, %v): the problem shows the secret: %s", tt.scheme, tt.options, p.Text)
				}
			}
		}
		if got := strings.Join(paths, " "); got != tt.paths || (v == nil) != (len(problems) > 0) {
			t.Errorf("New(%s, %d secrets, %v) = %v, want problems at %q", tt.scheme, len(tt.secrets), tt.options, problems, tt.paths)
		}
	}
}

// tolerance sets the window of every scheme with a timestamp, those without
// one included.
func TestToleranceOption(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"linear", "mercado-pago", "sendgrid", "klaviyo", "sanity", "twitch", "contentful", "vonage", "plaid", "rfc9421"} {
		for tolerance, want := range map[string]bool{"10s": false, "0s": true, "1h": true} {
			o := optionsFor(t, scheme)
			o.SchemeOptions["tolerance"] = tolerance
			v := mustNew(t, o)
			r := forged(t, o, numberBody)
			r.Now = r.Now.Add(20 * time.Minute)
			if proof, err := v.Verify(r); (err == nil) != want || err == nil && proof.Skew.Round(time.Second) != 20*time.Minute {
				t.Errorf("Verify(%s, tolerance %s, 20 minutes later) = %+v, %v, want ok %t", scheme, tolerance, proof, err, want)
			}
		}
	}
}

// What 405 may list, and that every handshake has its function.
func TestHandshakeMethods(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"meta": "GET", "dropbox": "GET", "trello": "HEAD", "mandrill": "HEAD", "mailchimp": "GET", "cloudevents": "OPTIONS", "azure-event-grid": "OPTIONS", "x": "GET", "braintree": "GET",
		"linkedin": "GET", "ebay": "GET", "okta": "GET", "adobe-sign": "GET", "intercom": "HEAD", "nylas": "GET",
	}
	for _, p := range signing.Presets() {
		if got := strings.Join(p.HandshakeMethods(), " "); got != want[p.Name] {
			t.Errorf("HandshakeMethods(%s) = %s, want %s", p.Name, got, want[p.Name])
		}
		if p.Name == "mtls" || len(p.Handshakes) == 0 {
			continue
		}
		v := mustNew(t, optionsFor(t, p.Name))
		if _, is, err := v.Handshake(&signing.Request{Method: http.MethodPut, Header: http.Header{}}); is || err != nil {
			t.Errorf("Handshake(%s, PUT) = %t, %v, want none", p.Name, is, err)
		}
	}
}

// Plivo signs GET deliveries over their query, and covers no other body than a
// form.
func TestPlivo(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "plivo", Secrets: []string{"s"}, PublicURL: "https://example.com/in"}
	v := mustNew(t, o)
	sign := func(method, query, contentType, body string) *signing.Request {
		r := &signing.Request{Method: method, RawQuery: query, Header: http.Header{"X-Plivo-Signature-V3-Nonce": {"n"}}, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
		r.Header.Set("Content-Type", contentType)
		return r
	}
	for _, tt := range []struct {
		r      *signing.Request
		signed string
		reason signing.Reason
	}{
		{sign("GET", "b=2&a=%C3%A9&b=1", "", ""), "https://example.com/in?a=é&b=1&b=2.n", ""},
		{sign("GET", "b=2&a=%C3%A9", "", ""), "https://example.com/in?a=%C3%A9&b=2.n", ""}, // SDKs that do not decode
		{sign("GET", "", "", ""), "https://example.com/in.n", ""},
		{sign("POST", "z=1", form, "b=2&a=1&a="), "https://example.com/in?z=1.aa1b2.n", ""},
		{sign("POST", "", form, "b=2&a=1"), "https://example.com/in?a1b2.n", ""},
		{sign("POST", "z=1", "application/json", `{"a":1}`), "https://example.com/in?z=1.n", signing.ReasonMalformedBody},
		{sign("GET", "z=1", form, "a=1"), "https://example.com/in?z=1.a1.n", signing.ReasonMalformedBody},
		{sign("POST", "", form, "a=%zz"), "https://example.com/in?.n", signing.ReasonMalformedBody},
		{sign("POST", "", form, "a=1"), "https://example.com/in?a2.n", badSig},
	} {
		tt.r.Header.Set("X-Plivo-Signature-V3", "AAAA,"+encode64(hs256("s")([]byte(tt.signed))))
		proof, err := v.Verify(tt.r)
		if checkReason(t, proof, err, tt.reason); t.Failed() {
			t.Fatal(tt.signed)
		}
	}
	r := sign("GET", "", "", "")
	r.Header.Del("X-Plivo-Signature-V3-Nonce")
	r.Header.Set("X-Plivo-Signature-V3", "AAAA")
	proof, err := v.Verify(r)
	checkReason(t, proof, err, signing.ReasonMissingPart)
}

// A batch of millions of items costs little before it is refused.
func TestHugeBatch(t *testing.T) { // AllocsPerRun allows no parallel tests
	list := "[" + strings.Repeat("1,", 1<<20) + "1]"
	graph := mustNew(t, optionsFor(t, "ms-graph"))
	r := &signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(`{"value":` + list + `}`)}
	if allocated := testing.AllocsPerRun(1, func() { graph.Verify(r) }); allocated > 1000 { //nolint:errcheck // refused
		t.Errorf("Verify(a million items) allocates %.0f times", allocated)
	}
	sendgrid := mustNew(t, optionsFor(t, "sendgrid"))
	items, split := sendgrid.Items(signing.NewValues(&signing.Request{Body: []byte(list)}))
	if !split || len(items) != 10_000 {
		t.Errorf("Items(a million) = %d, %t, want the first 10,000", len(items), split)
	}
}

func encode64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// ReadPrivateKey reads what tools write, and says nothing of what it cannot
// read.
func TestReadPrivateKey(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	ec, _ := x509.MarshalECPrivateKey(k.ec[0])
	for kind, der := range map[string][]byte{"RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(k.rsa[0]), "EC PRIVATE KEY": ec, "PRIVATE KEY": pkcs8(t, k.ed[0])} {
		text := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		if key, err := signing.ReadPrivateKey(text); err != nil || key.Public() == nil {
			t.Errorf("ReadPrivateKey(%s) = %v", kind, err)
		}
		broken := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der[1:]}))
		for _, text := range []string{broken, strings.Replace(text, kind, "X", 2), "", der64(der)} {
			if key, err := signing.ReadPrivateKey(text); err == nil || strings.Contains(err.Error(), der64(der)[:16]) {
				t.Errorf("ReadPrivateKey(broken %s) = %v, %v, want an error that does not show it", kind, key, err)
			}
		}
	}
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func der64(der []byte) string { return base64.StdEncoding.EncodeToString(der) }
