package ingress

import (
	"net/url"
	"strings"
)

// redactedValue stands for a credential in a stored query.
const redactedValue = "***"

// queryRedactor takes the credentials out of a raw query.
type queryRedactor struct {
	credentials map[string]bool // of the scheme, lower case
}

func newQueryRedactor(names []string) queryRedactor {
	r := queryRedactor{credentials: make(map[string]bool, len(names))}
	for _, name := range names {
		r.credentials[strings.ToLower(name)] = true
	}
	return r
}

// redact replaces the values of credentials and leaves every other byte as it
// was received. It separates at ; too, as some providers' servers do: what is
// hidden once too often does no harm.
func (r queryRedactor) redact(raw string) string {
	if raw == "" {
		return ""
	}
	var out strings.Builder
	for raw != "" {
		pair, separator := raw, ""
		if i := strings.IndexAny(raw, "&;"); i >= 0 {
			pair, separator, raw = raw[:i], raw[i:i+1], raw[i+1:]
		} else {
			raw = ""
		}
		name, _, valued := strings.Cut(pair, "=")
		if valued && r.credential(name) {
			pair = name + "=" + redactedValue
		}
		out.WriteString(pair)
		out.WriteString(separator)
	}
	return out.String()
}

func (r queryRedactor) credential(escaped string) bool {
	name, err := url.QueryUnescape(escaped)
	if err != nil {
		name = escaped
	}
	name = strings.ToLower(name)
	switch name {
	case "code", "sig", "key":
		return true
	}
	return r.credentials[name] || strings.Contains(name, "secret") || strings.Contains(name, "token")
}
