package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/queenbridge/queenbridge/signing"
)

// contentType tries the body as a form: schemes that sign fields need the
// Content-Type to see them.
func (s search) contentType() []cause {
	const form = "application/x-www-form-urlencoded"
	r := *s.request
	r.Header = s.request.Header.Clone()
	if r.Header.Get("Content-Type") == form {
		return nil
	}
	r.Header.Set("Content-Type", form)
	if ok, late := fits(s.options, &r); ok {
		return s.found(cause{"header", "the body is a form, and is signed by its fields: Content-Type must be " + form}, late, s.options, &r)
	}
	return nil
}

var (
	hexSignature    = regexp.MustCompile(`[0-9a-fA-F]{40,}$`)
	base64Signature = regexp.MustCompile(`[A-Za-z0-9+/]{27,}={0,2}$`)
)

// signatureEncoding tries the signature in the other usual encoding.
func (s search) signatureEncoding() []cause {
	preset, _ := signing.Lookup(s.options.Scheme)
	for _, name := range preset.KeepHeaders(s.options) {
		for was, other := range otherEncoding(s.request.Header.Get(name)) {
			r := *s.request
			r.Header = s.request.Header.Clone()
			r.Header.Set(name, other)
			if ok, late := fits(s.options, &r); ok {
				return s.found(cause{"header", fmt.Sprintf("the signature in %s is in %s, which is not the encoding of scheme %s", name, was, s.options.Scheme)}, late, s.options, &r)
			}
		}
	}
	return nil
}

// otherEncoding is a header's value with the signature at its end in base64
// where it was hex, and in hex where it was base64.
func otherEncoding(value string) map[string]string {
	all := make(map[string]string, 2)
	if found := hexSignature.FindStringIndex(value); found != nil {
		if mac, err := hex.DecodeString(value[found[0]:]); err == nil {
			all["hex"] = value[:found[0]] + base64.StdEncoding.EncodeToString(mac)
		}
	}
	if found := base64Signature.FindStringIndex(value); found != nil {
		if mac, err := base64.StdEncoding.DecodeString(value[found[0]:]); err == nil {
			all["base64"] = value[:found[0]] + hex.EncodeToString(mac)
		}
	}
	return all
}
