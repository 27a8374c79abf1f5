package signing

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
)

// field is one decoded name and value of a form or query.
type field struct{ name, value string }

var (
	errSemicolon = errors.New("a semicolon separates nothing here")
	errEscape    = errors.New("a percent sign without two hex digits")
	errTooMany   = errors.New("more than 10000 fields")
)

// maxFields bounds a form, which is parsed before anything is proven: 5
// million fields of two bytes would take 160 MB. net/url has the same bound.
const maxFields = 10_000

// formType is the Content-Type of a form.
const formType = "application/x-www-form-urlencoded"

// isForm reports whether the request says its body is a form.
func isForm(h http.Header) bool {
	value, _ := headerValue(h, "Content-Type")
	media, _, _ := strings.Cut(value, ";")
	return strings.EqualFold(trimOWS(media), formType)
}

// formFields yields the fields of application/x-www-form-urlencoded text in
// order, by the rules of net/url: an error is a field that must not be used.
func formFields(text string) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for pair := range strings.SplitSeq(text, "&") {
			if pair == "" {
				continue
			}
			f, err := formField(pair)
			if !yield(f, err) {
				return
			}
		}
	}
}

func formField(pair string) (field, error) {
	if strings.Contains(pair, ";") {
		return field{}, errSemicolon
	}
	name, value, _ := strings.Cut(pair, "=")
	name, err := unescape(name)
	if err != nil {
		return field{}, err
	}
	value, err = unescape(value)
	return field{name: name, value: value}, err
}

// unescape decodes %XX and +; the result are the bytes that were sent, which
// need not be UTF-8.
func unescape(s string) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			out = append(out, ' ')
		case s[i] != '%':
			out = append(out, s[i])
		case i+2 >= len(s) || hexDigit(s[i+1]) < 0 || hexDigit(s[i+2]) < 0:
			return "", errEscape
		default:
			out = append(out, byte(hexDigit(s[i+1])<<4|hexDigit(s[i+2])))
			i += 2
		}
	}
	return string(out), nil
}

// percentEncode writes every byte as %XX but letters, digits and those of safe.
func percentEncode(text, safe string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte(safe, c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// parseForm reads a whole form; one bad field makes all of it unusable, so
// that nobody verifies only what happened to parse.
func parseForm(body []byte) ([]field, error) {
	fields := make([]field, 0, min(bytes.Count(body, []byte("&"))+1, maxFields))
	for f, err := range formFields(string(body)) {
		switch {
		case err != nil:
			return nil, err
		case len(fields) == maxFields:
			return nil, errTooMany
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// sortedForm is name+value of every field, sorted by name then value, each
// pair once, without separators (Twilio's rule, shared by {form}).
func sortedForm(body []byte) ([]byte, error) {
	fields, err := parseForm(body)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(body))
	for _, f := range slices.Compact(sortFields(fields)) {
		text = append(append(text, f.name...), f.value...)
	}
	return text, nil
}

// sortFields sorts by name, then value.
func sortFields(fields []field) []field {
	slices.SortFunc(fields, func(a, b field) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return fields
}

// lookupField returns the value of name among the fields that could be
// read, and whether there is exactly one distinct value.
func lookupField(fields []field, name string) (string, bool) {
	value, found := "", false
	for _, f := range fields {
		if f.name != name {
			continue
		}
		if found && f.value != value {
			return "", false
		}
		value, found = f.value, true
	}
	return value, found && value != ""
}
