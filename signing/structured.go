package signing

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// This file reads the structured fields (RFC 9651) that RFC 9421 and RFC 9530
// use: dictionaries of byte sequences and of lists of strings.

// maxMembers bounds a dictionary, a list and the parameters of one value.
const maxMembers = 64

var errStructured = errors.New("malformed structured field")

// fieldMember is one member of a dictionary.
type fieldMember struct {
	key string
	// text is the value with its parameters, as it was sent.
	text string
	// list holds an inner list, value any other value; one of them is set.
	list   []fieldValue
	isList bool
	value  fieldValue
	params []fieldParam
}

// fieldValue is a bare item with its parameters.
type fieldValue struct {
	// kind is " for a string, : for a byte sequence, 0 for a number, t for a
	// token, ? for a boolean.
	kind byte
	// text is the decoded string, the base64 of a byte sequence, the digits
	// of a number.
	text string
	// verbatim is the item with its parameters as it was sent.
	verbatim string
	params   []fieldParam
}

type fieldParam struct {
	name  string
	value fieldValue
}

// fieldReader reads structured text from pos on.
type fieldReader struct {
	text string
	pos  int
}

func (r *fieldReader) peek() byte {
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

func (r *fieldReader) take(c byte) bool {
	if r.peek() != c || r.pos >= len(r.text) {
		return false
	}
	r.pos++
	return true
}

func (r *fieldReader) skip(set string) {
	for r.pos < len(r.text) && strings.IndexByte(set, r.text[r.pos]) >= 0 {
		r.pos++
	}
}

// parseFieldDictionary reads a dictionary. A key that stands twice is an
// error: the two readers of one field must not choose differently.
func parseFieldDictionary(text string) ([]fieldMember, error) {
	r := fieldReader{text: text}
	var all []fieldMember
	seen := make(map[string]bool)
	r.skip(" ")
	for r.pos < len(r.text) {
		m, err := r.member()
		if err != nil || seen[m.key] || len(all) == maxMembers {
			return nil, errStructured
		}
		seen[m.key] = true
		all = append(all, m)
		r.skip(" \t")
		if r.pos == len(r.text) {
			return all, nil
		}
		if !r.take(',') {
			return nil, errStructured
		}
		r.skip(" \t")
		if r.pos == len(r.text) { // a trailing comma
			return nil, errStructured
		}
	}
	return all, nil
}

func (r *fieldReader) member() (m fieldMember, err error) {
	if m.key, err = r.key(); err != nil {
		return m, err
	}
	if !r.take('=') { // true
		m.value = fieldValue{kind: '?', text: "1"}
		m.params, err = r.params()
		return m, err
	}
	start := r.pos
	if r.peek() == '(' {
		m.isList = true
		m.list, err = r.innerList()
	} else {
		m.value, err = r.bare()
	}
	if err != nil {
		return m, err
	}
	m.params, err = r.params()
	m.text = r.text[start:r.pos]
	return m, err
}

func (r *fieldReader) innerList() ([]fieldValue, error) {
	r.pos++
	list := []fieldValue{}
	for len(list) <= maxMembers {
		r.skip(" ")
		if r.take(')') {
			return list, nil
		}
		start := r.pos
		item, err := r.bare()
		if err != nil {
			return nil, err
		}
		if item.params, err = r.params(); err != nil {
			return nil, err
		}
		item.verbatim = r.text[start:r.pos]
		list = append(list, item)
		if c := r.peek(); c != ' ' && c != ')' {
			return nil, errStructured
		}
	}
	return nil, errStructured
}

// params reads ;name=value;name.
func (r *fieldReader) params() ([]fieldParam, error) {
	var all []fieldParam
	for r.take(';') {
		r.skip(" ")
		name, err := r.key()
		if err != nil || len(all) == maxMembers {
			return nil, errStructured
		}
		p := fieldParam{name: name, value: fieldValue{kind: '?', text: "1"}}
		if r.take('=') {
			if p.value, err = r.bare(); err != nil {
				return nil, err
			}
		}
		for _, other := range all {
			if other.name == name {
				return nil, errStructured
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// key reads a lower-case name.
func (r *fieldReader) key() (string, error) {
	start := r.pos
	if c := r.peek(); c != '*' && (c < 'a' || c > 'z') {
		return "", errStructured
	}
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		if ('a' > c || c > 'z') && ('0' > c || c > '9') && strings.IndexByte("_-.*", c) < 0 {
			break
		}
		r.pos++
	}
	return r.text[start:r.pos], nil
}

// bare reads a string, byte sequence, integer, boolean or token.
func (r *fieldReader) bare() (fieldValue, error) {
	switch c := r.peek(); {
	case c == '"':
		return r.str()
	case c == ':':
		return r.bytes()
	case c == '-' || '0' <= c && c <= '9':
		return r.integer()
	case c == '?':
		return r.boolean()
	case c == '*' || 'a' <= c|0x20 && c|0x20 <= 'z':
		start := r.pos
		for r.pos < len(r.text) && (isToken(r.text[r.pos:r.pos+1]) || strings.IndexByte(":/", r.text[r.pos]) >= 0) {
			r.pos++
		}
		return fieldValue{kind: 't', text: r.text[start:r.pos]}, nil
	}
	return fieldValue{}, errStructured
}

func (r *fieldReader) str() (fieldValue, error) {
	r.pos++
	var out strings.Builder
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		r.pos++
		switch {
		case c == '"':
			return fieldValue{kind: '"', text: out.String()}, nil
		case c == '\\':
			if c = r.peek(); c != '"' && c != '\\' {
				return fieldValue{}, errStructured
			}
			r.pos++
		case c < ' ' || c > '~':
			return fieldValue{}, errStructured
		}
		out.WriteByte(c)
	}
	return fieldValue{}, errStructured
}

func (r *fieldReader) bytes() (fieldValue, error) {
	text, _, ok := strings.Cut(r.text[r.pos+1:], ":")
	if _, err := base64.StdEncoding.Strict().DecodeString(text); !ok || err != nil {
		return fieldValue{}, errStructured
	}
	r.pos += len(text) + 2
	return fieldValue{kind: ':', text: text}, nil
}

func (r *fieldReader) boolean() (fieldValue, error) {
	r.pos++
	if c := r.peek(); c == '0' || c == '1' {
		r.pos++
		return fieldValue{kind: '?', text: string(c)}, nil
	}
	return fieldValue{}, errStructured
}

// integer reads up to 15 digits. Decimals are nothing these fields may hold.
func (r *fieldReader) integer() (fieldValue, error) {
	start := r.pos
	r.take('-')
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		r.pos++
	}
	text := r.text[start:r.pos]
	if _, err := strconv.ParseInt(text, 10, 64); err != nil || len(text) > 16 || r.peek() == '.' {
		return fieldValue{}, errStructured
	}
	return fieldValue{text: text}, nil
}

// param finds a parameter.
func param(all []fieldParam, name string) (fieldValue, bool) {
	for _, p := range all {
		if p.name == name {
			return p.value, true
		}
	}
	return fieldValue{}, false
}
