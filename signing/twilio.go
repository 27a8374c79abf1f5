package signing

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// bodyHashParameter carries the digest of a body that is not a form.
const bodyHashParameter = "bodySHA256"

// twilioMessages is what Twilio signs: the URL with its query, followed by
// the fields of a form. A body that is no form is covered by its digest in
// the query. The URL is tried with and without the default port, as Twilio's
// own SDKs do. (Twilio, "Validating requests are coming from Twilio".)
func twilioMessages(in *input) ([][]piece, *Rejection) {
	fields, rej := twilioFields(in)
	if rej != nil {
		return nil, rej
	}
	var messages [][]piece
	for _, u := range portVariants(in.url) {
		messages = append(messages, []piece{{text: withQuery(u, in.request.RawQuery)}, {bytes: fields}})
	}
	return messages, nil
}

// twilioFields decides by the body, not by the method: a GET with a body
// that nobody signed must not pass on the strength of its URL.
func twilioFields(in *input) ([]byte, *Rejection) {
	r := in.request
	if isForm(r.Header) {
		fields, err := sortedForm(r.Body)
		if err != nil {
			return nil, reject(ReasonMalformedBody, "form body: %s", err)
		}
		return fields, nil
	}
	if r.Method == http.MethodGet && len(r.Body) == 0 {
		return nil, nil
	}
	want, ok := in.valuesOf().rawQuery(bodyHashParameter)
	if !ok {
		return nil, reject(ReasonMissingPart, "query parameter %s", bodyHashParameter)
	}
	if !encodingHex.matches(want, []byte(bodySHA256(r)), nil) {
		return nil, reject(ReasonBadSignature, "query parameter %s is not the digest of the body", bodyHashParameter)
	}
	return nil, nil
}

// portVariants returns the URL as configured, and with or without the default
// port of its scheme. The text is cut, never re-encoded.
func portVariants(base string) []string {
	u, err := url.Parse(base)
	scheme, rest, ok := strings.Cut(base, "://")
	if err != nil || !ok {
		return []string{base}
	}
	port := ":443"
	if u.Scheme == "http" {
		port = ":80"
	}
	host, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	switch {
	case u.Port() == "":
		return []string{base, scheme + "://" + host + port + path}
	case ":"+u.Port() == port:
		return []string{base, scheme + "://" + strings.TrimSuffix(host, port) + path}
	}
	return []string{base}
}

// twilioForge adds the digest of a body that is no form.
func twilioForge(r *Request) error {
	if len(r.Body) > 0 && r.Header.Get("Content-Type") == "" && !bytes.ContainsAny(r.Body[:1], "{[") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if isForm(r.Header) || r.Method == http.MethodGet && len(r.Body) == 0 {
		return nil
	}
	if _, ok := NewValues(r).rawQuery(bodyHashParameter); ok {
		return nil
	}
	if r.RawQuery != "" {
		r.RawQuery += "&"
	}
	r.RawQuery += bodyHashParameter + "=" + bodySHA256(r)
	return nil
}
