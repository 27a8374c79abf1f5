package signing

import (
	"net/http"
	"net/url"
	"strings"
)

// input is one request while it is being proven.
type input struct {
	request *Request
	url     string // public_url
	stamp   string // the signed timestamp as received
	values  *Values
}

// valuesOf parses the request's values when first needed.
func (in *input) valuesOf() *Values {
	if in.values == nil {
		in.values = NewValues(in.request)
	}
	return in.values
}

// single returns the one value of a signature-relevant header, "" where it is
// absent or empty. Two different values are refused: a proxy and we might
// choose differently.
func (in *input) single(name string) (string, *Rejection) {
	value, conflict := headerValue(in.request.Header, name)
	if conflict {
		return "", reject(ReasonDuplicateHeader, "%s has two different values", name)
	}
	return value, nil
}

// needed is single for a header that must be there.
func (in *input) needed(name string, reason Reason) (string, *Rejection) {
	value, rej := in.single(name)
	if rej == nil && value == "" {
		rej = reject(reason, "%s", name)
	}
	return value, rej
}

// document is the body where it is one JSON object. Unlike values it never
// looks into a form: what is signed is the body.
func (in *input) document() (document, bool) {
	doc, ok := parseDocument(in.request.Body)
	return doc, ok && doc.raw[0] == '{'
}

// everyItem proves the items of a batch one by one, up to the first that is
// not proven. It returns the highest index of the secrets that matched: the
// oldest secret still in use. No items are no proof.
func (in *input) everyItem(path string, prove func(raw []byte) (int, *Rejection)) (int, *Rejection) {
	list, ok := in.valuesOf().at(path)
	if !ok || list[0] != '[' {
		return -1, reject(ReasonMissingSignature, "the body has no list %s", path)
	}
	oldest, rej := -1, (*Rejection)(nil)
	walk(list, func(m member) bool {
		secret, refused := prove(m.value)
		oldest, rej = max(oldest, secret), refused
		return rej == nil
	})
	if rej == nil && oldest < 0 {
		rej = reject(ReasonMissingSignature, "the list %s is empty", path)
	}
	return oldest, rej
}

// headerValue returns the trimmed value of a header, and whether it has
// several that differ. Header keys must be canonical, as net/http makes them.
func headerValue(h http.Header, name string) (value string, conflict bool) {
	values := h[http.CanonicalHeaderKey(name)]
	if len(values) == 0 {
		return "", false
	}
	value = trimOWS(values[0])
	for _, v := range values[1:] {
		if trimOWS(v) != value {
			return "", true
		}
	}
	return value, false
}

// trimOWS drops the optional white space of RFC 9110, 5.6.3.
func trimOWS(s string) string { return strings.Trim(s, " \t") }

// path is the path the provider called: that of public_url where it is set,
// as a proxy may have changed the one we received.
func (in *input) path() string {
	if u, err := url.Parse(in.url); err == nil && in.url != "" {
		if p := u.EscapedPath(); p != "" {
			return p
		}
		return "/"
	}
	return in.request.Path
}

// withQuery is the URL that schemes sign: the configured one and the raw
// query as received, where there is one.
func withQuery(base, rawQuery string) string {
	if rawQuery == "" {
		return base
	}
	return base + "?" + rawQuery
}
