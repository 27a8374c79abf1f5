package signing

import (
	"bytes"
	"unicode/utf8"
)

// This file is a walker over raw JSON (RFC 8259). It exists because values
// must be taken as they were sent: encoding/json turns 9007199254740993 into
// 9007199254740992, matches keys in any case, lets the last duplicate win and
// replaces what is not UTF-8.

// maxIndexed is how many outermost members of a document are remembered. A
// document with more is walked for each lookup: an index of the five million
// elements of a hostile 10 MiB body would take hundreds of megabytes.
const maxIndexed = 128

// document is one JSON text.
type document struct {
	raw []byte // the value without surrounding white space
	// members are what the value holds, when it holds 1 to maxIndexed.
	members []member
}

// member is one member of an object, its key with quotes and escapes, or an
// element of an array, its key nil.
type member struct{ key, value []byte }

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseDocument accepts exactly one JSON value in UTF-8. A leading byte order
// mark is skipped.
func parseDocument(text []byte) (document, bool) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if !utf8.Valid(text) {
		return document{}, false
	}
	s := scanner{text: text}
	s.space()
	start := s.pos
	var members []member
	count := 0
	ok := s.walk(func(m member) bool {
		if count++; count == 1 {
			members = make([]member, 0, 16) // most webhooks have fewer
		}
		if count <= maxIndexed {
			members = append(members, m)
		}
		return true
	})
	end := s.pos
	s.space()
	if !ok || s.pos != len(text) {
		return document{}, false
	}
	if count > maxIndexed {
		members = nil
	}
	return document{raw: text[start:end], members: members}, true
}

// walk visits what a value known to be well formed holds; it stops early when
// visit returns false.
func walk(value []byte, visit func(member) bool) {
	s := scanner{text: value}
	s.walk(visit)
}

// scanner reads JSON from pos on.
type scanner struct {
	text []byte
	pos  int
	// open remembers the kinds of the open containers, one bit each, set for
	// an object: a body of ten million [ costs little, and no recursion.
	open  []uint64
	depth int
}

// walk reads one value and visits the members of a container. It returns
// false when the text is malformed or visit said to stop.
func (s *scanner) walk(visit func(member) bool) bool {
	object := s.peek() == '{'
	if !object && s.peek() != '[' {
		return s.value()
	}
	closing := s.text[s.pos] + 2 // '{' to '}', '[' to ']'
	s.pos++
	s.space()
	if s.take(closing) {
		return true
	}
	for {
		m, ok := s.member(object)
		if !ok || !visit(m) {
			return false
		}
		s.space()
		switch {
		case s.take(closing):
			return true
		case !s.take(','):
			return false
		}
		s.space()
	}
}

func (s *scanner) member(object bool) (m member, ok bool) {
	if object {
		if m.key, ok = s.key(); !ok {
			return m, false
		}
	}
	start := s.pos
	ok = s.value()
	m.value = s.text[start:s.pos]
	return m, ok
}

// key reads a member's name and the colon, up to its value.
func (s *scanner) key() ([]byte, bool) {
	start := s.pos
	if !s.str() {
		return nil, false
	}
	key := s.text[start:s.pos]
	s.space()
	if !s.take(':') {
		return nil, false
	}
	s.space()
	return key, true
}

// value reads one value of any depth.
func (s *scanner) value() bool {
	for base := s.depth; ; {
		opened, ok := s.begin()
		if !ok {
			return false
		}
		if opened {
			continue
		}
		if done, ok := s.end(base); done || !ok {
			return ok
		}
	}
}

// begin reads a scalar, an empty container, or opens a container up to its
// first value.
func (s *scanner) begin() (opened, ok bool) {
	switch c := s.peek(); c {
	case '{', '[':
		s.pos++
		s.space()
		if s.take(c + 2) {
			return false, true
		}
		s.push(c == '{')
		if c == '{' {
			_, ok = s.key()
			return true, ok
		}
		return true, true
	case '"':
		return false, s.str()
	case 't':
		return false, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return false, s.word("null")
	}
	return false, s.number()
}

// end reads what follows a value: the ends of containers, down to base, or a
// comma up to the next value.
func (s *scanner) end(base int) (done, ok bool) {
	for s.depth > base {
		s.space()
		if s.take(',') {
			s.space()
			if s.inObject() {
				_, ok = s.key()
				return false, ok
			}
			return false, true
		}
		closing := byte(']')
		if s.inObject() {
			closing = '}'
		}
		if !s.take(closing) {
			return false, false
		}
		s.depth--
	}
	return true, true
}

func (s *scanner) push(object bool) {
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.open) {
		s.open = append(s.open, 0)
	}
	if s.open[word] &^= bit; object {
		s.open[word] |= bit
	}
	s.depth++
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.open[d/64]&(1<<(d%64)) != 0
}

// peek returns the next byte, 0 at the end (no JSON begins with it).
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// str reads a string with its quotes.
func (s *scanner) str() bool {
	if !s.take('"') {
		return false
	}
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			return true
		case c < ' ':
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		}
	}
	return false
}

func (s *scanner) escape() bool {
	if s.pos == len(s.text) {
		return false
	}
	c := s.text[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if hexDigit(s.peek()) < 0 {
				return false
			}
			s.pos++
		}
		return true
	}
	return false
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
