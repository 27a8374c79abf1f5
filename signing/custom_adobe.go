package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// Adobe Sign shows the id of the application that made a webhook and wants it
// back in every answer (Acrobat Sign, "Webhook service"). It is no secret:
// allow_ips should stand beside it.

const adobeClientID = "X-AdobeSign-ClientId"

func adobeOptions(r *reader, s *scheme) {
	s.settings.clientIDs = r.oneOrMore("client_ids")
	if !r.has("client_ids") {
		r.add(r.at("client_ids"), "is required: the client ids of the applications whose webhooks may call")
	}
}

func proveAdobe(v *Verifier, in *input) (Proof, error) {
	shown, rej := in.needed(adobeClientID, ReasonMissingCredential)
	if rej != nil {
		return Proof{}, rej
	}
	digest, allowed := sha256.Sum256([]byte(shown)), 0
	for _, id := range v.scheme.settings.clientIDs {
		other := sha256.Sum256([]byte(id))
		allowed |= subtle.ConstantTimeCompare(digest[:], other[:])
	}
	if allowed != 1 {
		return Proof{}, reject(ReasonBadCredential, "%s is not in scheme_options.client_ids", adobeClientID)
	}
	return Proof{Class: Authenticated, Secret: -1}, nil
}

// adobeChallenge answers the registration of a webhook.
func adobeChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	if r.Method != http.MethodGet || len(r.Header[http.CanonicalHeaderKey(adobeClientID)]) == 0 {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	value, _ := headerValue(r.Header, adobeClientID)
	return Reply{Status: http.StatusOK, Header: http.Header{http.CanonicalHeaderKey(adobeClientID): {value}}}, true, nil
}

func signAdobe(v *Verifier, in *input, _ Options) error {
	setAbsent(in.request.Header, adobeClientID, v.scheme.settings.clientIDs[0])
	return nil
}
