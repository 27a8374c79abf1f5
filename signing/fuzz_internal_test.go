package signing

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzToken: a token that parses is what was sent, and never one that asks
// for extensions.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJuZXRsaWZ5In0.MSK5mryL", "..", "e30.e30.", "e30.e30.e30.e30", "eyJjcml0IjpbXX0.e30.AA", "eyJhbGciOiJub25lIn0.e30.",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, rej := parseToken(text)
		if rej != nil {
			return
		}
		if token.signed+"."+token.signature != text || strings.Count(text, ".") != 2 {
			t.Errorf("parseToken(%q): signed %q, signature %q", text, token.signed, token.signature)
		}
		header, err := base64.RawURLEncoding.DecodeString(text[:strings.IndexByte(text, '.')])
		if doc, ok := parseDocument(header); err != nil || !ok || doc.has("crit") {
			t.Errorf("parseToken(%q) took header %q", text, header)
		}
		for _, claim := range []string{"exp", "nbf", "iat"} {
			if at, rej := token.claims.date(claim); rej == nil && !at.IsZero() && (at.Unix() < 1 || at.Unix() > lastSecond) {
				t.Errorf("%s of %q = %s", claim, text, at)
			}
		}
		rules := tokenRules{expires: true, maxAge: time.Minute}
		if _, rej := rules.judge(&token.claims, time.Unix(1700000000, 0)); rej == nil && !token.claims.has("exp") {
			t.Errorf("judge(%q) took a token without end", text)
		}
	})
}

// FuzzFieldDictionary: what parses has distinct keys, and is a part of the
// text.
func FuzzFieldDictionary(f *testing.F) {
	for _, seed := range []string{
		`sig1=("@method" "@query-param";name="Pet");created=1;keyid="k"`, "a=:AAAA:, b=?1;c;d=tok/en:x", `a=(),b`, `a="\"\\"`, "a=1.5", "a=1,a=2", "a=(b", "*a=-1;*b=:", "a=1,",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, err := parseFieldDictionary(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, m := range members {
			if seen[m.key] || m.key == "" || !strings.Contains(text, m.key) || !strings.Contains(text, m.text) {
				t.Errorf("%q: member %q = %q", text, m.key, m.text)
			}
			seen[m.key] = true
			for _, item := range m.list {
				if !strings.Contains(m.text, item.verbatim) || item.verbatim == "" {
					t.Errorf("%q: item %q of %q", text, item.verbatim, m.text)
				}
			}
			// A member means the same when it stands alone.
			if m.text != "" {
				again, err := parseFieldDictionary(m.key + "=" + m.text)
				if err != nil || len(again) != 1 || again[0].text != m.text {
					t.Errorf("%q: %q alone = %v, %v", text, m.text, again, err)
				}
			}
		}
	})
}

// FuzzPublicKey: no text is a key that does not fit its algorithm; what
// encoding/pem reads, cutPEM reads too.
func FuzzPublicKey(f *testing.F) {
	for _, seed := range []string{
		"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n", "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
		`-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==\n-----END PUBLIC KEY-----`,
		"79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664", "-----BEGIN X-----", "-----BEGIN -----AA==-----END -----", "-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range algorithms {
			public, err := newPublicKey(algorithm(name), text)
			if err == nil && algorithm(name).fits(public) != nil {
				t.Errorf("newPublicKey(%s, %q) = %T", name, text, public)
			}
			if err == nil && algorithm(name).verify(public, []byte("m"), []byte("signature")) {
				t.Errorf("%s key %q takes any signature", name, text)
			}
		}
		if chain, err := certificates(text); err == nil && len(chain) == 0 {
			t.Errorf("certificates(%q) = none, nil", text)
		}
		if block, _ := pem.Decode([]byte(text)); block != nil && len(block.Headers) == 0 && len(block.Bytes) > 0 && len(text) < maxPEM && strings.HasPrefix(text, "-----BEGIN ") {
			if kind, der, _, err := cutPEM(text); err == nil && (kind != block.Type || string(der) != string(block.Bytes)) {
				t.Errorf("cutPEM(%q) = %s, %x, want %s, %x", text, kind, der, block.Type, block.Bytes)
			}
		}
	})
}

// FuzzKeySet: keys of a set fit an algorithm of ours.
func FuzzKeySet(f *testing.F) {
	for _, seed := range []string{
		`{"keys":[{"kty":"EC","crv":"P-256","kid":"e","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`,
		`{"keys":[{"kty":"RSA","kid":"r","n":"AQAB","e":"AQAB"}]}`, `{"keys":{}}`, `[]`, `{"key":{"kid":"x"}}`, `{"keys":[1,null,[],{"kid":"a","kty":"oct"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, parse := range []func([]byte) (map[string]any, error){anyKeys(parseKeySet), anyKeys(parsePlaidKey), anyKeys(parseEBayKey)} {
			keys, err := parse(raw)
			if err != nil {
				continue
			}
			for id, public := range keys {
				if algRSA.fits(public) != nil && algECDSA.fits(public) != nil {
					t.Errorf("key %q of %q is %T", id, raw, public)
				}
			}
		}
	})
}

func anyKeys[K any](parse func([]byte) (map[string]K, error)) func([]byte) (map[string]any, error) {
	return func(raw []byte) (map[string]any, error) {
		keys, err := parse(raw)
		all := map[string]any{}
		for id, k := range keys {
			all[id] = k
		}
		return all, err
	}
}

// FuzzEveryScheme throws one request at every scheme: none proves it, and
// none panics, neither in its handshakes nor where it looks for events.
func FuzzEveryScheme(f *testing.F) {
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("v1,AAAA", "a=1", raw)
	}
	f.Add("t=1,v1=00", "hub.mode=subscribe&challenge=x&crc_token=x&validationToken=%00", []byte("bt_payload=x&bt_signature=a%7C0&mandrill_events=%5B%5D"))
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.AA", "", []byte(`{"entry":[{"changes":[{"value":{"messages":[{}]}}]}],"type":0,"value":[{"clientState":1}],"notificationItems":[{"NotificationRequestItem":{}}]}`))
	var verifiers []*Verifier
	for _, p := range Presets() {
		if v := fuzzVerifier(p); v != nil {
			verifiers = append(verifiers, v)
		}
	}
	if len(verifiers) < 110 {
		f.Fatalf("%d verifiers", len(verifiers))
	}
	f.Fuzz(func(t *testing.T, header, query string, body []byte) {
		for _, v := range verifiers {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				r := &Request{Method: method, Path: "/in/x", RawQuery: query, Header: http.Header{}, Body: body, Now: time.Unix(1700000000, 0)}
				preset := v.row.public()
				for _, name := range append(preset.KeepHeaders(Options{}), "Authorization", "Content-Type", "X-Hook-Secret") {
					r.Header.Set(name, header)
				}
				if proof, err := v.Verify(r); err == nil {
					t.Errorf("%s: Verify = %+v", preset.Name, proof)
				}
				reply, is, err := v.Handshake(r)
				if is && err == nil && (reply.Status < 200 || reply.Status > 403) || reply.Surface != "" {
					t.Errorf("%s: Handshake = %+v", preset.Name, reply)
				}
				items, _ := v.Items(v.Values(r))
				for i := range items {
					items[i].JSON("a.b")
				}
				v.Answer(r)
			}
		}
	})
}

// fuzzVerifier is a verifier of a scheme, nil where it needs more than a
// secret and a URL.
func fuzzVerifier(p Preset) *Verifier {
	const publicKey = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==\n-----END PUBLIC KEY-----\n"
	all := map[string]map[string]any{
		"paypal": {"webhook_id": "1"}, "aws-sns": {"topics": "t"}, "braintree": {"public_key": "p"}, "google-pubsub": {"audience": "a", "email": "e"}, "adobe-sign": {"client_ids": "never sent"},
		"plaid": {"keys": map[string]any{"k": publicKey}}, "ebay": {"keys": map[string]any{"k": publicKey}}, "rfc9421": {"algorithm": "hmac-sha256"}, "jwt": {"algorithms": []any{"HS256"}},
		"hmac": {"header": "X-Sig"}, "token": {"header": "X-Sig"},
	}
	for _, secrets := range [][]string{{"MDEyMzQ1Njc4OWFiY2RlZg=="}, nil, {"user:password"}, {publicKey}, {"79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664"}} {
		if v, problems := New(Options{Scheme: p.Name, Secrets: secrets, PublicURL: "https://hooks.example.com/in/x", SchemeOptions: all[p.Name]}); len(problems) == 0 && p.Name != "none" {
			return v
		}
	}
	return nil
}
