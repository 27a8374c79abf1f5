package signing

import (
	"strings"
	"unicode/utf8"
)

// Values reads single values out of a request for ids, types and partitions.
// Every lookup returns false where the value is absent: not there, empty, or
// there twice with different values. Every text returned is valid UTF-8.
//
// The body is parsed at most once, when a lookup first needs it. Not safe for
// concurrent use.
type Values struct {
	request *Request
	alias   alias

	doc      document
	docState parseState

	form      []field
	formState parseState

	query      []field
	queryState parseState
}

type parseState int

const (
	notParsed parseState = iota
	parsed
	unusable
)

// NewValues reads r, which must not change while the values are in use. For a
// scheme with two families of header names use [Verifier.Values].
func NewValues(r *Request) *Values { return &Values{request: r} }

// Header is a header's trimmed text. Bytes that are not UTF-8 are read as
// ISO 8859-1, as HTTP once defined.
func (v *Values) Header(name string) (string, bool) {
	if other, ok := v.alias.rename(name); ok {
		name = other
	}
	value, _ := headerValue(v.request.Header, name)
	return utf8Text(value), value != ""
}

// Query is a decoded query parameter. Parameters that cannot be decoded are
// as if they were not there.
func (v *Values) Query(name string) (string, bool) {
	value, ok := v.rawQuery(name)
	return utf8Text(value), ok
}

// rawQuery is a decoded query parameter, its bytes as they were sent.
func (v *Values) rawQuery(name string) (string, bool) {
	if v.queryState == notParsed {
		v.queryState = parsed
		for f, err := range formFields(v.request.RawQuery) {
			if err == nil {
				v.query = append(v.query, f)
			}
		}
	}
	return lookupField(v.query, name)
}

// Form is a field of a body of application/x-www-form-urlencoded; without a
// body it is a query parameter (deliveries by GET). A body that does not
// parse as a whole has no fields.
func (v *Values) Form(name string) (string, bool) {
	if len(v.request.Body) == 0 {
		return v.Query(name)
	}
	if v.formState == notParsed {
		v.formState = unusable
		if isForm(v.request.Header) {
			if fields, err := parseForm(v.request.Body); err == nil {
				v.form, v.formState = fields, parsed
			}
		}
	}
	value, ok := lookupField(v.form, name)
	return utf8Text(value), ok
}

// JSON is the scalar at a dotted path of the body: \. is a dot in a key,
// digits index an array, @this is the document. A form body with a field
// payload is read in that field (GitHub, Slack). Keys are compared exactly.
// Strings are decoded, numbers keep the text they were written with, booleans
// are true and false; null, "", objects, arrays and strings with a lone
// surrogate (which no UTF-8 can hold) are absent; a NUL in a string stays. A body that is not exactly
// one JSON document in UTF-8 has no values.
func (v *Values) JSON(path string) (string, bool) {
	if name, ok := strings.CutPrefix(path, otherMember); ok {
		return v.otherThan(name)
	}
	raw, ok := v.at(path)
	if !ok {
		return "", false
	}
	return scalar(raw)
}

// otherMember is the path of a name instead of a value: @other.x is the name
// of the document's first member that is not x. Telegram's updates are told
// apart by it.
const otherMember = "@other."

func (v *Values) otherThan(name string) (string, bool) {
	doc, ok := v.at(wholeDocument)
	if !ok || doc[0] != '{' {
		return "", false
	}
	var other string
	walk(doc, func(m member) bool {
		if text, ok := decodeString(m.key); ok && text != name {
			other = text
		}
		return other == ""
	})
	return other, other != ""
}

// Items are the elements of the array at a path, in order; false where there
// is no array, which is different from an empty one. After 10,000 of them the
// rest is left out: such a batch must be refused.
func (v *Values) Items(path string) ([]Item, bool) {
	raw, ok := v.at(path)
	if !ok {
		return nil, false
	}
	return arrayItems(raw)
}

// at is the raw value at a path of the body.
func (v *Values) at(path string) ([]byte, bool) {
	if v.docState == notParsed {
		v.docState = unusable
		if doc, ok := parseDocument(v.documentText()); ok {
			v.doc, v.docState = doc, parsed
		}
	}
	if v.docState == unusable {
		return nil, false
	}
	return v.doc.at(path)
}

// documentText is where the JSON of a request is.
func (v *Values) documentText() []byte {
	if len(v.request.Body) > 0 {
		if payload, ok := v.Form("payload"); ok {
			return []byte(payload)
		}
	}
	return v.request.Body
}

// Item is one element of a batch.
type Item struct {
	raw []byte
	// made is nil where all of an item's values lie inside it.
	made *madeValues
}

// madeValues stand in for values that are made of more than the item, at the
// paths @id and @type.
type madeValues struct{ id, kind string }

// Raw is the item's JSON text as it stands in the body; it must not be
// changed.
func (i *Item) Raw() []byte { return i.raw }

// JSON is a scalar inside the item, by the rules of [Values.JSON]; @this is
// the item. Where the provider's id and type of an item are made of more than
// the item (Meta), they are at @id and @type.
func (i *Item) JSON(path string) (string, bool) {
	switch {
	case i.made == nil:
	case path == itemID && i.made.id != "":
		return i.made.id, true
	case path == itemKind && i.made.kind != "":
		return i.made.kind, true
	}
	doc := document{raw: i.raw}
	raw, ok := doc.at(path)
	if !ok {
		return "", false
	}
	return scalar(raw)
}

// utf8Text returns s, or s read as ISO 8859-1 where it is not UTF-8: no byte
// is lost, so different ids stay different.
func utf8Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		out.WriteRune(rune(s[i]))
	}
	return out.String()
}
