package devbroker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner is a pull parser over one JSON document. Strings and raw values it
// returns alias the document where they can, so a caller must copy what
// outlives the request. It is strict: a document it accepts is valid JSON in
// valid UTF-8 (escapes of lone surrogates excepted, which a raw value may hold
// as they may on 1.3.0).
type scanner struct {
	doc   []byte
	at    int
	stack []byte // open brackets of the raw value being skipped
}

// syntaxError is a document that is not what was expected, with the position
// the way the real broker reports it.
type syntaxError struct {
	what      string
	line, col int
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%s at line %d column %d", e.what, e.line, e.col)
}

var errNotUTF8 = errors.New("invalid unicode code point")

// scan starts a document. It fails when the document is not UTF-8.
func scan(doc []byte) (*scanner, error) {
	s := &scanner{doc: doc}
	if !utf8.Valid(doc) {
		s.at = invalidUTF8(doc)
		return s, s.fail(errNotUTF8.Error())
	}
	return s, nil
}

func invalidUTF8(doc []byte) int {
	for i := 0; i < len(doc); {
		r, n := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(doc)
}

func (s *scanner) fail(what string) error {
	seen := s.doc[:min(s.at, len(s.doc))]
	line := 1 + bytes.Count(seen, []byte{'\n'})
	return &syntaxError{what: what, line: line, col: len(seen) - bytes.LastIndexByte(seen, '\n') - 1}
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.doc) {
		c := s.doc[s.at]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.at++
	}
	return 0
}

// end fails unless only white space is left.
func (s *scanner) end() error {
	if s.peek(); s.at < len(s.doc) {
		return s.fail("trailing characters")
	}
	return nil
}

func (s *scanner) literal(word string) bool {
	if bytes.HasPrefix(s.doc[s.at:], []byte(word)) {
		s.at += len(word)
		return true
	}
	return false
}

// null consumes a null if it is next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") }

// object calls field once per member, with the scanner at the value, which
// field must consume.
func (s *scanner) object(field func(key []byte) error) error {
	if s.peek() != '{' {
		return s.unexpected("a map")
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail(s.eof("an object", "key must be a string"))
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail(s.eof("an object", "expected `:`"))
		}
		s.at++
		if err := field(key); err != nil {
			return err
		}
		if done, err := s.next('}', "an object"); done || err != nil {
			return err
		}
	}
}

// array calls item once per element, with the scanner at the element, which
// item must consume.
func (s *scanner) array(item func() error) error {
	if s.peek() != '[' {
		return s.unexpected("a sequence")
	}
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if done, err := s.next(']', "a list"); done || err != nil {
			return err
		}
	}
}

// next consumes a comma, or the closing bracket.
func (s *scanner) next(closing byte, what string) (done bool, err error) {
	switch s.peek() {
	case ',':
		s.at++
		return false, nil
	case closing:
		s.at++
		return true, nil
	}
	return false, s.fail(s.eof(what, "expected `,` or `"+string(closing)+"`"))
}

func (s *scanner) eof(what, otherwise string) string {
	if s.at >= len(s.doc) {
		return "EOF while parsing " + what
	}
	return otherwise
}

func (s *scanner) unexpected(want string) error {
	found := "value"
	switch c := s.peek(); {
	case c == 0 && s.at >= len(s.doc):
		return s.fail("EOF while parsing a value")
	case c == '"':
		found = "string"
	case c == '{':
		found = "map"
	case c == '[':
		found = "sequence"
	case c == 't' || c == 'f':
		found = "boolean"
	case c == 'n':
		found = "null"
	case c == '-' || c >= '0' && c <= '9':
		found = "number"
	}
	return s.fail("invalid type: " + found + ", expected " + want)
}

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

// optional reads a string or null; a null is "".
func (s *scanner) optional() (string, error) {
	if s.null() {
		return "", nil
	}
	text, err := s.str()
	return string(text), err
}

func (s *scanner) boolean() (bool, error) {
	switch {
	case s.peek() == 't' && s.literal("true"):
		return true, nil
	case s.peek() == 'f' && s.literal("false"):
		return false, nil
	}
	return false, s.unexpected("a boolean")
}

// integer reads a number without fraction or exponent.
func (s *scanner) integer() (int64, error) {
	start := s.at
	raw, err := s.raw()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		s.at = start
		return 0, s.unexpected("an integer")
	}
	return n, nil
}

// raw consumes any value and returns its bytes as they are.
func (s *scanner) raw() ([]byte, error) {
	s.peek()
	start := s.at
	if err := s.skip(); err != nil {
		return nil, err
	}
	return s.doc[start:s.at], nil
}

// skip consumes any value. It does not recurse: depth is bounded by the size
// of the document only, as it is for the real broker's raw values.
func (s *scanner) skip() error {
	s.stack = s.stack[:0]
	for {
		opened, err := s.skipOne()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		if done, err := s.closeBrackets(); done || err != nil {
			return err
		}
	}
}

// skipOne consumes a scalar, or opens a container that is not empty and stands
// at its first value.
func (s *scanner) skipOne() (opened bool, err error) {
	switch c := s.peek(); {
	case c == '{':
		s.at++
		if s.peek() == '}' {
			s.at++
			return false, nil
		}
		s.stack = append(s.stack, '}')
		return true, s.skipKey()
	case c == '[':
		s.at++
		if s.peek() == ']' {
			s.at++
			return false, nil
		}
		s.stack = append(s.stack, ']')
		return true, nil
	case c == '"':
		_, err = s.skipString()
		return false, err
	case c == 't' && s.literal("true"), c == 'f' && s.literal("false"), c == 'n' && s.literal("null"):
		return false, nil
	case c == '-' || c >= '0' && c <= '9':
		return false, s.skipNumber()
	}
	if s.at >= len(s.doc) {
		return false, s.fail("EOF while parsing a value")
	}
	return false, s.fail("expected value")
}

// closeBrackets consumes what may follow a value inside its containers, up to
// the next value.
func (s *scanner) closeBrackets() (done bool, err error) {
	for len(s.stack) > 0 {
		closing := s.stack[len(s.stack)-1]
		closed, err := s.next(closing, "a container")
		if err != nil {
			return false, err
		}
		if !closed {
			if closing == '}' {
				return false, s.skipKey()
			}
			return false, nil
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
	return true, nil
}

func (s *scanner) skipKey() error {
	if s.peek() != '"' {
		return s.fail(s.eof("an object", "key must be a string"))
	}
	if _, err := s.skipString(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return s.fail(s.eof("an object", "expected `:`"))
	}
	s.at++
	return nil
}

func (s *scanner) skipNumber() error {
	n := number(s.doc[s.at:])
	if n == 0 {
		return s.fail("invalid number")
	}
	s.at += n
	return nil
}

// number returns the length of the JSON number b starts with, or 0.
func number(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	n := digits(b[i:])
	if n == 0 || n > 1 && b[i] == '0' {
		return 0
	}
	i += n
	if i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
