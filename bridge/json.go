package bridge

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// text is what can be written as a JSON string.
type text interface{ ~string | ~[]byte }

// storable says that s can be a JSON string that every broker and PostgreSQL
// store as it is: valid UTF-8 (so no surrogates either) without NUL. Queen
// 1.3.0 answers `db error` for ever to a dead letter that holds a NUL escape
// or a lone surrogate (measured).
func storable[T text](s T) bool {
	switch v := any(s).(type) {
	case string:
		return strings.IndexByte(v, 0) < 0 && utf8.ValidString(v)
	case []byte:
		return bytes.IndexByte(v, 0) < 0 && utf8.Valid(v)
	}
	return storable(string(s))
}

// appendQuoted appends s, which must be storable, as a JSON string. Only what
// JSON demands is escaped.
func appendQuoted[T text](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, s, i)
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of s[i]. A backslash before u0000 or ud800 is
// written \u005c: \\u0000 would be as right, but a reader that looks for NUL
// escapes without parsing would take it for one.
func appendEscape[T text](dst []byte, s T, i int) []byte {
	const hex = "0123456789abcdef"
	switch c := s[i]; c {
	case '"':
		return append(dst, '\\', '"')
	case '\\':
		if looksUnstorable(s[i+1:]) {
			return append(dst, `\u005c`...)
		}
		return append(dst, '\\', '\\')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}

// looksUnstorable says that s would, behind a backslash, be the escape of NUL
// or begin like that of a surrogate, be it cut off.
func looksUnstorable[T text](s T) bool {
	if len(s) < 3 || s[0] != 'u' {
		return false
	}
	return s[1]|0x20 == 'd' && s[2] >= '8' || len(s) >= 5 && string(s[1:5]) == "0000"
}

// appendText appends s as a JSON string; what cannot be stored in it becomes
// U+FFFD.
func appendText(dst []byte, s string) []byte { return appendQuoted(dst, cleanText(s)) }

// cleanText makes s storable: NUL and each run of bytes that is not UTF-8
// become U+FFFD.
func cleanText(s string) string {
	if storable(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// escapeURLText makes s, part of a URL as received, storable: NUL and bytes
// that are not UTF-8 are percent-escaped, which names the same bytes.
func escapeURLText(s string) string {
	if storable(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || (r == utf8.RuneError && size == 1) {
			out = append(out, '%', hex[s[i]>>4], hex[s[i]&15])
		} else {
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// cutText cuts s to at most limit bytes, never inside a rune.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
