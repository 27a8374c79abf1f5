package signing

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// fill is a header Forge adds where the request has none.
type fill struct {
	header string
	// One of: a fixed text, a fresh value, or the value of another header.
	text  string
	value func() string
	same  string
}

// Forge makes r what the provider would send: it signs r with the newest
// secret, or with o.ForgeKey where the secrets are public keys, and adds the
// ids, types and timestamps the provider sends, each only where r has none. It
// sets r.Header and, where the scheme has something in the query (Twilio's
// bodySHA256, a token) or in the body (Mailgun, Adyen, Amazon SNS …),
// r.RawQuery and r.Body. It is an error where a request cannot be made so:
// with options New refuses, a public key alone, or a body of another shape
// than the scheme's (see Preset.Sample).
func Forge(o Options, r *Request) error {
	v, problems := New(o)
	if len(problems) > 0 {
		return fmt.Errorf("forge a request: %s: %s", problems[0].Path, problems[0].Text)
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for _, f := range v.row.fills {
		f.apply(r.Header)
	}
	v.fillIDs(r.Header)
	if v.scheme.complete != nil {
		if err := v.scheme.complete(r); err != nil {
			return fmt.Errorf("forge a %s request: %w", o.Scheme, err)
		}
	}
	setAbsent(r.Header, "Content-Type", cmp.Or(v.row.SampleType, "application/json"))
	if err := v.forge(o, r); err != nil {
		return fmt.Errorf("forge a %s request: %w", o.Scheme, err)
	}
	return nil
}

// fillIDs gives the headers of the transaction id a fresh value each.
func (v *Verifier) fillIDs(h http.Header) {
	first, _, _ := strings.Cut(v.row.TransactionID, " | ")
	for _, name := range expressionHeaders(first) {
		setAbsent(h, name, uuid())
	}
}

func setAbsent(h http.Header, name, value string) {
	if h.Get(name) == "" {
		h.Set(name, value)
	}
}

func (f fill) apply(h http.Header) {
	switch {
	case f.value != nil:
		setAbsent(h, f.header, f.value())
	case f.same != "":
		setAbsent(h, f.header, h.Get(f.same))
	default:
		setAbsent(h, f.header, f.text)
	}
}

func (v *Verifier) forge(o Options, r *Request) error {
	switch kind := v.scheme.kind; {
	case v.scheme.sign != nil:
		return v.scheme.sign(v, &input{request: r, url: v.publicURL}, o)
	case kind == kindNone:
		return nil
	case kind == kindToken:
		return v.forgeToken(o.Secrets[0], r)
	case kind == kindBasic:
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(o.Secrets[0])))
		return nil
	case kind == kindSignature && len(v.keys) > 0:
		return v.forgeSignature(r, o)
	}
	return errors.New("there is no secret to sign with")
}

func (v *Verifier) forgeToken(secret string, r *Request) error {
	switch {
	case v.scheme.query != "" && len(v.scheme.headers) == 0:
		if r.RawQuery != "" {
			r.RawQuery += "&"
		}
		r.RawQuery += url.QueryEscape(v.scheme.query) + "=" + url.QueryEscape(secret)
	case v.scheme.json != "":
		if shown, _ := NewValues(r).JSON(v.scheme.json); shown != secret {
			return errors.New("the token stands in the body: put it there")
		}
	default:
		r.Header.Set(v.scheme.headers[0], v.scheme.prefix+secret)
	}
	return nil
}

func (v *Verifier) forgeSignature(r *Request, o Options) error {
	if len(v.scheme.headers) == 0 {
		return errors.New("the signature stands in the body: sign it there")
	}
	l := &v.layouts[0]
	for _, q := range v.scheme.require {
		setAbsent(r.Header, q.header, q.value)
	}
	in := input{request: r, url: v.publicURL}
	if err := v.forgeStamp(&in, l); err != nil {
		return err
	}
	message, err := v.forgeMessage(&in, l)
	if err != nil {
		return err
	}
	signature, err := v.keys[0].sign(message, v.scheme.encoding, o)
	if err != nil {
		return err
	}
	r.Header.Set(l.headers[0], v.scheme.write(v.keys[0].tag, in.stamp, signature))
	return nil
}

// sign is the encoded signature of a message: by the secret, or by the
// private key where the secret is a public one.
func (k *key) sign(message []piece, e encoding, o Options) (string, error) {
	if k.macs != nil {
		return k.mac(message, e), nil
	}
	sig, err := k.algorithm.sign(o.ForgeKey, join(message))
	return string(e.encode(nil, sig)), err
}

// forgeKeyID is the key id to write: the one given, or the first that is
// pinned.
func (v *Verifier) forgeKeyID(o Options) string {
	if o.ForgeKeyID != "" || len(v.scheme.pinned) == 0 {
		return o.ForgeKeyID
	}
	return slices.Min(slices.Collect(maps.Keys(v.scheme.pinned)))
}

// forgeStamp sets the timestamp, or takes the one that is there.
func (v *Verifier) forgeStamp(in *input, l *layout) error {
	if !v.scheme.stamped {
		return nil
	}
	in.stamp = v.scheme.stamp.unit.format(in.request.Now)
	switch {
	case v.scheme.stamp.json != "":
		text, ok := in.valuesOf().JSON(v.scheme.stamp.json)
		if !ok && l.stampHeader != "" {
			setAbsent(in.request.Header, l.stampHeader, in.stamp)
			text, ok = in.request.Header.Get(l.stampHeader), true
		}
		if !ok {
			return fmt.Errorf("the timestamp stands in body field %s: put it there", v.scheme.stamp.json)
		}
		in.stamp = text
	case l.stampHeader != "":
		setAbsent(in.request.Header, l.stampHeader, in.stamp)
		in.stamp = in.request.Header.Get(l.stampHeader)
	}
	return nil
}

func (v *Verifier) forgeMessage(in *input, l *layout) ([]piece, error) {
	if v.scheme.messages == nil {
		message, rej := l.message.resolve(in, nil)
		if rej != nil {
			return nil, rej
		}
		return message, nil
	}
	messages, rej := v.scheme.messages(in)
	if rej != nil {
		return nil, rej
	}
	return messages[0], nil
}

// uuid is a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// messageID is an id in the form Standard Webhooks suggests.
func messageID() string { return "msg_" + strings.ToLower(rand.Text()) }
