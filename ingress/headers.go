package ingress

import (
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxKnownNames bounds what a headerFilter remembers: names come from outside.
const maxKnownNames = 512

// headerFilter chooses the headers of an event. Safe for concurrent use.
type headerFilter struct {
	// drop holds what the user listed, credentials those of the scheme, keep
	// the scheme's signature, id and timestamp headers; all canonical.
	drop, credentials, keep map[string]bool
	// known caches the choice by canonical name.
	known atomic.Pointer[map[string]headerChoice]
}

type headerChoice struct {
	lower   string
	dropped bool
}

func newHeaderFilter(drop, credentials, keep []string) *headerFilter {
	f := &headerFilter{drop: canonicalSet(drop), credentials: canonicalSet(credentials), keep: canonicalSet(keep)}
	f.known.Store(&map[string]headerChoice{})
	return f
}

func canonicalSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = true
	}
	return set
}

// appendTo appends the headers of an event, sorted by name.
func (f *headerFilter) appendTo(dst []bridge.Header, h http.Header) []bridge.Header {
	connection := h["Connection"]
	for name, values := range h {
		choice := f.choose(name)
		if choice.dropped || len(connection) > 0 && bridge.HopByHop(connection, name) {
			continue
		}
		for _, v := range values {
			dst = append(dst, bridge.Header{Name: choice.lower, Value: v})
		}
	}
	bridge.SortHeaders(dst)
	return dst
}

func (f *headerFilter) choose(name string) headerChoice {
	known := *f.known.Load()
	if c, ok := known[name]; ok {
		return c
	}
	c := headerChoice{lower: strings.ToLower(name), dropped: f.dropped(name)}
	if len(known) < maxKnownNames {
		more := maps.Clone(known)
		more[name] = c
		f.known.Store(&more) // a lost race forgets a name, no more
	}
	return c
}

// dropped decides by the canonical name. What the user listed and the
// credentials always go; the headers a consumer needs to verify again stay.
func (f *headerFilter) dropped(name string) bool {
	switch {
	case f.drop[name] || f.credentials[name]:
		return true
	case f.keep[name]:
		return false
	}
	return bridge.DeniedHeader(name)
}

// traceparent returns the trace context of a request, "" where it is absent or
// not <version>-<32 hex>-<16 hex>-<2 hex> (W3C Trace Context, version 00).
func traceparent(h http.Header) string {
	lines := h["Traceparent"]
	if len(lines) != 1 || len(lines[0]) != len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") {
		return ""
	}
	for i, c := range []byte(lines[0]) {
		if i == 2 || i == 35 || i == 52 {
			if c != '-' {
				return ""
			}
		} else if !strings.ContainsRune("0123456789abcdef", rune(c)) {
			return ""
		}
	}
	return lines[0]
}
