package signing

import (
	"crypto"
	"regexp"
	"slices"
)

// Amazon SNS signs some members of its JSON, in a fixed order (Amazon SNS
// Developer Guide, "Verifying the signatures of Amazon SNS messages"). Anyone
// may subscribe us to a topic of theirs with a perfect signature, so the topic
// must be allowed too.

// snsCertificate is where certificates of Amazon SNS may be.
var snsCertificate = regexp.MustCompile(`^https://sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?/[A-Za-z0-9_/-]+\.pem$`)

// snsSigned are the signed members of each type.
var snsSigned = map[string][]string{
	"Notification":             {"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"},
	"SubscriptionConfirmation": {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
	"UnsubscribeConfirmation":  {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
}

func snsOptions(r *reader, s *scheme) {
	s.settings.topics, s.settings.confirm = r.oneOrMore("topics"), r.boolean("confirm", true)
	if !r.has("topics") {
		r.add(r.at("topics"), "is required: the TopicArns that may send, as anyone can subscribe this source to a topic of theirs")
	}
	keysOption(r, s)
	needsKeys(r, s)
}

func loadSNS(v *Verifier, in *input, address string) (crypto.PublicKey, error) {
	return loadCertificate(v, in, address, inDate)
}

func proveSNS(v *Verifier, in *input) (Proof, error) {
	doc, ok := in.document()
	if !ok {
		return Proof{}, reject(ReasonMalformedBody, "the body is no JSON object: raw message delivery has no signature, turn it off")
	}
	message, rej := snsMessage(&doc)
	if rej != nil {
		return Proof{}, rej
	}
	text, _ := doc.text("Signature")
	address, _ := doc.text("SigningCertURL")
	switch topic, _ := doc.text("TopicArn"); {
	case text == "":
		return Proof{}, reject(ReasonMissingSignature, "body field Signature")
	case !snsCertificate.MatchString(address):
		return Proof{}, reject(ReasonUnknownKey, "body field SigningCertURL is no certificate of Amazon SNS")
	case !slices.Contains(v.scheme.settings.topics, topic):
		return Proof{}, reject(ReasonNotAllowed, "the topic is not in scheme_options.topics")
	}
	algorithm, rej := snsAlgorithm(&doc)
	if rej != nil {
		return Proof{}, rej
	}
	sig, err := encodingBase64.decode(text)
	if err != nil {
		return Proof{}, reject(ReasonMalformedSignature, "body field Signature is not base64")
	}
	public, err := v.publicKey(in, address)
	if err != nil {
		return Proof{}, err
	}
	if !algorithm.verify(public, message, sig) {
		return Proof{}, reject(ReasonBadSignature, "body field Signature: the certificate it names did not sign the message")
	}
	return Proof{Class: Verified, Secret: -1}, nil
}

func snsAlgorithm(doc *document) (algorithm, *Rejection) {
	switch version, _ := doc.text("SignatureVersion"); version {
	case "1":
		return algRSASHA1, nil
	case "2":
		return algRSA, nil
	}
	return "", reject(ReasonUnsupported, "body field SignatureVersion is neither 1 nor 2")
}

// snsMessage is the signed text: name and value of each member, a line each.
func snsMessage(doc *document) ([]byte, *Rejection) {
	kind, _ := doc.text("Type")
	names, ok := snsSigned[kind]
	if !ok {
		return nil, reject(ReasonMalformedBody, "body field Type is none of Amazon SNS")
	}
	message := make([]byte, 0, len(doc.raw))
	for _, name := range names {
		raw, ok := doc.at(name)
		absent := !ok && !doc.has(name) || string(raw) == "null"
		if absent && name == "Subject" {
			continue
		}
		if !ok || raw[0] != '"' {
			return nil, reject(ReasonMissingPart, "body field %s", name)
		}
		value, ok := decodeString(raw)
		if !ok || value == "" && name != "Subject" {
			return nil, reject(ReasonMissingPart, "body field %s", name)
		}
		message = append(append(append(append(message, name...), '\n'), value...), '\n')
	}
	return message, nil
}
