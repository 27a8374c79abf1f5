package bridge

import (
	"net/http"
	"slices"
	"strings"
)

// DeniedHeader is the built-in deny list of events, of what came in and of
// replies: credentials, the headers of one hop (RFC 9110 §7.6.1) and of one
// message. name is canonical. A provider has sent the secret itself in a header
// before: whoever stored headers stored secrets.
func DeniedHeader(name string) bool {
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Set-Cookie2", "X-Api-Key":
		return true
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade": // hop-by-hop
		return true
	case "Content-Length", "Expect": // of this hop's message, not of the event
		return true
	}
	lower := strings.ToLower(name)
	return strings.Contains(lower, "secret") || strings.Contains(lower, "token")
}

// HopByHop says that the lines of a Connection header name this one.
func HopByHop(connection []string, name string) bool {
	for _, line := range connection {
		for option := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

// SortHeaders orders headers by name and keeps the order of equal names:
// net/http does not know the order of different ones, so any other order would
// change from one event to the next.
func SortHeaders(headers []Header) {
	slices.SortStableFunc(headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
}

// contentTypeOf is the first Content-Type line of a message.
func contentTypeOf(h http.Header) string {
	if lines := h["Content-Type"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}
