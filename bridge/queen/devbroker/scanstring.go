package devbroker

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is the scanner's part that reads strings.

const (
	lows   = 0x0101010101010101
	sevens = 0x7f7f7f7f7f7f7f7f
	highs  = 0x8080808080808080
)

// special marks, in the high bit of each, the bytes of a word that need
// attention inside a string: quotes, backslashes, control characters. No carry
// crosses bytes, so each mark is exact.
func special(w uint64) uint64 {
	quote, slash := w^(lows*'"'), w^(lows*'\\')
	none := (quote&sevens + sevens | quote) & (slash&sevens + sevens | slash) & (w&sevens + lows*0x60 | w)
	return ^none & highs
}

// plain returns how many bytes of b need no attention inside a string. It
// looks at eight at a time.
func plain(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if marks := special(binary.LittleEndian.Uint64(b[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// skipString moves past a string and says whether it holds escapes. The
// scanner must be at the opening quote.
func (s *scanner) skipString() (escaped bool, err error) {
	s.at++
	for {
		escaped = s.skipEscapes() || escaped
		s.at += plain(s.doc[s.at:])
		if s.at >= len(s.doc) {
			return escaped, s.fail("EOF while parsing a string")
		}
		switch s.doc[s.at] {
		case '"':
			s.at++
			return escaped, nil
		case '\\':
			escaped = true
			if err := s.skipEscape(); err != nil {
				return escaped, err
			}
		default:
			return escaped, s.fail("control character (\\u0000-\\u001F) found while parsing a string")
		}
	}
}

// skipEscapes moves through plain bytes and the common escapes and stops at
// anything else, or near the end. A payload that carries another document as a
// string is full of \", so it takes several of them out of one word.
func (s *scanner) skipEscapes() (escaped bool) {
	doc, i := s.doc, s.at
	for i+9 <= len(doc) {
		marks := special(binary.LittleEndian.Uint64(doc[i:]))
		width := 8
		for marks != 0 {
			k := bits.TrailingZeros64(marks) / 8
			if doc[i+k] != '\\' || (doc[i+k+1] != '"' && doc[i+k+1] != '\\' && doc[i+k+1] != 'n') {
				s.at = i + k
				return escaped
			}
			escaped = true
			width = max(width, k+2)
			marks &= ^uint64(0) << (8 * (k + 2)) // a shift by 64 or more is zero
		}
		i += width
	}
	s.at = i
	return escaped
}

func (s *scanner) skipEscape() error {
	if s.at+1 >= len(s.doc) {
		s.at = len(s.doc)
		return s.fail("EOF while parsing a string")
	}
	switch s.doc[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return nil
	case 'u':
		if _, ok := hex4(s.doc[s.at+2:]); ok {
			s.at += 6
			return nil
		}
	}
	s.at++
	return s.fail("invalid escape")
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// str reads a string and decodes it. A lone surrogate is an error.
func (s *scanner) str() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.unexpected("a string")
	}
	start := s.at
	escaped, err := s.skipString()
	if err != nil {
		return nil, err
	}
	body := s.doc[start+1 : s.at-1]
	if !escaped {
		return body, nil
	}
	decoded, ok := unescape(body)
	if !ok {
		return nil, s.fail("lone leading surrogate in hex escape")
	}
	return decoded, nil
}

// unescape decodes the inside of a string whose escapes are well formed. It
// fails on a lone surrogate.
func unescape(body []byte) (decoded []byte, ok bool) {
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if n := plain(body[i:]); n > 0 {
			out = append(out, body[i:i+n]...)
			i += n
			continue
		}
		switch c := body[i+1]; c {
		case 'u':
			r, _ := hex4(body[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
					return nil, false
				}
				low, _ := hex4(body[i+2:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return nil, false
				}
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, unescaped(c))
			i += 2
		}
	}
	return out, true
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
