package signing

import (
	"net/http"
	"net/url"
	"strings"
)

// signatureBase is what RFC 9421, 2.5, signs: a line for each component and
// the parameters as they were sent.
func (in *input) signatureBase(m *fieldMember) ([]byte, *Rejection) {
	base := make([]byte, 0, 512)
	for i := range m.list {
		value, rej := in.component(&m.list[i])
		if rej != nil {
			return nil, rej
		}
		base = append(append(append(append(base, m.list[i].verbatim...), ": "...), value...), '\n')
	}
	return append(append(base, `"@signature-params": `...), m.text...), nil
}

// component is the value of one component (RFC 9421, 2.1 and 2.2).
func (in *input) component(c *fieldValue) (string, *Rejection) {
	name := c.text
	if name == "@query-param" {
		return in.queryParam(c)
	}
	if len(c.params) > 0 {
		return "", reject(ReasonUnsupported, "component %s has parameters that are not understood here", c.verbatim)
	}
	if strings.HasPrefix(name, "@") {
		return in.derived(name)
	}
	if name != strings.ToLower(name) || !isToken(name) {
		return "", reject(ReasonMalformedSignature, "component %s is no lower-case field name", c.verbatim)
	}
	values := in.request.Header[http.CanonicalHeaderKey(name)]
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = trimOWS(v)
	}
	value := strings.Join(trimmed, ", ")
	if value == "" {
		return "", reject(ReasonMissingPart, "header %s", name)
	}
	return value, nil
}

// derived is a part of the request that is no field. The URL is the one given
// to the provider: a proxy may have changed the one we see.
func (in *input) derived(name string) (string, *Rejection) {
	u, err := url.Parse(in.url)
	if err != nil {
		return "", reject(ReasonMissingPart, "public_url")
	}
	switch name {
	case "@method":
		return in.request.Method, nil
	case "@target-uri":
		return withQuery(in.url, in.request.RawQuery), nil
	case "@authority":
		return authority(u), nil
	case "@scheme":
		return strings.ToLower(u.Scheme), nil
	case "@path":
		return in.path(), nil
	case "@query":
		return "?" + in.request.RawQuery, nil
	case "@request-target":
		return withQuery(in.path(), in.request.RawQuery), nil
	}
	return "", reject(ReasonUnsupported, "component %s is not understood here", name)
}

// authority is the host in lower case, without the default port.
func authority(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch strings.ToLower(u.Scheme) {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}

// queryParam is the value of one query parameter, encoded anew (RFC 9421,
// 2.2.8). A name that stands twice must not be signed so.
func (in *input) queryParam(c *fieldValue) (string, *Rejection) {
	want, ok := param(c.params, "name")
	if !ok || len(c.params) != 1 || want.kind != '"' {
		return "", reject(ReasonUnsupported, "component %s has parameters that are not understood here", c.verbatim)
	}
	value, found := "", 0
	for f, err := range formFields(in.request.RawQuery) {
		if err == nil && encodeParam(f.name) == want.text {
			value = encodeParam(f.value)
			found++
		}
	}
	if found != 1 {
		return "", reject(ReasonMissingPart, "exactly one query parameter of the name %s", c.verbatim)
	}
	return value, nil
}

// encodeParam encodes as RFC 9421 wants: everything but letters, digits and
// *-._ as %XX.
func encodeParam(s string) string { return percentEncode(s, "*-._") }
