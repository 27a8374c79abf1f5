package signing_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// makeToken is a token made by hand, so that its parts can be wrong.
func makeToken(t *testing.T, header, claims any, sign func(signed []byte) []byte) string {
	t.Helper()
	part := func(v any) string {
		if text, ok := v.(string); ok {
			return base64.RawURLEncoding.EncodeToString([]byte(text))
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	signed := part(header) + "." + part(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(signed)))
}

func hs256(secret string) func([]byte) []byte {
	return func(signed []byte) []byte {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write(signed)
		return m.Sum(nil)
	}
}

func rs256(key *rsa.PrivateKey) func([]byte) []byte {
	return func(signed []byte) []byte {
		sum := sha256.Sum256(signed)
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return sig
	}
}

func es256(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(signed []byte) []byte {
		sum := sha256.Sum256(signed)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

// with changes a copy of claims; nil takes a claim away.
func with(claims map[string]any, pairs ...any) map[string]any {
	out := maps.Clone(claims)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name := pairs[i].(string); pairs[i+1] == nil {
			delete(out, name)
		} else {
			out[name] = pairs[i+1]
		}
	}
	return out
}

// bearer is a request with a token in Authorization.
func bearer(prefix, token, body string) *signing.Request {
	return &signing.Request{Method: "POST", Path: "/in/abc", Header: http.Header{"Authorization": {prefix + token}}, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
}

func TestWebToken(t *testing.T) {
	t.Parallel()
	k, body := keysOnce(), "body"
	sum := sha256.Sum256([]byte(body))
	claims := map[string]any{"iss": "https://issuer", "aud": []string{"x", "bridge"}, "exp": derivedNow + 300, "iat": derivedNow, "sha": hex.EncodeToString(sum[:])}
	hs, rs, es := map[string]any{"alg": "HS256"}, map[string]any{"alg": "RS256", "kid": "r"}, map[string]any{"alg": "ES256", "kid": "e"}
	hmacOptions := signing.Options{Scheme: "jwt", Secrets: []string{"new", "old"}, SchemeOptions: opts(
		"algorithms", []any{"HS256"}, "issuer", "https://issuer", "audience", "bridge", "max_age", "300s", "body_hash_claim", "sha")}
	publicOptions := signing.Options{Scheme: "jwt", SchemeOptions: opts(
		"algorithms", []any{"RS256", "ES256"}, "keys", opts("r", pemOf(k.rsa[0].Public()), "e", pemOf(k.ec[0].Public())), "fetch_keys", false)}
	tests := []struct {
		name    string
		options signing.Options
		header  any
		claims  any
		sign    func([]byte) []byte
		reason  signing.Reason // "" is accepted
	}{
		{"HS256", hmacOptions, hs, claims, hs256("new"), ""},
		{"old secret", hmacOptions, hs, claims, hs256("old"), ""},
		{"audience as text", hmacOptions, hs, with(claims, "aud", "bridge"), hs256("new"), ""},
		{"other members of the header", hmacOptions, map[string]any{"alg": "HS256", "jwk": map[string]any{"kty": "oct", "k": "AAAA"}, "jku": "https://evil.example", "x5u": "https://evil.example"}, claims, hs256("new"), ""},
		{"key of the token", hmacOptions, map[string]any{"alg": "HS256", "jwk": map[string]any{"kty": "oct", "k": "AAAA"}}, claims, hs256("\x00\x00\x00"), badSig},
		{"another secret", hmacOptions, hs, claims, hs256("x"), badSig},
		{"no signature", hmacOptions, hs, claims, func([]byte) []byte { return nil }, badSig},
		{"none", hmacOptions, map[string]any{"alg": "none"}, claims, func([]byte) []byte { return nil }, signing.ReasonUnsupported},
		{"None", hmacOptions, map[string]any{"alg": "hs256"}, claims, hs256("new"), signing.ReasonUnsupported},
		{"no algorithm", hmacOptions, map[string]any{}, claims, hs256("new"), signing.ReasonUnsupported},
		{"crit", hmacOptions, map[string]any{"alg": "HS256", "crit": []string{"exp"}}, claims, hs256("new"), signing.ReasonUnsupported},
		{"crit twice", hmacOptions, `{"alg":"HS256","crit":1,"crit":2}`, claims, hs256("new"), signing.ReasonUnsupported},
		{"alg twice", hmacOptions, `{"alg":"HS256","alg":"none"}`, claims, hs256("new"), signing.ReasonUnsupported},
		{"header is a list", hmacOptions, `[]`, claims, hs256("new"), malSig},
		{"claims are text", hmacOptions, hs, `"x"`, hs256("new"), malSig},
		{"no exp", hmacOptions, hs, with(claims, "exp", nil), hs256("new"), noTime},
		{"exp as text", hmacOptions, hs, with(claims, "exp", "1700000300"), hs256("new"), malTime},
		{"exp null", hmacOptions, hs, `{"exp":null}`, hs256("new"), malTime},
		{"exp twice", hmacOptions, hs, `{"exp":1700000300,"exp":1800000000}`, hs256("new"), malTime},
		{"exp huge", hmacOptions, hs, `{"exp":1e300}`, hs256("new"), malTime},
		{"exp with a fraction", hmacOptions, hs, with(claims, "exp", derivedNow+0.5), hs256("new"), ""},
		{"ended 59 s ago", hmacOptions, hs, with(claims, "exp", derivedNow-59), hs256("new"), ""},
		{"ended 60 s ago", hmacOptions, hs, with(claims, "exp", derivedNow-60), hs256("new"), late},
		{"begins in 60 s", hmacOptions, hs, with(claims, "nbf", derivedNow+60), hs256("new"), ""},
		{"begins in 61 s", hmacOptions, hs, with(claims, "nbf", derivedNow+61), hs256("new"), late},
		{"nbf as text", hmacOptions, hs, with(claims, "nbf", "1"), hs256("new"), malTime},
		{"made 300 s ago", hmacOptions, hs, with(claims, "iat", derivedNow-300), hs256("new"), ""},
		{"made 301 s ago", hmacOptions, hs, with(claims, "iat", derivedNow-301), hs256("new"), late},
		{"made in 301 s", hmacOptions, hs, with(claims, "iat", derivedNow+301), hs256("new"), late},
		{"no iat", hmacOptions, hs, with(claims, "iat", nil), hs256("new"), noTime},
		{"another issuer", hmacOptions, hs, with(claims, "iss", "https://issuer/"), hs256("new"), signing.ReasonBadClaim},
		{"no issuer", hmacOptions, hs, with(claims, "iss", nil), hs256("new"), signing.ReasonBadClaim},
		{"another audience", hmacOptions, hs, with(claims, "aud", []string{"x"}), hs256("new"), signing.ReasonBadClaim},
		{"audience is a number", hmacOptions, hs, with(claims, "aud", 1), hs256("new"), signing.ReasonBadClaim},
		{"another body", hmacOptions, hs, with(claims, "sha", hex.EncodeToString(make([]byte, 32))), hs256("new"), badSig},
		{"no body hash", hmacOptions, hs, with(claims, "sha", nil), hs256("new"), signing.ReasonBadClaim},

		{"RS256", publicOptions, rs, claims, rs256(k.rsa[0]), ""},
		{"ES256", publicOptions, es, claims, es256(k.ec[0]), ""},
		{"another RSA key", publicOptions, rs, claims, rs256(k.rsa[1]), badSig},
		{"another EC key", publicOptions, es, claims, es256(k.ec[1]), badSig},
		{"key of another kind", publicOptions, map[string]any{"alg": "ES256", "kid": "r"}, claims, es256(k.ec[0]), badSig},
		{"no kid", publicOptions, map[string]any{"alg": "RS256"}, claims, rs256(k.rsa[0]), signing.ReasonUnknownKey},
		{"unknown kid", publicOptions, map[string]any{"alg": "RS256", "kid": "x"}, claims, rs256(k.rsa[0]), signing.ReasonUnknownKey},
		{"kid is a number", publicOptions, map[string]any{"alg": "RS256", "kid": 1}, claims, rs256(k.rsa[0]), signing.ReasonUnknownKey},
		{"kid is a URL", publicOptions, map[string]any{"alg": "RS256", "kid": "https://evil.example/"}, claims, rs256(k.rsa[0]), signing.ReasonUnknownKey},
		// The public key is no secret: an HMAC made with it must not count.
		{"algorithm confusion", publicOptions, map[string]any{"alg": "HS256", "kid": "r"}, claims, hs256(pemOf(k.rsa[0].Public())), signing.ReasonUnsupported},
		{"ES256 in DER", publicOptions, es, claims, func(signed []byte) []byte {
			sum := sha256.Sum256(signed)
			sig, _ := ecdsa.SignASN1(rand.Reader, k.ec[0], sum[:])
			return sig
		}, badSig},
		{"ES256 of zeros", publicOptions, es, claims, func([]byte) []byte { return make([]byte, 64) }, badSig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, problems := signing.New(tt.options)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			r := bearer("Bearer ", makeToken(t, tt.header, tt.claims, tt.sign), body)
			proof, err := v.Verify(r)
			checkReason(t, proof, err, tt.reason)
		})
	}
}

func checkReason(t *testing.T, proof signing.Proof, err error, reason signing.Reason) {
	t.Helper()
	var rejection *signing.Rejection
	if errors.As(err, &rejection); reason == "" && err != nil || reason != "" && (rejection == nil || rejection.Reason != reason) {
		t.Errorf("Verify = %+v, %v, want %q", proof, err, reason)
	}
}

// The shape of a token, and where it stands.
func TestWebTokenShape(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "jwt", Secrets: []string{"s"}, SchemeOptions: opts("algorithms", []any{"HS256"})})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	good := makeToken(t, map[string]any{"alg": "HS256"}, map[string]any{"exp": derivedNow + 9}, hs256("s"))
	dot := strings.Index(good, ".")
	for header, reason := range map[string]signing.Reason{
		"Bearer " + good: "", "": noSig, good: malSig, "bearer" + good: malSig, "Bearer " + good + ".x": malSig, "Bearer " + good[:dot]: malSig, "Bearer ..": malSig,
		"Bearer " + good[:dot] + "." + good[dot:]: malSig, "Bearer " + good + "=": malSig, "Bearer " + good[:dot] + "=" + good[dot:]: malSig,
		"Bearer " + good[:len(good)-1]: malSig, "Bearer x." + good: malSig, "Bearer " + good[:dot-1] + "!" + good[dot:]: malSig, "Bearer " + strings.Repeat("a", 20<<10) + good: malSig,
	} {
		proof, err := v.Verify(bearer("", header, "x"))
		checkReason(t, proof, err, reason)
		if err == nil && proof.Class != signing.Authenticated {
			t.Errorf("Verify: class %s of a token that does not cover the body", proof.Class)
		}
	}
	two := bearer("Bearer ", good, "x")
	two.Header["Authorization"] = append(two.Header["Authorization"], "Bearer x")
	proof, err := v.Verify(two)
	checkReason(t, proof, err, dup)
	own, _ := signing.New(signing.Options{Scheme: "jwt", Secrets: []string{"s"}, SchemeOptions: opts("algorithms", []any{"HS256"}, "header", "X-Token")})
	for _, value := range []string{good, "Bearer " + good} {
		r := bearer("", "", "x")
		r.Header.Set("X-Token", value)
		proof, err := own.Verify(r)
		checkReason(t, proof, err, "")
	}
	bare, _ := signing.New(signing.Options{Scheme: "jwt", Secrets: []string{"s"}, SchemeOptions: opts("algorithms", []any{"HS256"}, "prefix", "")})
	proof, err = bare.Verify(bearer("", good, "x"))
	checkReason(t, proof, err, "")
}

// The presets with tokens: what each of them says must be right.
func TestTokenPresets(t *testing.T) {
	t.Parallel()
	const body, query = `{"id":"1"}`, "user_id=admin&repeated=parameter%202&repeated=parameter%201&z=%C3%A9"
	hash := sumOf([]byte(body))
	exp := map[string]any{"exp": derivedNow + 60}
	qsh := sumOf([]byte("POST&/in/abc&repeated=parameter%201,parameter%202&user_id=admin&z=%C3%A9"))
	urlHash := sumOf([]byte(derivedURL + "?" + query))
	for _, tt := range []struct {
		scheme, header, prefix string
		claims                 map[string]any
		reason                 signing.Reason
	}{
		{"netlify", "X-Webhook-Signature", "", map[string]any{"iss": "netlify", "sha256": hash}, ""},
		{"netlify", "X-Webhook-Signature", "", map[string]any{"iss": "netlify", "sha256": strings.ToUpper(hash)}, ""},
		{"netlify", "X-Webhook-Signature", "", map[string]any{"iss": "other", "sha256": hash}, signing.ReasonBadClaim},
		{"netlify", "X-Webhook-Signature", "", map[string]any{"iss": "netlify"}, signing.ReasonBadClaim},
		{"netlify", "X-Webhook-Signature", "", map[string]any{"iss": "netlify", "sha256": hash[1:]}, badSig},
		{"monday", "Authorization", "", exp, ""},
		{"monday", "Authorization", "", map[string]any{"iat": derivedNow}, noTime},
		{"monday", "Authorization", "", map[string]any{"exp": derivedNow - 61}, late},
		{"atlassian-connect", "Authorization", "JWT ", with(exp, "qsh", qsh), ""},
		{"atlassian-connect", "Authorization", "JWT ", with(exp, "qsh", "context-qsh"), badSig},
		{"atlassian-connect", "Authorization", "JWT ", exp, signing.ReasonBadClaim},
		{"atlassian-connect", "Authorization", "Bearer ", with(exp, "qsh", qsh), malSig},
		{"atlassian-connect", "Authorization", "JWT ", map[string]any{"qsh": qsh}, noTime},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "url_hash", urlHash, "payload_hash", hash), ""},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "url_hash", urlHash), signing.ReasonBadClaim},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "payload_hash", hash), signing.ReasonBadClaim},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "url_hash", hash, "payload_hash", hash), badSig},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "url_hash", urlHash, "payload_hash", urlHash), badSig},
		{"messagebird", "MessageBird-Signature-JWT", "", with(exp, "url_hash", urlHash, "payload_hash", hash, "nbf", derivedNow+100), late},
		{"vonage", "Authorization", "Bearer ", map[string]any{"iat": derivedNow - 300, "payload_hash": hash}, ""},
		{"vonage", "Authorization", "Bearer ", map[string]any{"iat": derivedNow + 301, "payload_hash": hash}, late},
		{"vonage", "Authorization", "Bearer ", map[string]any{"payload_hash": hash}, noTime},
		{"vonage", "Authorization", "Bearer ", map[string]any{"iat": derivedNow}, signing.ReasonBadClaim},
		{"vonage", "Authorization", "Bearer ", map[string]any{"iat": derivedNow, "payload_hash": qsh}, badSig},
	} {
		v, problems := signing.New(signing.Options{Scheme: tt.scheme, Secrets: []string{"s"}, PublicURL: derivedURL})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		r := bearer("", "", body)
		r.RawQuery = query
		r.Header.Set(tt.header, tt.prefix+makeToken(t, map[string]any{"alg": "HS256", "typ": "JWT"}, tt.claims, hs256("s")))
		proof, err := v.Verify(r)
		checkReason(t, proof, err, tt.reason)
	}
}

// The published hashes of MessageBird and Atlassian.
func TestTokenHashes(t *testing.T) {
	t.Parallel()
	exp := map[string]any{"exp": derivedNow + 60}
	v, _ := signing.New(signing.Options{Scheme: "messagebird", Secrets: []string{"36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb"}, PublicURL: "https://example.com/path"})
	r := bearer("", "", "Hello, World!")
	r.RawQuery = "bar=1&foo=2"
	r.Header.Set("MessageBird-Signature-JWT", makeToken(t, map[string]any{"alg": "HS256"}, with(exp,
		"payload_hash", "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f", "url_hash", "41f05f0ddd0a22ab209ac46f47c4572d9cefa257ed74b24004bae753ece6c260",
	), hs256("36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb")))
	proof, err := v.Verify(r)
	checkReason(t, proof, err, "")
	for _, tt := range []struct{ url, method, query, qsh string }{
		{"https://x.example/test", "GET", "param=value", "be16910858a41fd19ea5c1b4e9decca9a784d1024cb00b2158defe2f29dc86dd"},
		{"https://x.example/path/to/service/", "get", "zee_last=param&repeated=parameter+1&first=param&jwt=x&repeated=parameter%202", sumOf([]byte("GET&/path/to/service&first=param&repeated=parameter%201,parameter%202&zee_last=param"))},
		{"https://x.example", "POST", "", sumOf([]byte("POST&/&"))},
	} {
		v, problems := signing.New(signing.Options{Scheme: "atlassian-connect", Secrets: []string{"s"}, PublicURL: tt.url})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		r := bearer("JWT ", makeToken(t, map[string]any{"alg": "HS256"}, with(exp, "qsh", tt.qsh), hs256("s")), "")
		r.Method, r.RawQuery = tt.method, tt.query
		proof, err := v.Verify(r)
		checkReason(t, proof, err, "")
	}
}

// Google's tokens: any account can have one for any audience.
func TestGooglePubSub(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	o := optionsFor(t, "google-pubsub")
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	claims := map[string]any{"iss": "https://accounts.google.com", "aud": derivedURL, "email": "push@p.iam.gserviceaccount.com", "email_verified": true, "exp": derivedNow + 3600}
	for name, tt := range map[string]struct {
		claims map[string]any
		reason signing.Reason
	}{
		"good": {claims, ""}, "other issuer name": {with(claims, "iss", "accounts.google.com"), ""}, "another issuer": {with(claims, "iss", "https://evil.example"), signing.ReasonBadClaim},
		"another audience": {with(claims, "aud", derivedURL+"x"), signing.ReasonBadClaim}, "another account": {with(claims, "email", "x@p.iam.gserviceaccount.com"), signing.ReasonNotAllowed},
		"no account": {with(claims, "email", nil), signing.ReasonNotAllowed}, "not verified": {with(claims, "email_verified", false), signing.ReasonBadClaim},
		"no exp": {with(claims, "exp", nil), noTime}, "ended": {with(claims, "exp", derivedNow-60), late},
	} {
		r := bearer("Bearer ", makeToken(t, map[string]any{"alg": "RS256", "kid": "kid-1"}, tt.claims, rs256(k.rsa[0])), "{}")
		proof, err := v.Verify(r)
		if checkReason(t, proof, err, tt.reason); t.Failed() {
			t.Fatal(name)
		}
	}
	for _, missing := range []string{"audience", "email"} {
		o := optionsFor(t, "google-pubsub")
		delete(o.SchemeOptions, missing)
		if _, problems := signing.New(o); len(problems) != 1 || problems[0].Path != "scheme_options."+missing {
			t.Errorf("New(without %s) = %v, want a problem", missing, problems)
		}
	}
}
