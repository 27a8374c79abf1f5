package filter

import (
	"errors"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
)

// kind is what a value of a document is.
type kind byte

const (
	kindNothing kind = iota // is not there
	kindDocument
	kindObject
	kindList
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindText
	kindBytes // a body that is no text; equal to nothing
)

// value is a part of the document that a pattern is matched against.
type value struct {
	kind    kind
	text    string // of a text; a number as it is written
	items   []value
	members map[string]value
}

// member is a member of a value; nothing where it has none.
func (v *value) member(d *document, name string) value {
	switch v.kind {
	case kindDocument:
		return d.field(name)
	case kindObject:
		return v.members[name]
	}
	return value{}
}

// anySingle says whether test holds for the value or, in a list, for one of
// its elements; it is never asked about objects.
func (v *value) anySingle(test func(*value) bool) bool {
	switch v.kind {
	case kindNothing, kindDocument, kindObject:
		return false
	case kindList:
		for i := range v.items {
			if v.items[i].anySingle(test) {
				return true
			}
		}
		return false
	}
	return test(v)
}

// exists says whether a single value stands at a path. Elements of lists are
// looked at one by one, as everywhere in patterns.
func (v value) exists(d *document, path []string) bool {
	if v.kind == kindList {
		for _, item := range v.items {
			if item.exists(d, path) {
				return true
			}
		}
		return false
	}
	if len(path) > 0 {
		return v.member(d, path[0]).exists(d, path[1:])
	}
	return v.anySingle(func(*value) bool { return true })
}

// document shows an event to a pattern. Each part is made when it is first
// asked for.
type document struct {
	pattern *Pattern
	event   *bridge.Event
	body    value
	headers value
	query   value
	decoded bool // body is made
	decoder decoder
	err     error // why the body could not be decoded
}

// forget lets go of the event.
func (d *document) forget() {
	d.event, d.body, d.headers, d.query, d.decoded, d.err = nil, value{}, value{}, value{}, false, nil
}

// timeLayout is that of the envelope: RFC 3339 with microseconds, in UTC.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func (d *document) field(name string) value {
	switch name {
	case "id":
		return textValue(d.event.ID)
	case "type":
		return textValue(d.event.Type)
	case "source":
		return textValue(d.event.Source)
	case "time":
		return textValue(d.event.Received.UTC().Format(timeLayout))
	case "method":
		return textValue(d.event.Method)
	case "path":
		return textValue(d.event.Path)
	case "headers":
		return made(&d.headers, func() map[string]string { return headersOf(d.event, &d.pattern.headers) })
	case "query":
		return made(&d.query, func() map[string]string { return queryOf(d.event, &d.pattern.query) })
	case "body":
		return d.bodyValue()
	}
	return value{}
}

func textValue(s string) value { return value{kind: kindText, text: s} }

// made makes an object of texts once.
func made(v *value, texts func() map[string]string) value {
	if v.kind == kindNothing {
		v.kind, v.members = kindObject, make(map[string]value)
		for name, text := range texts() {
			v.members[name] = textValue(text)
		}
	}
	return *v
}

func (d *document) bodyValue() value {
	if !d.decoded {
		d.body, d.err = d.decoder.decodeWanted(d.event.Body, &d.pattern.body)
		d.decoded = true
	}
	return d.body
}

// wanted says what a pattern compares in a body: a single value, members, or
// either.
type wanted struct {
	leaf    bool
	members map[string]*wanted
}

// at is what is wanted at a path, made where there is nothing yet.
func (w *wanted) at(path []string) *wanted {
	for _, name := range path {
		next := w.members[name]
		if next == nil {
			next = &wanted{}
			if w.members == nil {
				w.members = make(map[string]*wanted)
			}
			w.members[name] = next
		}
		w = next
	}
	return w
}

// decodeWanted is what is wanted of a body; a text where it is no JSON. The
// error is a *tooLargeError.
func (d *decoder) decodeWanted(body []byte, w *wanted) (value, error) {
	var v value
	err := d.read(body, func() (err error) {
		v, err = d.wanted(w)
		return err
	})
	var large *tooLargeError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &large):
		return value{}, err
	case !utf8.Valid(body):
		return value{kind: kindBytes}, nil
	case !w.leaf:
		return value{kind: kindText}, nil
	}
	return textValue(string(body)), nil
}

func (d *decoder) wanted(w *wanted) (value, error) {
	if err := d.count(); err != nil {
		return value{}, err
	}
	kind := d.json.PeekKind()
	switch {
	case kind == '[':
		return d.wantedList(w)
	case kind == '{' && w.members != nil:
		return d.wantedMembers(w)
	case kind == '{':
		return value{kind: kindObject}, d.json.SkipValue()
	case !w.leaf:
		return value{}, d.json.SkipValue()
	}
	return d.wantedSingle()
}

func (d *decoder) wantedSingle() (value, error) {
	if d.json.PeekKind() == '0' {
		raw, err := d.json.ReadValue()
		return value{kind: kindNumber, text: string(raw)}, err
	}
	token, err := d.json.ReadToken()
	if err != nil {
		return value{}, err
	}
	switch token.Kind() {
	case '"':
		return textValue(token.String()), nil
	case 't':
		return value{kind: kindTrue}, nil
	case 'f':
		return value{kind: kindFalse}, nil
	}
	return value{kind: kindNull}, nil
}

// wantedMembers reads the members that are wanted; of a name that stands twice
// the last counts.
func (d *decoder) wantedMembers(w *wanted) (value, error) {
	v := value{kind: kindObject, members: make(map[string]value, len(w.members))}
	if _, err := d.json.ReadToken(); err != nil {
		return value{}, err
	}
	for d.json.PeekKind() == '"' {
		raw, err := d.json.ReadValue()
		if err != nil {
			return value{}, err
		}
		name := memberName(raw)
		of := w.members[string(name)]
		if of == nil {
			if err := d.json.SkipValue(); err != nil {
				return value{}, err
			}
			continue
		}
		key := string(name)
		if v.members[key], err = d.wanted(of); err != nil {
			return value{}, err
		}
	}
	_, err := d.json.ReadToken()
	return v, err
}

func (d *decoder) wantedList(w *wanted) (value, error) {
	v := value{kind: kindList}
	if _, err := d.json.ReadToken(); err != nil {
		return value{}, err
	}
	for kind := d.json.PeekKind(); kind != ']' && kind != 0; kind = d.json.PeekKind() {
		item, err := d.wanted(w)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := d.json.ReadToken()
	return v, err
}
