package bridge

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
)

func (c Config) checkTargets(k checklist) {
	seen := map[string]bool{}
	for i, t := range c.Targets {
		at := k.below("targets[%d]", i)
		at.name("target", t.Name, seen)
		t.check(at)
	}
}

func (t Target) check(k checklist) {
	switch {
	case t.HTTP == nil && t.Lambda == nil:
		k.fail("http", "is required: a target needs exactly one of http and lambda")
	case t.HTTP != nil && t.Lambda != nil:
		k.fail("lambda", "excludes http: a target needs exactly one of http and lambda")
	}
	if t.HTTP != nil {
		t.HTTP.check(k.below("http"), t.Auth)
	}
	t.checkLambda(k)
	t.Auth.check(k.below("auth"))
	t.Signing.check(k.below("signing"))
	t.TLS.check(k.below("tls"))
	t.checkPlain(k)
	t.Network.check(k.below("network"))
	k.between("concurrency", t.Concurrency, 1, maxConcurrency)
	k.rate("rate", t.Rate.PerSecond, t.Rate.Burst)
	t.Rate.check(k.below("rate"))
	t.Breaker.check(k.below("breaker"))
	k.notNegative("disable_after", t.DisableAfter)
}

// maxConcurrency bounds the calls of one target: more are a typing error.
const maxConcurrency = 100_000

func (h HTTPTarget) check(k checklist, auth Auth) {
	k.webURL("url", h.URL)
	k.method("method", h.Method)
	k.positive("timeout", h.Timeout)
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		field := atKey("headers", name)
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
		case !isToken(name):
			k.fail(field, "must be a header name, got %q", name)
		case slices.Contains(ownHeaders, canonical):
			k.fail(field, "is set by the bridge on every call: remove it")
		case canonical == auth.headerName():
			k.fail(field, "is set by auth type %s: remove one", auth.Type)
		}
		k.when(strings.ContainsFunc(h.Headers[name], isControl), field, "must not hold control characters")
	}
}

// headerName is the header that carries the credential; "" for none.
func (a Auth) headerName() string {
	switch a.Type {
	case AuthNone:
		return ""
	case AuthAPIKey:
		return textproto.CanonicalMIMEHeaderKey(a.Header)
	}
	return "Authorization"
}

// ownHeaders frame a call or identify its delivery; a constant cannot replace
// them.
var ownHeaders = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Queen-Attempt", "Queen-Partition", "Queen-Queue", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp",
}

func (s TargetSigning) check(k checklist) {
	if !slices.Contains(signings, s.Scheme) {
		k.word("scheme", s.Scheme, signings)
		return
	}
	for i, secret := range s.Secrets {
		if _, err := signing.NewSigner(s.Scheme, []string{secret.Reveal()}); err != nil {
			k.fail(atIndex("secrets", i), "%s", strings.TrimPrefix(err.Error(), "secrets[0]: "))
		}
	}
}

func (t TargetTLS) check(k checklist) {
	k.when(t.Cert != "" && t.Key == "", "cert", "needs tls.key, too")
	k.when(t.Key != "" && t.Cert == "", "key", "needs tls.cert, too")
	for i, pin := range t.Pins {
		raw, err := base64.StdEncoding.DecodeString(pin)
		k.when(err != nil || len(raw) != sha256.Size, atIndex("pins", i),
			"must be the base64 of the SHA-256 of the server's public key (44 characters, %s), got %q", pinHint, cutText(pin, 100))
	}
}

// pinHint is how to make a pin.
const pinHint = "openssl x509 -pubkey -noout -in cert.pem | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64"

// checkPlain refuses TLS for a target that is called without it: who pins a
// key does not expect events to travel in clear. tls.ca may be the token
// URL's, or the proxy's.
func (t Target) checkPlain(k checklist) {
	if t.HTTP == nil || !strings.HasPrefix(strings.ToLower(t.HTTP.URL), "http://") {
		return
	}
	k.when(len(t.TLS.Pins) > 0, "tls.pins", "needs an http.url that begins with https://")
	k.when(t.TLS.Cert != "" && t.TLS.Key != "", "tls.cert", "needs an http.url that begins with https://")
	k.when(t.TLS.CA != "" && t.Auth.TokenURL == "" && !isHTTPS(t.Network.Proxy), "tls.ca", "needs an http.url that begins with https://")
}

func (n Network) check(k checklist) {
	k.word("profile", n.Profile, profiles)
	k.cidrs("allow", n.Allow)
	if n.Proxy == "" {
		return
	}
	k.webURL("proxy", n.Proxy)
	u, err := url.Parse(n.Proxy)
	k.when(err == nil && u.User == nil && (strings.Trim(u.Path, "/") != "" || u.RawQuery != ""), "proxy", "must be a host and port only, such as http://proxy.internal:3128")
}

// Bounds of a target's rate: above, it is a typing error; below, the window of
// a shared one (the time of one call, at least) outlasts what is reasonable to
// keep in Queen.
const (
	maxTargetRate = 1_000_000
	minSharedRate = 1e-5 // about one a day
)

func (r TargetRate) check(k checklist) {
	k.when(r.PerSecond > maxTargetRate, "per_second", "must be at most %d, got %v", maxTargetRate, r.PerSecond)
	k.when(r.Burst > maxTargetRate, "burst", "must be at most %d, got %d", maxTargetRate, r.Burst)
	k.when(r.Shared && r.PerSecond == 0, "shared", "has no effect without rate.per_second")
	k.when(r.Shared && r.PerSecond > 0 && r.PerSecond < minSharedRate, "per_second", "must be at least 0.00001 where it is shared, got %v", r.PerSecond)
}

func (b Breaker) check(k checklist) {
	k.atLeast("failures", b.Failures, 1)
	k.positive("open", b.Open)
	k.when(b.MaxOpen < b.Open, "max_open", "must be at least breaker.open (%s), got %s", FormatDuration(b.Open), FormatDuration(b.MaxOpen))
}
