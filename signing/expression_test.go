package signing_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
)

// eventID evaluates a value expression as whoever queues events does: this is
// the contract of Preset.TransactionID and Preset.EventType, written down once
// more so that the table can be tested without the ingress.
type facts struct {
	values *signing.Values
	body   []byte
	item   *signing.Item
}

// eval is what the first alternative that has a value yields; hash says that
// the value is a hash already.
func (f *facts) eval(expression string) (value string, hash, ok bool) {
	for _, alternative := range splitOutside(expression, '|') {
		alternative = strings.TrimSpace(alternative)
		if value, ok = f.term(alternative); ok {
			return value, strings.HasPrefix(alternative, "sha("), true
		}
	}
	return "", false, false
}

func splitOutside(s string, sep byte) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case s[i] == sep && depth == 0:
			parts, start = append(parts, s[start:i]), i+1
		}
	}
	return append(parts, s[start:])
}

func (f *facts) term(t string) (string, bool) {
	kind, name, _ := strings.Cut(t, ":")
	switch {
	case strings.HasPrefix(t, "="):
		return t[1:], true
	case strings.HasPrefix(t, "c("):
		return f.composite(strings.TrimSuffix(t[2:], ")"))
	case strings.HasPrefix(t, "j("):
		return f.joined(strings.TrimSuffix(t[2:], ")"))
	case t == "sha(body)":
		return sumOf(f.body), len(f.body) > 0
	case t == "sha(item)" && f.item != nil:
		return sumOf(f.item.Raw()), true
	case t == "sha(item)":
		return sumOf(f.body), len(f.body) > 0
	case strings.HasPrefix(t, "sha(f:"):
		v, ok := f.values.Form(strings.TrimSuffix(t[6:], ")"))
		return sumOf([]byte(v)), ok
	case kind == "h":
		return f.values.Header(name)
	case kind == "q":
		return f.values.Query(name)
	case kind == "f":
		return f.values.Form(name)
	case kind == "i" && f.item != nil:
		return f.item.JSON(name)
	case kind == "b" || kind == "i":
		return f.values.JSON(name)
	}
	panic("no such term: " + t)
}

func (f *facts) composite(list string) (string, bool) {
	var parts []string
	for _, t := range splitOutside(list, ',') {
		name, optional := strings.CutSuffix(t, "?")
		v, ok := f.term(name)
		if !ok && !optional {
			return "", false
		}
		parts = append(parts, fmt.Sprintf("%d:%s", len(v), v))
	}
	return strings.Join(parts, ","), true
}

func (f *facts) joined(list string) (string, bool) {
	var parts []string
	for _, t := range splitOutside(list, ',') {
		if v, ok := f.term(t); ok {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, "."), len(parts) > 0
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// transactionID is <scheme>:<id>, or its hash where that is long or not
// printable.
func (f *facts) transactionID(scheme, expression string) string {
	v, hash, ok := f.eval(expression)
	switch {
	case !ok && f.item != nil:
		return scheme + ":sha256:" + sumOf(f.item.Raw())
	case !ok:
		return scheme + ":sha256:" + sumOf(f.body)
	case hash:
		return scheme + ":sha256:" + v
	}
	odd := strings.ContainsFunc(v, func(r rune) bool { return r < 0x21 || r > 0x7e })
	if id := scheme + ":" + v; !odd && len(id) <= 200 {
		return id
	}
	return scheme + ":sha256:" + sumOf([]byte(v))
}
