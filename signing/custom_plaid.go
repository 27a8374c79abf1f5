package signing

import (
	"crypto"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Plaid signs a token whose key is had from its API by id (Plaid, "Webhook
// verification").

// plaidHosts are asked in turn: an account's secret belongs to one of them.
var plaidHosts = []string{"https://production.plaid.com", "https://sandbox.plaid.com"}

// plaidKeyAge is Plaid's own advice.
const plaidKeyAge = 24 * time.Hour

func plaidOptions(r *reader, s *scheme) {
	s.settings.token = tokenRules{
		header: "Plaid-Verification", algorithms: []string{"ES256"}, bodyHash: "request_body_sha256",
		maxAge: r.duration("tolerance", defaultTolerance),
	}
	s.settings.clientID = r.text("client_id")
	s.algorithm = algECDSAConcat
	keysOption(r, s)
	needsKeys(r, s)
}

func loadPlaid(v *Verifier, _ *input, id string) (crypto.PublicKey, error) {
	err := error(&FetchError{URL: plaidHosts[0], Err: errors.New("client_id and a secret are needed to ask Plaid for keys")})
	if v.scheme.settings.clientID == "" {
		return nil, err
	}
	for _, secret := range v.accountSecrets {
		for _, host := range plaidHosts {
			var public crypto.PublicKey
			if public, err = v.plaidKey(host, secret, id); err == nil {
				return public, nil
			}
			var refused *statusError
			if !errors.As(err, &refused) || refused.code >= http.StatusInternalServerError {
				return nil, err // it is down, not of another opinion
			}
		}
	}
	return nil, err
}

// plaidKey asks one host for a key.
func (v *Verifier) plaidKey(host, secret, id string) (crypto.PublicKey, error) {
	body, err := json.Marshal(map[string]string{"client_id": v.scheme.settings.clientID, "secret": secret, "key_id": id})
	if err != nil {
		return nil, err
	}
	address := host + "/webhook_verification_key/get"
	raw, err := v.fetch(KeyRequest{
		Method: http.MethodPost, URL: address, Body: body, MaxAge: plaidKeyAge,
		Header: http.Header{"Content-Type": {"application/json"}},
	})
	if err != nil {
		return nil, err
	}
	keys, err := v.parsed.get(address+" "+id, raw, parsePlaidKey)
	if err != nil {
		return nil, &FetchError{URL: address, Err: err}
	}
	public, ok := keys[id]
	if !ok {
		return nil, reject(ReasonUnknownKey, "Plaid has no key of the id the token names")
	}
	return public, nil
}

// parsePlaidKey reads {"key": <JWK>}. A key that has expired is none.
func parsePlaidKey(raw []byte) (map[string]crypto.PublicKey, error) {
	doc, ok := parseDocument(raw)
	if !ok {
		return nil, errors.New("the answer is not JSON")
	}
	jwk, ok := doc.at("key")
	if !ok {
		return nil, errors.New("the answer has no key")
	}
	id, public, ok := parseSetKey(jwk)
	if !ok {
		return nil, errors.New("the answer has no key of a kind that is understood")
	}
	key := document{raw: jwk}
	if expired, ok := key.at("expired_at"); ok && string(expired) != "null" {
		return map[string]crypto.PublicKey{}, nil
	}
	return map[string]crypto.PublicKey{id: public}, nil
}
