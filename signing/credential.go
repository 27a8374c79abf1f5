package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// verifyCredential proves a request by a value it shows: a token or Basic
// authentication. Digests are compared, so that not even the length of a
// secret shows in the time it takes.
func (v *Verifier) verifyCredential(r *Request) (Proof, *Rejection) {
	in := input{request: r}
	shown, rej := v.credential(&in)
	if rej != nil {
		return Proof{}, rej
	}
	digest, match := sha256.Sum256([]byte(shown)), -1
	for i := range v.tokens {
		if subtle.ConstantTimeCompare(digest[:], v.tokens[i][:]) == 1 && match < 0 {
			match = i
		}
	}
	if match < 0 {
		return Proof{}, reject(ReasonBadCredential, "%s equals no secret of this source", v.scheme.place())
	}
	return Proof{Class: Authenticated, Secret: match}, nil
}

// credential is what the request shows.
func (v *Verifier) credential(in *input) (string, *Rejection) {
	var shown string
	switch {
	case v.scheme.kind == kindBasic:
		return basicCredential(in)
	case v.scheme.query != "":
		shown, _ = in.valuesOf().rawQuery(v.scheme.query)
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
