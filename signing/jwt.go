package signing

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file is what webhooks need of JSON Web Tokens (RFC 7515, 7519): one
// compact signature, its algorithm fixed beforehand.

const (
	// maxToken bounds a token, in bytes. Google's have 1.2 KiB.
	maxToken = 16 << 10
	// tokenLeeway is how far clocks may differ where exp and nbf are judged.
	tokenLeeway = 60 * time.Second
)

// tokenAlgorithms maps the names of RFC 7518 to ours; HS256 has no public key.
var tokenAlgorithms = map[string]algorithm{"HS256": "", "RS256": algRSA, "ES256": algECDSAConcat}

// tokenRules say what a token must be and say.
type tokenRules struct {
	// header holds the token, behind prefix.
	header, prefix string
	// bare also takes the token without the prefix.
	bare bool
	// algorithms are names of RFC 7518.
	algorithms []string
	// expires: exp must be there. It and nbf are judged wherever they stand.
	expires bool
	// maxAge bounds the distance of iat from now, both ways; 0 = not judged.
	maxAge time.Duration
	// issuers and audience are required values of iss and aud.
	issuers  []string
	audience string
	// bodyHash is the claim with the hex SHA-256 of the body.
	bodyHash string
	// jwksURL is where the key set is.
	jwksURL string
	// check judges the claims that only this scheme has.
	check func(v *Verifier, in *input, claims *document) *Rejection
	// forged are claims that only this scheme has, for Forge.
	forged func(v *Verifier, in *input) map[string]any
}

// token is a token taken apart; nothing of it is proven yet.
type token struct {
	alg, kid  string
	claims    document
	signed    string // header and claims as they were sent
	signature string
}

// parseToken reads a compact token. Whatever the header says about keys (jwk,
// jku, x5c, x5u) is not looked at.
func parseToken(text string) (token, *Rejection) {
	malformed := reject(ReasonMalformedSignature, "the token is not three parts of base64url with JSON in them")
	first, last := strings.IndexByte(text, '.'), strings.LastIndexByte(text, '.')
	if len(text) > maxToken || first <= 0 || last <= first+1 || strings.Count(text, ".") != 2 {
		return token{}, malformed
	}
	header, ok := tokenPart(text[:first])
	claims, okClaims := tokenPart(text[first+1 : last])
	if !ok || !okClaims {
		return token{}, malformed
	}
	if header.has("crit") {
		return token{}, reject(ReasonUnsupported, "the token asks for extensions (crit)")
	}
	t := token{claims: claims, signed: text[:last], signature: text[last+1:]}
	t.alg, _ = header.text("alg")
	t.kid, _ = header.text("kid")
	return t, nil
}

// tokenPart is a JSON object in base64url without padding.
func tokenPart(text string) (document, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return document{}, false
	}
	doc, ok := parseDocument(raw)
	return doc, ok && doc.raw[0] == '{'
}

// proveToken proves a request by its token.
func proveToken(v *Verifier, in *input) (Proof, error) {
	t, rej := v.receivedToken(in)
	if rej != nil {
		return Proof{}, rej
	}
	secret, err := v.checkToken(in, &t)
	if err != nil {
		return Proof{}, err
	}
	skew, rej := v.scheme.settings.token.judge(&t.claims, in.request.Now)
	if rej == nil {
		rej = v.checkClaims(in, &t.claims)
	}
	if rej != nil {
		return Proof{}, rej
	}
	return Proof{Class: v.class, Secret: secret, Skew: skew}, nil
}

// receivedToken finds the token in its header.
func (v *Verifier) receivedToken(in *input) (token, *Rejection) {
	rules := &v.scheme.settings.token
	value, rej := in.single(rules.header)
	if rej != nil {
		return token{}, rej
	}
	text, ok := strings.CutPrefix(value, rules.prefix)
	switch {
	case value == "":
		return token{}, reject(ReasonMissingSignature, "%s", rules.header)
	case !ok && !rules.bare:
		return token{}, reject(ReasonMalformedSignature, "%s lacks the prefix", rules.header)
	}
	return parseToken(text)
}

// checkToken checks the signature and returns the index of the secret that
// made it, -1 for a public key.
func (v *Verifier) checkToken(in *input, t *token) (int, error) {
	rules := &v.scheme.settings.token
	if !slices.Contains(rules.algorithms, t.alg) {
		return -1, reject(ReasonUnsupported, "the token's algorithm is not one this source takes")
	}
	algorithm := tokenAlgorithms[t.alg]
	if algorithm == "" {
		var found candidates
		if rej := found.add("", t.signature); rej != nil {
			return -1, rej
		}
		secret := v.match([]piece{{text: t.signed}}, &found)
		if secret < 0 {
			return -1, v.mismatch(&found)
		}
		return secret, nil
	}
	if !keyID.MatchString(t.kid) {
		return -1, reject(ReasonUnknownKey, "the token names no key (kid)")
	}
	public, err := v.publicKey(in, t.kid)
	if err != nil {
		return -1, err
	}
	sig, err := encodingBase64URL.decode(t.signature)
	if err != nil || !algorithm.verify(public, []byte(t.signed), sig) {
		return -1, reject(ReasonBadSignature, "%s: the key it names did not sign the token", rules.header)
	}
	return -1, nil
}

// judge compares the times of a token with the time of receipt.
func (rules *tokenRules) judge(claims *document, now time.Time) (time.Duration, *Rejection) {
	exp, rej := claims.date("exp")
	switch {
	case rej != nil:
		return 0, rej
	case exp.IsZero() && rules.expires:
		return 0, reject(ReasonMissingTimestamp, "the token has no end (exp)")
	case !exp.IsZero() && !now.Add(-tokenLeeway).Before(exp):
		return 0, outside(now.Sub(exp), "the token ended %s ago", now.Sub(exp).Round(time.Second))
	}
	nbf, rej := claims.date("nbf")
	if rej != nil {
		return 0, rej
	}
	if !nbf.IsZero() && nbf.After(now.Add(tokenLeeway)) {
		return 0, outside(now.Sub(nbf), "the token begins in %s", nbf.Sub(now).Round(time.Second))
	}
	iat, rej := claims.date("iat")
	switch {
	case rej != nil:
		return 0, rej
	case iat.IsZero() && rules.maxAge > 0:
		return 0, reject(ReasonMissingTimestamp, "the token does not say when it was made (iat)")
	case iat.IsZero():
		return 0, nil
	}
	return now.Sub(iat), window(iat, now, time.Second, rules.maxAge)
}

// date is a NumericDate (RFC 7519, 2), the zero time where there is none.
func (d *document) date(claim string) (time.Time, *Rejection) {
	if !d.has(claim) {
		return time.Time{}, nil
	}
	raw, ok := d.at(claim)
	if !ok || raw[0] == '"' {
		return time.Time{}, reject(ReasonMalformedTimestamp, "claim %s is no number", claim)
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds < 1 || seconds > lastSecond {
		return time.Time{}, reject(ReasonMalformedTimestamp, "claim %s is no time", claim)
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), nil
}

// checkClaims judges what the token says besides its times.
func (v *Verifier) checkClaims(in *input, claims *document) *Rejection {
	rules := &v.scheme.settings.token
	if iss, _ := claims.text("iss"); len(rules.issuers) > 0 && !slices.Contains(rules.issuers, iss) {
		return reject(ReasonBadClaim, "claim iss is another issuer")
	}
	if rules.audience != "" && !claims.includes("aud", rules.audience) {
		return reject(ReasonBadClaim, "claim aud is another audience")
	}
	if rules.bodyHash != "" {
		if rej := claims.hashIs(rules.bodyHash, bodySHA256(in.request)); rej != nil {
			return rej
		}
	}
	if rules.check != nil {
		return rules.check(v, in, claims)
	}
	return nil
}

// includes reports whether a claim is the text, or a list that holds it.
func (d *document) includes(claim, text string) bool {
	raw, ok := d.at(claim)
	if !ok {
		return false
	}
	if raw[0] != '[' {
		value, ok := scalar(raw)
		return ok && raw[0] == '"' && value == text
	}
	found := false
	walk(raw, func(m member) bool {
		value, ok := scalar(m.value)
		found = ok && m.value[0] == '"' && value == text
		return !found
	})
	return found
}

// hashIs compares a claim with a hash in hex.
func (d *document) hashIs(claim, hash string) *Rejection {
	value, ok := d.text(claim)
	switch {
	case !ok:
		return reject(ReasonBadClaim, "claim %s is missing", claim)
	case !encodingHex.matches(value, []byte(hash), nil):
		return reject(ReasonBadSignature, "claim %s is another hash: something changes the body or URL on the way", claim)
	}
	return nil
}

// text is a string member of a document.
func (d *document) text(path string) (string, bool) {
	raw, ok := d.at(path)
	if !ok || raw[0] != '"' {
		return "", false
	}
	return scalar(raw)
}

// has reports whether an object has a member of that name, whatever it holds
// and however often.
func (d *document) has(name string) bool {
	found := false
	visit := func(m member) bool {
		found = m.key != nil && keyIs(m.key, name)
		return !found
	}
	if len(d.members) > 0 {
		for _, m := range d.members {
			if !visit(m) {
				break
			}
		}
		return found
	}
	if len(d.raw) > 0 {
		walk(d.raw, visit)
	}
	return found
}
