package ingress

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// expression is a compiled value expression (presets.md §1): alternatives,
// tried in order.
type expression []term

// termKind says where a value comes from.
type termKind uint8

const (
	termHeader termKind = iota
	termQuery
	termForm
	termBody
	termItem // of a split batch; where nothing is split, of the body
	termText
	termComposite
	termJoined
	termHashBody
	termHashItem
	termHashForm
)

// term is one value source. Name is a header, parameter, field, path or text.
type term struct {
	kind     termKind
	name     string
	optional bool // only in a composite
	parts    []term
}

// parseExpression compiles a preset's expression. The empty one has no value.
func parseExpression(s string) (expression, error) {
	if s == "" {
		return nil, nil
	}
	var e expression
	for _, alternative := range splitTop(s, '|') {
		t, err := parseTerm(strings.TrimSpace(alternative))
		if err != nil {
			return nil, fmt.Errorf("value expression %q: %w", s, err)
		}
		e = append(e, t)
	}
	return e, nil
}

// splitTop splits at separators outside of brackets.
func splitTop(s string, sep byte) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case sep:
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

var termPrefixes = []struct {
	prefix string
	kind   termKind
}{{"h:", termHeader}, {"q:", termQuery}, {"f:", termForm}, {"b:", termBody}, {"i:", termItem}}

// newTerm has the names of headers in the form in which net/http keeps them:
// any other is converted at each lookup.
func newTerm(kind termKind, name string) term {
	if kind == termHeader {
		name = http.CanonicalHeaderKey(name)
	}
	return term{kind: kind, name: name}
}

func parseTerm(s string) (term, error) {
	if text, ok := strings.CutPrefix(s, "="); ok {
		return term{kind: termText, name: text}, nil
	}
	for _, p := range termPrefixes {
		if name, ok := strings.CutPrefix(s, p.prefix); ok && name != "" {
			return newTerm(p.kind, name), nil
		}
	}
	function, rest, ok := strings.Cut(s, "(")
	arguments, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return term{}, fmt.Errorf("%q is no value", s)
	}
	switch function {
	case "c":
		return parseParts(termComposite, arguments)
	case "j":
		return parseParts(termJoined, arguments)
	case "sha":
		return parseHash(arguments)
	}
	return term{}, fmt.Errorf("%q is no function", function)
}

func parseParts(kind termKind, arguments string) (term, error) {
	t := term{kind: kind}
	for _, argument := range splitTop(arguments, ',') {
		text, optional := strings.CutSuffix(strings.TrimSpace(argument), "?")
		part, err := parseTerm(text)
		if err != nil {
			return term{}, err
		}
		part.optional = optional
		t.parts = append(t.parts, part)
	}
	return t, nil
}

func parseHash(argument string) (term, error) {
	field, isField := strings.CutPrefix(argument, "f:")
	switch {
	case argument == "body":
		return term{kind: termHashBody}, nil
	case argument == "item":
		return term{kind: termHashItem}, nil
	case isField && field != "":
		return term{kind: termHashForm, name: field}, nil
	}
	return term{}, fmt.Errorf("sha of %q: must be of body, item or f:NAME", argument)
}

// parseSourceForm compiles the form of a source's own transaction_id,
// event_type and partition: body:<path>, header:<name>, query:<name>, and
// where literal is set literal:<text>. In a split batch body: reads the item.
func parseSourceForm(s string, literal bool) (expression, error) {
	form, ok := bridge.ParseValueForm(s)
	if ok && (literal || form.Kind != bridge.FormLiteral) {
		return expression{newTerm(formTerms[form.Kind], form.Name)}, nil
	}
	if literal {
		return nil, errors.New("must be body:<path>, header:<name>, query:<name> or literal:<text>")
	}
	return nil, errors.New("must be body:<path>, header:<name> or query:<name>")
}

var formTerms = map[string]termKind{
	bridge.FormBody: termItem, bridge.FormHeader: termHeader, bridge.FormQuery: termQuery, bridge.FormLiteral: termText,
}

// value is what the first alternative that has one yields.
func (e expression) value(f *facts) (string, *term, bool) {
	for i := range e {
		if v, ok := e[i].value(f); ok {
			return v, &e[i], true
		}
	}
	return "", nil, false
}

func (t *term) value(f *facts) (string, bool) {
	switch t.kind {
	case termHeader:
		return f.values.Header(t.name)
	case termQuery:
		return f.values.Query(t.name)
	case termForm:
		return f.values.Form(t.name)
	case termBody:
		return f.values.JSON(t.name)
	case termItem:
		return f.itemValue(t.name)
	case termText:
		return t.name, true
	case termComposite:
		return t.composite(f)
	case termJoined:
		return t.joined(f)
	case termHashBody:
		return f.hashBody()
	case termHashItem:
		return f.hashItem()
	case termHashForm:
		v, ok := f.values.Form(t.name)
		if !ok {
			return "", false
		}
		return hexSHA256([]byte(v)), true
	}
	return "", false
}

// hashes says that the value of the term is already a SHA-256 in hex.
func (t *term) hashes() bool {
	return t.kind == termHashBody || t.kind == termHashItem || t.kind == termHashForm
}

// ofItem says that the value differs from item to item of a split batch.
func (t *term) ofItem() bool {
	if t.kind == termItem || t.kind == termHashItem {
		return true
	}
	for i := range t.parts {
		if t.parts[i].ofItem() {
			return true
		}
	}
	return false
}

// composite writes each part with its length in front, so that no two lists
// of parts give the same text.
func (t *term) composite(f *facts) (string, bool) {
	out := make([]byte, 0, 64)
	for i := range t.parts {
		part := &t.parts[i]
		v, ok := part.value(f)
		if !ok && !part.optional {
			return "", false
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(len(v)), 10)
		out = append(append(out, ':'), v...)
	}
	return string(out), true
}

func (t *term) joined(f *facts) (string, bool) {
	var out []string
	for i := range t.parts {
		if v, ok := t.parts[i].value(f); ok {
			out = append(out, v)
		}
	}
	return strings.Join(out, "."), len(out) > 0
}
