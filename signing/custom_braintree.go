package signing

import (
	"regexp"
	"strings"
)

// Braintree signs a form field, with a key made of the private key; several
// keys may sign, and each signature stands beside its public key (Braintree
// SDKs, WebhookNotificationGateway).

const (
	braintreePayload, braintreeSignature = "bt_payload", "bt_signature"
	braintreeChallengeParameter          = "bt_challenge"
)

var (
	braintreeChars     = regexp.MustCompile(`^[A-Za-z0-9+=/\n]+$`)
	braintreeChallenge = regexp.MustCompile(`^[a-f0-9]{20,32}$`)
)

func braintreeOptions(r *reader, s *scheme) {
	if s.settings.publicKey = r.text("public_key"); !r.has("public_key") {
		r.add(r.at("public_key"), "is required: the public key that belongs to the private key in secrets")
	}
}

func proveBraintree(v *Verifier, in *input) (Proof, error) {
	payload, ok := in.valuesOf().Form(braintreePayload)
	signature, okSignature := in.valuesOf().Form(braintreeSignature)
	switch {
	case !ok || !okSignature:
		return Proof{}, reject(ReasonMissingSignature, "form fields %s and %s", braintreeSignature, braintreePayload)
	case !braintreeChars.MatchString(payload):
		return Proof{}, reject(ReasonMalformedBody, "form field %s is not base64", braintreePayload)
	case braintreeChallenge.MatchString(payload):
		// The answer to a challenge is a signature over it: anyone could have
		// asked for this one.
		return Proof{}, reject(ReasonMalformedBody, "form field %s is a challenge", braintreePayload)
	}
	var found candidates
	for pair := range strings.SplitSeq(signature, "&") {
		public, text, ok := strings.Cut(pair, "|")
		if !ok || public != v.scheme.settings.publicKey || text == "" {
			continue
		}
		if rej := found.add("", text); rej != nil {
			return Proof{}, rej
		}
	}
	if found.n == 0 {
		return Proof{}, reject(ReasonMissingSignature, "form field %s has no signature of public_key", braintreeSignature)
	}
	for _, message := range []string{payload, payload + "\n"} {
		if secret := v.match([]piece{{text: message}}, &found); secret >= 0 {
			return Proof{Class: Verified, Secret: secret}, nil
		}
	}
	return Proof{}, v.mismatch(&found)
}

// answerBraintree signs a challenge. It takes nothing that could be a payload.
func answerBraintree(v *Verifier, r *Request) (Reply, bool, error) {
	text, is := queryHandshake(r, braintreeChallengeParameter)
	if !is {
		return Reply{}, false, nil
	}
	if !braintreeChallenge.MatchString(text) {
		return badHandshake(braintreeChallengeParameter), true, nil
	}
	return echo(v.scheme.settings.publicKey + "|" + v.mac([]byte(text))), true, nil
}

func signBraintree(v *Verifier, in *input, _ Options) error {
	payload, ok := in.valuesOf().Form(braintreePayload)
	if !ok {
		payload = string(encodingBase64.encode(nil, in.request.Body)) + "\n"
	}
	signature := v.scheme.settings.publicKey + "|" + v.mac([]byte(payload))
	in.request.Header.Set("Content-Type", formType)
	in.setForm(field{braintreeSignature, signature}, field{braintreePayload, payload})
	return nil
}
