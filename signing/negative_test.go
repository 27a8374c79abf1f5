package signing_test

import (
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// subject is a scheme under the common negative set: everything is made from
// a forged request that is accepted.
type subject struct {
	name    string
	options signing.Options
	// mark is the text in front of the signature in its header.
	header, mark string
	encoding     string // hex, base64, base64url
	// stampHeader carries the timestamp, or stampKey in the signature header.
	stampHeader, stampKey string
	unit                  int64 // timestamp units in a second, 0 = no timestamp
	query, body           string
	contentType           string
	rename                map[string]string // header names sent instead
	// other are marks of other versions; many repeats the signature.
	other []string
	many  func(signature, wrong string, n int) string
	float string // body with its number re-encoded
	// tolerance is the window, 300 s where it is 0; loose means there is none.
	tolerance time.Duration
	loose     bool
	// form of the timestamp: "" for digits, rfc3339, imf.
	stampForm string
	// uncovered: the body is no part of what is signed.
	uncovered bool
	// secrets are two secrets of the scheme, secretA and secretB by default;
	// signers are their private keys where they are public ones.
	secrets [2]string
	signers [2]crypto.Signer
}

func (s *subject) secret(i int) string {
	if s.secrets[i] != "" {
		return s.secrets[i]
	}
	return [2]string{secretA, secretB}[i]
}

// signer is the private key of a secret, nil where the secret signs itself.
func (s *subject) signer(secret string) crypto.Signer {
	if secret == s.secrets[1] {
		return s.signers[1]
	}
	return s.signers[0]
}

const (
	numberBody = `{"id":"evt_1","n":9007199254740993}`
	floatBody  = `{"id":"evt_1","n":9007199254740992}`
	secretA    = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	secretB    = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// tagged repeats entries "v1,<signature>" and so on.
func tagged(sep, mark string) func(string, string, int) string {
	return func(signature, wrong string, n int) string {
		entries := slices.Repeat([]string{mark + wrong}, n-1)
		return strings.Join(append(entries, mark+signature), sep)
	}
}

func pairsOf(stamp string) func(string, string, int) string {
	return func(signature, wrong string, n int) string {
		return stamp + "=" + strconv.Itoa(derivedNow) + "," + tagged(",", "v1=")(signature, wrong, n)
	}
}

func hmacSubject(name string, s subject, pairs ...any) subject {
	s.name = "hmac " + name
	s.options.Scheme, s.options.SchemeOptions, s.options.PublicURL = "hmac", opts(pairs...), derivedURL
	return s
}

func subjects() []subject {
	standard := func(scheme, header, stamp string) subject {
		return subject{name: scheme, options: signing.Options{Scheme: scheme}, header: header, mark: "v1,", encoding: "base64",
			stampHeader: stamp, unit: 1, other: []string{"v0,", "v2,", "v1a,"}, many: tagged(" ", "v1,")}
	}
	svixB := standard("svix", "webhook-signature", "webhook-timestamp")
	svixB.name = "svix as webhook-*"
	svixB.rename = map[string]string{"Svix-Id": "Webhook-Id", "Svix-Timestamp": "Webhook-Timestamp", "Svix-Signature": "Webhook-Signature"}
	twilio := subject{options: signing.Options{Scheme: "twilio", PublicURL: derivedURL}, header: "X-Twilio-Signature", encoding: "base64", query: "src=1"}
	twilioForm, twilioJSON := twilio, twilio
	twilioForm.name, twilioForm.contentType, twilioForm.body, twilioForm.float = "twilio form", form, "n=9007199254740993&s=caf%C3%A9", "n=9007199254740992&s=caf%C3%A9"
	twilioJSON.name = "twilio json"
	hub := subject{header: "X-Hub-Signature-256", mark: "sha256=", encoding: "hex", other: []string{"sha1=", "sha512=", "", "SHA256="}}
	github := hub
	github.name, github.options.Scheme = "github", "github"
	shopify := subject{name: "shopify", options: signing.Options{Scheme: "shopify"}, header: "X-Shopify-Hmac-SHA256", encoding: "base64"}
	shopifyB := shopify
	shopifyB.name, shopifyB.header, shopifyB.rename = "shopify events", "Shopify-Hmac-Sha256", map[string]string{"X-Shopify-Hmac-Sha256": "Shopify-Hmac-Sha256"}
	stripe := subject{header: "Stripe-Signature", mark: "v1=", encoding: "hex", stampKey: "t", unit: 1, other: []string{"v0=", "v2=", "v1a="}, many: pairsOf("t")}
	stripePreset := stripe
	stripePreset.name, stripePreset.options.Scheme = "stripe", "stripe"
	return []subject{
		standard("standard-webhooks", "webhook-signature", "webhook-timestamp"), standard("svix", "svix-signature", "svix-timestamp"), svixB,
		standard("gitlab", "webhook-signature", "webhook-timestamp"), github, shopify, shopifyB, stripePreset, twilioForm, twilioJSON,
		{name: "slack", options: signing.Options{Scheme: "slack"}, header: "X-Slack-Signature", mark: "v0=", encoding: "hex", stampHeader: "X-Slack-Request-Timestamp", unit: 1, other: []string{"v1=", ""}},
		hmacSubject("plain", hub, "header", "X-Hub-Signature-256", "prefix", "sha256="),
		hmacSubject("base64url sha512", subject{header: "X-Sig", encoding: "base64url"}, "header", "X-Sig", "encoding", "base64url", "digest", "sha512"),
		hmacSubject("sha1", subject{header: "X-Sig", encoding: "hex"}, "header", "X-Sig", "digest", "sha1", "message", "{method}\n{path}\n{url}\n{body_sha256}"),
		hmacSubject("pairs", stripe, "header", "Stripe-Signature", "format", "pairs", "timestamp_key", "t", "signature_key", "v1", "message", "{timestamp}.{body}"),
		hmacSubject("groups", subject{header: "X-Sig", mark: "v1=", encoding: "hex", stampKey: "t", unit: 1, many: func(sig, wrong string, n int) string {
			return strings.Repeat("t=1700000000,v1="+wrong+" ", n-1) + "t=1700000000,v1=" + sig
		}}, "header", "X-Sig", "format", "groups", "timestamp_key", "t", "signature_key", "v1", "message", "{timestamp}.{body}"),
		hmacSubject("tags", subject{header: "X-Sig", mark: "v1,", encoding: "base64", stampHeader: "X-Time", unit: 1000, other: []string{"v0,", "v1a,"}, many: tagged(" ", "v1,")},
			"header", "X-Sig", "format", "tags", "signature_key", "v1", "encoding", "base64", "key", "whsec", "message", "{timestamp}{body}", "timestamp", opts("header", "X-Time", "unit", "ms")),
		hmacSubject("list", subject{header: "X-Sig", mark: "v1=", encoding: "hex", other: []string{"v2=", ""}, many: tagged(",", "v1=")}, "header", "X-Sig", "format", "list", "prefix", "v1="),
		hmacSubject("positional", subject{header: "X-Sig", mark: ",", encoding: "hex", stampKey: "", unit: 0, many: func(sig, wrong string, n int) string {
			return "1700000000" + strings.Repeat(","+wrong, n-1) + "," + sig
		}}, "header", "X-Sig", "format", "positional", "message", "{timestamp}.{body}"),
		hmacSubject("headers", subject{header: "X-Sig-2", encoding: "hex", rename: map[string]string{"X-Sig-1": "X-Sig-2"}}, "headers", []any{"X-Sig-1", "X-Sig-2"}),
	}
}

// accepted is a request the scheme accepts, signed with the first secret.
func (s *subject) accepted(t *testing.T, secrets ...string) *signing.Request {
	t.Helper()
	return s.forge(t, http.Header{}, secrets...)
}

func (s *subject) forge(t *testing.T, h http.Header, secrets ...string) *signing.Request {
	t.Helper()
	o := s.options
	if o.Secrets = secrets; len(secrets) == 0 {
		o.Secrets = []string{s.secret(0)}
	}
	o.ForgeKey = s.signer(o.Secrets[0])
	body := s.body
	if body == "" {
		body = numberBody
	}
	r := &signing.Request{Method: http.MethodPost, Path: "/in/abc", RawQuery: s.query, Header: h, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
	if s.contentType != "" {
		h.Set("Content-Type", s.contentType)
	}
	if err := signing.Forge(o, r); err != nil {
		t.Fatalf("Forge = %v", err)
	}
	for from, to := range s.rename {
		if v, ok := r.Header[from]; ok {
			delete(r.Header, from)
			r.Header[to] = v
		}
	}
	return r
}

func (s *subject) verifier(t *testing.T, secrets ...string) *signing.Verifier {
	t.Helper()
	o := s.options
	if o.Secrets = secrets; len(secrets) == 0 {
		o.Secrets = []string{s.secret(0)}
	}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatalf("New = %v", problems)
	}
	return v
}

// signature cuts the header value into what stands before the signature and
// the signature.
func (s *subject) signature(r *signing.Request) (before, signature string) {
	value := r.Header.Get(s.header)
	i := 0
	if s.mark != "" {
		i = strings.LastIndex(value, s.mark) + len(s.mark)
	}
	return value[:i], value[i:]
}

func (s *subject) decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := map[string]func(string) ([]byte, error){
		"hex": hex.DecodeString, "base64": base64.StdEncoding.DecodeString, "base64url": base64.RawURLEncoding.DecodeString,
	}[s.encoding](text)
	if err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return raw
}

func (s *subject) encode(raw []byte) string {
	return map[string]func([]byte) string{
		"hex": hex.EncodeToString, "base64": base64.StdEncoding.EncodeToString, "base64url": base64.RawURLEncoding.EncodeToString,
	}[s.encoding](raw)
}

// refused checks that the request is a rejection for one of the reasons.
func (s *subject) refused(t *testing.T, what string, r *signing.Request, reasons ...signing.Reason) {
	t.Helper()
	proof, err := s.verifier(t).Verify(r)
	var rejection *signing.Rejection
	if !errors.As(err, &rejection) {
		t.Errorf("Verify(%s) = %+v, %v, want a rejection", what, proof, err)
		return
	}
	if !slices.Contains(reasons, rejection.Reason) {
		t.Errorf("Verify(%s) = %v, want one of %v", what, err, reasons)
	}
	_, computed := s.signature(s.accepted(t))
	for _, secret := range []string{secretA, "evt_1", computed} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("Verify(%s) = %v: shows what must stay hidden", what, err)
		}
	}
}

func (s *subject) ok(t *testing.T, what string, r *signing.Request) {
	t.Helper()
	if _, err := s.verifier(t).Verify(r); err != nil {
		t.Errorf("Verify(%s) = %v, want it accepted", what, err)
	}
}

const (
	badSig  = signing.ReasonBadSignature
	malSig  = signing.ReasonMalformedSignature
	noSig   = signing.ReasonMissingSignature
	dup     = signing.ReasonDuplicateHeader
	many    = signing.ReasonTooManySignatures
	noTime  = signing.ReasonMissingTimestamp
	malTime = signing.ReasonMalformedTimestamp
	late    = signing.ReasonTimestampWindow
)

// TestNegativeSet is what every signature scheme must refuse.
func TestNegativeSet(t *testing.T) {
	t.Parallel()
	for _, s := range append(subjects(), presetSubjects()...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.ok(t, "forged", s.accepted(t))
			s.testBody(t)
			s.testSignature(t)
			s.testHeader(t)
			s.testMany(t)
			s.testTime(t)
			s.testSecrets(t)
		})
	}
}

func (s *subject) testBody(t *testing.T) {
	t.Helper()
	if s.uncovered {
		return
	}
	r := s.accepted(t)
	r.Body = append(slices.Clone(r.Body), ' ')
	s.refused(t, "body + space", r, badSig)
	r = s.accepted(t)
	r.Body = []byte(floatBody)
	if s.float != "" {
		r.Body = []byte(s.float)
	}
	s.refused(t, "number re-encoded", r, badSig)
	r.Body = nil
	s.refused(t, "no body", r, badSig)
}

func (s *subject) testSignature(t *testing.T) {
	t.Helper()
	r := s.accepted(t)
	before, signature := s.signature(r)
	raw := s.decode(t, signature)
	for _, i := range []int{0, len(raw)*8 - 1} {
		flipped := slices.Clone(raw)
		flipped[i/8] ^= 1 << (i % 8)
		r.Header.Set(s.header, before+s.encode(flipped))
		s.refused(t, fmt.Sprintf("bit %d flipped", i), r, badSig)
	}
	for what, text := range map[string]string{
		"not an encoding": strings.Repeat("!", len(signature)), "truncated text": signature[:len(signature)-1],
		"truncated bytes": s.encode(raw[:len(raw)-1]), "longer": s.encode(append(raw, 0)), "nothing": "", "zeros": s.encode(make([]byte, len(raw))),
		"a quoted": `"` + signature + `"`, "space inside": signature[:4] + " " + signature[4:],
	} {
		r.Header.Set(s.header, before+text)
		s.refused(t, what, r, badSig, malSig, noSig)
	}
	for _, mark := range s.other {
		r.Header.Set(s.header, strings.TrimSuffix(before, s.mark)+mark+signature)
		s.refused(t, "only "+mark, r, malSig)
	}
	if s.encoding == "hex" {
		r.Header.Set(s.header, before+strings.ToUpper(signature))
		s.ok(t, "upper case hex", r)
	}
	if s.encoding == "base64" && strings.HasSuffix(signature, "=") {
		r.Header.Set(s.header, before+strings.TrimRight(signature, "="))
		s.refused(t, "base64 without padding", r, malSig)
	}
}

func (s *subject) testHeader(t *testing.T) {
	t.Helper()
	r := s.accepted(t)
	value := r.Header.Get(s.header)
	r.Header.Del(s.header)
	s.refused(t, "no signature header", r, noSig)
	r.Header.Set(s.header, "")
	s.refused(t, "empty signature header", r, noSig)
	r.Header[http.CanonicalHeaderKey(s.header)] = []string{value, " " + value}
	s.ok(t, "repeated equal header", r)
	before, signature := s.signature(s.accepted(t))
	wrong := before + s.encode(make([]byte, len(s.decode(t, signature))))
	for _, values := range [][]string{{value, wrong}, {wrong, value}, {value, ""}} {
		r.Header[http.CanonicalHeaderKey(s.header)] = values
		s.refused(t, "conflicting signature headers", r, dup)
	}
}

func (s *subject) testMany(t *testing.T) {
	t.Helper()
	if s.many == nil {
		return
	}
	r := s.accepted(t)
	_, signature := s.signature(r)
	wrong := s.encode(make([]byte, len(s.decode(t, signature))))
	for n, want := range map[int]bool{2: true, 16: true, 17: false, 10_000: false} {
		r.Header.Set(s.header, s.many(signature, wrong, n))
		if want {
			s.ok(t, fmt.Sprintf("%d signatures", n), r)
		} else {
			s.refused(t, fmt.Sprintf("%d signatures", n), r, many)
		}
	}
}

func (s *subject) testTime(t *testing.T) {
	t.Helper()
	if s.unit == 0 {
		return
	}
	window := s.tolerance
	if window == 0 {
		window = 300 * time.Second
	}
	for skew, want := range map[time.Duration]bool{
		window: true, -window: true, window + time.Second: s.loose, -window - time.Second: s.loose, 24 * time.Hour: s.loose,
	} {
		r := s.accepted(t)
		r.Now = r.Now.Add(skew)
		if want {
			s.ok(t, "received after "+skew.String(), r)
		} else {
			s.refused(t, "received after "+skew.String(), r, late)
		}
	}
	if s.stampHeader == "" {
		s.testOddStampsInSignature(t)
		return
	}
	s.testOddStamps(t)
}

var oddStamps = []string{"+1700000000", "1700000000.0", "17000 00000", "-1", "0x6553F100", "1e9", "١٧٠٠٠٠٠٠٠٠", strings.Repeat("1", 21), strings.Repeat("0", 20) + "1700000000", "1700000000\u00a0", "now"}

// testOddStamps signs odd timestamps correctly: only their form is wrong.
func (s *subject) testOddStamps(t *testing.T) {
	t.Helper()
	name := s.stampHeader
	forgeName := name
	for from, to := range s.rename {
		if strings.EqualFold(to, name) {
			forgeName = from
		}
	}
	for _, stamp := range oddStamps {
		r := s.forge(t, http.Header{http.CanonicalHeaderKey(forgeName): {stamp}})
		s.refused(t, "timestamp "+stamp, r, malTime)
	}
	r := s.forge(t, http.Header{http.CanonicalHeaderKey(forgeName): {strings.Repeat("9", 20)}})
	switch {
	case s.stampForm != "":
		s.refused(t, "digits as timestamp", r, malTime)
	case s.loose:
		s.ok(t, "timestamp of 20 digits", r)
	default:
		s.refused(t, "timestamp of 20 digits", r, late)
	}
	r = s.accepted(t)
	value := r.Header.Get(name)
	r.Header.Set(name, "")
	// With an incomplete trio the other family's headers are missed first.
	s.refused(t, "empty timestamp", r, noTime, noSig)
	r.Header.Del(name)
	s.refused(t, "no timestamp", r, noTime, noSig)
	r.Header[http.CanonicalHeaderKey(name)] = []string{value, "1"}
	s.refused(t, "conflicting timestamps", r, dup)
	r.Header[http.CanonicalHeaderKey(name)] = []string{value, value}
	s.ok(t, "repeated equal timestamps", r)
}

func (s *subject) testOddStampsInSignature(t *testing.T) {
	t.Helper()
	r := s.accepted(t)
	value := r.Header.Get(s.header)
	now := s.stampKey + "=" + strconv.FormatInt(derivedNow*s.unit, 10)
	for _, stamp := range append(oddStamps, " 1700000000", "") {
		r.Header.Set(s.header, strings.Replace(value, now, s.stampKey+"="+stamp, 1))
		s.refused(t, "timestamp "+stamp, r, malTime, noTime, badSig) // in groups a space separates
	}
	between := string(value[len(now)])
	r.Header.Set(s.header, strings.Replace(value, now+between, "", 1))
	s.refused(t, "no timestamp", r, noTime, badSig) // Mercado Pago leaves out what is absent
	r.Header.Set(s.header, value+between+s.stampKey+"=1700000001")
	s.refused(t, "two timestamps", r, malTime)
	r.Header.Set(s.header, now+between+value)
	s.ok(t, "the same timestamp twice", r)
}

func (s *subject) testSecrets(t *testing.T) {
	t.Helper()
	a, b := s.secret(0), s.secret(1)
	for _, secrets := range [][]string{nil, {""}, {" \t\n"}, {a, ""}, {"", a}} {
		o := s.options
		o.Secrets = secrets
		if s.options.SchemeOptions["armed"] == true && secrets == nil {
			continue
		}
		if v, problems := signing.New(o); v != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].Path, "secrets") {
			t.Errorf("New(secrets %q) = %v, %v, want one problem", secrets, v, problems)
		}
	}
	for i, secrets := range [][]string{{a, b}, {b, a}} {
		for j, signer := range []string{a, b} {
			proof, err := s.verifier(t, secrets...).Verify(s.accepted(t, signer))
			if want := i ^ j; err != nil || proof.Secret != want {
				t.Errorf("Verify(rotation %d, signed by %d) = %+v, %v, want secret %d", i, j, proof, err, want)
			}
		}
	}
	if proof, err := s.verifier(t, b).Verify(s.accepted(t)); err == nil {
		t.Errorf("Verify(another secret) = %+v, want a rejection", proof)
	}
}
