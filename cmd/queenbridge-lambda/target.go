package main

import (
	"fmt"
	"strings"
)

// sources is where the ingress serves them.
const sources = "/in/"

// sourcePath is the path without what a gateway put in front of it: the stage
// of an HTTP API, the base path of a custom domain, the prefix of a rule. The
// ingress serves /in/<source> alone, so what stands before the first /in/ is not
// its own.
func sourcePath(path, stage string) string {
	path = escape(path, pathByte)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if stage != "" {
		// A stage may be called "in".
		rest, ok := strings.CutPrefix(path, "/"+stage)
		if ok && strings.HasPrefix(rest, sources) && len(rest) > len(sources) {
			return rest
		}
	}
	if i := strings.Index(path, sources); i > 0 {
		return path[i:]
	}
	return path
}

// joinQuery writes pairs that are encoded as they were received.
func joinQuery(list pairs) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, escape(p.name, queryByte)+"="+escape(p.value, queryByte))
	}
	return strings.Join(parts, "&")
}

// encodeQuery encodes pairs that were decoded, with %20 for a space. The
// received bytes are lost: + and %20, or %2f and %2F, are the same here, and so
// are ?a and ?a=.
func encodeQuery(list pairs) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, escape(p.name, unreserved)+"="+escape(p.value, unreserved))
	}
	return strings.Join(parts, "&")
}

// escape percent-encodes the bytes that are not allowed.
func escape(s string, allowed func(byte) bool) string {
	var out strings.Builder
	for i := range len(s) {
		if allowed(s[i]) {
			out.WriteByte(s[i])
		} else {
			fmt.Fprintf(&out, "%%%02X", s[i])
		}
	}
	return out.String()
}

// pathByte and queryByte say which bytes may stand in a request line; the
// others cannot have been received there as they are.
func pathByte(b byte) bool  { return b != '?' && queryByte(b) }
func queryByte(b byte) bool { return b > ' ' && b < 0x7f && b != '#' }

// unreserved are the characters of RFC 3986, 2.3.
func unreserved(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-._~", b) >= 0
}
