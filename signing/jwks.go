package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"math/big"
	"net/http"
	"time"
)

const (
	// keySetAge is how long a key set is used without asking again: keys
	// rotate by new ids, which lead to a new fetch at once.
	keySetAge = time.Hour
	// keySetRetry is how often an unknown id may lead to a new fetch, so that
	// nobody can make us ask for every request.
	keySetRetry = time.Minute
	// maxSetKeys bounds the keys of a set.
	maxSetKeys = 128
)

// loadFromKeySet finds a key in the scheme's key set (RFC 7517).
func loadFromKeySet(v *Verifier, _ *input, id string) (crypto.PublicKey, error) {
	address := v.scheme.settings.token.jwksURL
	for _, age := range []time.Duration{keySetAge, keySetRetry} {
		raw, err := v.fetch(KeyRequest{Method: http.MethodGet, URL: address, MaxAge: age})
		if err != nil {
			return nil, err
		}
		keys, err := v.parsed.get(address, raw, parseKeySet)
		if err != nil {
			return nil, &FetchError{URL: withoutQuery(address), Err: err}
		}
		if public, ok := keys[id]; ok {
			return public, nil
		}
	}
	return nil, reject(ReasonUnknownKey, "the provider's key set has no key of the id the token names")
}

// parseKeySet reads the keys that may check signatures; others are left out.
func parseKeySet(raw []byte) (map[string]crypto.PublicKey, error) {
	doc, ok := parseDocument(raw)
	if !ok {
		return nil, errors.New("the key set is not JSON")
	}
	list, ok := doc.at("keys")
	if !ok || list[0] != '[' {
		return nil, errors.New("the key set has no list of keys")
	}
	keys := make(map[string]crypto.PublicKey)
	seen := 0
	walk(list, func(m member) bool {
		if id, public, ok := parseSetKey(m.value); ok {
			keys[id] = public
		}
		seen++
		return seen < maxSetKeys
	})
	return keys, nil
}

// parseSetKey reads one key of a set.
func parseSetKey(raw []byte) (id string, public crypto.PublicKey, ok bool) {
	jwk := document{raw: raw}
	id, ok = jwk.text("kid")
	if use, stated := jwk.text("use"); !ok || stated && use != "sig" {
		return "", nil, false
	}
	switch kind, _ := jwk.text("kty"); kind {
	case "RSA":
		public, ok = rsaFromJWK(&jwk)
	case "EC":
		public, ok = ecdsaFromJWK(&jwk)
	default:
		return "", nil, false
	}
	return id, public, ok
}

func rsaFromJWK(jwk *document) (crypto.PublicKey, bool) {
	n, okN := jwk.number("n", 1024)
	e, okE := jwk.number("e", 8)
	if !okN || !okE || !e.IsInt64() || e.Int64() < 3 || e.Int64() >= 1<<31 {
		return nil, false
	}
	key := &rsa.PublicKey{N: n, E: int(e.Int64())}
	return key, algRSA.fits(key) == nil
}

func ecdsaFromJWK(jwk *document) (crypto.PublicKey, bool) {
	curve, _ := jwk.text("crv")
	x, okX := jwk.number("x", 32)
	y, okY := jwk.number("y", 32)
	if curve != "P-256" || !okX || !okY {
		return nil, false
	}
	point := make([]byte, 65)
	point[0] = 4 // not compressed
	x.FillBytes(point[1:33])
	y.FillBytes(point[33:])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	return key, err == nil
}

// number is a member that holds a number in base64url, of at most so many
// bytes.
func (d *document) number(name string, most int) (*big.Int, bool) {
	text, ok := d.text(name)
	if !ok {
		return nil, false
	}
	raw, err := encodingBase64URL.decode(text)
	if err != nil || len(raw) == 0 || len(raw) > most {
		return nil, false
	}
	return new(big.Int).SetBytes(raw), true
}
