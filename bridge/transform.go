package bridge

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
)

// Check lists the names of headers that a transform may not set, each at its
// path inside it (headers.Host). What the expressions mean is the matter of
// package filter.
func (t Transform) Check() []Problem {
	var problems []Problem
	c := checklist{problems: &problems}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		field := atKey("headers", name)
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		other, twice := seen[canonical]
		switch {
		case !isToken(name):
			c.fail(field, "must be a header name, got %q", cutText(name, 100))
		case isOwnHeader(canonical):
			c.fail(field, "is set by the bridge on every call: remove it")
		case slices.Contains(hopHeaders, canonical):
			c.fail(field, "is a matter of the connection, not of the event: remove it")
		case twice:
			c.fail(field, "is the same header as %s: remove one", other)
		}
		seen[canonical] = name
	}
	return problems
}

// isOwnHeader says that a header frames a call or identifies its delivery.
func isOwnHeader(canonical string) bool {
	return slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Webhook-")
}

// hopHeaders are those of one connection that are not in ownHeaders (RFC 9110
// §7.6.1, RFC 9113 §8.2.2).
var hopHeaders = []string{"Expect", "Http2-Settings", "Proxy-Authenticate", "Proxy-Authorization"}

// HeaderValueProblem says why a text cannot be the value of a header; "" where
// it can (RFC 9110 §5.5). It shows nothing of the text.
func HeaderValueProblem(value string) string {
	for i := range len(value) {
		if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
			return fmt.Sprintf("holds the control character 0x%02x, which no header can carry", b)
		}
	}
	return ""
}
