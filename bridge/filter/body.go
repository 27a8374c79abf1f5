package filter

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxValues bounds how many values of a body are decoded for one evaluation:
// ten bytes of JSON can become a hundred in memory. Members that the expression
// does not read do not count.
const maxValues = 1 << 18

// maxText bounds one text that an expression reads, in bytes: an expression of
// a thousand steps over a megabyte takes seconds.
const maxText = 1 << 20

// tooLargeError is a body of which an expression reads too much.
type tooLargeError struct{ text string }

func (e *tooLargeError) Error() string { return e.text }

// decoder reads a body. It may be used again.
type decoder struct {
	json   jsontext.Decoder
	buffer bytes.Buffer
	values int
	exact  bool // numbers that are no integers stay as they are written
}

// decode is the JSON of a body as far as it is needed; a string where the body
// is no JSON, bytes where it is no text either. Whatever is needed, all of the
// body decides that. The error is a *tooLargeError.
func (d *decoder) decode(body []byte, n *need) (any, error) {
	var value any
	err := d.read(body, func() (err error) {
		value, err = d.value(n)
		return err
	})
	var large *tooLargeError
	switch {
	case err == nil:
		return value, nil
	case errors.As(err, &large):
		return nil, err
	case len(body) > maxText:
		return nil, errText
	case utf8.Valid(body):
		return string(body), nil
	}
	return bytes.Clone(body), nil
}

var errText = &tooLargeError{fmt.Sprintf("a text of more than %d bytes is read", maxText)}

// text refuses what is too long.
func text(s string) (any, error) {
	if len(s) > maxText {
		return nil, errText
	}
	return s, nil
}

// read has value read the one value of a body.
func (d *decoder) read(body []byte, value func() error) error {
	d.values = 0
	d.buffer = *bytes.NewBuffer(body)
	// What others read as JSON is JSON: the function gets the bytes anyway.
	d.json.Reset(&d.buffer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := value()
	if err == nil {
		if _, after := d.json.ReadToken(); !errors.Is(after, io.EOF) {
			err = errors.New("more follows the JSON")
		}
	}
	d.buffer = bytes.Buffer{}
	d.json.Reset(&d.buffer) // lets go of the body
	return err
}

// count counts a value that is decoded.
func (d *decoder) count() error {
	if d.values++; d.values > maxValues {
		return &tooLargeError{fmt.Sprintf("more than %d values of the body are read", maxValues)}
	}
	return nil
}

func (d *decoder) value(n *need) (any, error) {
	if err := d.count(); err != nil {
		return nil, err
	}
	switch d.json.PeekKind() {
	case '{':
		return d.object(n)
	case '[':
		return d.list(n)
	case '0':
		raw, err := d.json.ReadValue()
		if err != nil {
			return nil, err
		}
		if d.exact {
			return exactNumber(raw), nil
		}
		return number(raw), nil
	}
	token, err := d.json.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return text(token.String())
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil // JSON's null
}

// object reads the members that are needed; of a name that stands twice the
// last counts.
func (d *decoder) object(n *need) (any, error) {
	if _, err := d.json.ReadToken(); err != nil {
		return nil, err
	}
	members := make(map[string]any, len(n.members))
	for d.json.PeekKind() == '"' {
		raw, err := d.json.ReadValue()
		if err != nil {
			return nil, err
		}
		name := memberName(raw)
		of := n.member(name)
		if of == nil {
			if err := d.json.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		key := string(name)
		value, err := d.value(of)
		if err != nil {
			return nil, err
		}
		members[key] = value
	}
	_, err := d.json.ReadToken()
	return members, err
}

// list reads a list. One of which only members are needed has none.
func (d *decoder) list(n *need) (any, error) {
	if !n.whole {
		return []any{}, d.json.SkipValue()
	}
	if _, err := d.json.ReadToken(); err != nil {
		return nil, err
	}
	elements := []any{}
	for kind := d.json.PeekKind(); kind != ']' && kind != 0; kind = d.json.PeekKind() {
		value, err := d.value(n)
		if err != nil {
			return nil, err
		}
		elements = append(elements, value)
	}
	_, err := d.json.ReadToken()
	return elements, err
}

// memberName is the text of a member's name: most are written as they are.
func memberName(raw jsontext.Value) []byte {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	name, _ := jsontext.AppendUnquote(nil, raw) // errs only about U+FFFD in place of no UTF-8
	return name
}

// number keeps integers exact as long as they fit 64 bits.
func number(raw []byte) any {
	if bytes.ContainsAny(raw, ".eE") {
		return double(raw)
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return n
	}
	return double(raw)
}

// double is the nearest double, infinite where a number is beyond all of them.
func double(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN() // no JSON number
	}
	return f
}
