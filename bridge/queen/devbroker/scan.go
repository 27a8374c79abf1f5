package devbroker

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
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
	s.peek()
	start := s.at
	raw, err := s.raw()
	if err != nil {
		return err
	}
	s.at = start
	found := "null"
	raw = raw[:min(len(raw), 64)]
	switch c := raw[0]; {
	case c == '"':
		found = "string " + string(raw)
	case c == '{':
		found = "map"
	case c == '[':
		found = "sequence"
	case c == 't' || c == 'f':
		found = "boolean `" + string(raw) + "`"
	case c != 'n' && bytes.ContainsAny(raw, ".eE"):
		found = "floating point `" + string(raw) + "`"
	case c != 'n':
		found = "integer `" + string(raw) + "`"
	}
	return s.fail("invalid type: " + found + ", expected " + want)
}

// optional reads a string or null; a null is "".
func (s *scanner) optional() (string, error) {
	if s.null() {
		return "", nil
	}
	text, err := s.str()
	return string(text), err
}

// once remembers, by the place of each, which members of an object have come:
// the real broker refuses a known one that comes twice (measured 1.3.0).
type once uint

func (o *once) key(s *scanner, key []byte, known ...string) error {
	for i, name := range known {
		if string(key) != name {
			continue
		}
		if *o&(1<<i) != 0 {
			return s.fail("duplicate field `" + name + "`")
		}
		*o |= 1 << i
	}
	return nil
}

// loose reads a string; what is none is as good as absent.
func (s *scanner) loose() (text []byte, ok bool, err error) {
	if s.peek() != '"' {
		_, err = s.raw()
		return nil, false, err
	}
	text, err = s.str()
	return text, true, err
}

func (s *scanner) looseText() (string, error) {
	text, _, err := s.loose()
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
