package signing

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
)

// This file is what Forge needs to sign inside a body, or to sign tokens and
// messages.

// quoteJSON is a JSON string.
func quoteJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string always has a form
	return string(quoted)
}

// insertion is a member that goes into an object inside the body.
type insertion struct {
	object []byte // a part of the body's own bytes
	member string
}

// insertMembers writes members into objects of the body, each in front of the
// object's others. The objects must stand in the order of the body.
func insertMembers(body []byte, insertions []insertion) ([]byte, error) {
	out, done := []byte{}, 0
	for _, i := range insertions {
		at := cap(body) - cap(i.object) + 1 // both end where the array ends
		if len(i.object) < 2 || i.object[0] != '{' || at <= done || at >= len(body) || body[at-1] != '{' {
			return nil, errors.New("the body has no object to sign in")
		}
		out = append(append(out, body[done:at]...), i.member...)
		if done = at; len(bytes.TrimSpace(i.object[1:len(i.object)-1])) > 0 {
			out = append(out, ',')
		}
	}
	return append(out, body[done:]...), nil
}

// insert writes a member into the body itself.
func (in *input) insert(member string) error {
	doc, ok := in.document()
	if !ok {
		return errors.New("the body must be a JSON object: the signature stands in it")
	}
	body, err := insertMembers(in.request.Body, []insertion{{doc.raw, member}})
	if err == nil {
		in.request.Body, in.values = body, nil
	}
	return err
}

// insertIntoItems writes a member into the items of a batch that lack it.
func (in *input) insertIntoItems(path, name, value string) error {
	items, ok := in.valuesOf().Items(path)
	if !ok || len(items) == 0 {
		return fmt.Errorf("the body must have a list %s with an item at least", path)
	}
	var insertions []insertion
	for _, item := range items {
		if doc := (document{raw: item.raw}); !doc.has(name) {
			insertions = append(insertions, insertion{item.raw, quoteJSON(name) + ":" + value})
		}
	}
	body, err := insertMembers(in.request.Body, insertions)
	if err == nil {
		in.request.Body, in.values = body, nil
	}
	return err
}

// setForm makes the body a form of these fields.
func (in *input) setForm(fields ...field) {
	pairs := make([]string, len(fields))
	for i, f := range fields {
		pairs[i] = url.QueryEscape(f.name) + "=" + url.QueryEscape(f.value)
	}
	in.request.Body, in.values = []byte(strings.Join(pairs, "&")), nil
}

// signMailgun writes timestamp, token and signature into the body.
func signMailgun(v *Verifier, in *input, _ Options) error {
	if in.valuesOf(); in.values.hasBody("signature") {
		return nil
	}
	stamp, token := strconv.FormatInt(in.request.Now.Unix(), 10), strings.ReplaceAll(uuid(), "-", "")
	return in.insert(fmt.Sprintf(`"signature":{"timestamp":"%s","token":"%s","signature":"%s"}`, stamp, token, v.mac([]byte(stamp+token))))
}

// hasBody reports whether the body is an object with this member.
func (v *Values) hasBody(name string) bool {
	_, ok := v.at(wholeDocument)
	return ok && v.doc.has(name)
}

// signSNS writes what Amazon SNS adds to a message.
func signSNS(v *Verifier, in *input, o Options) error {
	at := in.request.Now.UTC().Format("2006-01-02T15:04:05.000Z")
	for _, m := range [][2]string{
		{"Type", "Notification"}, {"MessageId", uuid()}, {"TopicArn", v.scheme.settings.topics[0]}, {"Message", "{}"},
		{"Timestamp", at}, {"SignatureVersion", "2"}, {"SigningCertURL", v.forgeKeyID(o)},
	} {
		if in.valuesOf(); in.values.hasBody(m[0]) {
			continue
		}
		if err := in.insert(quoteJSON(m[0]) + ":" + quoteJSON(m[1])); err != nil {
			return err
		}
	}
	doc, _ := in.document()
	message, rej := snsMessage(&doc)
	if rej != nil {
		return rej
	}
	algorithm, rej := snsAlgorithm(&doc)
	if rej != nil {
		return rej
	}
	sig, err := algorithm.sign(o.ForgeKey, message)
	if err != nil {
		return err
	}
	return in.insert(`"Signature":` + quoteJSON(base64.StdEncoding.EncodeToString(sig)))
}

func signPayPal(v *Verifier, in *input, o Options) error {
	h := in.request.Header
	setAbsent(h, payPalID, uuid())
	setAbsent(h, payPalTime, unitRFC3339.format(in.request.Now))
	setAbsent(h, payPalCert, v.forgeKeyID(o))
	setAbsent(h, payPalAlgo, "SHA256withRSA")
	message, rej := v.payPalMessage(in)
	if rej != nil {
		return rej
	}
	sig, err := algRSA.sign(o.ForgeKey, message)
	if err != nil {
		return err
	}
	h.Set(payPalSig, string(encodingBase64.encode(nil, sig)))
	return nil
}

func signEBay(v *Verifier, in *input, o Options) error {
	sig, err := algECDSASHA1.sign(o.ForgeKey, in.request.Body)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`{"alg":"ecdsa","kid":%s,"signature":%s,"digest":"SHA1"}`, quoteJSON(v.forgeKeyID(o)), quoteJSON(base64.StdEncoding.EncodeToString(sig)))
	in.request.Header.Set(ebayHeader, base64.StdEncoding.EncodeToString([]byte(text)))
	return nil
}

// signToken writes a token that says all the rules ask for.
func signToken(v *Verifier, in *input, o Options) error {
	rules := &v.scheme.settings.token
	now := in.request.Now.Unix()
	claims := map[string]any{"iat": now}
	if rules.expires {
		claims["exp"] = now + 300
	}
	if len(rules.issuers) > 0 {
		claims["iss"] = rules.issuers[0]
	}
	if rules.audience != "" {
		claims["aud"] = rules.audience
	}
	if rules.bodyHash != "" {
		claims[strings.ReplaceAll(rules.bodyHash, `\.`, ".")] = bodySHA256(in.request)
	}
	if rules.forged != nil {
		maps.Copy(claims, rules.forged(v, in))
	}
	text, err := v.compact(rules.algorithms[0], claims, o)
	if err == nil {
		in.request.Header.Set(rules.header, rules.prefix+text)
	}
	return err
}

// compact is a signed token in compact form.
func (v *Verifier) compact(alg string, claims map[string]any, o Options) (string, error) {
	header := map[string]any{"alg": alg, "typ": "JWT"}
	algorithm := tokenAlgorithms[alg]
	if algorithm != "" {
		header["kid"] = v.forgeKeyID(o)
	}
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(c)
	if algorithm == "" {
		return signed + "." + v.keys[0].mac([]piece{{text: signed}}, encodingBase64URL), nil
	}
	sig, err := algorithm.sign(o.ForgeKey, []byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig), err
}

// signMessage signs by RFC 9421 what the rules ask for.
func signMessage(v *Verifier, in *input, o Options) error {
	rules := &v.scheme.settings.message
	sum := sha256.Sum256(in.request.Body)
	setAbsent(in.request.Header, "Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	components := rules.components
	if components == nil {
		components = []string{"@method", "@target-uri", "content-digest"}
	}
	quoted := make([]string, len(components))
	for i, c := range components {
		name, params, _ := strings.Cut(c, ";")
		if quoted[i] = `"` + name + `"`; params != "" {
			quoted[i] += ";" + params
		}
	}
	label := rules.label
	if label == "" {
		label = "sig1"
	}
	text := fmt.Sprintf("%s=(%s);created=%d", label, strings.Join(quoted, " "), in.request.Now.Unix())
	members, err := parseFieldDictionary(text)
	if err != nil {
		return fmt.Errorf("components: %w", err)
	}
	base, rej := in.signatureBase(&members[0])
	if rej != nil {
		return rej
	}
	signature, err := v.keys[0].sign([]piece{{bytes: base}}, encodingBase64, o)
	if err != nil {
		return err
	}
	in.request.Header.Set("Signature-Input", text)
	in.request.Header.Set("Signature", label+"=:"+signature+":")
	return nil
}
