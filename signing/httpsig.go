package signing

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// httpRules are the options of scheme rfc9421.
type httpRules struct {
	// algorithm is the name of RFC 9421, 3.3.
	algorithm string
	// label is the one signature that counts; "" is any.
	label string
	// components must be covered; nil is the default of needed.
	components []string
	tolerance  time.Duration
}

// messageAlgorithms maps the names of RFC 9421, 3.3, to ours.
var messageAlgorithms = map[string]algorithm{
	"hmac-sha256": "", "ed25519": algEd25519, "ecdsa-p256-sha256": algECDSAConcat,
	"rsa-pss-sha512": algRSAPSS, "rsa-v1_5-sha256": algRSA,
}

var messageAlgorithmNames = []string{"hmac-sha256", "ed25519", "ecdsa-p256-sha256", "rsa-pss-sha512", "rsa-v1_5-sha256"}

// messageOptions reads the options of rfc9421.
func messageOptions(r *reader, s *scheme) {
	rules := &s.settings.message
	if !r.has("algorithm") {
		r.add(r.at("algorithm"), "is required: one of %s", strings.Join(messageAlgorithmNames, ", "))
	}
	rules.algorithm = r.oneOf("algorithm", messageAlgorithmNames)
	rules.label = r.text("label")
	for i, c := range r.list("components") {
		if _, err := parseComponent(c); err != nil {
			r.add(fmt.Sprintf("%s[%d]", r.at("components"), i), `must be a component such as @method, content-digest or @query-param;name="x", got %q`, c)
		}
		rules.components = append(rules.components, c)
	}
	rules.tolerance = r.duration("tolerance", defaultTolerance)
	s.algorithm, s.encoding, s.digest = messageAlgorithms[rules.algorithm], encodingBase64, digestSHA256
	s.key = keyBase64
	if s.algorithm != "" {
		s.key = keyPublic
	}
}

// parseComponent reads a component as options write it, without quotes.
func parseComponent(text string) (fieldValue, error) {
	name, rest, more := strings.Cut(text, ";")
	if more {
		rest = ";" + rest
	}
	r := fieldReader{text: `("` + name + `"` + rest + `)`}
	list, err := r.innerList()
	if err != nil || len(list) != 1 || name == "" || r.pos != len(r.text) {
		return fieldValue{}, errStructured
	}
	return list[0], nil
}

// proveMessage proves a request by RFC 9421: any signature that covers enough
// and that a key of ours made. Which algorithm and key counts is never taken
// from the request.
func proveMessage(v *Verifier, in *input) (Proof, error) {
	inputs, signatures, rej := v.messageFields(in)
	if rej != nil {
		return Proof{}, rej
	}
	var refusal *Rejection
	for _, m := range inputs {
		if label := v.scheme.settings.message.label; label != "" && m.key != label {
			continue
		}
		i := slices.IndexFunc(signatures, func(s fieldMember) bool { return s.key == m.key })
		if i < 0 {
			continue
		}
		proof, rej := v.proveLabel(in, &m, &signatures[i])
		if rej == nil {
			return proof, nil
		}
		if refusal == nil {
			refusal = rej
		}
	}
	if refusal == nil {
		refusal = reject(ReasonMissingSignature, "Signature-Input and Signature have no label in common that counts here")
	}
	return Proof{}, refusal
}

// messageFields reads the two headers of RFC 9421.
func (v *Verifier) messageFields(in *input) (inputs, signatures []fieldMember, rej *Rejection) {
	read := func(name string) []fieldMember {
		if rej != nil {
			return nil
		}
		var value string
		if value, rej = in.single(name); rej != nil {
			return nil
		}
		members, err := parseFieldDictionary(value)
		switch {
		case value == "":
			rej = reject(ReasonMissingSignature, "%s", name)
		case err != nil:
			rej = reject(ReasonMalformedSignature, "%s is no dictionary", name)
		case len(members) > maxSignatures:
			rej = reject(ReasonTooManySignatures, "more than %d", maxSignatures)
		}
		return members
	}
	inputs, signatures = read("Signature-Input"), read("Signature")
	return inputs, signatures, rej
}

// proveLabel judges one signature.
func (v *Verifier) proveLabel(in *input, m, signature *fieldMember) (Proof, *Rejection) {
	rules := &v.scheme.settings.message
	if !m.isList || signature.isList || signature.value.kind != ':' {
		return Proof{}, reject(ReasonMalformedSignature, "Signature-Input and Signature of one label must be a list and bytes")
	}
	if rej := rules.covers(m.list); rej != nil {
		return Proof{}, rej
	}
	if alg, ok := param(m.params, "alg"); ok && alg.text != rules.algorithm {
		return Proof{}, reject(ReasonUnsupported, "the signature's algorithm is not the one of this source")
	}
	base, rej := in.signatureBase(m)
	if rej != nil {
		return Proof{}, rej
	}
	var found candidates
	if rej := found.add("", signature.value.text); rej != nil {
		return Proof{}, rej
	}
	secret := v.match([]piece{{bytes: base}}, &found)
	if secret < 0 {
		return Proof{}, v.mismatch(&found)
	}
	proof := Proof{Class: Authenticated, Secret: secret}
	if slices.ContainsFunc(m.list, func(c fieldValue) bool { return c.text == "content-digest" }) {
		proof.Class = Verified
		if rej := checkDigest(in); rej != nil {
			return Proof{}, rej
		}
	}
	proof.Skew, rej = rules.judge(m.params, in.request.Now)
	return proof, rej
}

// covers checks the components: enough of them, and none twice.
func (rules *httpRules) covers(list []fieldValue) *Rejection {
	covered := make(map[string]bool, len(list))
	for _, c := range list {
		name := componentName(c)
		if c.kind != '"' || covered[name] {
			return reject(ReasonMalformedSignature, "a component stands twice, or is no string")
		}
		covered[name] = true
	}
	needed := rules.components
	if needed == nil {
		needed = []string{"@method", "content-digest"}
		if !covered["@path"] || !covered["@authority"] {
			needed = append(needed, "@target-uri")
		}
	}
	for _, name := range needed {
		if !covered[name] {
			return reject(ReasonMissingPart, "the signature does not cover %s", name)
		}
	}
	return nil
}

// componentName is a component as options write it: name;param="x".
func componentName(c fieldValue) string {
	return strings.Replace(strings.TrimPrefix(c.verbatim, `"`), `"`, "", 1)
}

// judge checks created and expires.
func (rules *httpRules) judge(params []fieldParam, now time.Time) (time.Duration, *Rejection) {
	created, ok := signatureTime(params, "created")
	if !ok {
		return 0, reject(ReasonMissingTimestamp, "the signature does not say when it was made (created)")
	}
	if _, set := param(params, "expires"); set {
		expires, ok := signatureTime(params, "expires")
		if !ok {
			return 0, reject(ReasonMalformedTimestamp, "expires is no time")
		}
		if now.Truncate(time.Second).After(expires) {
			return 0, outside(now.Sub(expires), "the signature expired %s ago", now.Sub(expires).Round(time.Second))
		}
	}
	return now.Sub(created), window(created, now, time.Second, rules.tolerance)
}

func signatureTime(params []fieldParam, name string) (time.Time, bool) {
	p, ok := param(params, name)
	n, err := strconv.ParseInt(p.text, 10, 64)
	if !ok || p.kind != 0 || err != nil || n < 0 {
		return time.Time{}, false
	}
	return time.Unix(min(n, lastSecond), 0), true
}

// checkDigest recomputes Content-Digest (RFC 9530) over the body as it was
// received. Every digest in it must be right; other algorithms than SHA-256
// and SHA-512 are refused, as nobody would notice that they are wrong.
func checkDigest(in *input) *Rejection {
	value, rej := in.single("Content-Digest")
	if rej != nil {
		return rej
	}
	members, err := parseFieldDictionary(value)
	if err != nil || len(members) == 0 {
		return reject(ReasonMalformedSignature, "Content-Digest is no dictionary of digests")
	}
	for _, m := range members {
		var sum []byte
		switch m.key {
		case "sha-256":
			s := sha256.Sum256(in.request.Body)
			sum = s[:]
		case "sha-512":
			s := sha512.Sum512(in.request.Body)
			sum = s[:]
		default:
			return reject(ReasonUnsupported, "Content-Digest has an algorithm other than sha-256 and sha-512")
		}
		got, err := base64.StdEncoding.DecodeString(m.value.text)
		if m.value.kind != ':' || err != nil || subtle.ConstantTimeCompare(got, sum) != 1 {
			return reject(ReasonBadSignature, "Content-Digest is not that of the body: something changes the body on the way")
		}
	}
	return nil
}
