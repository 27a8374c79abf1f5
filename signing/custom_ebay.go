package signing

import (
	"crypto"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// eBay signs the body with a key that is had from its API by id, with an
// application's token (eBay, "Notification API: validating the payload").

const (
	ebayHeader   = "X-EBAY-SIGNATURE"
	ebayKeyAge   = time.Hour // eBay's own advice
	ebayTokenAge = time.Hour // eBay's tokens live for two
)

func ebayOptions(r *reader, s *scheme) {
	s.settings.endpointToken, s.settings.clientID = r.text("verification_token"), r.text("client_id")
	s.algorithm = algECDSASHA1
	keysOption(r, s)
	needsKeys(r, s)
}

// proveEBay checks the signature of {"kid", "signature"}. What the header says
// about the algorithm is not asked: it is fixed.
func proveEBay(v *Verifier, in *input) (Proof, error) {
	text, rej := in.needed(ebayHeader, ReasonMissingSignature)
	if rej != nil {
		return Proof{}, rej
	}
	raw, err := encodingBase64.decode(text)
	doc, ok := parseDocument(raw)
	if err != nil || !ok {
		return Proof{}, reject(ReasonMalformedSignature, "%s is not base64 of JSON", ebayHeader)
	}
	signature, _ := doc.text("signature")
	id, _ := doc.text("kid")
	sig, err := encodingBase64.decode(signature)
	switch {
	case err != nil || len(sig) == 0:
		return Proof{}, reject(ReasonMalformedSignature, "%s holds no signature in base64", ebayHeader)
	case !keyID.MatchString(id):
		return Proof{}, reject(ReasonUnknownKey, "%s names no key", ebayHeader)
	}
	public, err := v.publicKey(in, id)
	if err != nil {
		return Proof{}, err
	}
	if !algECDSASHA1.verify(public, in.request.Body, sig) {
		return Proof{}, reject(ReasonBadSignature, "%s: the key it names did not sign this body", ebayHeader)
	}
	return Proof{Class: Verified, Secret: -1}, nil
}

// loadEBay asks eBay for a key.
func loadEBay(v *Verifier, _ *input, id string) (crypto.PublicKey, error) {
	host := "https://api.ebay.com"
	if strings.Contains(v.scheme.settings.clientID, "-SBX-") { // a client id names its environment
		host = "https://api.sandbox.ebay.com"
	}
	bearer, err := v.ebayToken(host)
	if err != nil {
		return nil, err
	}
	address := host + "/commerce/notification/v1/public_key/" + url.PathEscape(id)
	raw, err := v.fetch(KeyRequest{
		Method: http.MethodGet, URL: address, MaxAge: ebayKeyAge,
		Header: http.Header{"Authorization": {"Bearer " + bearer}, "Accept": {"application/json"}},
	})
	if err != nil {
		return nil, err
	}
	keys, err := v.parsed.get(address, raw, parseEBayKey)
	if err != nil {
		return nil, &FetchError{URL: address, Err: err}
	}
	return keys[""], nil
}

// ebayToken is a token of the application (RFC 6749, 4.4).
func (v *Verifier) ebayToken(host string) (string, error) {
	address := host + "/identity/v1/oauth2/token"
	if v.scheme.settings.clientID == "" || len(v.accountSecrets) == 0 {
		return "", &FetchError{URL: address, Err: errors.New("client_id and a secret are needed to ask eBay for keys")}
	}
	credential := base64.StdEncoding.EncodeToString([]byte(v.scheme.settings.clientID + ":" + v.accountSecrets[0]))
	raw, err := v.fetch(KeyRequest{
		Method: http.MethodPost, URL: address, MaxAge: ebayTokenAge,
		Body:   []byte("grant_type=client_credentials&scope=https%3A%2F%2Fapi.ebay.com%2Foauth%2Fapi_scope"),
		Header: http.Header{"Authorization": {"Basic " + credential}, "Content-Type": {"application/x-www-form-urlencoded"}},
	})
	if err != nil {
		return "", err
	}
	doc, _ := parseDocument(raw)
	bearer, ok := doc.text("access_token")
	if !ok || strings.ContainsAny(bearer, "\r\n") {
		return "", &FetchError{URL: address, Err: errors.New("the answer has no access_token")}
	}
	return bearer, nil
}

func parseEBayKey(raw []byte) (map[string]crypto.PublicKey, error) {
	doc, _ := parseDocument(raw)
	text, ok := doc.text("key")
	if !ok {
		return nil, errors.New("the answer has no key")
	}
	public, err := newPublicKey(algECDSASHA1, text)
	if err != nil {
		return nil, errors.New("the key in the answer " + err.Error())
	}
	return map[string]crypto.PublicKey{"": public}, nil
}
