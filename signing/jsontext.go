package signing

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeString decodes a well-formed JSON string, quotes included. A lone
// surrogate has no UTF-8 form, so such a string has no text (false): putting
// U+FFFD in its place would make different strings equal, and two events one.
func decodeString(quoted []byte) (string, bool) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			out = append(out, inner[i])
			continue
		}
		i++
		if inner[i] != 'u' {
			out = append(out, unescaped(inner[i]))
			continue
		}
		r, size := codePoint(inner[i+1:])
		if r == utf8.RuneError && size == 0 {
			return "", false
		}
		out = utf8.AppendRune(out, r)
		i += size
	}
	return string(out), true
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// codePoint reads the hex digits of \uXXXX, or of a surrogate pair, and
// returns how many bytes they take; 0 is a lone surrogate.
func codePoint(digits []byte) (rune, int) {
	r := hex4(digits)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(digits) < 10 || digits[4] != '\\' || digits[5] != 'u' {
		return utf8.RuneError, 0
	}
	if pair := utf16.DecodeRune(r, hex4(digits[6:])); pair != utf8.RuneError {
		return pair, 10
	}
	return utf8.RuneError, 0
}

func hex4(b []byte) rune {
	r := 0
	for _, c := range b[:4] {
		r = r<<4 | hexDigit(c)
	}
	return rune(r)
}

// keyIs compares a member's key, which may hold escapes, with a name.
func keyIs(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name
	}
	text, ok := decodeString(quoted)
	return ok && text == name
}

// equalValues reports whether two well-formed values are the same: strings by
// their text, everything else by its spelling, white space aside. Objects
// whose members stand in another order count as different, which is the safe
// side: the value is then absent.
func equalValues(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := scanner{text: a}, scanner{text: b}
	for {
		p, q := x.token(), y.token()
		if !equalTokens(p, q) {
			return false
		}
		if len(p) == 0 {
			return true
		}
	}
}

func equalTokens(p, q []byte) bool {
	if len(p) == 0 || len(q) == 0 || p[0] != '"' || q[0] != '"' {
		return bytes.Equal(p, q)
	}
	s, okS := decodeString(p)
	t, okT := decodeString(q)
	return okS && okT && s == t || bytes.Equal(p, q)
}

// token returns the next token of well-formed JSON, nil at the end.
func (s *scanner) token() []byte {
	s.space()
	start := s.pos
	switch c := s.peek(); {
	case c == '"':
		s.str()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case 'a' <= c && c <= 'z':
		for 'a' <= s.peek() && s.peek() <= 'z' {
			s.pos++
		}
	case s.pos < len(s.text):
		s.pos++
	}
	return s.text[start:s.pos]
}
