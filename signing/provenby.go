package signing

import (
	"cmp"
	"strconv"
	"strings"
)

// ProvenBy says in a few words what proves a request: where it stands, the
// algorithm, how it is written and what is signed. For the generic verifiers
// it says what the options decide.
func (p Preset) ProvenBy() string {
	r, ok := find(p.Name)
	if !ok {
		return ""
	}
	if words, ok := provenBy[p.Name]; ok {
		return words
	}
	return r.scheme.provenBy()
}

// SecretForm says what one entry of secrets is; "" where there are none.
func (p Preset) SecretForm() string {
	r, ok := find(p.Name)
	switch {
	case !ok || r.scheme.secrets == secretsNone || r.scheme.kind == kindNone:
		return ""
	case secretsByOption[p.Name] != "":
		return secretsByOption[p.Name]
	case r.scheme.account:
		return "the API secret that fetches the keys, or none with pinned keys"
	case r.scheme.algorithm != "":
		return "the public key: " + strings.TrimPrefix(r.scheme.algorithm.keyKind(), "an ")
	case r.scheme.kind == kindBasic:
		return "user:password"
	}
	return cmp.Or(secretForms[r.scheme.key], "text, verbatim")
}

var secretForms = map[keyForm]string{
	keyWhsec: "base64, with or without whsec_ in front", keyBase64: "base64", keyHex: "hex",
	keyStandard: "whsec_ and base64, or the public key whpk_ and base64", keySHA1: "text, verbatim",
}

// secretsByOption are the forms that the options choose from.
var secretsByOption = map[string]string{
	"hmac":       "as scheme_options.key says; text, verbatim, without it",
	"public-key": "the public key: PEM or base64; Ed25519 also as its 32 bytes in hex or base64",
	"jwt":        "HS256: text, verbatim; others: none",
	"rfc9421":    "hmac-sha256: base64; others: the public key in PEM",
}

// provenBy are the schemes that no declaration describes.
var provenBy = map[string]string{
	"atlassian-connect": "Authorization JWT HS256, qsh of the request; the body is not covered",
	"netlify":           "X-Webhook-Signature: JWS HS256 with the body's SHA-256",
	"monday":            "Authorization JWT HS256; the body is not covered",
	"vonage":            "Authorization Bearer JWT HS256 with the body's SHA-256",
	"messagebird":       "MessageBird-Signature-JWT: JWT HS256 with the hashes of body and URL",
	"plaid":             "Plaid-Verification: JWT ES256 with the body's SHA-256",
	"google-pubsub":     "Authorization Bearer: OIDC token RS256; the body is not covered",
	"mailgun":           "body field signature.signature: HMAC-SHA256 hex over signature.timestamp and token; the body is not covered",
	"mercado-pago":      "x-signature: HMAC-SHA256 hex over a manifest; the body is not covered",
	"paypal":            "PayPal-Transmission-Sig: RSA-SHA256 over id|time|webhook_id|crc32(body)",
	"adyen":             "additionalData.hmacSignature of every item: HMAC-SHA256 base64",
	"braintree":         "form field bt_signature: HMAC-SHA1 hex over bt_payload",
	"twilio":            "X-Twilio-Signature: HMAC-SHA1 base64 over the URL and the sorted form fields",
	"mandrill":          "X-Mandrill-Signature: HMAC-SHA1 base64 over the URL and the sorted form fields",
	"plivo":             "X-Plivo-Signature-V3: HMAC-SHA256 base64 over the URL, the sorted fields and a nonce",
	"hubspot":           "X-HubSpot-Signature-v3: HMAC-SHA256 base64 over {method}{url}{body}{timestamp}, time X-HubSpot-Request-Timestamp (ms)",
	"contentful":        "x-contentful-signature: HMAC-SHA256 hex over the canonical request, time x-contentful-timestamp (ms), window 30s",
	"docusign":          "X-DocuSign-Signature-1 … -100: HMAC-SHA256 base64, any of them",
	"aws-sns":           "body field Signature: RSA over the fields of the message, by Amazon's certificate",
	"ms-graph":          "clientState of every item equals a secret; the body is not signed",
	"ebay":              "X-EBAY-SIGNATURE: ECDSA-SHA1 over {body}",
	"adobe-sign":        "X-AdobeSign-ClientId is an allowed client id; nothing is signed",
	"okta":              "a header (Authorization by default) equals a secret; nothing is signed",
	"cloudevents":       "Authorization Bearer or query parameter access_token equals a secret; nothing is signed",
	"hmac":              "an HMAC, as scheme_options say",
	"public-key":        "a signature by a private key, as scheme_options say",
	"token":             "a secret in a header, the query or the body; nothing is signed",
	"jwt":               "a JSON Web Token, as scheme_options say",
	"rfc9421":           "HTTP Message Signatures (RFC 9421)",
	"mtls":              "a client certificate; the body is not signed",
	"none":              "nothing",
}

func (s *scheme) provenBy() string {
	switch s.kind {
	case kindBasic:
		return "HTTP Basic authentication; nothing is signed"
	case kindToken:
		return s.place() + " equals a secret; nothing is signed"
	}
	how := s.algorithm.words()
	if s.algorithm == "" {
		how = "HMAC-" + strings.ToUpper(string(s.digest))
	}
	words := strings.Join(s.headers, " or ") + ": " + s.written() + how + " " + string(s.encoding) + " over " + s.message
	switch {
	case !s.stamped:
		return words
	case s.stamp.json != "" || s.stamp.header != "":
		words += ", time " + s.stampPlace()
	}
	return words + s.stamp.words()
}

// written is what stands in front of the signature.
func (s *scheme) written() string {
	switch {
	case s.prefix != "":
		return strings.TrimSpace(s.prefix) + " "
	case s.format == formatTags:
		return s.tag + s.delimiter + " "
	case s.stampKey != "":
		return s.stampKey + "=" + cmp.Or(s.delimiter, " ") + s.tag + "= "
	case s.tag != "":
		return s.tag + "= "
	}
	return ""
}

// words are the unit where it is not seconds, and the window where it is not
// the default.
func (s *stamp) words() string {
	words := ""
	if s.unit != unitSeconds {
		words = " (" + string(s.unit) + ")"
	}
	switch s.tolerance {
	case defaultTolerance:
	case 0:
		words += ", no window"
	default:
		words += ", window " + strconv.Itoa(int(s.tolerance.Seconds())) + "s"
	}
	return words
}

// words name the algorithm as people do.
func (a algorithm) words() string {
	switch a {
	case algEd25519:
		return "Ed25519"
	case algECDSA:
		return "ECDSA P-256 SHA-256"
	case algECDSASHA1:
		return "ECDSA P-256 SHA-1"
	}
	return strings.ToUpper(string(a))
}
