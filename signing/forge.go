package signing

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
// secret and adds the ids, types and timestamps the provider sends, each only
// where r has none. It sets r.Header and, where the scheme has something in
// the query (Twilio's bodySHA256, a token), r.RawQuery. It is an error where
// a request cannot be made so: with options New refuses, a public key, or a
// signature that stands inside the body.
func Forge(o Options, r *Request) error {
	v, problems := New(o)
	if len(problems) > 0 {
		return fmt.Errorf("forge a request: %s: %s", problems[0].Path, problems[0].Text)
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if v.scheme.forge != nil {
		v.scheme.forge(r)
	}
	setAbsent(r.Header, "Content-Type", "application/json")
	preset, _ := find(o.Scheme)
	for _, f := range preset.fills {
		f.apply(r.Header)
	}
	if err := v.forge(o.Secrets, r); err != nil {
		return fmt.Errorf("forge a %s request: %w", o.Scheme, err)
	}
	return nil
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

func (v *Verifier) forge(secrets []string, r *Request) error {
	switch v.scheme.kind {
	case kindNone:
		return nil
	case kindToken:
		return v.forgeToken(secrets[0], r)
	case kindBasic:
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(secrets[0])))
		return nil
	}
	return v.forgeSignature(r)
}

func (v *Verifier) forgeToken(secret string, r *Request) error {
	switch {
	case v.scheme.query != "":
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

func (v *Verifier) forgeSignature(r *Request) error {
	if len(v.scheme.headers) == 0 {
		return errors.New("the signature stands in the body: sign it there")
	}
	if v.keys[0].macs == nil {
		return errors.New("the secret is a public key: only the provider can sign")
	}
	l := &v.layouts[0]
	in := input{request: r, url: v.publicURL}
	if err := v.forgeStamp(&in, l); err != nil {
		return err
	}
	message, err := v.forgeMessage(&in, l)
	if err != nil {
		return err
	}
	m := v.keys[0].macs.pool.Get().(*mac)
	defer v.keys[0].macs.pool.Put(m)
	signature := string(m.sign(message, v.scheme.encoding))
	r.Header.Set(l.headers[0], v.scheme.write(v.keys[0].tag, in.stamp, signature))
	return nil
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
