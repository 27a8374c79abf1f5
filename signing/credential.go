package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
)

// verifyCredential proves a request by a value it shows: a token or Basic
// authentication. Digests are compared, so that not even the length of a
// secret shows in the time it takes.
func (v *Verifier) verifyCredential(in *input) (Proof, *Rejection) {
	shown, rej := v.credential(in)
	if rej != nil {
		return Proof{}, rej
	}
	match := v.matchToken(shown)
	if match < 0 {
		return Proof{}, reject(ReasonBadCredential, "%s equals no secret of this source", v.scheme.place())
	}
	return Proof{Class: Authenticated, Secret: match}, nil
}

// matchToken returns the index of the secret that equals the text, -1 where
// none does.
func (v *Verifier) matchToken(shown string) int {
	digest, match := sha256.Sum256([]byte(shown)), -1
	for i := range v.tokens {
		if subtle.ConstantTimeCompare(digest[:], v.tokens[i][:]) == 1 && match < 0 {
			match = i
		}
	}
	return match
}

// credential is what the request shows.
func (v *Verifier) credential(in *input) (string, *Rejection) {
	var shown string
	switch {
	case v.scheme.kind == kindBasic:
		return basicCredential(in)
	case v.scheme.query != "" && !v.inHeader(in):
		shown, _ = in.valuesOf().rawQuery(v.scheme.query)
		if shown == "" {
			return "", reject(ReasonMissingCredential, "%s", v.scheme.place())
		}
		return shown, nil
	case v.scheme.json != "":
		shown, _ = in.valuesOf().JSON(v.scheme.json)
	default:
		value, rej := in.single(v.scheme.headers[0])
		if rej != nil {
			return "", rej
		}
		shown = value
	}
	if shown == "" {
		return "", reject(ReasonMissingCredential, "%s", v.scheme.place())
	}
	rest, ok := strings.CutPrefix(shown, v.scheme.prefix)
	if !ok {
		return "", reject(ReasonBadCredential, "%s lacks the prefix", v.scheme.place())
	}
	return rest, nil
}

// inHeader reports whether a token that may stand in the query as well stands
// in its header.
func (v *Verifier) inHeader(in *input) bool {
	return len(v.scheme.headers) > 0 && len(in.request.Header[http.CanonicalHeaderKey(v.scheme.headers[0])]) > 0
}

// basicCredential is user:password of RFC 7617. As a user name has no colon,
// comparing the whole text is comparing both parts split at the first colon.
func basicCredential(in *input) (string, *Rejection) {
	value, rej := in.single("Authorization")
	if rej != nil {
		return "", rej
	}
	if value == "" {
		return "", reject(ReasonMissingCredential, "Authorization")
	}
	method, encoded, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(method, "Basic") {
		return "", reject(ReasonBadCredential, "Authorization is not Basic")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimLeft(encoded, " "))
	if err != nil {
		return "", reject(ReasonBadCredential, "Authorization is not base64")
	}
	return string(raw), nil
}
